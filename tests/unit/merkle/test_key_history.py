"""A log's keys over time: rotations that follow, and those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.errors import LogInconsistent
from ledger.merkle.key_history import LogKey, follow, key_at, rotate, rotation_message

ORIGIN = "log.example/a"
A, B, C = (NoteKey(ORIGIN, SigningKey(bytes([number]) * 32)) for number in (1, 2, 3))
FIRST = (LogKey(A.key, 0, None),)
TO_B = rotate(FIRST, B.key, 10, A.sign)
TO_C = rotate(follow(A.key, [TO_B], verify), C.key, 25, B.sign)


def test_each_key_has_its_sizes() -> None:
    keys = follow(A.key, [TO_B, TO_C], verify)
    assert keys == (LogKey(A.key, 0, 10), LogKey(B.key, 10, 25), LogKey(C.key, 25, None))
    sizes = (0, 9, 10, 24, 25, 10**9)
    assert [key_at(keys, size) for size in sizes] == [A.key, A.key, B.key, B.key, C.key, C.key]
    for key in keys:
        assert [key.covers(size) for size in sizes] == [key_at(keys, size) == key.key for size in sizes]


def test_only_the_present_key_hands_over() -> None:
    stolen = replace(TO_C, endorsement=A.sign(rotation_message(C.key, 25)))
    later = replace(TO_B, from_size=11)
    swapped = replace(TO_B, new=C.key)
    for rotations in ([TO_B, stolen], [later], [swapped], [replace(TO_B, endorsement=bytes(64))]):
        with pytest.raises(LogInconsistent, match="did not sign"):
            follow(A.key, rotations, verify)


def test_rotations_in_another_order_or_left_out() -> None:
    for first, rotations in ((A, [TO_C]), (A, [TO_C, TO_B]), (B, [TO_B]), (A, [TO_B, TO_B])):
        with pytest.raises(LogInconsistent, match="but the log's key is"):
            follow(first.key, rotations, verify)


def test_rotations_that_cannot_be() -> None:
    keys = follow(A.key, [TO_B], verify)
    elsewhere = NoteKey("log.example/b", SigningKey(b"\x04" * 32))
    for new, from_size, reason in (
        (elsewhere, 20, "origin"),
        (B, 20, "before"),
        (A, 20, "before"),
        (C, 10, "not above"),
        (C, 3, "not above"),
    ):
        with pytest.raises(LogInconsistent, match=reason):
            rotate(keys, new.key, from_size, B.sign)


def test_an_endorsement_is_no_note() -> None:
    # A signature over a checkpoint's text never endorses a key: the prefix is no origin line that we sign.
    assert rotation_message(B.key, 10).startswith(b"sla-ledger/log-key/v1\n")
    assert rotation_message(B.key, 10) != rotation_message(B.key, 100)
