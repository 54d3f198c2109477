"""Versions of terms, when each is in force, and what cannot follow what."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.proration import terms_for
from ledger.domain.credits.settlement import attestability
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import (
    State,
    Timeline,
    check_amendment,
    check_notice,
    milestones,
)
from ledger.domain.terms.termination import Notice, unsigned_notice
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval, union
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


def test_a_notice_on_the_day_an_amendment_takes_effect_leaves_it_out() -> None:
    later = amended("2023-05-10")
    timeline = Timeline((ORIGINAL, later), notice(later, "2023-05-10"))
    assert [each.version for each in timeline.terms] == [1]
    assert names(timeline)[-1] == "v1 2023-05-01/P9D"


def test_terms_that_nothing_ends_early_are_those_that_were_signed() -> None:
    next_year = amended("2024-01-01", effective={"from": "2024-01-01", "until": "2025-01-01"})
    timeline = Timeline((ORIGINAL, next_year))
    assert [each.agreement for each in timeline.terms] == [ORIGINAL, next_year]
    assert timeline.terms[0].agreement is ORIGINAL
    assert Timeline((ORIGINAL, amended())).terms[0].agreement.ended_on == date(2023, 3, 15)
    # The days of a week that the terms' own end cuts are in no period, and need no windows that fill them.
    weekly = monthly(period="P1W", window="PT7H")
    check_amendment(Timeline((weekly,)), next_year, now_ns=NOW)


def test_a_name_of_no_period_is_refused_by_the_newest_terms() -> None:
    timeline = Timeline((ORIGINAL, amended()))
    with pytest.raises(DocumentInvalid, match="starts on 2023-02-02: periods of P1M run from 2023-03-15"):
        timeline.named("2023-02-02/P1M")


def test_an_agreement_that_was_never_in_force_has_no_period() -> None:
    never = Timeline((ORIGINAL,), notice(ORIGINAL, "2023-01-01"))
    assert never.terms == ()
    with pytest.raises(DocumentInvalid, match="2023-02-01/P1M: the agreement was never in force"):
        never.named("2023-02-01/P1M")
    with pytest.raises(DocumentInvalid, match="no period starts on 2023-02-01: the agreement was never in force"):
        never.starting(date(2023, 2, 1))
    assert never.ending_after(0) is None
    assert never.at(parse_instant_ns("2023-02-01T00:00:00Z")) is None
    assert list(milestones(never)) == []
    assert never.state(parse_instant_ns("2023-02-01T00:00:00Z")) is State.TERMINATED
    assert never.state(parse_instant_ns("2022-02-01T00:00:00Z")) is State.SIGNED


def test_the_earliest_period_that_is_not_over_is_of_the_terms_it_was_under() -> None:
    timeline = Timeline((ORIGINAL, amended()))

    def next_at(text: str) -> str | None:
        found = timeline.ending_after(parse_instant_ns(f"{text}T00:00:00Z"))
        return None if found is None else f"v{found[0].version} {found[1]}"

    assert next_at("2022-01-01") == "v1 2023-01-01/P1M"
    assert next_at("2023-03-14") == "v1 2023-03-01/P14D"
    assert next_at("2023-03-15") == "v2 2023-03-15/P17D"
    assert next_at("2023-12-31") == "v2 2023-12-01/P1M"
    assert next_at("2024-01-01") is None


def test_a_date_before_the_first_terms_is_refused_by_them() -> None:
    with pytest.raises(DocumentInvalid, match="starts on 2022-12-01: periods of P1M run from 2023-01-01 to 2023-03-15"):
        Timeline((ORIGINAL, amended())).starting(date(2022, 12, 1))


def test_periods_that_share_an_instant_with_a_span_come_from_all_terms_in_order() -> None:
    timeline = Timeline((ORIGINAL, amended(), amended("2023-03-25")))
    span = Interval(parse_instant_ns("2023-02-28T00:00:00Z"), parse_instant_ns("2023-03-25T00:00:01Z"))
    assert [str(period) for period in timeline.touching(span)] == [
        "2023-02-01/P1M",
        "2023-03-01/P14D",
        "2023-03-15/P10D",
        "2023-03-25/P7D",
    ]


def test_neighbours_of_a_period_lie_across_a_change_of_terms() -> None:
    timeline = Timeline((ORIGINAL, amended(), amended("2023-03-25")))
    _, middle = timeline.named("2023-03-15/P10D")
    before, after = timeline.before(middle), timeline.after(middle)
    assert before is not None and after is not None  # noqa: PT018
    assert (before[0].version, str(before[1])) == (1, "2023-03-01/P14D")
    assert (after[0].version, str(after[1])) == (3, "2023-03-25/P7D")
    _, first = timeline.named("2023-01-01/P1M")
    _, last = timeline.named("2023-12-01/P1M")
    assert timeline.before(first) is None
    assert timeline.after(last) is None


def test_terms_too_short_for_a_period_are_passed_over() -> None:
    rolling = {
        "period": "P30D",
        "step": "P1D",
        "compensation__rules": [],
        "partial_periods": "drop",
        "anchor": "2023-01-01",
    }
    versions = (amended("2023-01-01", **rolling), amended("2023-03-15", **rolling), amended("2023-03-25", **rolling))
    timeline = Timeline(versions)
    last_of_first, first_of_third = timeline.named("2023-02-13/P30D")[1], timeline.named("2023-03-25/P30D")[1]
    after, before = timeline.after(last_of_first), timeline.before(first_of_third)
    assert after is not None and before is not None  # noqa: PT018
    assert (after[0].version, after[1]) == (3, first_of_third)
    assert (before[0].version, before[1]) == (1, last_of_first)


def test_of_three_versions_the_second_is_amended_once_the_third_is_in_force() -> None:
    timeline = Timeline((ORIGINAL, amended(), amended("2023-03-25")))
    stands = [timeline.state_of(version, parse_instant_ns("2023-03-25T00:00:00Z")) for version in (1, 2, 3)]
    assert stands == [State.AMENDED, State.AMENDED, State.ACTIVE]
    assert [version for _, _, version in milestones(timeline)] == [1, 2, 3, 3]
    assert [what for _, what, _ in milestones(Timeline((ORIGINAL,)))] == ["active", "expired"]


def test_states_as_they_are_spelt() -> None:
    assert [str(state) for state in State] == ["draft", "signed", "active", "amended", "terminated", "expired"]


def test_a_version_that_a_notice_ends_is_terminated_and_the_one_before_it_amended() -> None:
    later = amended()
    timeline = Timeline((ORIGINAL, later), notice(later, "2023-06-01"))
    over = parse_instant_ns("2023-06-01T00:00:00Z")
    assert (timeline.state_of(1, over), timeline.state_of(2, over), timeline.state(over)) == (
        State.AMENDED,
        State.TERMINATED,
        State.TERMINATED,
    )
    assert timeline.state_of(2, over - 1) is State.ACTIVE
    assert timeline.state_of(1, parse_instant_ns("2023-03-15T00:00:00Z") - 1) is State.ACTIVE
    assert timeline.state_of(3, over) is State.TERMINATED
    assert [(what, version) for _, what, version in milestones(timeline)] == [
        ("active", 1),
        ("amended", 2),
        ("terminated", 2),
    ]


def test_an_amendment_may_take_effect_on_the_day_that_the_terms_end() -> None:
    next_year = amended("2024-01-01", effective={"from": "2024-01-01", "until": "2025-01-01"})
    check_amendment(Timeline((ORIGINAL,)), next_year, now_ns=NOW)


@pytest.mark.parametrize(("first", "fine"), [("2023-03-02", True), ("2023-03-03", True), ("2023-03-01", False)])
def test_an_amendment_takes_effect_later_than_now(first: str, fine: bool) -> None:
    midnight = parse_instant_ns("2023-03-01T00:00:00Z")
    if fine:
        check_amendment(Timeline((ORIGINAL,)), amended(first), now_ns=midnight)
        check_notice(Timeline((ORIGINAL,)), notice(ORIGINAL, first), now_ns=midnight)
        return
    with pytest.raises(DocumentInvalid, match="no amendment reaches back"):
        check_amendment(Timeline((ORIGINAL,)), amended(first), now_ns=midnight)
    with pytest.raises(DocumentInvalid, match="no notice reaches back"):
        check_notice(Timeline((ORIGINAL,)), notice(ORIGINAL, first), now_ns=midnight)


def test_a_notice_ends_what_began_before_it_and_not_before_the_first_period() -> None:
    with pytest.raises(DocumentInvalid, match="2023-01-01 is not after 2023-01-01, when the agreement began"):
        check_notice(Timeline((ORIGINAL,)), notice(ORIGINAL, "2023-01-01"), now_ns=0)
    check_notice(Timeline((ORIGINAL,)), notice(ORIGINAL, "2023-01-02"), now_ns=0)
    check_notice(Timeline((ORIGINAL,)), notice(ORIGINAL, "2023-12-31"), now_ns=0)
    rolling = monthly(period="P30D", step="P1D", compensation__rules=[])
    with pytest.raises(DocumentInvalid, match="2023-01-30: the terms would end before their first period"):
        check_notice(Timeline((rolling,)), notice(rolling, "2023-01-30"), now_ns=0)
    check_notice(Timeline((rolling,)), notice(rolling, "2023-01-31"), now_ns=0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"parties__issuer__ed25519_public_key": "11" * 32}, "parties.issuer.ed25519_public_key"),
        ({"parties__issuer__evm_address": "0x" + "11" * 20}, "parties.issuer.evm_address"),
        ({"parties__customer__evm_address": "0x" + "11" * 20}, "parties.customer.evm_address"),
    ],
)
def test_no_amendment_changes_who_agreed(change: dict[str, Any], field: str) -> None:
    with pytest.raises(DocumentInvalid, match="make another agreement, with another nonce") as caught:
        check_amendment(Timeline((ORIGINAL,)), amended(**change), now_ns=NOW)
    assert caught.value.data["field"] == field


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
    halves = monthly(window="PT30M")
    assert attestability(halves.ending_on(date(2023, 1, 10))) == attestability(halves) != ()
