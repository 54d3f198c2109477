"""Agreements and periods at their bounds: no rule at all, thousands of incidents, slices of half a month."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.credit_lines import credit_shares
from ledger.domain.credits.credit_steps import credit_steps
from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.money import digits, whole_number
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.domain.samples import agreement

pytestmark = pytest.mark.long

LOST = {"objective": "availability", "kind": "proportional", "method": "proportional-v1", "of": "lost_time"}
LOST |= {"affected": "share", "pays": "always"}
PRIMES = [n for n in range(2**20, 2**20 + 30_000) if all(n % k for k in range(2, 1100))]


def month(window: str, rules: list[dict[str, Any]], **members: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain |= {"period": "P1M", "window": window, **members}
        plain["compensation"] |= {"rules": rules, "caps": {}}

    return agreement(change)


def alternating(terms: Agreement, valid: list[int] | None = None) -> tuple[Period, tuple[Window, ...]]:
    """Every second window has failures; ``valid`` are the requests in those."""
    period = next(terms.periods.all())
    valid = valid or [10]
    failed = [Cell(each - each // 3, each // 3) for each in valid]

    def cell(at: int) -> Cell:
        return failed[at // 2 % len(failed)] if at % 2 else Cell(10, 0)

    return period, tuple(
        Window(interval, WindowState.OBSERVED, (cell(at),) * len(terms.objectives))
        for at, interval in enumerate(terms.windows(period))
    )


@pytest.mark.parametrize("combine", ["best", "sum"])
def test_an_agreement_without_rules_credits_nothing(combine: str) -> None:
    terms = agreement(lambda plain: plain["compensation"].update(rules=[], rules_combine=combine))
    period = next(terms.periods.all())
    windows = tuple(Window(each, WindowState.OBSERVED, (Cell(0, 1),) * 3) for each in terms.windows(period))
    settlement = settle(terms, period, windows)
    assert settlement.trace is not None
    assert settlement.trace.credit == 0
    shares = credit_shares(settlement.trace, violations(terms, windows))
    assert {share.minor_units for share in shares} == {0}


class TestThousandsOfIncidents:
    def settled(self) -> tuple[Agreement, tuple[Window, ...], Settlement]:
        """Shares with another denominator each, so that their exact sum has more digits than ``str`` writes."""
        terms = month("PT5M", [LOST])
        period, windows = alternating(terms, PRIMES[:1500])
        return terms, windows, settle(terms, period, windows)

    def test_have_an_exact_sum_that_can_be_shown_and_followed(self) -> None:
        terms, _, settlement = self.settled()
        assert settlement.trace is not None
        exact = settlement.trace.capped_amount
        assert exact.denominator > 10**4300
        document = settlement.as_document()
        shown = document["trace"]["capped_amount"]
        assert Fraction(whole_number(shown["numerator"]), whole_number(shown["denominator"])) == exact
        steps = credit_steps(terms, document["trace"], document["objectives"])
        assert steps[-1]["quotient"] == str(exact.numerator // exact.denominator)

    def test_share_the_credit_out_in_no_time(self) -> None:
        terms, windows, settlement = self.settled()
        assert settlement.trace is not None
        started_s = time.process_time()
        shares = credit_shares(settlement.trace, violations(terms, windows))
        assert time.process_time() - started_s < 10
        assert sum(share.minor_units for share in shares) == settlement.trace.credit

    def test_cost_what_they_are_and_not_their_square(self) -> None:
        times = {"kind": "multiplier", "method": "multiplier-v1", "objective": "availability", "factor": "2"}
        terms = month("PT1M", [{**times, "per": "incident"}])
        period, windows = alternating(terms)
        started_s = time.process_time()
        settle(terms, period, windows)
        assert time.process_time() - started_s < 20


@pytest.mark.parametrize("state", [WindowState.OBSERVED, WindowState.NO_DATA])
def test_long_slices_that_roll_by_a_window_cost_no_more_than_short_ones(state: WindowState) -> None:
    long = {"window": "PT370H", "step": "PT1M", "target": "99"}
    objectives = [
        {"id": f"o{at}", "method": "attainment-v1", "indicator": "availability", "target": "99.9", "slice": long}
        for at in range(8)
    ]
    terms = month("PT1M", [], objectives=objectives)
    period, windows = alternating(terms)
    if state is WindowState.NO_DATA:
        windows = tuple(Window(each.interval, state, (Cell(0, 0),) * 8) for each in windows)
    started_s = time.process_time()
    settle(terms, period, windows)
    assert time.process_time() - started_s < 30


@given(st.integers(-(10**30), 10**30), st.integers(0, 30_000))
def test_digits_of_any_length_are_read_back(value: int, zeros: int) -> None:
    for number in (value, value * 10**zeros, value * 10**zeros + 7):
        assert whole_number(digits(number)) == number
    assert digits(value) == str(value)


@pytest.mark.parametrize("text", ["", "-", "1" * 5000 + "x", "-" + "_" * 4500, "1_0" * 2000, "٣" * 5000])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|no whole number"):
        whole_number(text)
