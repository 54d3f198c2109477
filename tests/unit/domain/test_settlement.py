from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.commitments.statement import State
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.domain.credits.settlement import SettlementState, attestability, settle
from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import WindowState
from ledger.errors import DocumentInvalid, ImplausibleCounts, Refused
from tests.unit.domain.samples import agreement, put, windows

BUSY = ((90, 10), (90, 10), (90, 10))


def test_below_the_floor_there_is_neither_verdict_nor_credit() -> None:
    terms = agreement()
    result = settle(terms, period_named(terms, "2023-06-14/P1D"), windows(terms, {0: BUSY}, no_data=(5,)))
    assert result.state is SettlementState.WITHHELD
    assert {objective.state for objective in result.objectives} == {ObjectiveState.WITHHELD}
    assert (result.credit, result.trace) == (None, None)
    assert (result.coverage.observed, result.coverage.no_data, result.coverage.idle) == (23, 1, 22)


def test_the_reasons_without_a_proof_are_those_of_the_signed_bytes_in_whatever_order_a_document_was_written() -> None:
    """A verifier reads the canonical document, in which the names of a mapping are sorted."""

    def change(plain: dict[str, Any]) -> None:
        tiers = [{"below": str(90 - step), "credit_percent": str(1 + step)} for step in range(5)]
        plain["compensation"]["rules"][0]["tiers"] = {"ttft": tiers, "availability": tiers}

    written = agreement(change)
    signed = Agreement.from_document(json.loads(canonical_bytes(written.document)))
    assert attestability(written) == attestability(signed)
    assert [reason.partition(";")[0] for reason in attestability(written)] == [
        "5 tiers for availability",
        "5 tiers for ttft",
    ]


def month_of_hours(zone: str) -> Any:
    def change(plain: dict[str, Any]) -> None:
        plain.update(period="P1M", window="PT1H", timezone=zone)
        plain["effective"] = {"from": "2023-01-01", "until": "2024-01-01"}

    return change


def test_the_largest_circuit_takes_a_month_of_hours() -> None:
    assert attestability(agreement()) == ()
    monthly = agreement(month_of_hours("UTC"))
    assert (monthly.most_windows, attestability(monthly)) == (744, ())
    longer = agreement(month_of_hours("Europe/Berlin"))
    assert (longer.most_windows, attestability(longer)) == (745, ())
    assert attestability(agreement(lambda d: put(d, "period", "P32D"))) == (
        "a period of P32D has up to 768 windows of 3600 s; the largest circuit, compliance_750x4, takes at most 750",
    )


def test_the_figures_of_a_statement() -> None:
    """One hour of 100 requests of which 10 fail: below 95 %, half of 8000.00 USD, which is the cap, too."""
    terms = agreement()
    fine = (100, 0)
    result = settle(
        terms, period_named(terms, "2023-06-14/P1D"), windows(terms, {0: (BUSY[0], fine, fine)}, excluded=(5,))
    )
    found = result.as_document()
    assert found.pop("trace")["credit"] == "400000"
    assert found == {
        "windows": 24,
        "observed": 23,
        "excluded": 1,
        "idle": 22,
        "state": "settled",
        "objectives": [
            {"id": "availability", "good": 90, "valid": 100, "target": "99.95", "state": "breached"},
            {"id": "ttft", "good": 100, "valid": 100, "target": "95", "state": "met"},
            {"id": "response", "good": 100, "valid": 100, "target": "99", "state": "met"},
        ],
        "credit": {"currency": "USD", "minor_units": "400000"},
    }
    withheld = settle(terms, result.period, windows(terms, {0: BUSY}, no_data=(5,))).as_document()
    assert (withheld["state"], withheld["credit"], withheld["trace"]) == ("withheld", None, {})


@pytest.mark.parametrize(
    ("floor", "no_data", "excluded", "state"),
    [
        ("75", 6, 0, SettlementState.SETTLED),  # 18 of 24
        ("75.01", 6, 0, SettlementState.WITHHELD),
        ("75", 3, 12, SettlementState.SETTLED),  # 9 of 12
        ("75", 4, 12, SettlementState.WITHHELD),
        ("100", 0, 3, SettlementState.SETTLED),
        ("0", 24, 0, SettlementState.SETTLED),
        ("100", 0, 24, SettlementState.SETTLED),  # nothing is due
    ],
)
def test_the_floor_is_compared_in_integers(floor: str, no_data: int, excluded: int, state: SettlementState) -> None:
    terms = agreement(lambda d: put(d, "coverage_floor", floor))
    hours = windows(terms, {}, no_data=tuple(range(no_data)), excluded=tuple(range(no_data, no_data + excluded)))
    assert settle(terms, period_named(terms, "2023-06-14/P1D"), hours).state is state


def test_no_failures_is_a_result_and_no_requests_is_no_data() -> None:
    terms = agreement()
    period = period_named(terms, "2023-06-14/P1D")
    fine = settle(terms, period, windows(terms, {0: ((10, 0), (0, 0), (10, 0))}))
    assert [result.state for result in fine.objectives] == ["met", "no_data", "met"]
    idle = settle(terms, period, windows(terms, {}))
    assert {result.state for result in idle.objectives} == {ObjectiveState.NO_DATA}
    assert idle.credit == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: w[:-1],
        lambda w: [*w, w[-1]],
        lambda w: w[::-1],
        lambda w: [type(x)(x.interval, x.state, x.cells[:2]) for x in w],
    ],
    ids=["one missing", "one twice", "out of order", "a cell missing"],
)
def test_windows_must_be_those_of_the_agreement(spoil: Any) -> None:
    terms = agreement()
    with pytest.raises(ImplausibleCounts):
        settle(terms, period_named(terms, "2023-06-14/P1D"), spoil(windows(terms, {})))


def five_objectives(plain: dict[str, Any]) -> None:
    plain["objectives"] += [{**plain["objectives"][0], "id": f"extra-{n}"} for n in range(2)]


def five_tiers(plain: dict[str, Any]) -> None:
    tiers = [{"below": str(90 - n), "credit_percent": str(n + 1)} for n in range(5)]
    put(plain, "compensation.rules.0.tiers.ttft", tiers)


def at_the_limits(plain: dict[str, Any]) -> None:
    """Four objectives, four tiers of one, 25 windows."""
    plain["objectives"].append({**plain["objectives"][0], "id": "extra"})
    tiers = [{"below": str(90 - n), "credit_percent": str(n + 1)} for n in range(4)]
    put(plain, "compensation.rules.0.tiers.ttft", tiers)
    plain.update(period="P125D", window="PT4H")


def test_what_a_circuit_takes_at_most_it_takes() -> None:
    assert attestability(agreement(at_the_limits)) == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (five_objectives, "5 objectives"),
        (five_tiers, "5 tiers for ttft"),
        (lambda d: put(d, "window", "PT1M"), "up to 1440 windows"),
        (lambda d: d.update(period="P126D", window="PT4H"), "up to 756 windows"),
        (lambda d: d.update(period="P16D", window="PT30M"), "up to 768 windows"),
    ],
)
def test_why_an_agreement_is_not_attestable(change: Any, says: str) -> None:
    terms = agreement(change)
    (reason,) = attestability(terms)
    assert says in reason
    with pytest.raises(Refused):
        attested_terms(terms)


@pytest.mark.parametrize("member", ["unit_price", "level_coefficients.L2"])
def test_an_impact_rule_is_attestable_as_far_as_its_circuit_has_room(member: str) -> None:
    assert attestability(agreement(name="agreement-impact.yaml")) == ()

    def largest(units: int) -> Any:
        """The other factor is so small that an agreement may say it."""

        def change(plain: dict[str, Any]) -> None:
            put(plain, "compensation.rules.1.unit_price", "0.000000001")
            put(plain, "compensation.rules.1.level_coefficients.L2", "0.000000001")
            whole, rest = divmod(units, 10**9)
            put(plain, f"compensation.rules.1.{member}", f"{whole}.{rest:09}")

        return agreement(change, name="agreement-impact.yaml")

    # A price is in minor units, of which a unit of this currency has a hundred.
    top = (2**64 - 1) // (100 if member == "unit_price" else 1)
    assert attestability(largest(top)) == ()
    (reason,) = attestability(largest(top + 1))
    assert "64 bits" in reason


def test_a_day_of_25_hours_is_attestable() -> None:
    assert attestability(agreement(lambda d: put(d, "timezone", "Europe/Berlin"))) == ()


def test_a_collector_key_off_the_curve_is_refused_by_name() -> None:
    terms = agreement(lambda d: put(d, "collector.babyjubjub_public_key.x", "1"))
    with pytest.raises(DocumentInvalid) as caught:
        attested_terms(terms)
    assert caught.value.data["field"] == "collector.babyjubjub_public_key"


CELL = st.tuples(st.integers(0, 300), st.integers(0, 3))


def _percent(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}"


@st.composite
def tiered_terms(draw: Any) -> Any:
    """Agreements with tiers only, of every combination of flags."""

    def change(plain: dict[str, Any]) -> None:
        for name, top in (("availability", 9995), ("ttft", 9500), ("response", 9900)):
            count = draw(st.integers(1, 4))
            steps = draw(st.lists(st.integers(1, top), min_size=count, max_size=count, unique=True))
            paid = sorted(draw(st.lists(st.integers(1, 10_000), min_size=count, max_size=count, unique=True)))
            pairs = zip(sorted(steps, reverse=True), paid, strict=True)
            tiers = [
                {"below": f"{b // 100}.{b % 100:02}", "credit_percent": f"{c // 100}.{c % 100:02}"} for b, c in pairs
            ]
            put(plain, f"compensation.rules.0.tiers.{name}", tiers)
        put(plain, "compensation.base", f"{draw(st.integers(1, 10**7))}.{draw(st.integers(0, 99)):02}")
        put(plain, "compensation.minimum", str(draw(st.integers(0, 500))))
        put(
            plain, "compensation.caps", draw(st.sampled_from([{}, {"scope": "3000"}, {"scope": "9", "contract": "10"}]))
        )
        put(plain, "compensation.tiers_combine", draw(st.sampled_from(["best", "sum"])))
        put(plain, "compensation.rounding", draw(st.sampled_from(["floor", "half_up", "half_even"])))
        put(plain, "coverage_floor", "50")

    return agreement(change)


@hypothesis_settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(tiered_terms(), st.dictionaries(st.integers(0, 23), st.tuples(CELL, CELL, CELL), max_size=6), st.data())
def test_credits_equal_the_circuit_model_to_the_cent(terms: Any, cells: Any, data: Any) -> None:
    free = [hour for hour in range(24) if hour not in cells]
    states = data.draw(st.lists(st.sampled_from(free), max_size=4, unique=True))
    hours = windows(terms, cells, no_data=tuple(states[:2]), excluded=tuple(states[2:]))
    ours = settle(terms, period_named(terms, "2023-06-14/P1D"), hours)
    claim = PeriodClaim(
        terms=attested_terms(terms),
        windows=tuple(
            WindowCounts(
                tuple(cell.good for cell in window.cells),
                tuple(cell.bad for cell in window.cells),
                observed=window.state is WindowState.OBSERVED,
                excluded=window.state is WindowState.EXCLUDED,
            )
            for window in hours
        ),
        seal_key=1,
        block_salts=(2,),
        fee=terms.compensation.base,
        base_salt=3,
        credit_salt=4,
        ctx=5,
    )
    theirs = evaluate(claim)
    assert ours.trace is not None
    assert ours.credit == theirs.credit
    assert ours.trace.combined_bps == theirs.bps
    assert ours.trace.capped_amount * 10_000 == theirs.amount_e4
    assert [result.state for result in ours.objectives] == [
        {State.MET: "met", State.BREACHED: "breached", State.NO_DATA: "no_data"}[result.state]
        for result in theirs.objectives[:3]
    ]
    assert (ours.coverage.observed, ours.coverage.excluded, ours.coverage.idle) == (
        theirs.summary.observed,
        theirs.summary.excluded,
        theirs.summary.idle,
    )
