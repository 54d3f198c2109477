"""Periods to attest, for tests: one plain claim, and random ones from a seed."""

from __future__ import annotations

import random
from dataclasses import replace
from hashlib import sha256

from ledger.attest.commitments.model import PeriodClaim
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms, AttestedTier
from ledger.attest.crypto import babyjub
from ledger.domain.attested import SCALAR_ORDER
from ledger.domain.money import Rounding
from ledger.domain.terms.compensation_terms import NO_CAP

COLLECTOR_SEED = sha256(b"test collector").digest()
COLLECTOR = babyjub.public_key(COLLECTOR_SEED)

AVAILABILITY = AttestedObjective(
    999_000_000, (AttestedTier(999_000_000, 1000), AttestedTier(990_000_000, 2500), AttestedTier(950_000_000, 10_000))
)
LATENCY_P95 = AttestedObjective(950_000_000, (AttestedTier(950_000_000, 500),))


def plain_terms(**changes: object) -> AttestedTerms:
    """Availability and a P95 latency, floor rounding, no cap, public credit."""
    terms = AttestedTerms(sha256(b"agreement").digest(), COLLECTOR, (AVAILABILITY, LATENCY_P95), floor_bps=9000)
    return replace(terms, **changes)  # type: ignore[arg-type]


def plain_claim(**changes: object) -> PeriodClaim:
    """A day of 24 observed hours at 99.5 % availability: 10 % of 8000.00 is owed."""
    claim = PeriodClaim(
        terms=plain_terms(),
        windows=(WindowCounts((995, 960), (5, 35)),) * 24,
        seal_key=int.from_bytes(sha256(b"seal key").digest()[:31], "big"),
        block_salts=(int.from_bytes(sha256(b"block salt").digest()[:31], "big"),),
        fee=800_000,
        base_salt=int.from_bytes(sha256(b"base salt").digest()[:31], "big"),
        credit_salt=int.from_bytes(sha256(b"credit salt").digest()[:31], "big"),
        ctx=int.from_bytes(sha256(b"ctx").digest()[:31], "big"),
    )
    return replace(claim, **changes)  # type: ignore[arg-type]


def random_claim(seed: int, blocks: int = 1) -> PeriodClaim:
    """A claim an honest prover can prove, anywhere in the space of terms and counts, that needs every block."""
    rng = random.Random(seed)
    slots = [_random_objective(rng) if rng.random() < 0.75 else None for _ in range(4)]
    if not any(slots):
        slots[rng.randrange(4)] = AVAILABILITY
    fee = rng.choice([0, 1, rng.randrange(1 << 20), rng.randrange(1 << 40), (1 << 64) - 1])
    terms = AttestedTerms(
        doc_sha256=rng.randbytes(32),
        collector=babyjub.public_key(rng.randbytes(32)),
        objectives=tuple(slots),
        cap=rng.choice([0, NO_CAP, fee // 10, fee // 3]),
        minimum=rng.choice([0, 0, fee // 50, NO_CAP]),
        floor_bps=rng.choice([0, 5000]),
        sum_capped=rng.random() < 0.5,
        rounding=rng.choice(list(Rounding)),
        credit_hidden=rng.random() < 0.4,
        exact=rng.random() < 0.2,
    )
    windows = [_random_window(rng, slots) for _ in range(rng.randint(25 * blocks - 24, 25 * blocks))]
    unobserved = max(1, len(windows) // 4)
    for index in rng.sample(range(len(windows)), k=rng.randint(0, unobserved)):
        windows[index] = WindowCounts(observed=False, excluded=rng.random() < 0.7)
    observed = sum(window.observed for window in windows)
    if observed * 10_000 < (len(windows) - sum(w.excluded for w in windows)) * terms.floor_bps:
        terms = replace(terms, floor_bps=0)
    return PeriodClaim(
        terms=terms,
        windows=tuple(windows),
        seal_key=rng.randrange(1 << 248),
        block_salts=tuple(rng.randrange(SCALAR_ORDER) for _ in range(blocks)),
        fee=fee,
        base_salt=rng.randrange(SCALAR_ORDER),
        credit_salt=rng.randrange(SCALAR_ORDER),
        ctx=rng.randrange(1 << 248),
    )


def _random_objective(rng: random.Random) -> AttestedObjective:
    thresholds = sorted(rng.sample(range(500_000_000, 1_000_000_001), k=rng.randint(0, 4)), reverse=True)
    tiers = tuple(AttestedTier(threshold, rng.randint(0, 10_000)) for threshold in thresholds)
    return AttestedObjective(rng.randint(500_000_000, 1_000_000_000), tiers)


def _random_window(rng: random.Random, slots: list[AttestedObjective | None]) -> WindowCounts:
    if rng.random() < 0.1:
        return WindowCounts()
    scale = rng.choice([10, 1000, (1 << 28) - 1])
    good = tuple(rng.randint(scale // 2, scale) if slot else 0 for slot in slots)
    bad = tuple(rng.randint(0, scale // 3) if slot else 0 for slot in slots)
    return WindowCounts(good, bad)
