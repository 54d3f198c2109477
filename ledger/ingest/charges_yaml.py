"""Charges in a YAML or JSON file: read as agreements are, so that no amount becomes a float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledger.domain.credits.charges import CHARGES
from ledger.errors import DocumentInvalid
from ledger.ingest.agreement_yaml import MAX_BYTES, line_of, parse_document


def load_charges_file(path: Path) -> dict[str, Any]:
    """``period`` and ``lines`` of a file; raises ``DocumentInvalid`` with file, line and field."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentInvalid(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    document, lines = parse_document(data, str(path), CHARGES)
    try:
        CHARGES.check(document, "")
    except DocumentInvalid as error:
        field = str(error.data.get("field", ""))
        line = line_of(field, lines)
        raise DocumentInvalid(f"{path}:{line}: {error.message}", file=str(path), line=line, field=field) from error
    found: dict[str, Any] = document
    return found
