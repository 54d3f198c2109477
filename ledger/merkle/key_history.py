"""The keys of one log over time: each key signs the checkpoints of a range of sizes, and hands over to the next.

The key that goes endorses the key that comes, and both facts are an entry of the log itself, so that whoever
trusts one key of a log can follow it to the present one. An old key stays good for its own sizes and no other:
whoever steals it later cannot sign for the log's future.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ledger.errors import LogInconsistent
from ledger.merkle.note import VerifierKey, Verify

_PREFIX = "sla-ledger/log-key/v1\n"

SignBytes = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key and the sizes whose checkpoints it signs: from ``from_size`` to below ``until_size`` (None: no end)."""

    key: VerifierKey
    from_size: int
    until_size: int | None

    def covers(self, size: int) -> bool:
        return self.from_size <= size and (self.until_size is None or size < self.until_size)


@dataclass(frozen=True, slots=True)
class Rotation:
    """``new`` signs for the log from ``from_size`` on; ``endorsement`` is the old key's signature over that."""

    old: VerifierKey
    new: VerifierKey
    from_size: int
    endorsement: bytes


def rotation_message(new: VerifierKey, from_size: int) -> bytes:
    """What the old key signs: a prefix no note begins with, the new key and its first size, a line each."""
    return f"{_PREFIX}{new.vkey()}\n{from_size}\n".encode()


def rotate(keys: Sequence[LogKey], new: VerifierKey, from_size: int, sign: SignBytes) -> Rotation:
    """The rotation from the present key, whose ``sign`` is given. Raises LogInconsistent where it cannot be."""
    old = keys[-1].key
    rotation = Rotation(old, new, from_size, sign(rotation_message(new, from_size)))
    _require_successor(keys, rotation)
    return rotation


def follow(first: VerifierKey, rotations: Sequence[Rotation], verify: Verify) -> tuple[LogKey, ...]:
    """The keys of a log, oldest first, from its first key and its rotations in log order.

    Raises LogInconsistent where one does not follow from the one before.
    """
    keys: tuple[LogKey, ...] = (LogKey(first, 0, None),)
    for rotation in rotations:
        _require_successor(keys, rotation)
        message = rotation_message(rotation.new, rotation.from_size)
        if not verify(rotation.old.public_key, message, rotation.endorsement):
            raise LogInconsistent(
                f"The old key of the log did not sign its rotation to {rotation.new.vkey()}.", vkey=rotation.new.vkey()
            )
        last = keys[-1]
        keys = (
            *keys[:-1],
            LogKey(last.key, last.from_size, rotation.from_size),
            LogKey(rotation.new, rotation.from_size, None),
        )
    return keys


def key_at(keys: Sequence[LogKey], size: int) -> VerifierKey:
    """The key that signs the checkpoint of ``size`` leaves."""
    return next(key.key for key in reversed(keys) if key.from_size <= size)


def _require_successor(keys: Sequence[LogKey], rotation: Rotation) -> None:
    last = keys[-1]
    reason = None
    if rotation.old != last.key:
        reason = f"it leaves {rotation.old.vkey()}, but the log's key is {last.key.vkey()}"
    elif rotation.new.name != last.key.name:
        reason = f"the new key's name must stay the log's origin {last.key.name!r}, not {rotation.new.name!r}"
    elif any(rotation.new == known.key for known in keys):
        reason = "the new key was the log's key before"
    elif rotation.from_size <= last.from_size:
        reason = f"its first size {rotation.from_size} is not above {last.from_size}, the old key's first"
    if reason is not None:
        raise LogInconsistent(f"The log's key cannot be rotated so: {reason}.", vkey=rotation.new.vkey())
