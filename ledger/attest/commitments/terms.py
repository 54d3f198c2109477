"""The terms of an agreement as the circuit sees them, and their hash.

An agreement says much that no circuit reads; ``doc_sha256`` binds all of it. What the circuit does
read stands here as integers: targets and thresholds in parts per billion, percentages in basis
points, money in minor units.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from ledger.attest.crypto.babyjub import Point, require_public_key
from ledger.attest.crypto.field import require_at_most, require_bytes, require_uint
from ledger.attest.crypto.poseidon import sponge, tag
from ledger.domain.attested import OBJECTIVES, TIERS
from ledger.domain.money import BASIS_POINTS, PARTS_PER_BILLION, Rounding
from ledger.domain.terms.compensation_terms import NO_CAP
from ledger.errors import AttestationValueInvalid

# Bits 1-2 of the flags.
_ROUNDING_CODES: Final = {Rounding.FLOOR: 0, Rounding.HALF_UP: 1, Rounding.HALF_EVEN: 2}


@dataclass(frozen=True, slots=True)
class AttestedTier:
    """``bps`` of the base are owed when good/total is strictly below ``threshold_ppb``."""

    threshold_ppb: int
    bps: int


@dataclass(frozen=True, slots=True)
class AttestedObjective:
    """Met when good/total is at least ``target_ppb``; the last tier that applies counts.

    Raises AttestationValueInvalid unless the target is 1..10^9, there are at most four tiers, their
    thresholds are 1..10^9 and strictly falling, and each bps is 0..10000.
    """

    target_ppb: int
    tiers: tuple[AttestedTier, ...] = ()

    def __post_init__(self) -> None:
        require_at_most(self.target_ppb, PARTS_PER_BILLION, "target_ppb")
        if self.target_ppb == 0:
            raise AttestationValueInvalid("a target of 0 is met by anything; name one above 0", field="target_ppb")
        if len(self.tiers) > TIERS:
            raise AttestationValueInvalid(
                f"the circuit has {TIERS} tiers for each objective, not {len(self.tiers)}", field="tiers"
            )
        above = PARTS_PER_BILLION + 1
        for tier in self.tiers:
            require_at_most(tier.threshold_ppb, PARTS_PER_BILLION, "threshold_ppb")
            require_at_most(tier.bps, BASIS_POINTS, "bps")
            if not 0 < tier.threshold_ppb < above:
                raise AttestationValueInvalid(
                    "tier thresholds must be above 0 and fall strictly from one tier to the next",
                    field="threshold_ppb",
                    threshold_ppb=tier.threshold_ppb,
                )
            above = tier.threshold_ppb


@dataclass(frozen=True, slots=True)
class AttestedTerms:
    """Everything of an agreement that a compliance proof depends on.

    ``objectives`` holds one to four entries in the order of the counts, None where a slot is unused
    (missing slots at the end are unused, too). ``doc_sha256`` is the sha256 of the canonical
    agreement without its signatures. ``sum_capped`` adds the percentages of the objectives up to
    100 %, otherwise the largest counts. ``cap`` and ``minimum`` are 64-bit minor units; a credit is
    paid only above ``minimum``. ``floor_bps`` is the coverage below which there is no proof. ``exact``: an
    incident rule pays beside the tiers, so the proof gives their amount uncapped and unrounded.

    Raises AttestationValueInvalid on any value outside its range.
    """

    doc_sha256: bytes
    collector: Point
    objectives: tuple[AttestedObjective | None, ...]
    cap: int = NO_CAP
    minimum: int = 0
    floor_bps: int = 0
    sum_capped: bool = False
    rounding: Rounding = Rounding.FLOOR
    credit_hidden: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        require_bytes(self.doc_sha256, 32, "doc_sha256")
        require_public_key(self.collector, "collector")
        if not 1 <= len(self.objectives) <= OBJECTIVES or not any(self.objectives):
            raise AttestationValueInvalid(
                f"a proof covers one to {OBJECTIVES} objectives, not {len(self.objectives)}",
                field="objectives",
            )
        require_uint(self.cap, 64, "cap")
        require_uint(self.minimum, 64, "minimum")
        require_at_most(self.floor_bps, BASIS_POINTS, "floor_bps")
        if not isinstance(self.rounding, Rounding):
            raise AttestationValueInvalid("rounding must be floor, half_up or half_even", field="rounding")

    @property
    def slots(self) -> tuple[AttestedObjective | None, ...]:
        """The objectives, filled up to four."""
        return self.objectives + (None,) * (OBJECTIVES - len(self.objectives))

    @property
    def doc_halves(self) -> tuple[int, int]:
        """docHi and docLo: the digest as two 128-bit numbers, because it does not fit one element."""
        return int.from_bytes(self.doc_sha256[:16], "big"), int.from_bytes(self.doc_sha256[16:], "big")

    @property
    def flags(self) -> int:
        """Bit 0: sum up to 100 %; bits 1-2: rounding; bit 3: credit hidden; bit 4: exact; all others zero."""
        rounding = _ROUNDING_CODES[self.rounding] << 1
        return int(self.sum_capped) | rounding | int(self.credit_hidden) << 3 | int(self.exact) << 4

    def used(self) -> tuple[int, ...]:
        """1 for each slot in use."""
        return tuple(int(slot is not None) for slot in self.slots)

    def targets(self) -> tuple[int, ...]:
        """Target of each slot in parts per billion, 0 where unused."""
        return tuple(slot.target_ppb if slot else 0 for slot in self.slots)

    def thresholds(self) -> tuple[tuple[int, ...], ...]:
        """Thresholds of each slot in parts per billion, 0 where unused."""
        return tuple(_padded([t.threshold_ppb for t in slot.tiers] if slot else []) for slot in self.slots)

    def bps(self) -> tuple[tuple[int, ...], ...]:
        """Basis points of each slot's tiers, 0 where unused."""
        return tuple(_padded([t.bps for t in slot.tiers] if slot else []) for slot in self.slots)

    def hash(self) -> int:
        """termsHash: H(TAG terms; preimage)."""
        return _hash(self)

    def preimage(self) -> list[int]:
        """docHi, docLo, Ax, Ay, flags, cap, minimum, floorBps, used, target, threshold, bps: 48 inputs."""
        numbers = [*self.doc_halves, *self.collector, self.flags, self.cap, self.minimum, self.floor_bps]
        numbers += [*self.used(), *self.targets()]
        for row in (*self.thresholds(), *self.bps()):
            numbers += row
        return numbers


@functools.lru_cache(maxsize=256)
def _hash(terms: AttestedTerms) -> int:
    """Kept, because every step of a period asks for that of its agreement, and it takes four permutations."""
    return sponge(tag("terms"), terms.preimage())


def _padded(values: list[int]) -> tuple[int, ...]:
    return (*values, *[0] * (TIERS - len(values)))
