"""Reading an agreement for a command, with the one rule on it that needs the attestation's curve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.attest.crypto.babyjub import is_public_key
from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.errors import DocumentInvalid
from ledger.ingest.agreement_yaml import load_agreement, load_document

PLACEHOLDER = "REPLACE"
"""What names begin with that nobody has written in yet: drafts of `agreements import` have them."""


def read_agreement(path: Path) -> Agreement:
    """A valid agreement whose collector has a key; raises ``DocumentInvalid`` with file, line and field.

    Of a draft it says first what is still to be written in: what else is wrong with it mostly follows from that.
    """
    try:
        return load_agreement(path, check=_require_collector_key)
    except DocumentInvalid as error:
        found = placeholders(path)
        if not found:
            raise
        raise DocumentInvalid(
            f"{path}: a draft, with {PLACEHOLDER} still in {', '.join(found)}; write in what is yours, with its keys. "
            f"Besides: {error.message}",
            **{**error.data, "placeholders": found},
        ) from error


def placeholders(path: Path) -> list[str]:
    """The fields of a document that still say REPLACE; none where it cannot be read."""
    try:
        return list(_placeholders(load_document(path), ""))
    except DocumentInvalid:
        return []


def _placeholders(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _placeholders(item, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _placeholders(item, f"{at}[{index}]")
    elif isinstance(value, str) and value.startswith(PLACEHOLDER):
        yield at


def _require_collector_key(agreement: Agreement) -> None:
    if not is_public_key(agreement.collector_key):
        raise fail(
            "collector.babyjubjub_public_key",
            "is no Baby Jubjub public key: x and y must lie on the curve, in its prime-order subgroup, and not be the "
            "identity; copy both again from the collector",
        )
