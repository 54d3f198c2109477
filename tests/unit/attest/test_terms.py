"""Terms as the circuit sees them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms, AttestedTier
from ledger.attest.crypto.babyjub import IDENTITY
from ledger.attest.crypto.poseidon import sponge, tag
from ledger.domain.money import Rounding
from ledger.domain.terms.compensation_terms import NO_CAP
from ledger.errors import AttestationValueInvalid
from tests.circuits.claims import AVAILABILITY, COLLECTOR, LATENCY_P95, plain_terms

TERMS = plain_terms()


def test_hash_is_over_48_numbers_in_the_order_of_the_format() -> None:
    terms = AttestedTerms(
        doc_sha256=bytes(range(32)),
        collector=COLLECTOR,
        objectives=(AVAILABILITY, None, LATENCY_P95),
        cap=1000,
        minimum=10,
        floor_bps=9500,
        sum_capped=True,
        rounding=Rounding.HALF_EVEN,
        credit_hidden=True,
    )
    doc = [int.from_bytes(bytes(range(16)), "big"), int.from_bytes(bytes(range(16, 32)), "big")]
    numbers = [*doc, *COLLECTOR, 0b1101, 1000, 10, 9500]
    numbers += [1, 0, 1, 0]
    numbers += [999_000_000, 0, 950_000_000, 0]
    numbers += [999_000_000, 990_000_000, 950_000_000, 0, *[0] * 4, 950_000_000, *[0] * 3, *[0] * 4]
    numbers += [1000, 2500, 10_000, 0, *[0] * 4, 500, *[0] * 3, *[0] * 4]
    assert len(numbers) == 48
    assert terms.hash() == sponge(tag("terms"), numbers)


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, 0),
        ({"sum_capped": True}, 1),
        ({"rounding": Rounding.HALF_UP}, 2),
        ({"rounding": Rounding.HALF_EVEN}, 4),
        ({"credit_hidden": True}, 8),
    ],
)
def test_flags_have_their_bits(changes: dict[str, object], flags: int) -> None:
    assert plain_terms(**changes).flags == flags


CHANGED: dict[str, dict[str, object]] = {
    "doc_first_half": {"doc_sha256": bytes([TERMS.doc_sha256[0] ^ 1]) + TERMS.doc_sha256[1:]},
    "doc_second_half": {"doc_sha256": TERMS.doc_sha256[:-1] + bytes([TERMS.doc_sha256[-1] ^ 1])},
    "order": {"objectives": (LATENCY_P95, AVAILABILITY)},
    "slot": {"objectives": (AVAILABILITY, None, LATENCY_P95)},
    "target": {"objectives": (replace(AVAILABILITY, target_ppb=1), LATENCY_P95)},
    "tiers": {"objectives": (replace(AVAILABILITY, tiers=()), LATENCY_P95)},
    "cap": {"cap": NO_CAP - 1},
    "minimum": {"minimum": 1},
    "floor": {"floor_bps": 9001},
    "combine": {"sum_capped": True},
    "rounding": {"rounding": Rounding.HALF_UP},
    "visibility": {"credit_hidden": True},
}


@pytest.mark.parametrize("name", CHANGED)
def test_every_term_counts(name: str) -> None:
    assert plain_terms(**CHANGED[name]).hash() != TERMS.hash()


def test_trailing_unused_slots_need_not_be_written() -> None:
    assert plain_terms(objectives=(AVAILABILITY, LATENCY_P95, None, None)).hash() == TERMS.hash()


REFUSED: dict[str, dict[str, object]] = {
    "digest_length": {"doc_sha256": bytes(31)},
    "collector_identity": {"collector": IDENTITY},
    "collector_off_curve": {"collector": (1, 1)},
    "no_objective": {"objectives": ()},
    "only_unused": {"objectives": (None, None)},
    "five_objectives": {"objectives": (AVAILABILITY,) * 5},
    "cap": {"cap": 2**64},
    "minimum": {"minimum": -1},
    "floor": {"floor_bps": 10_001},
    "rounding_three": {"rounding": 3},
}


@pytest.mark.parametrize("name", REFUSED)
def test_terms_outside_their_ranges_are_refused(name: str) -> None:
    with pytest.raises(AttestationValueInvalid):
        plain_terms(**REFUSED[name])


@pytest.mark.parametrize("target", [0, -1, 10**9 + 1, True])
def test_a_target_is_above_0_and_at_most_1(target: int) -> None:
    with pytest.raises(AttestationValueInvalid):
        AttestedObjective(target)


TIERS = {
    "rising": ((950_000_000, 1), (990_000_000, 2)),
    "repeated": ((990_000_000, 1), (990_000_000, 2)),
    "zero": ((0, 0),),
    "above_one": ((10**9 + 1, 1),),
    "five": tuple((10**9 - k, 1) for k in range(5)),
    "bps": ((990_000_000, 10_001),),
    "negative_bps": ((990_000_000, -1),),
}


@pytest.mark.parametrize("name", TIERS)
def test_tiers_the_circuit_would_refuse_are_refused(name: str) -> None:
    with pytest.raises(AttestationValueInvalid):
        AttestedObjective(990_000_000, tuple(AttestedTier(*pair) for pair in TIERS[name]))
