"""The log's own keys: which one signs which sizes, and the event that rotates them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ledger.app.ports.store import Transaction
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import LOG_KEYS_STREAM
from ledger.merkle.key_history import LogKey, Rotation, follow, rotate
from ledger.merkle.note import VerifierKey, Verify, parse_vkey

KEY_ROTATED = "log_key_rotated"


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """What makes a log this log: the key it began with, whose name is its origin for ever."""

    first_key: VerifierKey
    verify: Verify

    @property
    def origin(self) -> str:
        return self.first_key.name


def log_keys(tx: Transaction, identity: LogIdentity) -> tuple[LogKey, ...]:
    """The log's keys, oldest first. Raises ``LogInconsistent`` where a rotation does not hold."""
    rotations = []
    for event in tx.events.stream(LOG_KEYS_STREAM):
        payload = event.payload
        rotations.append(
            Rotation(
                parse_vkey(payload["old_vkey"]),
                parse_vkey(payload["new_vkey"]),
                payload["from_size"],
                bytes.fromhex(payload["endorsement"]),
            )
        )
    return follow(identity.first_key, rotations, identity.verify)


def rotate_log_key(
    tx: Transaction,
    identity: LogIdentity,
    new: VerifierKey,
    *,
    sign_with: Callable[[VerifierKey], Callable[[bytes], bytes]],
    now_ns: int,
) -> LogKey:
    """Append the rotation to ``new``; it signs every checkpoint that covers this event.

    ``sign_with`` gives the signature of a key of the log. Raises ``LogInconsistent`` for a key that cannot
    follow, and what ``sign_with`` raises where the present key is not at hand.
    """
    # From here on nothing comes into the log before the rotation is there to be seen: what is larger than this look
    # found it, the old key would still sign, and may not.
    from_size = tx.log.hold() + 1
    keys = log_keys(tx, identity)
    rotation = rotate(keys, new, from_size, sign_with(keys[-1].key))
    payload = {
        "origin": identity.origin,
        "old_vkey": rotation.old.vkey(),
        "new_vkey": rotation.new.vkey(),
        "from_size": from_size,
        "endorsement": rotation.endorsement.hex(),
    }
    # The version makes two rotations at once impossible: both would leave the same key.
    tx.events.append(LOG_KEYS_STREAM, [NewEvent(KEY_ROTATED, payload, now_ns)], expected_version=len(keys) - 1)
    return LogKey(new, from_size, None)
