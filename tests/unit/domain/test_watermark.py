"""The watermark: how far a source has got, whatever the order in which it says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.facts.heartbeats import AHEAD_NS
from ledger.domain.facts.watermark import Declared, closes_by_ns, closes_from_ns, grace_over_ns, vouched
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import FORMATS, HEARTBEATS, REQUESTS, SAMPLES
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import MINUTE_NS
from ledger.domain.time.interval import Interval
from ledger.errors import RequestLogUnusable
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, document, put

LATE = 2**62
SAMPLED = {
    "id": "facts",
    "method": "total_ratio",
    "indicator": "fact_consistency",
    "target": "98.2",
    "evaluator": "factbench 2.1",
    "minimum_valid": 1,
}


def terms(*, coverage: str = "complete_log", requests: bool = True, samples: bool = False) -> Agreement:
    plain: Any = document()
    put(plain, "source.coverage", coverage)
    put(plain, "objectives", [*(plain["objectives"][:1] if requests else ()), *([SAMPLED] if samples else ())])
    put(plain, "compensation.rules", [])
    return Agreement.from_document(plain)


def declared(*said: tuple[str, int]) -> Declared:
    found = Declared()
    for kind, end_ns in said:
        found.take(kind, end_ns, LATE)
    return found


@pytest.mark.parametrize(
    ("agreement", "said", "expected"),
    [
        (terms(), [], None),
        (terms(), [(REQUESTS, 5), (REQUESTS, 3)], 5),
        (terms(), [(SAMPLES, 5)], None),
        (terms(), [(HEARTBEATS, 5)], None),
        (terms(samples=True), [(REQUESTS, 5)], None),
        (terms(samples=True), [(REQUESTS, 5), (SAMPLES, 3)], 3),
        (terms(requests=False, samples=True), [(REQUESTS, 5), (SAMPLES, 3)], 3),
        (terms(coverage="heartbeat"), [(HEARTBEATS, 5)], 5),
        (terms(coverage="heartbeat"), [(HEARTBEATS, 5), (REQUESTS, 7)], 7),
        (terms(), [(REQUESTS, 1)], 1),
        (terms(coverage="heartbeat"), [(HEARTBEATS, 1)], 1),
        (terms(coverage="heartbeat"), [], None),
        (terms(coverage="heartbeat", samples=True), [(HEARTBEATS, 5), (REQUESTS, 7)], 5),
    ],
)
def test_every_log_that_is_counted_must_have_got_there(
    agreement: Agreement, said: list[tuple[str, int]], expected: int | None
) -> None:
    assert declared(*said).watermark_ns(agreement) == expected


def test_nobody_vouches_for_what_comes_after_he_said_so_but_for_a_clock_that_is_ahead() -> None:
    found = Declared()
    found.take(REQUESTS, 10**18, handed_in_ns=10**17)
    assert found.watermark_ns(terms()) == 10**17 + AHEAD_NS


@given(st.lists(st.tuples(st.sampled_from(FORMATS), st.integers(1, 99)), max_size=8), st.randoms())
def test_it_never_goes_back_and_order_changes_nothing(said: list[tuple[str, int]], random: Any) -> None:
    agreement = terms(coverage="heartbeat", samples=True)
    steps = [declared(*said[:count]).watermark_ns(agreement) or 0 for count in range(len(said) + 1)]
    assert steps == sorted(steps)
    shuffled = list(said)
    random.shuffle(shuffled)
    assert declared(*shuffled).watermark_ns(agreement) == declared(*said).watermark_ns(agreement)


NOW_NS = 10**18


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        (None, None),
        ((NOW_NS - 9, NOW_NS), (NOW_NS - 9, NOW_NS)),
        ((NOW_NS - 9, NOW_NS + MINUTE_NS), (NOW_NS - 9, NOW_NS + MINUTE_NS)),
        ((NOW_NS - 9, NOW_NS + MINUTE_NS + 1), (NOW_NS - 9, NOW_NS + MINUTE_NS)),
        ((NOW_NS + MINUTE_NS - 1, NOW_NS + 2 * MINUTE_NS), (NOW_NS + MINUTE_NS - 1, NOW_NS + MINUTE_NS)),
    ],
)
def test_of_a_declaration_only_what_was_there_to_be_seen_counts(
    declared: tuple[int, int] | None, seen: tuple[int, int] | None
) -> None:
    assert vouched(Interval(*declared) if declared else None, NOW_NS) == (Interval(*seen) if seen else None)


def test_a_declaration_of_time_to_come_is_refused() -> None:
    with pytest.raises(RequestLogUnusable, match="declare time once it is over") as refused:
        vouched(Interval(NOW_NS + MINUTE_NS, NOW_NS + 2 * MINUTE_NS), NOW_NS)
    assert refused.value.data["field"] == "from"


def test_a_period_closes_after_its_grace_and_one_whose_source_is_silent_at_the_latest() -> None:
    """The example's grace is three days; a source that is waited for has a week."""
    plain = agreement()
    waits = agreement(lambda terms: put(terms, "closing", {"when": "watermark", "at_latest": "PT168H"}))
    period = period_named(plain, "2023-06-14/P1D")
    end_ns = DAY_NS + 24 * HOUR_NS
    over_ns, late_ns = end_ns + 72 * HOUR_NS, end_ns + 168 * HOUR_NS
    assert grace_over_ns(plain, period) == grace_over_ns(waits, period) == over_ns
    assert (closes_by_ns(plain, period), closes_by_ns(waits, period)) == (over_ns, late_ns)
    assert [closes_from_ns(waits, period, mark) for mark in (None, end_ns - 1, end_ns)] == [late_ns, late_ns, over_ns]
    assert closes_from_ns(plain, period, None) == over_ns
