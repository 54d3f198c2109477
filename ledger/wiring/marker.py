"""``data.json``: that a folder is a data directory, when its embedded chain began, and with which key its log did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import DataDirectoryInvalid, SlaLedgerError
from ledger.merkle.note import VerifierKey, parse_vkey
from ledger.wiring.files import replace_file

DATA_FORMAT: Final = "sla-ledger/data/v1"
DATA_FILE: Final = "data.json"
MAX_TIMESTAMP_S: Final = 2**63 // SECOND_NS

_MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Marker:
    """``first_log_key`` is None in a directory that was imported without keys, and in those made before keys could be
    rotated: there the first key is the only one."""

    genesis_timestamp_s: int
    first_log_key: VerifierKey | None


def is_marked(folder: Path) -> bool:
    """Whether the folder has a marker, of whatever kind."""
    return (folder / DATA_FILE).exists()


def read_marker(folder: Path) -> Marker:
    """Raises ``DataDirectoryInvalid``."""
    if not is_marked(folder):
        raise DataDirectoryInvalid(
            f"{folder} holds no ledger; make one with: sla-ledger init --data {folder}", path=str(folder)
        )
    try:
        document = _read(folder)
        if document["format"] != DATA_FORMAT:
            raise ValueError(f"its format is {document['format']!r}")
        timestamp_s = int(document["genesis_timestamp_s"])
        if not 0 <= timestamp_s < MAX_TIMESTAMP_S:
            raise ValueError(f"genesis_timestamp_s {timestamp_s} is no time")
        return Marker(timestamp_s, parse_vkey(document["log_vkey"]) if "log_vkey" in document else None)
    except (OSError, ValueError, KeyError, TypeError, SlaLedgerError) as error:
        raise DataDirectoryInvalid(
            f"{folder} holds no ledger that this version opens ({DATA_FILE}: {error})",
            path=str(folder),
        ) from error


def write_marker(folder: Path, now_ns: int, first: VerifierKey | None) -> None:
    """Make the folder a data directory; what else it needs is there already. Raises ``OSError``."""
    document = {"format": DATA_FORMAT, "genesis_timestamp_s": now_ns // SECOND_NS}
    replace_file(folder / DATA_FILE, canonical_bytes(document if first is None else _with_key(document, first)))


def names_log_key(folder: Path) -> bool:
    """Whether the log has a key already: a lost one is never replaced. An import does not name any."""
    try:
        return "log_vkey" in _read(folder)
    except (OSError, TypeError, SlaLedgerError):
        return True


def remember_first_key(folder: Path, first: VerifierKey) -> None:
    """Write the log's first key into a directory that does not name it yet: the key's file may go some day."""
    document = _read(folder)
    if "log_vkey" not in document:
        replace_file(folder / DATA_FILE, canonical_bytes(_with_key(document, first)))


def _read(folder: Path) -> Any:
    return parse_json((folder / DATA_FILE).read_bytes(), max_bytes=_MAX_BYTES)


def _with_key(document: dict[str, Any], first: VerifierKey) -> dict[str, Any]:
    return {**document, "log_vkey": first.vkey()}
