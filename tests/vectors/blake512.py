"""BLAKE-512, the digest circomlibjs derives its keys with; hashlib has only its successor BLAKE2.

Source: Aumasson, Henzen, Meier, Phan, "SHA-3 proposal BLAKE", version 1.3, sections 2.2 and 2.3.
Here for the vectors only: sla-ledger's own keys use SHA-512.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

_WORD: Final = (1 << 64) - 1
_SIGMA: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
_COLUMNS: Final = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS: Final = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def _pi_words() -> tuple[int, ...]:
    """The first 16 words of pi's fraction (Machin's formula in fixed point)."""
    bits = 64 * 16 + 64
    one = 1 << bits

    def arctan_inverse(n: int) -> int:
        term, total, k = one // n, 0, 0
        while term:
            total += (term if k % 2 == 0 else -term) // (2 * k + 1)
            term //= n * n
            k += 1
        return total

    fraction = (16 * arctan_inverse(5) - 4 * arctan_inverse(239)) % one >> 64
    return tuple(fraction >> 64 * (15 - i) & _WORD for i in range(16))


_PI: Final = _pi_words()
_IV: Final = tuple(isqrt(prime << 128) & _WORD for prime in (2, 3, 5, 7, 11, 13, 17, 19))


def blake512(data: bytes) -> bytes:
    """The 64-byte BLAKE-512 digest of ``data``, without salt."""
    bits = 8 * len(data)
    padding = bytearray((111 - len(data)) % 128 + 1)
    padding[0] |= 0x80
    padding[-1] |= 0x01
    message = data + bytes(padding) + bits.to_bytes(16, "big")
    state = list(_IV)
    for start in range(0, len(message), 128):
        # The counter is of message bits so far, and 0 for a block that holds padding alone.
        counted = min(bits, 8 * (start + 128)) if 8 * start < bits else 0
        state = _compress(state, message[start : start + 128], counted)
    return b"".join(word.to_bytes(8, "big") for word in state)


def _compress(state: list[int], block: bytes, counted: int) -> list[int]:
    words = [int.from_bytes(block[8 * i : 8 * i + 8], "big") for i in range(16)]
    low, high = counted & _WORD, counted >> 64
    v = [*state, *_PI[:4], low ^ _PI[4], low ^ _PI[5], high ^ _PI[6], high ^ _PI[7]]
    for round_number in range(16):
        order = _SIGMA[round_number % 10]
        for i, lane in enumerate(_COLUMNS + _DIAGONALS):
            p, q = order[2 * i], order[2 * i + 1]
            _mix(v, lane, words[p] ^ _PI[q], words[q] ^ _PI[p])
    return [h ^ v[i] ^ v[i + 8] for i, h in enumerate(state)]


def _mix(v: list[int], lane: tuple[int, int, int, int], first: int, second: int) -> None:
    a, b, c, d = lane
    for word, turn_d, turn_b in ((first, 32, 25), (second, 16, 11)):
        v[a] = (v[a] + v[b] + word) & _WORD
        v[d] = _turn(v[d] ^ v[a], turn_d)
        v[c] = (v[c] + v[d]) & _WORD
        v[b] = _turn(v[b] ^ v[c], turn_b)


def _turn(word: int, by: int) -> int:
    return (word >> by | word << (64 - by)) & _WORD
