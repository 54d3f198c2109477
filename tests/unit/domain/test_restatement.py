"""By how much one statement differs from another: the entries lead from the old credit to the new one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.restatement import Standing, carries_proof, differences, final_from_ns
from ledger.domain.time.instant import parse_instant_ns

amounts = st.none() | st.integers(0, 10**9).map(lambda units: {"currency": "USD", "minor_units": str(units)})
counts = st.integers(0, 50)
results = st.fixed_dictionaries(
    {"id": st.just("quality"), "good": counts, "valid": counts, "state": st.sampled_from(["met", "breached"])},
    optional={"undecided": st.integers(1, 50)},
)


def deltas(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[dict[str, Any]]:
    said = [{"objectives": [each] if each else [], "credit": None} for each in (old, new)]
    found: list[dict[str, Any]] = differences(*said, "USD")["objective_deltas"]
    return found


@given(amounts, amounts)
def test_a_difference_leads_from_the_old_credit_to_the_new(
    old: dict[str, str] | None, new: dict[str, str] | None
) -> None:
    found = differences({"objectives": [], "credit": old}, {"objectives": [], "credit": new}, "USD")["credit_delta"]
    before, after = (0 if found[name] is None else int(found[name]) for name in ("old", "new"))
    assert before + int(found["difference"]) == after
    assert (found["old"] is None, found["new"] is None) == (old is None, new is None)


@given(st.none() | results, st.none() | results)
def test_what_differs_of_an_objective_is_told_with_each_of_its_counts(
    old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    found = deltas(old, new)
    if old == new:
        assert found == []
        return
    (delta,) = found
    for name in ("good", "valid", "undecided"):
        before, after = (0 if result is None else result.get(name, 0) for result in (old, new))
        assert (delta[name]["difference"] if name in delta else 0) == after - before
    told = [delta[name]["difference"] for name in ("good", "valid", "undecided") if name in delta]
    assert any(told) or delta["state"]["old"] != delta["state"]["new"]


def test_counts_that_were_undecided_and_are_not_any_more_are_told_though_the_sums_stay() -> None:
    was = {"id": "quality", "good": 90, "valid": 100, "state": "insufficient_data", "undecided": 10}
    (delta,) = deltas(was, {**was, "undecided": 4})
    assert delta["undecided"] == {"old": 10, "new": 4, "difference": -6}
    (delta,) = deltas(was, {"id": "quality", "good": 90, "valid": 100, "state": "breached"})
    assert delta["undecided"] == {"old": 10, "new": 0, "difference": -10}
    (delta,) = deltas(was, {**was, "good": 91})
    assert "undecided" not in delta


def test_the_whole_difference_of_two_statements() -> None:
    same = {"id": "ttft", "good": 95, "valid": 100, "state": "met"}
    was = {"id": "uptime", "good": 90, "valid": 100, "state": "breached"}
    old = {"objectives": [same, was], "credit": {"currency": "USD", "minor_units": "400000"}}
    new = {"objectives": [same, {**was, "good": 99, "valid": 99, "state": "met"}], "credit": None}
    assert differences(old, new, "USD") == {
        "objective_deltas": [
            {
                "id": "uptime",
                "good": {"old": 90, "new": 99, "difference": 9},
                "valid": {"old": 100, "new": 99, "difference": -1},
                "state": {"old": "breached", "new": "met"},
            }
        ],
        "credit_delta": {"currency": "USD", "old": "400000", "new": None, "difference": "-400000"},
    }


def test_an_objective_that_only_one_statement_has_is_told_from_nothing_and_to_nothing() -> None:
    result = {"id": "ttft", "good": 95, "valid": 100, "state": "met"}
    (appeared,) = deltas(None, result)
    assert appeared == {
        "id": "ttft",
        "good": {"old": None, "new": 95, "difference": 95},
        "valid": {"old": None, "new": 100, "difference": 100},
        "state": {"old": None, "new": "met"},
    }
    (gone,) = deltas({**result, "undecided": 3}, None)
    assert gone["good"] == {"old": 95, "new": None, "difference": -95}
    assert gone["undecided"] == {"old": 3, "new": None, "difference": -3}


@pytest.mark.parametrize(
    ("attestable", "state", "carries"),
    [(True, "settled", True), (True, "withheld", False), (False, "settled", False), (False, "withheld", False)],
)
def test_a_statement_has_a_proof_where_it_is_settled_and_a_circuit_takes_it(
    attestable: bool, state: str, carries: bool
) -> None:
    assert carries_proof({"attestable": attestable, "state": state}) is carries


def test_late_facts_are_taken_until_the_statement_says_or_for_30_days() -> None:
    end_ns = parse_instant_ns("2023-06-15T00:00:00Z")
    said = {"end_ns": str(end_ns), "accepts_until_ns": str(end_ns + 1)}
    assert final_from_ns(said) == end_ns + 1
    for silent in ({"end_ns": str(end_ns)}, {"end_ns": str(end_ns), "accepts_until_ns": None}):
        assert final_from_ns(silent) == parse_instant_ns("2023-07-15T00:00:00Z")


def test_standings_are_spelt_as_statements_spell_them() -> None:
    assert [str(standing) for standing in Standing] == ["draft", "final", "restated"]
