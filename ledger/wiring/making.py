"""Making a data directory: its keys, its database, and the marker that says whose log it is."""

from __future__ import annotations

import os
from pathlib import Path

from ledger.attest.signing import NoteKey
from ledger.domain.canonical import canonical_bytes, parse_json
from ledger.domain.instant import SECOND_NS
from ledger.errors import DataDirectoryInvalid, SlaLedgerError
from ledger.merkle.note import VerifierKey, parse_vkey
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.collectors import COLLECTOR
from ledger.wiring.data_directory import DATA_FILE, DATA_FORMAT, DATABASE_FILE, KEY_FOLDER, PIN_FILE
from ledger.wiring.files import replace_file
from ledger.wiring.keyring import Keyring
from ledger.wiring.log_keys import LOG_KEY_VARIABLE, first_key
from ledger.wiring.needs import folder_of, group_of
from ledger.wiring.provers import move_pins
from ledger.wiring.public_keys import PUBLIC_KEYS_FILE
from ledger.wiring.storage import make_storage

OWN_KEYS = ("issuer", "issuer-evm", "deployer-evm", COLLECTOR)
MAX_TIMESTAMP_S = 2**63 // SECOND_NS


def make_data(folder: Path, database_url: str | None) -> None:
    """Make keys and database first and the marker last, whole or not at all.

    Raises ``DataDirectoryInvalid`` where the folder holds something else, or cannot be written.
    """
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise DataDirectoryInvalid(f"{folder} is not a directory ({error.strerror})", path=str(folder)) from error
    ours = {KEY_FOLDER, DATABASE_FILE, DATA_FILE + ".new"}
    if any(name.partition("-")[0] not in ours for name in present - {PUBLIC_KEYS_FILE}):
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


def read_marker(folder: Path) -> tuple[int, VerifierKey | None]:
    """The embedded chain's genesis time and the log's first key. Raises ``DataDirectoryInvalid``."""
    try:
        document = parse_json((folder / DATA_FILE).read_bytes(), max_bytes=4096)
        if document["format"] != DATA_FORMAT:
            raise ValueError(f"its format is {document['format']!r}")
        timestamp_s = int(document["genesis_timestamp_s"])
        if not 0 <= timestamp_s < MAX_TIMESTAMP_S:
            raise ValueError(f"genesis_timestamp_s {timestamp_s} is no time")
        # Directories made before keys could be rotated do not say it: there the first key is the only one.
        first = parse_vkey(document["log_vkey"]) if "log_vkey" in document else None
    except (OSError, ValueError, KeyError, TypeError, SlaLedgerError) as error:
        raise DataDirectoryInvalid(
            f"{folder} holds no ledger ({DATA_FILE}: {error}); make one with: sla-ledger init --data DIR",
            path=str(folder),
        ) from error
    return timestamp_s, first


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


def part_keys(folder: Path) -> None:
    """Move each key, and the pin, into the folder of its group where there is one: such a folder is made, or mounted,
    so that the processes that need the group see no other. Raises ``DataDirectoryInvalid``.
    """
    keys = folder / KEY_FOLDER
    try:
        for path in sorted(keys.glob("*.key")) + sorted(keys.glob(PIN_FILE)):
            home = folder_of(keys, group_of(path.stem))
            if home != keys:
                # Copied: the folder may be another file system. A key that is there already is never replaced.
                if not (home / path.name).exists():
                    replace_file(home / path.name, path.read_bytes())
                if (home / path.name).read_bytes() == path.read_bytes():
                    path.unlink()
        move_pins(folder)
    except OSError as error:
        raise DataDirectoryInvalid(f"the keys in {keys} cannot be moved ({error.strerror})", path=str(keys)) from error
