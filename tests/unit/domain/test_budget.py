"""Error budgets: what a period allows, what is left of it, how fast it goes, and when it is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.verdict import ObjectiveState, judge
from ledger.domain.money import percent_ppb
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.interval import Interval
from ledger.domain.violations.budget import ASSUMPTION, Burn, Exhaustion, allowed_bad, budget_reports, burn_rate
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.domain import samples

HOUR = 3600
MINUTE_NS = 60 * 10**9


def terms(objective: Mapping[str, Any], *, window: str = "PT1H", period: str = "P1D", target: str) -> Agreement:
    """The example with this one objective and no tiers for others."""

    def change(plain: dict[str, Any]) -> None:
        plain |= {"window": window, "period": period}
        plain["effective"] = {"from": "2023-06-14", "until": "2023-12-14"}
        plain["objectives"] = [{"id": "availability", "indicator": "availability", "target": target, **objective}]
        plain["compensation"]["rules"] = [
            {
                "kind": "tiered",
                "method": "tiered-v1",
                "tiers": {"availability": [{"below": "50", "credit_percent": "10"}]},
            }
        ]

    return samples.agreement(change)


def judged(
    agreement: Agreement, cells: Sequence[tuple[int, int] | None], *, excluded: Sequence[int] = ()
) -> list[Window]:
    """A period that begins with these windows (None: no data); the rest is to come."""
    intervals = agreement.windows(agreement.period_starting(agreement.effective_from))
    found = []
    for at, interval in enumerate(intervals):
        pair = cells[at] if at < len(cells) else None
        if at in excluded:
            found.append(Window(interval, WindowState.EXCLUDED, (Cell(0, 0),)))
        elif pair is None:
            found.append(Window(interval, WindowState.NO_DATA, (Cell(0, 0),)))
        else:
            found.append(Window(interval, WindowState.OBSERVED, (Cell(*pair),)))
    return found


RATIO = {"method": "total_ratio"}
MINUTES = {"method": "downtime_minutes-v1", "error_rate": "10", "boundary": "above"}


def burn(agreement: Agreement, windows: Sequence[Window], seconds: int = HOUR) -> Burn:
    (report,) = budget_reports(agreement, windows, [seconds])
    return report.burns[0]


@pytest.mark.long
@pytest.mark.parametrize(("target", "minutes"), [("99.95", Fraction(216, 10)), ("99.9", Fraction(432, 10))])
def test_the_budgets_of_thirty_days_are_those_of_the_domain(target: str, minutes: Fraction) -> None:
    agreement = terms(MINUTES, window="PT1M", period="P30D", target=target)
    (report,) = budget_reports(agreement, judged(agreement, []), [])
    assert report.budget.allowed == report.budget.remaining == minutes
    assert (report.budget.counted, report.budget.valid, report.judged_to_ns) == (0, 43_200, None)


def test_the_worked_case_burns_exactly_what_it_says(sla_fixtures: Path) -> None:
    case = json.loads((sla_fixtures / "sla/cases/case_open_08_openslo_budgeting_methods.json").read_text())
    given_counts, expected = case["input"], case["expected"]["Occurrences"]
    good, valid = sum(given_counts["good"]), sum(given_counts["valid"])
    assert (good, valid) == (expected["good"], expected["valid"])
    agreement = terms(RATIO, target="95")
    cells = [(g, v - g) for g, v in zip(given_counts["good"], given_counts["valid"], strict=True)]
    (report,) = budget_reports(agreement, judged(agreement, cells), [])
    assert report.budget.burnt is not None
    assert report.budget.burnt * 100 == Fraction(expected["budget_burnt_percent_fraction"])
    assert report.budget.exhausted


def test_slices_burn_as_the_worked_attack_says(sla_fixtures: Path) -> None:
    attack = json.loads((sla_fixtures / "sla/cases/case_open_08_openslo_budgeting_methods.json").read_text())
    slices, target = attack["input"]["attack"]["window_slices"], attack["input"]["attack"]["target"]
    allowed = allowed_bad(slices, percent_ppb(str(Fraction(target) * 100)))
    assert str(allowed) == attack["expected"]["attack"]["Timeslices_slices_to_burn"]


def test_a_budget_begins_whole_whatever_came_before_the_period() -> None:
    """pyrra#1576."""
    agreement = terms(RATIO, target="99")
    (before,) = budget_reports(agreement, judged(agreement, [(0, 1000)]), [72 * HOUR])
    assert before.budget.exhausted
    (fresh,) = budget_reports(agreement, judged(agreement, [(1000, 0)]), [72 * HOUR])
    assert (fresh.budget.burnt, fresh.budget.remaining) == (0, 10)
    # Three days are asked for, and there is one hour of the period.
    assert fresh.burns[0].interval is not None
    assert fresh.burns[0].interval.duration_ns == HOUR * 10**9


def test_the_burn_rate_is_the_share_of_failures_over_the_share_that_may_fail() -> None:
    agreement = terms(RATIO, target="99.9")
    windows = judged(agreement, [(1000, 0), (990, 10), (9990, 10)])
    assert burn(agreement, windows, HOUR).rate == 1
    assert burn(agreement, windows, 2 * HOUR).rate == Fraction(20, 11_000) / Fraction(1, 1000)
    assert burn(agreement, windows, HOUR + 1).bad == 20


def test_idle_windows_burn_nothing() -> None:
    agreement = terms(RATIO, target="99.9")
    found = burn(agreement, judged(agreement, [(990, 10), (0, 0)]))
    assert (found.rate, found.exhaustion, found.exhausted_at_ns) == (0, Exhaustion.EXHAUSTED, None)
    idle = burn(agreement, judged(agreement, [(0, 0)]))
    assert (idle.valid, idle.rate, idle.exhaustion) == (0, 0, Exhaustion.NEVER)
    nothing = burn(agreement, judged(agreement, []))
    assert nothing == Burn(HOUR, None, 0, 0, Fraction(0), Exhaustion.NEVER, None)


def test_of_a_hundred_percent_any_failure_is_the_whole_budget() -> None:
    agreement = terms(RATIO, target="100")
    (clean,) = budget_reports(agreement, judged(agreement, [(10**6, 0)]), [HOUR])
    assert (clean.budget.allowed, clean.budget.burnt, clean.budget.exhausted, clean.burns[0].rate) == (0, 0, False, 0)
    (failed,) = budget_reports(agreement, judged(agreement, [(10**6, 1)]), [HOUR])
    assert (failed.budget.burnt, failed.budget.exhausted, failed.burns[0].rate) == (None, True, None)
    assert failed.burns[0].exhaustion is Exhaustion.EXHAUSTED


def test_minutes_down_are_forecast_from_the_whole_budget_of_the_period() -> None:
    # 0.5 % of 1,440 minutes are 7.2; 2 went in the last 10, so 5.2 more take 26 minutes.
    agreement = terms(MINUTES, window="PT1M", target="99.5")
    windows = judged(agreement, [(10, 0)] * 58 + [(0, 10)] * 2)
    found = burn(agreement, windows, 600)
    assert (found.bad, found.valid, found.rate) == (2, 10, 40)
    assert found.exhaustion is Exhaustion.EXPECTED
    assert found.exhausted_at_ns == windows[0].interval.start_ns + 86 * MINUTE_NS


@pytest.mark.parametrize(("down", "at_minute"), [(36, 1_440), (37, 1_420), (35, None)])
def test_what_is_gone_in_the_last_instant_of_a_period_is_gone(down: int, at_minute: int | None) -> None:
    """5 % of 1,440 minutes are 72. At noon ``down`` are gone, one of them in the last 20 minutes: with 36 left that go
    on so, the rest lasts for 720 minutes."""
    agreement = terms(MINUTES, window="PT1M", target="95")
    windows = judged(agreement, [(10, 0)] * (700 - (down - 1)) + [(0, 10)] * down + [(10, 0)] * 19)
    (report,) = budget_reports(agreement, windows, [1_200])
    (found,) = report.burns
    assert (report.judged_to_ns, found.interval) == (
        windows[719].interval.end_ns,
        Interval(windows[700].interval.start_ns, windows[719].interval.end_ns),
    )
    assert (found.bad, found.valid) == (1, 20)
    if at_minute is None:
        assert (found.exhaustion, found.exhausted_at_ns) == (Exhaustion.NEVER, None)
    else:
        noon_ns, minutes = windows[720].interval.start_ns, (72 - down) * 20
        assert found.exhaustion is Exhaustion.EXPECTED
        assert found.exhausted_at_ns == noon_ns + minutes * MINUTE_NS
        assert minutes + 720 == at_minute


def test_requests_are_forecast_against_a_budget_that_grows_with_them() -> None:
    # 10,000 may have 100 bad and have 10; each hour brings 1,000 more, so 10 may fail, and 40 do: 90 / 30 = 3 hours.
    agreement = terms(RATIO, target="99")
    windows = judged(agreement, [(9_030, 0), (960, 40)])
    (report,) = budget_reports(agreement, windows, [HOUR])
    assert report.budget.remaining == Fraction(10_030, 100) - 40
    found = report.burns[0]
    waits_ns = Fraction(603, 10) / 30 * HOUR * 10**9
    assert found.exhausted_at_ns == windows[1].interval.end_ns + waits_ns
    assert found.exhaustion is Exhaustion.EXPECTED
    # At a burn rate of 1 what may fail grows as fast as what does.
    steady = burn(agreement, judged(agreement, [(9_000, 0), (990, 10)]))
    assert (steady.rate, steady.exhaustion) == (1, Exhaustion.NEVER)


def test_what_would_be_gone_after_the_period_is_never_gone() -> None:
    agreement = terms(MINUTES, window="PT1M", target="50")
    found = burn(agreement, judged(agreement, [(10, 0)] * 59 + [(0, 10)]))
    assert found.exhaustion is Exhaustion.NEVER
    # One in sixty goes; half of 1,440 is allowed.
    assert found.rate == Fraction(1, 30)


def test_an_instant_between_two_nanoseconds_is_the_next_one() -> None:
    agreement = terms(RATIO, target="99")
    windows = judged(agreement, [(4_000, 0), (969, 31)])
    report = budget_reports(agreement, windows, [HOUR])[0]
    # (50 - 31) / (31 - 10) hours.
    exact = Fraction(19, 21) * HOUR * 10**9
    at_ns = report.burns[0].exhausted_at_ns
    assert at_ns is not None
    assert exact < at_ns - windows[1].interval.end_ns < exact + 1


def test_excluded_minutes_take_their_part_of_the_budget_with_them() -> None:
    agreement = terms(MINUTES, window="PT1M", target="99")
    (report,) = budget_reports(agreement, judged(agreement, [(1, 0)] * 60, excluded=range(40)), [])
    assert report.budget.allowed == Fraction(1_400, 100)
    assert report.budget.counted == 20


def test_windows_are_looked_at_in_whole_intervals_of_the_method() -> None:
    agreement = terms({"method": "interval_mean-v1", "interval": "PT5M"}, window="PT1M", target="99")
    windows = judged(agreement, [(1, 0)] * 5 + [(1, 1)] * 5 + [(0, 1)])
    found = burn(agreement, windows, 60)
    assert found.interval is not None
    assert found.interval.duration_ns == 5 * MINUTE_NS
    # The interval that is not over is not looked at.
    assert found.interval.end_ns == windows[10].interval.start_ns
    assert found.rate == 50


def test_rolling_slices_are_looked_at_with_at_least_one_whole() -> None:
    rolling = {"method": "attainment-v1", "slice": {"window": "PT5M", "step": "PT1M", "target": "90"}}
    agreement = terms(rolling, window="PT1M", target="95")
    (report,) = budget_reports(agreement, judged(agreement, [(10, 0)] * 6 + [(0, 10)]), [60])
    (found,) = report.burns
    assert (found.bad, found.valid) == (1, 1)
    # Slices that are not over are not judged: the budget is that of the three that are.
    assert (report.budget.valid, report.budget.counted, report.budget.allowed) == (3, 3, Fraction(15, 100))


def test_a_forecast_as_reports_spell_it() -> None:
    assert [str(each) for each in Exhaustion] == ["exhausted", "expected", "never"]
    assert ASSUMPTION == "what failed and what was valid go on as they did in this window"


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=24),
    st.sampled_from(["50", "99", "99.95", "100"]),
    st.integers(1, 24 * HOUR),
)
def test_exhausted_is_breached_and_the_whole_day_burns_what_is_burnt(
    cells: list[tuple[int, int]], target: str, seconds: int
) -> None:
    agreement = terms(RATIO, target=target)
    (report,) = budget_reports(agreement, judged(agreement, cells), [seconds, 24 * HOUR])
    budget = report.budget
    state = judge(budget.counted - budget.bad, budget.counted, percent_ppb(target))
    assert budget.exhausted == (state is ObjectiveState.BREACHED)
    assert report.burns[1].rate == budget.burnt == burn_rate(budget.bad, budget.counted, percent_ppb(target))
    for found in report.burns:
        assert found.bad <= found.valid <= budget.counted
        assert (found.exhausted_at_ns is not None) == (found.exhaustion is Exhaustion.EXPECTED)
