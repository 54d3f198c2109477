"""The hashes of docs/attestation-format.md, section 1, for ``outsider``: Keccak, Poseidon, words, points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
U64 = 2**64


def batched(values: Any, n: int) -> list[Any]:
    return [values[at : at + n] for at in range(0, len(values), n)]


@cache
def keccak(data: bytes) -> bytes:
    """Keccak-256: rate 136, padding 0x01 .. 0x80, 24 rounds of Keccak-f[1600]."""
    data += b"\x01" + bytes(-(len(data) + 1) % 136)
    data = data[:-1] + bytes([data[-1] | 0x80])
    lanes = [0] * 25
    for block in batched(data, 136):
        for i in range(17):
            lanes[i] ^= int.from_bytes(bytes(block[8 * i : 8 * i + 8]), "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _rotated(lane: int, by: int) -> int:
    return (lane << by % 64 | lane >> (64 - by % 64)) % U64 if by % 64 else lane


def _permuted(a: list[int]) -> list[int]:
    lfsr = 1
    for _ in range(24):
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        a = [lane ^ c[(i - 1) % 5] ^ _rotated(c[(i + 1) % 5], 1) for i, lane in enumerate(a)]
        x, y, moved = 1, 0, a[1]
        for t in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            moved, a[x + 5 * y] = a[x + 5 * y], _rotated(moved, (t + 1) * (t + 2) // 2)
        a = [a[i] ^ ~a[i - i % 5 + (i + 1) % 5] & a[i - i % 5 + (i + 2) % 5] for i in range(25)]
        for j in range(7):
            a[0] ^= (lfsr & 1) << (1 << j) - 1
            lfsr = (lfsr << 1 ^ (lfsr >> 7) * 0x171) & 0xFF
    return a


def tag(name: str) -> int:
    return int.from_bytes(hashlib.sha256(b"sla-ledger/v1/" + name.encode()).digest()[:31], "big")


def _grain(width: int, partial: int) -> Iterator[int]:
    """Numbers of 254 bits from the self-shrinking Grain LFSR."""
    bits = [int(bit) for bit in f"{1:02b}{0:04b}{254:012b}{width:012b}{8:010b}{partial:010b}" + "1" * 30]

    def step() -> int:
        bits.append(bits[62] ^ bits[51] ^ bits[38] ^ bits[23] ^ bits[13] ^ bits[0])
        bits.pop(0)
        return bits[-1]

    def kept() -> int:
        while not step():
            step()
        return step()

    for _ in range(160):
        step()
    while True:
        yield int("".join(str(kept()) for _ in range(254)), 2)


@cache
def parameters(width: int) -> tuple[list[list[int]], list[list[int]]]:
    partial = {5: 60, 6: 60, 17: 68}[width]
    numbers = _grain(width, partial)
    accepted = (number for number in numbers if number < R)
    constants = [[next(accepted) for _ in range(width)] for _ in range(8 + partial)]
    seeds = [next(numbers) % R for _ in range(2 * width)]
    return constants, [[pow(x + y, -1, R) for y in seeds[width:]] for x in seeds[:width]]


@cache
def poseidon(*inputs: int) -> int:
    assert all(0 <= value < R for value in inputs)
    state = [0, *inputs]
    constants, matrix = parameters(len(state))
    for number, row in enumerate(constants):
        state = [value + constant for value, constant in zip(state, row, strict=True)]
        full = number < 4 or number >= len(constants) - 4
        state = [pow(value, 5, R) if full or i == 0 else value for i, value in enumerate(state)]
        state = [sum(m * value for m, value in zip(line, state, strict=True)) % R for line in matrix]
    return state[0]


def h(name: str, inputs: Sequence[int]) -> int:
    state = tag(name)
    for run in batched(inputs, 15):
        state = poseidon(state, *run, *[0] * (15 - len(run)))
    return state


def words(*values: int | bytes | str) -> bytes:
    """abi.encode of static values: numbers, 32 bytes, or addresses and bytes32 in hex with 0x."""
    made = [bytes.fromhex(value[2:]) if isinstance(value, str) else value for value in values]
    return b"".join(v.to_bytes(32, "big") if isinstance(v, int) else v.rjust(32, b"\0") for v in made)


# --- Baby Jubjub -------------------------------------------------------------------------------------

SUBGROUP = 2736030358979909402780800718157159386076813972158567259200215660948447373041
B8 = (
    5299619240641551281634865583518297030282874472190772894086521144482721001553,
    16950150798460657717958625567821834550301663161624707787222815936182638968203,
)
Point = tuple[int, int]


def on_curve(point: Point) -> bool:
    x, y = point
    return (168700 * x * x + y * y - 1 - 168696 * x * x * y * y) % R == 0 and max(point) < R


def plus(p: Point, q: Point) -> Point:
    (x1, y1), (x2, y2) = p, q
    t = 168696 * x1 * x2 * y1 * y2
    return (x1 * y2 + y1 * x2) * pow(1 + t, -1, R) % R, (y1 * y2 - 168700 * x1 * x2) * pow(1 - t, -1, R) % R


def times(n: int, point: Point) -> Point:
    total = (0, 1)
    for bit in f"{n:b}":
        total = plus(total, total)
        total = plus(total, point) if bit == "1" else total
    return total


@cache
def signed_root(key: Point, root: int, r8: Point, s: int) -> bool:
    """Section 5: whether a collector or probe signed a telemetry root."""
    if not (on_curve(key) and on_curve(r8) and s < SUBGROUP and root < R):
        return False
    if key == (0, 1) or times(SUBGROUP, key) != (0, 1):
        return False
    challenge = poseidon(*r8, *key, root)
    return times(s, B8) == plus(r8, times(8 * challenge, key))
