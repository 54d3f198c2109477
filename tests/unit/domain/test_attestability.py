"""Why a statement carries no proof: what no circuit works out is said clause by clause, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.credits.settlement import attestability, may_leave_undecided, settle
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import ChargesMissing
from tests.unit.domain.methods.timeline import settled, terms
from tests.unit.domain.samples import agreement, put, windows

DAY = "2023-06-14/P1D"
DEPLOYED = {"method": "deployment_minutes-v1", "indicator": "deployment_up"}
RATIO = {"method": "total_ratio"}
NO_SUM = "a mean of ratios is no sum over sealed counts, which is all that the circuits add up"
SAMPLED = {"method": "total_ratio", "indicator": "fact_consistency", "evaluator": "factbench 2.1", "minimum_valid": 2}


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (terms({**RATIO, "confidence": "wilson-95"}), "asks for confidence (wilson-95), which no circuit works out"),
        (terms({**RATIO, "minimum_valid": 1}), "has a minimum volume, which no circuit checks"),
        (
            terms({**DEPLOYED, "denominator": "full"}),
            "takes what is excluded as up (denominator: full), and no circuit adds up what is not sealed",
        ),
        (terms({"method": "interval_mean-v1", "interval": "PT5M"}), f"is measured by interval_mean-v1: {NO_SUM}"),
    ],
)
def test_what_no_circuit_works_out_of_an_objective(of: Any, reason: str) -> None:
    # Windows of a minute are too many for any circuit, besides.
    assert attestability(of)[:-1] == (f"objective {reason}",)


def test_deployments_of_the_scheduled_time_are_sums_that_a_circuit_takes() -> None:
    (reason,) = attestability(terms(DEPLOYED))
    assert reason.startswith("a period of P1D has up to 1440 windows")


def by_charges(plain: dict[str, Any]) -> None:
    del plain["compensation"]["base"]
    put(plain, "compensation.charges", {"of": "period"})


def overlapping(plain: dict[str, Any]) -> None:
    plain.update(period="P3D", step="P1D")
    put(plain, "compensation.rules", [])


def test_periods_that_overlap_are_none_that_the_registry_takes() -> None:
    (reason,) = attestability(agreement(overlapping))
    assert reason == "periods of P3D every P1D overlap; the registry takes periods that follow each other"


def test_money_that_no_circuit_is_given() -> None:
    def capped_by_share(plain: dict[str, Any]) -> None:
        by_charges(plain)
        put(plain, "compensation.caps", {"contract": "50 %"})

    assert attestability(agreement(capped_by_share)) == (
        "the base are charges that finance records, which no circuit commits to",
        "a cap is a percentage of the base, and the circuit takes amounts",
    )
    assert attestability(agreement(lambda d: put(d, "compensation.caps", {"contract": "50.00"}))) == ()


def test_a_rule_that_no_circuit_works_out_is_named_once() -> None:
    lost = {"kind": "proportional", "method": "proportional-v1", "of": "lost_time", "pays": "always"}
    rules = [{**lost, "objective": name} for name in ("availability", "ttft")]
    assert attestability(agreement(lambda d: put(d, "compensation.rules", rules))) == (
        "no circuit works out proportional-v1",
    )


def test_a_cap_of_each_of_two_scopes_is_more_than_the_one_that_a_circuit_has() -> None:
    def two_regions(plain: dict[str, Any]) -> None:
        put(plain, "objectives.0.scope", {"region": "eu"})
        put(plain, "objectives.1.scope", {"region": "us"})
        del plain["objectives"][2], plain["compensation"]["rules"][0]["tiers"]["response"]
        put(plain, "compensation.tiers_combine", "sum")
        put(plain, "compensation.caps", {"scope": "50.00"})

    assert attestability(agreement(two_regions)) == (
        "the scope cap holds for each of 2 scopes, and the circuit has one cap",
    )


def test_counts_that_data_leave_open_are_told_by_objective() -> None:
    open_ones = settled(terms(SAMPLED, {**SAMPLED, "id": "second"}), [(1, (90, 1, 5), (90, 1))])
    assert [each for each in open_ones.not_attestable if "undecided" in each] == [
        "objective has counts that its data leave undecided, which no circuit adds up"
    ]


def test_incidents_are_never_too_many_for_a_proof() -> None:
    of = agreement(lambda d: put(d, "window", "PT5M"), "agreement-impact.yaml")
    period = period_named(of, DAY)
    fine, slow = Cell(9, 0), Cell(0, 9)
    found = settle(
        of,
        period,
        [
            Window(each, WindowState.OBSERVED, (fine, slow if at % 2 == 0 and at < 130 else fine, fine))
            for at, each in enumerate(of.windows(period))
        ],
    )
    assert found.trace is not None
    assert (len(found.trace.incidents), found.not_attestable) == (65, ())


def test_requests_are_good_or_bad_and_what_samples_add_up_may_be_open() -> None:
    slices: dict[str, Any] = {"method": "attainment-v1", "slice": {"window": "PT5M", "target": "99"}}
    judged = {"indicator": "fact_consistency", "evaluator": "factbench 2.1"}
    sampled = {**slices, **judged, "id": "facts", "slice": {**slices["slice"], "minimum_valid": 2}}
    against = {**slices, "id": "held-against-them", "slice": {**slices["slice"], "only_with": "facts"}}
    of = terms({**slices, "id": "uptime"}, sampled, against, {**RATIO, "id": "plain"})
    assert [may_leave_undecided(of, each) for each in of.objectives] == [False, True, True, False]


def test_charges_that_are_missing_are_asked_for_again_within_the_hour_and_only_where_they_matter() -> None:
    of = agreement(by_charges)
    with pytest.raises(ChargesMissing) as missing:
        settle(of, period_named(of, DAY), windows(of, {}))
    assert missing.value.data == {"period": DAY, "retry_after_s": 3600}
    withheld = settle(of, period_named(of, DAY), windows(of, {}, no_data=(5,)))
    assert withheld.credit is None
