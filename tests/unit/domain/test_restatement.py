"""By how much one statement differs from another: the entries lead from the old credit to the new one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.restatement import differences

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
