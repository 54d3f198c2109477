"""Making a data directory: its keys, its database, and the marker that says whose log it is."""

from __future__ import annotations

import os
from pathlib import Path

from ledger.attest.signing import NoteKey
from ledger.domain.canonical import canonical_bytes, parse_json
from ledger.domain.instant import SECOND_NS
from ledger.errors import DataDirectoryInvalid, SlaLedgerError
from ledger.merkle.note import VerifierKey
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.collectors import COLLECTOR
from ledger.wiring.data_directory import DATA_FILE, DATA_FORMAT, DATABASE_FILE, KEY_FOLDER
from ledger.wiring.files import replace_file
from ledger.wiring.keyring import Keyring
from ledger.wiring.log_keys import LOG_KEY_VARIABLE, first_key
from ledger.wiring.storage import make_storage

OWN_KEYS = ("issuer", "issuer-evm", "deployer-evm", COLLECTOR)


def make_data(folder: Path, database_url: str | None) -> None:
    """Make keys and database first and the marker last, whole or not at all.

    Raises ``DataDirectoryInvalid`` where the folder holds something else, or cannot be written.
    """
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise DataDirectoryInvalid(f"{folder} is not a directory ({error.strerror})", path=str(folder)) from error
    if any(name.partition("-")[0] not in {KEY_FOLDER, DATABASE_FILE, DATA_FILE + ".new"} for name in present):
        raise DataDirectoryInvalid(
            f"{folder} is not empty and holds no ledger; name a new or empty directory", path=str(folder)
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        first = make_keys(folder)
        make_storage(folder, database_url, SystemClock(), SystemRandomness())
        genesis = {
            "format": DATA_FORMAT,
            "genesis_timestamp_s": SystemClock().now_ns() // SECOND_NS,
            "log_vkey": first.key.vkey(),
        }
        replace_file(folder / DATA_FILE, canonical_bytes(genesis))
    except OSError as error:
        raise DataDirectoryInvalid(f"{folder} cannot be made ({error.strerror})", path=str(folder)) from error


def make_keys(folder: Path) -> NoteKey:
    """Make the keys of a directory; the one that its log begins with."""
    keyring = Keyring(folder / KEY_FOLDER, SystemRandomness())
    for name in OWN_KEYS:
        keyring.make(name)
    return first_key(keyring, os.environ.get(LOG_KEY_VARIABLE))


def names_log_key(folder: Path) -> bool:
    """Whether the log has a key already: a lost one is never replaced. An import does not name any."""
    try:
        return "log_vkey" in parse_json((folder / DATA_FILE).read_bytes(), max_bytes=4096)
    except (OSError, TypeError, SlaLedgerError):
        return True


def remember_first_key(folder: Path, first: VerifierKey) -> None:
    """Write the log's first key into a directory that does not name it yet: the key's file may go some day."""
    marker = folder / DATA_FILE
    document = parse_json(marker.read_bytes(), max_bytes=4096)
    if "log_vkey" in document:
        return
    replace_file(marker, canonical_bytes({**document, "log_vkey": first.vkey()}))
