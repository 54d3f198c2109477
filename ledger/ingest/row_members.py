"""Members of the rows that the readers of NDJSON logs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.domain.observation import Reason
from ledger.ingest.ndjson import RowUnusable, text_of

MAX_TEXT_CHARS = 120


def required(body: Mapping[str, Any], *fields: str) -> None:
    """Raises ``RowUnusable`` for the first field that is not there."""
    for field in fields:
        if field not in body:
            raise RowUnusable(Reason.FIELD_MISSING, field, "is missing")


def optional_text(body: Mapping[str, Any], field: str, most: int) -> str | None:
    """A member that is text; None where it is missing or null."""
    return None if body.get(field) is None else text_of(body, field, most)
