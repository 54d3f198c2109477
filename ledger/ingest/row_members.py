"""Members of the rows that the readers of NDJSON logs have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ledger.domain.rows.observation import Reason
from ledger.ingest.ndjson import RowUnusable, text_of

MAX_TEXT_CHARS = 120
MAX_VALUE_DIGITS = 30

_DECIMAL = re.compile(r"-?\d{1,30}(\.\d{1,30})?", re.ASCII)


def required(body: Mapping[str, Any], *fields: str) -> None:
    """Raises ``RowUnusable`` for the first field that is not there."""
    for field in fields:
        if field not in body:
            raise RowUnusable(Reason.FIELD_MISSING, field, "is missing")


def optional_text(body: Mapping[str, Any], field: str, most: int) -> str | None:
    """A member that is text; None where it is missing or null."""
    return None if body.get(field) is None else text_of(body, field, most)


def exact_value(body: Mapping[str, Any], field: str) -> Fraction:
    """A member that is a number, or its decimal text, to the last digit; raises ``RowUnusable``."""
    said = body[field]
    if type(said) is int or (type(said) is Decimal and said.is_finite()):
        said = format(Decimal(said), "f") if abs(Decimal(said).adjusted()) <= MAX_VALUE_DIGITS else ""
    if type(said) is not str or not _DECIMAL.fullmatch(said):
        raise RowUnusable(
            Reason.FIELD_INVALID,
            field,
            f"must be a number, or its decimal text, of at most {MAX_VALUE_DIGITS} digits before and after the point",
        )
    return Fraction(said)
