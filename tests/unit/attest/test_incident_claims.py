"""Settlement and the circuit of incident credits: the same credit to the cent, from the same incidents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ledger.app.ports.evidence import Salts
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.commitments.incident_claims import derived_root, incident_claim
from ledger.attest.commitments.incident_credit import evaluate_incidents, incident_inputs
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.domain.credits.settlement import settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import Refused
from tests.unit.domain.samples import agreement, put, windows

NAME = "agreement-impact.yaml"
CELL = st.tuples(st.integers(0, 300), st.integers(0, 40))
SALTS = Salts((2,), 3, 4, 5)


@st.composite
def impact_terms(draw: Any) -> Agreement:
    """Impact rules with and without tiers, of every way to combine, cap and round."""

    def change(plain: dict[str, Any]) -> None:
        rules = plain["compensation"]["rules"]
        rules[1]["objective"] = draw(st.sampled_from(["availability", "ttft", "response"]))
        rules[1]["unit_price"] = draw(st.sampled_from(["0.8", "0.003", "0.000000001", "12.345678901"]))
        rules[1]["level_coefficients"]["L2"] = draw(st.sampled_from(["0", "1", "2.5", "0.333333333"]))
        if draw(st.booleans()):
            del rules[0]
        put(plain, "compensation.base", f"{draw(st.integers(1, 10**6))}.{draw(st.integers(0, 99)):02}")
        put(plain, "compensation.minimum", draw(st.sampled_from(["0", "1.00", "196.00"])))
        put(plain, "compensation.caps", draw(st.sampled_from([{}, {"contract": "100.50"}, {"service": "9"}])))
        for way in ("tiers_combine", "rules_combine"):
            put(plain, f"compensation.{way}", draw(st.sampled_from(["best", "sum"])))
        put(plain, "compensation.rounding", draw(st.sampled_from(["floor", "half_up", "half_even"])))
        put(plain, "compensation.credit_visibility", draw(st.sampled_from(["public", "committed"])))
        put(plain, "coverage_floor", "50")

    return agreement(change, NAME)


def claim_of(terms: Agreement, hours: Any) -> PeriodClaim:
    return PeriodClaim(
        terms=attested_terms(terms),
        windows=window_counts(hours),
        seal_key=1,
        block_salts=SALTS.blocks,
        fee=terms.compensation.base,
        base_salt=SALTS.base,
        credit_salt=SALTS.credit,
        ctx=7,
    )


@pytest.mark.long
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(impact_terms(), st.dictionaries(st.integers(0, 23), st.tuples(CELL, CELL, CELL), max_size=9), st.data())
def test_credits_equal_the_circuits_total_to_the_cent(terms: Agreement, cells: Any, data: Any) -> None:
    free = [hour for hour in range(24) if hour not in cells]
    states = data.draw(st.lists(st.sampled_from(free), max_size=4, unique=True))
    hours = windows(terms, cells, no_data=tuple(states[:2]), excluded=tuple(states[2:]))
    ours = settle(terms, period_named(terms, "2023-06-14/P1D"), hours)
    rule = terms.compensation.impact
    assert rule is not None
    assert ours.trace is not None
    assert ours.not_attestable == ()
    period = claim_of(terms, hours)
    claim = incident_claim(terms, rule, period, evaluate(period).bps, hours, SALTS)
    theirs = evaluate_incidents(claim)
    assert theirs.credit == ours.credit
    assert theirs.amount == ours.trace.capped_amount * 10**18 or terms.compensation.caps == ()
    assert claim.tier_amount == (ours.trace.tier_amount or 0) * 10_000
    # What the second proof starts from is what the first one shows, in the open or as a commitment.
    assert theirs.signals.tier_credit == evaluate(period).signals.credit
    assert theirs.signals.incident_root == derived_root(terms, rule, 1, ours.trace.incidents)


def in_five_minutes(count: int) -> tuple[Agreement, list[Window]]:
    """A day of 5-minute windows in which every second of the first ones fails."""

    def change(plain: dict[str, Any]) -> None:
        plain["window"] = "PT5M"

    terms = agreement(change, NAME)
    intervals = terms.windows(period_named(terms, "2023-06-14/P1D"))
    fine, slow = Cell(9, 0), Cell(0, 9)
    return terms, [
        Window(each, WindowState.OBSERVED, (fine, slow if at % 2 == 0 and at < 2 * count else fine, fine))
        for at, each in enumerate(intervals)
    ]


@pytest.mark.parametrize(("count", "places"), [(63, 63), (64, 64), (65, 64), (144, 64)])
def test_incidents_beyond_the_circuits_places_share_the_last_one(count: int, places: int) -> None:
    terms, hours = in_five_minutes(count)
    ours = settle(terms, period_named(terms, "2023-06-14/P1D"), hours)
    assert ours.trace is not None
    assert len(ours.trace.incidents) == count
    assert ours.not_attestable == ()
    rule = terms.compensation.impact
    assert rule is not None
    claim = incident_claim(terms, rule, claim_of(terms, hours), ours.trace.combined_bps, hours, SALTS)
    theirs = evaluate_incidents(claim)
    assert theirs.credit == ours.credit
    assert theirs.signals.summary == places | count << 8
    assert theirs.signals.incident_root == derived_root(terms, rule, 1, ours.trace.incidents)
    inputs = incident_inputs(claim, theirs)
    assert sum(inputs["active"]) == places
    assert (sum(inputs["windows"]), sum(inputs["bad"])) == (count, 9 * count)


def test_without_a_salt_for_the_total_there_is_no_second_claim() -> None:
    terms, hours = in_five_minutes(1)
    rule = terms.compensation.impact
    assert rule is not None
    with pytest.raises(Refused, match="salt"):
        incident_claim(terms, rule, claim_of(terms, hours), 0, hours, Salts((2,), 3, 4))
