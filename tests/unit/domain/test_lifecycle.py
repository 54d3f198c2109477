"""Versions of terms, when each is in force, and what cannot follow what."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.agreement import Agreement
from ledger.domain.instant import format_instant_ns, parse_instant_ns
from ledger.domain.interval import union
from ledger.domain.lifecycle import (
    State,
    Timeline,
    check_amendment,
    check_notice,
    milestones,
)
from ledger.domain.proration import terms_for
from ledger.domain.settlement import attestability
from ledger.domain.termination import Notice, unsigned_notice
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement, put

NOW = parse_instant_ns("2023-03-01T12:00:00Z")


def monthly(**members: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "period", "P1M")
        for path, value in members.items():
            put(plain, path.replace("__", "."), value)

    return agreement(change)


def amended(first: str = "2023-03-15", **members: Any) -> Agreement:
    """The terms from ``first`` on, by the same calendar months."""
    own = {"anchor": "2023-01-01", "partial_periods": "prorate", "compensation__base": "9000.00"}
    return monthly(**{"effective": {"from": first, "until": "2024-01-01"}, **own, **members})


def notice(of: Agreement, effective: str = "2023-03-15", **changes: Any) -> Notice:
    unsigned = unsigned_notice("0x" + "5a" * 32, of.doc_sha256.hex(), effective, "moved to another provider")
    return Notice.from_document({**unsigned, "signatures": {"customer": "ab" * 64}, **changes})


ORIGINAL = monthly()


def names(timeline: Timeline) -> list[str]:
    found, shown = timeline.ending_after(timeline.documents[0].starts_ns), []
    while found is not None:
        terms, period = found
        shown.append(f"v{terms.version} {period}")
        found = timeline.after(period)
    return shown


def test_a_change_inside_a_period_splits_it() -> None:
    timeline = Timeline((ORIGINAL, amended()))
    assert names(timeline)[1:5] == [
        "v1 2023-02-01/P1M",
        "v1 2023-03-01/P14D",
        "v2 2023-03-15/P17D",
        "v2 2023-04-01/P1M",
    ]
    (first, before), (second, after) = timeline.named("2023-03-01/P14D"), timeline.named("2023-03-15/P17D")
    assert before.interval.end_ns == after.interval.start_ns
    assert (first.version, second.version) == (1, 2)
    assert terms_for(first.agreement, before).compensation.base == 361_290  # 8000.00 * 14 / 31
    assert terms_for(second.agreement, after).compensation.base == 493_548  # 9000.00 * 17 / 31


def test_equal_bases_of_both_parts_sum_to_the_base() -> None:
    timeline = Timeline((ORIGINAL, amended(compensation__base="8000.00")))
    parts = [timeline.named(name) for name in ("2023-03-01/P14D", "2023-03-15/P17D")]
    assert sum(terms_for(terms.agreement, part).compensation.base for terms, part in parts) == 800_000


def test_a_change_between_two_periods_splits_none() -> None:
    timeline = Timeline((ORIGINAL, amended("2023-04-01", partial_periods="drop")))
    assert names(timeline)[2:4] == ["v1 2023-03-01/P1M", "v2 2023-04-01/P1M"]
    check_amendment(Timeline((ORIGINAL,)), timeline.newest, now_ns=NOW)


def test_a_change_may_move_the_day_that_is_billed_on() -> None:
    timeline = Timeline((ORIGINAL, monthly(effective={"from": "2023-03-15", "until": "2024-01-15"})))
    assert names(timeline)[2:4] == ["v1 2023-03-01/P14D", "v2 2023-03-15/P1M"]
    check_amendment(Timeline((ORIGINAL,)), timeline.newest, now_ns=NOW)


def test_a_notice_ends_the_last_period_early() -> None:
    timeline = Timeline((ORIGINAL,), notice(ORIGINAL))
    assert names(timeline)[-2:] == ["v1 2023-02-01/P1M", "v1 2023-03-01/P14D"]
    assert timeline.at(parse_instant_ns("2023-03-15T00:00:00Z")) is None


def test_a_notice_before_an_amendment_takes_effect_leaves_it_out() -> None:
    later = amended("2023-05-10")
    timeline = Timeline((ORIGINAL, later), notice(later, "2023-04-11"))
    assert names(timeline)[-1] == "v1 2023-04-01/P10D"
    assert timeline.state_of(2, NOW) is State.TERMINATED


def test_terms_are_those_in_force_when_the_period_was() -> None:
    timeline = Timeline((ORIGINAL, amended(), amended("2023-03-25")))
    day = {14: "2023-03-01/P14D", 15: "2023-03-15/P10D", 24: "2023-03-15/P10D", 25: "2023-03-25/P7D"}
    for number, name in day.items():
        found = timeline.at(parse_instant_ns(f"2023-03-{number}T10:00:00Z"))
        assert str(found) == name
        assert str(timeline.starting(date.fromisoformat(name[:10]))[1]) == name
    for wrong in ("2023-03-01/P1M", "2023-03-15/P17D", "2023-03-02/P1M"):
        with pytest.raises(DocumentInvalid):
            timeline.named(wrong)


@given(
    st.sets(st.dates(date(2023, 1, 2), date(2023, 12, 30)), max_size=5),
    st.none() | st.dates(date(2023, 1, 2), date(2023, 12, 30)),
)
def test_however_terms_change_no_instant_is_lost_or_counted_twice(days: set[date], end: date | None) -> None:
    documents = (ORIGINAL, *(amended(str(day)) for day in sorted(days)))
    timeline = Timeline(documents, None if end is None else notice(documents[-1], str(end)))
    found, periods = timeline.ending_after(0), []
    while found is not None:
        terms, period = found
        assert terms.agreement.starts_ns <= period.interval.start_ns < period.interval.end_ns <= terms.agreement.ends_ns
        before = timeline.before(period)
        assert (before and before[1]) == (periods[-1] if periods else None)
        periods.append(period)
        found = timeline.after(period)
    ends = ORIGINAL.day_ns(min(end or date(2024, 1, 1), date(2024, 1, 1)))
    assert [(each.start_ns, each.end_ns) for each in union(period.interval for period in periods)] == [
        (ORIGINAL.starts_ns, ends)
    ]
    assert len({period.first for period in periods}) == len(periods)


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"first": "2023-03-01"}, "effective.from", "2023-03-01 is not later than now"),
        ({"first": "2022-12-31"}, "effective.from", "2022-12-31 is not later than now"),
        ({"effective": {"from": "2024-01-02", "until": "2025-01-01"}}, "effective.from", "2024-01-02 leaves a gap"),
        ({"partial_periods": "drop"}, "partial_periods", "2023-03-15 to 2023-04-01"),
        ({"timezone": "Europe/Berlin"}, "timezone", "'Europe/Berlin' differs from 'UTC'"),
        ({"day_start": "08:00"}, "day_start", "'08:00' differs from None"),
        ({"service__name": "other"}, "service.name", "'other' differs"),
        ({"source__name": "other"}, "source.name", "'other' differs"),
        ({"parties__customer__ed25519_public_key": "11" * 32}, "parties.customer.ed25519_public_key", "'1111"),
        ({"nonce": "0x" + "11" * 32}, "nonce", "'0x1111"),
    ],
)
def test_terms_that_cannot_follow_are_refused_with_clause_and_value(
    change: dict[str, Any], field: str, value: str
) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        check_amendment(Timeline((ORIGINAL,)), amended(**change), now_ns=NOW)
    assert caught.value.data["field"] == field
    assert value in caught.value.message


@pytest.mark.parametrize("first", ["2023-05-01", "2023-04-30", "2023-03-02"])
def test_effective_dates_do_not_overlap(first: str) -> None:
    with pytest.raises(
        DocumentInvalid, match=f"{first} overlaps version 2, which is in force from 2023-05-01"
    ) as caught:
        check_amendment(Timeline((ORIGINAL, amended("2023-05-01"))), amended(first, tier="silver"), now_ns=NOW)
    assert caught.value.data["field"] == "effective.from"


def test_parts_that_the_windows_do_not_fill_are_refused() -> None:
    weekly = monthly(period="P1W", window="PT7H")
    with pytest.raises(DocumentInvalid, match="25200 s windows") as caught:
        check_amendment(Timeline((weekly,)), amended("2023-03-15", period="P1W", window="PT1H"), now_ns=NOW)
    assert caught.value.data["field"] == "window"


def test_what_ended_by_notice_is_not_amended() -> None:
    ended = Timeline((ORIGINAL,), notice(ORIGINAL, "2023-06-01"))
    with pytest.raises(DocumentInvalid, match="ends by notice on 2023-06-01"):
        check_amendment(ended, amended(), now_ns=NOW)
    with pytest.raises(DocumentInvalid, match="ends on 2023-06-01 already"):
        check_notice(ended, notice(ORIGINAL, "2023-05-01"), now_ns=NOW)


@pytest.mark.parametrize(
    ("effective", "doc", "field"),
    [
        ("2023-03-01", None, "effective"),
        ("2023-01-01", None, "effective"),
        ("2024-01-01", None, "effective"),
        ("2023-02-30", None, "effective"),
        ("2023-04-01", "ab" * 32, "doc_sha256"),
    ],
)
def test_notices_that_end_nothing(effective: str, doc: str | None, field: str) -> None:
    def end() -> None:
        found = notice(ORIGINAL, effective, **({} if doc is None else {"doc_sha256": doc}))
        check_notice(Timeline((ORIGINAL,)), found, now_ns=NOW)

    with pytest.raises(DocumentInvalid) as caught:
        end()
    assert caught.value.data["field"] == field


def test_a_notice_that_nobody_signed_is_none() -> None:
    with pytest.raises(DocumentInvalid, match="nobody signed"):
        notice(ORIGINAL, signatures={})


def test_states_follow_time() -> None:
    timeline = Timeline((ORIGINAL, amended()))
    stands = {
        "2022-12-31T23:59:59Z": ("signed", "signed", "signed"),
        "2023-01-01T00:00:00Z": ("active", "active", "signed"),
        "2023-03-15T00:00:00Z": ("active", "amended", "active"),
        "2024-01-01T00:00:00Z": ("expired", "amended", "expired"),
    }
    for at, expected in stands.items():
        now_ns = parse_instant_ns(at)
        assert (timeline.state(now_ns), timeline.state_of(1, now_ns), timeline.state_of(2, now_ns)) == expected, at
    ended = Timeline((ORIGINAL,), notice(ORIGINAL))
    assert ended.state(parse_instant_ns("2023-03-15T00:00:00Z")) is State.TERMINATED
    assert [(format_instant_ns(at)[:10], what, version) for at, what, version in milestones(timeline)] == [
        ("2023-01-01", "active", 1),
        ("2023-03-15", "amended", 2),
        ("2024-01-01", "expired", 2),
    ]


def test_what_ends_terms_early_does_not_change_whether_they_are_attested() -> None:
    day = agreement()
    assert attestability(day.ending_on(date(2023, 5, 1))) == attestability(day) == ()
    month = ORIGINAL.ending_on(date(2023, 1, 10))
    assert attestability(month) == attestability(ORIGINAL) != ()
