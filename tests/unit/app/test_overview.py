"""Windows as bars: whatever they are, nothing is lost, added or told to whom it is not meant for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.app.reading.overview import MAX_BARS, ObjectiveTerms, bars, budget_used_bps

HOUR_NS = 3600 * 10**9
AVAILABILITY = ObjectiveTerms("availability", "availability", "99.95", None, None, frozenset())
NAMES = ("availability", "ttft")

counts = st.fixed_dictionaries(
    {"good": st.integers(0, 2000), "bad": st.integers(0, 3)}, optional={"undecided": st.integers(0, 2)}
)
observed = st.tuples(st.just("observed"), st.fixed_dictionaries(dict.fromkeys(NAMES, counts)))
nothing = st.tuples(st.sampled_from(["no_data", "excluded"]), st.just({name: {"good": 0, "bad": 0} for name in NAMES}))
periods = st.lists(observed | nothing, max_size=400)


def rows(period: list[tuple[str, dict[str, dict[str, int]]]]) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "start_ns": index * HOUR_NS,
            "end_ns": (index + 1) * HOUR_NS,
            "state": state,
            "cells": cells,
            "excluded_requests": {"client_cancel": index % 2},
            "exclusions": {"release-7": index // 2 % 2},
        }
        for index, (state, cells) in enumerate(period)
    ]


@given(period=periods, broken=st.frozensets(st.integers(0, 399)))
def test_bars_hold_all_windows_once(period: list[Any], broken: frozenset[int]) -> None:
    windows = rows(period)
    found = list(bars(windows, [AVAILABILITY], broken={"availability": broken}))
    assert len(found) <= MAX_BARS
    assert sum(bar.windows for bar in found) == len(windows)
    edges = [edge for bar in found for edge in (bar.start_ns, bar.end_ns)]
    assert edges == sorted(edges)
    left_out = sum(index % 2 + index // 2 % 2 for index in range(len(windows)))
    assert sum(bar.excluded_requests for bar in found) == left_out
    for name in ("good", "bad", "undecided"):
        total = sum(row["cells"]["availability"].get(name, 0) for row in windows)
        assert sum(getattr(bar.cells["availability"], name) for bar in found) == total
    # Missing data shows in whatever it is merged into.
    assert any(bar.state == "no_data" for bar in found) == any(row["state"] == "no_data" for row in windows)


@given(period=periods)
def test_without_violations_no_bar_tells_of_one(period: list[Any]) -> None:
    for bar in bars(rows(period), [AVAILABILITY], broken={"ttft": frozenset(range(400))}):
        cell = bar.cells["availability"]
        said = "failures" if cell.bad else "undecided" if cell.undecided else "clean"
        assert cell.verdict == (said if cell.good + cell.bad + cell.undecided else None)
        assert set(bar.cells) == {"availability"}


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [
        # By its own counts it would miss 99.95 %; whether it broke the promise is the method's to say.
        ({"good": 998, "bad": 1, "undecided": 1}, "failures"),
        ({"good": 0, "bad": 0, "undecided": 1}, "undecided"),
        ({"good": 1, "bad": 0, "undecided": 1}, "undecided"),
        ({"good": 1, "bad": 0}, "clean"),
        ({"good": 0, "bad": 0, "undecided": 0}, None),
    ],
)
def test_a_bar_is_missed_where_the_ledger_found_a_violation(cell: dict[str, int], verdict: str | None) -> None:
    windows = rows([("observed", {"availability": cell})])
    for broken, said in (
        (frozenset[int](), verdict),
        (frozenset({0}), verdict and "missed"),
        (frozenset({1}), verdict),
    ):
        (bar,) = bars(windows, [AVAILABILITY], broken={"availability": broken})
        assert bar.cells["availability"].verdict == said
        assert bar.state == ("idle" if verdict is None else "observed")


def test_a_bar_of_several_windows_is_missed_where_one_of_them_is() -> None:
    cell = {"availability": {"good": 10, "bad": 0}}
    found = list(bars(rows([("observed", cell)] * 240), [AVAILABILITY], broken={"availability": frozenset({7})}))
    assert [at for at, bar in enumerate(found) if bar.cells["availability"].verdict == "missed"] == [3]


def test_the_budget_is_never_flattered() -> None:
    assert budget_used_bps(999, 1000, AVAILABILITY) == 20_000
    assert budget_used_bps(10**9 - 1, 10**9, AVAILABILITY) == 1
    assert budget_used_bps(5, 5, AVAILABILITY) == 0
    assert budget_used_bps(0, 0, AVAILABILITY) is None
    # Where nothing may fail there is no budget to use.
    unfailing = ObjectiveTerms("all", "availability", "100", None, None, frozenset())
    assert budget_used_bps(9, 10, unfailing) is None
    assert budget_used_bps(10, 10, unfailing) == 0
