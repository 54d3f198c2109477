"""Whether the keys that a process needs are there, looked at before it starts its work.

Nothing of database, chain or prover is loaded for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ledger.errors import KeyFileUnusable
from ledger.settings import read_chain_settings
from ledger.wiring.clock import SystemRandomness
from ledger.wiring.data_directory import KEY_FOLDER
from ledger.wiring.keyring import Keyring
from ledger.wiring.log_keys import LOG_KEY_VARIABLE
from ledger.wiring.needs import ACCOUNT_KEYS, EVERYTHING, KeyGroup, Needs, folder_of
from ledger.wiring.public_keys import read_public_keys


def require_keys(folder: Path, needs: Needs, environ: Mapping[str, str]) -> None:
    """Raises ``KeyFileUnusable`` where a key that a process ``needs`` is missing or open to others, and
    ``DataDirectoryInvalid`` where nothing tells it of those that it is not given.

    Of a process that does everything only the issuer's key is asked for: what it lacks besides it says where it needs
    it, as with a log key that lies in the environment.
    """
    keyring = Keyring(folder / KEY_FOLDER, SystemRandomness(), needs.keys)
    if KeyGroup.ISSUER in needs.keys:
        keyring.signing_key("issuer")
    if needs.keys == EVERYTHING.keys:
        return
    read_public_keys(folder)
    if KeyGroup.CHAIN in needs.keys:
        elsewhere = read_chain_settings(environ).signed_elsewhere
        for role, variable in ACCOUNT_KEYS.items():
            if role not in elsewhere and not environ.get(variable):
                keyring.secret(f"{role}-evm")
    if KeyGroup.LOG in needs.keys and not environ.get(LOG_KEY_VARIABLE) and not keyring.names(KeyGroup.LOG):
        own = folder_of(folder / KEY_FOLDER, KeyGroup.LOG)
        raise KeyFileUnusable(f"{own} holds no key of the log (log.key); without one nothing is signed")
    if KeyGroup.COLLECTOR in needs.keys and not keyring.names(KeyGroup.COLLECTOR):
        own = folder_of(folder / KEY_FOLDER, KeyGroup.COLLECTOR)
        raise KeyFileUnusable(f"{own} holds no collector's key (collector.key); without one nothing is sealed")


def needs_of_commands(folder: Path) -> Needs:
    """What a command works with: every key, but those of groups whose folders are there and empty.

    Such a folder is what a process sees of keys that it is not given. A key that is only lost is missed where it is
    needed.
    """
    keys = folder / KEY_FOLDER
    groups = frozenset(group for group in KeyGroup if not (keys / group).is_dir() or any((keys / group).glob("*.key")))
    return Needs(groups, sequences=True)
