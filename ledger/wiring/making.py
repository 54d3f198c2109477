"""Making a data directory: its keys, its database, and the marker last."""

from __future__ import annotations

import os
from pathlib import Path

from ledger.attest.crypto.signing import NoteKey
from ledger.errors import DataDirectoryInvalid
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.collectors import COLLECTOR
from ledger.wiring.data_directory import DATABASE_FILE, KEY_FOLDER, PIN_FILE
from ledger.wiring.files import replace_file
from ledger.wiring.keyring import Keyring
from ledger.wiring.log_keys import LOG_KEY_VARIABLE, first_key
from ledger.wiring.marker import DATA_FILE, is_marked, names_log_key, remember_first_key, write_marker
from ledger.wiring.needs import folder_of, group_of
from ledger.wiring.proving_pins import move_pins
from ledger.wiring.public_keys import PUBLIC_KEYS_FILE
from ledger.wiring.storage import make_storage

OWN_KEYS = ("issuer", "issuer-evm", "deployer-evm", COLLECTOR)


def ensure_data(folder: Path, database_url: str | None) -> None:
    """Make the data directory unless it is one, and the keys of one that was imported without; each key is put into the
    folder of its group.

    Raises ``DataDirectoryInvalid`` where the folder holds something else, or cannot be written.
    """
    if not is_marked(folder):
        _make_data(folder, database_url)
    elif not (folder / KEY_FOLDER).exists() and not names_log_key(folder):
        remember_first_key(folder, _make_keys(folder).key)
    _part_keys(folder)


def _make_data(folder: Path, database_url: str | None) -> None:
    """Keys and database first and the marker last, whole or not at all."""
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
        first = _make_keys(folder)
        make_storage(folder, database_url, SystemClock(), SystemRandomness())
        write_marker(folder, SystemClock().now_ns(), first.key)
    except OSError as error:
        raise DataDirectoryInvalid(f"{folder} cannot be made ({error.strerror})", path=str(folder)) from error


def _make_keys(folder: Path) -> NoteKey:
    """Make the keys of a directory; the one that its log begins with."""
    keyring = Keyring(folder / KEY_FOLDER, SystemRandomness())
    for name in OWN_KEYS:
        keyring.make(name)
    return first_key(keyring, os.environ.get(LOG_KEY_VARIABLE))


def _part_keys(folder: Path) -> None:
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
