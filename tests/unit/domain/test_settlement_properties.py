"""What holds of every settlement: order, batches, exclusions, cuts, currencies and clock changes change nothing that
they may not change."""

from __future__ import annotations

import hashlib
import random
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.settlement import settle
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.methods.registry import Measuring
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.rows.observation import RequestRow
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS
from tests.unit.domain.methods.timeline import EXCLUDED, NO_DATA, Run, measured, settled, terms, timeline
from tests.unit.domain.samples import agreement, row

RATIO = {"method": "total_ratio"}
MEAN = {"method": "interval_mean-v1", "interval": "PT1H"}
DOWN = {"method": "interval_threshold-v1", "interval": "PT1H", "error_rate": "10", "boundary": "above"}
SLICES = {"method": "attainment-v1", "slice": {"window": "PT1H", "target": "95"}}
UP = {"method": "deployment_minutes-v1", "indicator": "deployment_up"}
ALL = (RATIO, MEAN, DOWN, SLICES, UP)

CELL = st.tuples(st.integers(0, 40), st.integers(0, 4))
HOURS = st.lists(st.tuples(st.just(1), CELL | st.sampled_from([NO_DATA, EXCLUDED])), min_size=1, max_size=24)

ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from([f"r-{number}" for number in range(8)]),
        at_s=st.integers(0, 86_399),
        code=st.sampled_from([None, None, None, 500, 429]),
        first_token_ms=st.sampled_from([100, 800, 801]),
        response_ms=st.sampled_from([900, 3200, 3201]),
    ),
    max_size=20,
)


def sha256(rows: list[RequestRow], batches: int) -> str:
    """Of the settlement's figures, with the rows handed in as so many batches."""
    of = agreement()
    period = period_named(of, "2023-06-14/P1D")
    evaluator = Evaluator(of, period)
    for at in range(batches):
        evaluator.add_all(rows[at::batches])
    found = settle(of, period, evaluator.windows())
    return hashlib.sha256(canonical_bytes(found.as_document())).hexdigest()


@settings(max_examples=40)
@given(ROWS, st.integers(1, 5), st.integers(0, 2**32))
def test_neither_order_nor_batches_change_a_byte(rows: list[RequestRow], batches: int, seed: int) -> None:
    shuffled = rows.copy()
    random.Random(seed).shuffle(shuffled)
    assert sha256(shuffled, batches) == sha256(rows, 1)


@given(ROWS)
def test_the_same_facts_twice_are_no_difference(rows: list[RequestRow]) -> None:
    assert sha256([*rows, *rows], 2) == sha256(rows, 1)


@given(st.sampled_from(ALL), HOURS)
def test_a_window_without_counts_that_is_excluded_loses_nothing(objective: dict[str, Any], hours: list[Run]) -> None:
    of = terms(objective, window="PT1H")
    before, after = measured(of, hours), measured(of, [*hours[:23], (1, EXCLUDED)])
    kept = measured(of, hours[:23])
    assert after.bad == kept.bad <= before.bad
    # The hour leaves the denominator, with what an idle hour is in it.
    idle = {"interval_mean-v1": 10**9, "interval_threshold-v1": 1}.get(objective["method"], 0)
    assert after.good == kept.good - idle


@given(st.sampled_from(ALL), HOURS, st.integers(0, 24))
def test_a_period_cut_in_two_sums_to_the_whole(objective: dict[str, Any], hours: list[Run], at: int) -> None:
    of = terms(objective, window="PT1H")
    windows = list(timeline(of, hours)[1])
    whole, first, second = (
        Measuring(of.objectives, part, 3600).measure(0) for part in (windows, windows[:at], windows[at:])
    )
    assert first.valid + second.valid == whole.valid
    assert first.volume + second.volume == whole.volume
    # Each part of a mean rounds its own last billionth up.
    assert 0 <= first.bad + second.bad - whole.bad <= (objective is MEAN)


@given(st.sampled_from(ALL), st.lists(st.tuples(*[st.integers(0, 20)] * 3), min_size=1, max_size=24), st.data())
def test_more_that_is_known_leaves_less_open(
    objective: dict[str, Any], cells: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    of = terms(objective, window="PT1H")
    decided = []
    for good, bad, undecided in cells:
        known = data.draw(st.integers(0, undecided))
        fine = data.draw(st.integers(0, known))
        decided.append((1, (good + fine, bad + known - fine, undecided - known)))
    before, after = measured(of, [(1, cell) for cell in cells]), measured(of, decided)
    assert after.undecided <= before.undecided
    assert before.good <= after.good
    assert before.bad <= after.bad
    assert before.valid == after.valid
    states = {settled(of, [(1, cell) for cell in cells]).objectives[0].state, settled(of, decided).objectives[0].state}
    assert len(states - {"insufficient_data"}) <= 1


@given(st.integers(1, 10**9), st.sampled_from([("JPY", 0), ("USD", 2), ("KWD", 3)]), st.integers(1, 10_000))
def test_a_credit_is_rounded_once_to_the_currencys_unit(base: int, currency: tuple[str, int], bps: int) -> None:
    code, exponent = currency
    whole, rest = divmod(base, 10**exponent)
    of = terms(
        RATIO,
        compensation__currency=code,
        compensation__base=f"{whole}.{rest:0{exponent}}" if exponent else str(whole),
        compensation__caps={},
        compensation__minimum="0",
        compensation__rules__0__tiers={
            "objective": [{"below": "99.9", "credit_percent": f"{bps // 100}.{bps % 100:02}"}]
        },
    )
    credit = settled(of, [(1, (0, 1))]).credit
    assert credit == round(Fraction(base * bps, 10_000))


@pytest.mark.parametrize(
    ("zone", "first", "minutes"),
    [
        ("America/New_York", "2023-03-01", 44_580),
        ("America/New_York", "2023-11-01", 43_260),
        ("Europe/Berlin", "2023-03-01", 44_580),
        ("Europe/Berlin", "2023-10-01", 44_700),
        ("Australia/Lord_Howe", "2023-10-01", 44_610),
        ("Australia/Lord_Howe", "2023-04-01", 43_230),
        ("America/Santiago", "2023-04-01", 43_260),
        ("Asia/Kathmandu", "2023-03-01", 44_640),
    ],
)
def test_a_month_of_a_zone_is_settled_whole(zone: str, first: str, minutes: int) -> None:
    of = terms({**DOWN, "interval": "PT5M"}, window="PT5M", period="P1M", timezone=zone)
    period = of.period_starting(date.fromisoformat(first))
    _, windows = timeline(of, [])
    count = of.window_count(period)
    idle = type(windows)(
        period.interval.start_ns,
        300 * SECOND_NS,
        [windows.states[0]] * count,
        [type(column)([0] * count, [0] * count) for column in windows.cells],
    )
    found = settle(of, period, idle)
    assert (found.objectives[0].good, found.objectives[0].valid) == (minutes // 5, minutes // 5)
    assert (found.coverage.idle, found.credit) == (minutes // 5, 0)
