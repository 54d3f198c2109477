"""Read what a ceremony's key file (zkey of snarkjs, Groth16 over BN254) says about itself.

Source: the reader and writer of snarkjs 0.7.6 (zkey_utils, "zkey" version 1). Sections: 1 protocol, 2 header,
3 IC, 10 circuit hash and contributions. Numbers are little-endian, coordinates in Montgomery form with R = 2^256.
The rest (the key itself) is left to the provers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from ledger.attest.crypto.bn254 import G1Point, G2Point
from ledger.attest.crypto.verification_key import MAX_PUBLIC_SIGNALS
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.errors import ProvingKeyInvalid

GROTH16: Final = 1
BEACON: Final = 1
MAX_CONTRIBUTIONS: Final = 10_000
MAX_SECTIONS: Final = 64
_MAX_SECTION_BYTES: Final = 16 << 20
_FIELD: Final = 32
_FROM_MONTGOMERY: Final = pow(1 << 256, -1, BASE_ORDER)
_NAME, _ITERATIONS, _BEACON = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Contribution:
    """One step of phase 2. ``beacon`` is the hash a beacon was made from, with 2^``iterations_exp`` hashings."""

    delta_after: G1Point
    g1_s: G1Point
    g1_sx: G1Point
    g2_spx: G2Point
    transcript: bytes
    name: str
    beacon: bytes | None
    iterations_exp: int


@dataclass(frozen=True, slots=True)
class Zkey:
    """``circuit_hash`` is snarkjs' hash over what the circuit and the powers of tau give, before any contribution."""

    variables: int
    public_signals: int
    domain_size: int
    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta_1: G1Point
    delta_2: G2Point
    ic: tuple[G1Point, ...]
    circuit_hash: bytes
    contributions: tuple[Contribution, ...]

    def verification_key_document(self) -> dict[str, Any]:
        """The verification key in snarkjs' JSON form, unchecked."""

        def g1(point: G1Point) -> list[str]:
            return [str(point[0]), str(point[1]), "1"]

        def g2(point: G2Point) -> list[list[str]]:
            return [[str(c) for c in point[0]], [str(c) for c in point[1]], ["1", "0"]]

        return {
            "protocol": "groth16",
            "curve": "bn128",
            "nPublic": self.public_signals,
            "vk_alpha_1": g1(self.alpha),
            "vk_beta_2": g2(self.beta),
            "vk_gamma_2": g2(self.gamma),
            "vk_delta_2": g2(self.delta_2),
            "IC": [g1(point) for point in self.ic],
        }


def read_zkey(path: Path) -> Zkey:
    """What the file says. Raises ProvingKeyInvalid if it is no zkey of Groth16 over BN254, or is cut or garbled."""
    try:
        with path.open("rb") as file:
            sections = _sections(file)
            if _Reader(_section(file, sections, 1)).u32() != GROTH16:
                raise ValueError("its protocol is not Groth16")
            return _read(_Reader(_section(file, sections, 2)), lambda number: _section(file, sections, number))
    except OSError as error:
        raise ProvingKeyInvalid(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
    except (ValueError, struct.error) as error:
        raise ProvingKeyInvalid(
            f"{path} is no Groth16 zkey of snarkjs ({error}); name the file that the ceremony ended with",
            path=str(path),
        ) from error


class _Reader:
    """Reads one section to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise ValueError("a section ends too early")
        self._at += count
        return taken

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def coordinate(self) -> int:
        value = self.number(_FIELD)
        if value >= BASE_ORDER:
            raise ValueError("a coordinate is not below q")
        return value * _FROM_MONTGOMERY % BASE_ORDER

    def g1(self) -> G1Point:
        return self.coordinate(), self.coordinate()

    def g2(self) -> G2Point:
        return (self.coordinate(), self.coordinate()), (self.coordinate(), self.coordinate())

    def end(self) -> None:
        if self._at != len(self._data):
            raise ValueError("a section is longer than what it holds")


def _sections(file: BinaryIO) -> dict[int, tuple[int, int]]:
    """Start and length of each section by its number."""
    magic, version, count = struct.unpack("<4sII", file.read(12))
    if magic != b"zkey" or version != 1 or count > MAX_SECTIONS:
        raise ValueError("the file does not start as a zkey of version 1")
    size = file.seek(0, 2)
    at, found = 12, {}
    for _ in range(count):
        file.seek(at)
        number, length = struct.unpack("<IQ", file.read(12))
        at += 12
        if number in found or length > size - at:
            raise ValueError(f"section {number} is there twice or passes the end of the file")
        found[number] = (at, length)
        at += length
    if at != size:
        raise ValueError("there is something after the last section")
    return found


def _section(file: BinaryIO, sections: dict[int, tuple[int, int]], number: int) -> bytes:
    if number not in sections:
        raise ValueError(f"section {number} is missing")
    start, length = sections[number]
    if length > _MAX_SECTION_BYTES:
        raise ValueError(f"section {number} is too long")
    file.seek(start)
    return file.read(length)


def _read(header: _Reader, section: Callable[[int], bytes]) -> Zkey:
    if header.number(header.u32()) != BASE_ORDER or header.number(header.u32()) != SCALAR_ORDER:
        raise ValueError("its curve is not BN254")
    variables, public, domain = header.u32(), header.u32(), header.u32()
    if public > MAX_PUBLIC_SIGNALS:
        raise ValueError(f"it has {public} public signals")
    alpha, _beta_1, beta, gamma = header.g1(), header.g1(), header.g2(), header.g2()
    delta_1, delta_2 = header.g1(), header.g2()
    header.end()
    points = _Reader(section(3))
    ic = tuple(points.g1() for _ in range(public + 1))
    points.end()
    history = _Reader(section(10))
    circuit_hash, count = history.take(64), history.u32()
    if count > MAX_CONTRIBUTIONS:
        raise ValueError(f"it has {count} contributions")
    contributions = tuple(_contribution(history) for _ in range(count))
    history.end()
    return Zkey(
        variables, public, domain, alpha, beta, gamma, delta_1, delta_2, ic, circuit_hash, contributions
    )  # fmt: skip


def _contribution(history: _Reader) -> Contribution:
    delta_after, g1_s, g1_sx, g2_spx = history.g1(), history.g1(), history.g1(), history.g2()
    transcript, kind = history.take(64), history.u32()
    parameters = _Reader(history.take(history.u32()))
    name, beacon, iterations = "", None, 0
    while True:
        try:
            number = parameters.take(1)[0]
        except ValueError:
            break
        if number == _NAME:
            name = parameters.take(parameters.take(1)[0]).decode("utf-8", "replace")
        elif number == _ITERATIONS:
            iterations = parameters.take(1)[0]
        elif number == _BEACON:
            beacon = parameters.take(parameters.take(1)[0])
        else:
            raise ValueError(f"a contribution has the unknown parameter {number}")
    if kind not in (0, BEACON) or (kind == BEACON) != (beacon is not None):
        raise ValueError("a contribution is neither a person's nor a beacon's")
    return Contribution(delta_after, g1_s, g1_sx, g2_spx, transcript, name, beacon, iterations)
