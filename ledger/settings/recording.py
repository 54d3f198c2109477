"""Whether the registry checks and records each statement, or those alone that somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ledger.errors import SettingInvalid


class Record(StrEnum):
    """Which statements the registry is given. The roots of all of them are published either way."""

    EACH = "each"
    ON_DEMAND = "on-demand"


def read_record(environ: Mapping[str, str]) -> Record:
    """Raises ``SettingInvalid``."""
    text = environ.get("SLA_LEDGER_RECORD") or Record.EACH
    try:
        return Record(text)
    except ValueError:
        raise SettingInvalid(
            f"SLA_LEDGER_RECORD={text[:20]!r} must be {' or '.join(Record)}", setting="SLA_LEDGER_RECORD"
        ) from None
