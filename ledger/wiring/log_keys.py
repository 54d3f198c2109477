"""The log's signing keys in a data directory: which are at hand, and the signer over them.

``log.key`` is the first key of a log, ``log-<hash>.key`` one that it was rotated to. A key may come from the
environment instead (``SLA_LEDGER_LOG_KEY``, one ``PRIVATE+KEY`` line) and then lies in no file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ledger.app.log.log_keys import LogIdentity, log_keys
from ledger.app.ports.store import Transaction
from ledger.attest.crypto.signing import NoteKey, SigningKey, load_note_key, parse_skey, save_note_key, verify
from ledger.errors import KeyFileUnusable, SettingInvalid, SlaLedgerError
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.key_history import key_at
from ledger.merkle.note import VerifierKey
from ledger.wiring.keyring import Keyring
from ledger.wiring.needs import KeyGroup, folder_of, refuse

LOG_KEY_VARIABLE = "SLA_LEDGER_LOG_KEY"
LOCAL_ORIGIN = "sla-ledger.local"


class LogSigner:
    """Signs checkpoints with the keys at hand (``ledger.app.log.checkpoints.CheckpointSigner``).

    ``folder`` is where further ones may come to lie; None: this process is given none.
    """

    def __init__(self, identity: LogIdentity, folder: Path | None) -> None:
        self.identity = identity
        self.origin = identity.origin
        self._folder = folder
        self._held: dict[VerifierKey, NoteKey] = {}

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        return sign_checkpoint(Checkpoint(self.origin, size, root), [self._note_key(key)]).decode()

    def sign_with(self, key: VerifierKey) -> Callable[[bytes], bytes]:
        """The signature of one of the log's keys; raises ``KeyFileUnusable`` where it is not at hand."""
        return self._note_key(key).sign

    def holds(self, key: VerifierKey) -> bool:
        return key in self._held

    def hold(self, key: NoteKey) -> None:
        """Take one more key; ``KeyFileUnusable`` for one under another name than the log's origin."""
        if key.key.name != self.origin:
            raise KeyFileUnusable(f"The key is named {key.key.name!r}, but the log's origin is {self.origin!r}.")
        self._held[key.key] = key

    def vkey_at(self, tx: Transaction, size: int) -> str:
        """The verifier key of the checkpoint of ``size``."""
        return key_at(log_keys(tx, self.identity), size).vkey()

    def _note_key(self, key: VerifierKey) -> NoteKey:
        if self._folder is None:
            raise refuse(KeyGroup.LOG)
        held = self._held.get(key)
        rotated = rotated_key_file(self._folder, key)
        if held is None and rotated.exists():
            # Another process rotated the key while this one ran.
            held = load_note_key(rotated, self.origin)
            self.hold(held)
        if held is None or held.key != key:
            raise KeyFileUnusable(
                f"The log's key {key.vkey()} is not at hand: its file is not in keys/, and {LOG_KEY_VARIABLE} does not "
                "hold it. Without it nothing can be signed.",
                vkey=key.vkey(),
            )
        return held


def first_key(keyring: Keyring, environment_line: str | None) -> NoteKey:
    """The key a new log begins with: from the environment, or made in the keyring. Its name is the origin."""
    if environment_line:
        return _from_environment(environment_line)
    keyring.make("log")
    return _named(keyring.signing_key("log"))


def open_signer(folder: Path, keyring: Keyring, first: VerifierKey | None, environment_line: str | None) -> LogSigner:
    """The signer of an existing log. ``first`` is the key it began with; None: that in ``log.key``.

    In a process that is not given the log's keys it signs nothing. Raises ``KeyFileUnusable`` for a file that is open
    to others, ``SettingInvalid`` for an unusable environment.
    """
    identity = LogIdentity(first or _named(keyring.signing_key("log")).key, verify)
    if not keyring.opens(KeyGroup.LOG):
        return LogSigner(identity, None)
    own = folder_of(folder, KeyGroup.LOG)
    signer = LogSigner(identity, own)
    files = sorted(own.glob("log-*.key")) + ([own / "log.key"] if (own / "log.key").exists() else [])
    for path in files:
        signer.hold(load_note_key(path, identity.origin))
    if environment_line:
        try:
            signer.hold(_from_environment(environment_line))
        except KeyFileUnusable as error:
            raise SettingInvalid(f"{LOG_KEY_VARIABLE}: {error.message}", setting=LOG_KEY_VARIABLE) from error
    return signer


def keep_key(folder: Path, key: NoteKey) -> Path:
    """Store a rotated key in its file; the path. Raises ``KeyFileUnusable`` where the file exists."""
    own = folder_of(folder, KeyGroup.LOG)
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = rotated_key_file(own, key.key)
    save_note_key(path, key)
    return path


def rotated_key_file(folder: Path, key: VerifierKey) -> Path:
    """Where a key that the log was rotated to lies."""
    return folder / f"log-{key.key_id.hex()}.key"


def _named(key: SigningKey) -> NoteKey:
    return NoteKey(f"{LOCAL_ORIGIN}/{key.public_key.hex()[:16]}", key)


def _from_environment(line: str) -> NoteKey:
    try:
        return parse_skey(line.strip())
    except SlaLedgerError as error:
        raise SettingInvalid(f"{LOG_KEY_VARIABLE}: {error.message}", setting=LOG_KEY_VARIABLE) from error
