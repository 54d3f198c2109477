"""Which recorded exclusions are honoured, and what they take out of a period."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.terms.exclusion_terms import MINUTE_NS, ExclusionTerms
from ledger.domain.time.calendar import make_period, parse_date, parse_period_length
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval, union
from ledger.domain.windows.exclusions import Excluded, Exclusion, Ruled, Ruling, excluded_in, rule
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement, document

CLASSES: list[dict[str, Any]] = [
    {
        "id": "gray-release",
        "reason": "a new version on part of the traffic",
        "longest": "PT15M",
        "at_most": {"count": 4, "per": "month"},
    },
    {"id": "hot-update", "reason": "model weights swapped in place", "longest": "PT90S", "automatic": True},
    {
        "id": "rotation",
        "reason": "hosts are replaced",
        "at_most": {"count": 1, "per": "quarter"},
        "notice": "PT72H",
    },
]
CARVE_OUTS = [{"id": "storm", "kind": "force_majeure", "reason": "what nobody can be asked to prevent"}]
FOREVER = Interval(parse_instant_ns("2023-01-01T00:00:00Z"), parse_instant_ns("2025-01-01T00:00:00Z"))


def terms(**maintenance: Any) -> ExclusionTerms:
    def change(plain: dict[str, Any]) -> None:
        plain["maintenance"] = {"classes": CLASSES, **maintenance}
        plain["carve_outs"] = CARVE_OUTS

    return agreement(change).exclusion_terms


def between(start: str, end: str) -> Interval:
    return Interval(parse_instant_ns(start), parse_instant_ns(end))


def ticket(
    name: str,
    clause: str,
    start: str,
    minutes: float,
    *,
    announced: str | None = None,
    approved_by: str | None = "change board",
) -> Exclusion:
    start_ns = parse_instant_ns(start)
    announced_at_ns = None if announced is None else parse_instant_ns(announced)
    interval = Interval(start_ns, start_ns + int(minutes * MINUTE_NS))
    return Exclusion(name, clause, interval, announced_at_ns, approved_by)


def ruled(*recorded: Exclusion, zone: str = "UTC", **maintenance: Any) -> dict[str, Ruled]:
    return {each.exclusion.id: each for each in rule(terms(**maintenance), zone, recorded)}


def spans(found: Excluded) -> list[tuple[str, str]]:
    return [(format_instant_ns(part.start_ns), format_instant_ns(part.end_ns)) for part in found.union]


def test_of_a_gray_release_that_takes_too_long_the_first_fifteen_minutes_are_maintenance() -> None:
    found = ruled(ticket("a", "gray-release", "2023-06-14T10:00:00Z", 16), ticket("b", "gray-release", T_11, 15))
    assert (found["a"].ruling, found["b"].ruling) == (Ruling.SHORTENED, Ruling.HONOURED)
    assert found["a"].honoured == between("2023-06-14T10:00:00Z", "2023-06-14T10:15:00Z")
    assert found["a"].why.startswith("lasts 960 s; of gray-release the first 900 s")


T_11 = "2023-06-14T11:00:00Z"


def test_the_fifth_gray_release_of_a_month_counts_as_ordinary_time_in_whatever_order_they_are_recorded() -> None:
    days = [ticket(f"g{day}", "gray-release", f"2023-06-{day:02}T10:00:00Z", 10) for day in (20, 3, 11, 27, 7)]
    july = ticket("july", "gray-release", "2023-07-01T00:00:00Z", 10)
    found = ruled(*days, july)
    assert [name for name, each in found.items() if each.ruling is Ruling.TOO_MANY] == ["g27"]
    assert found["g27"].why.startswith("number 5 of its month")
    assert found["g27"].honoured is None


def test_a_month_is_one_of_the_agreement_s_zone() -> None:
    """10:00 on 30 June in UTC is 1 July in Kiritimati, 14 hours ahead."""
    june = [ticket(f"g{day}", "gray-release", f"2023-06-0{day}T00:00:00Z", 5) for day in range(1, 5)]
    last = ticket("last", "gray-release", "2023-06-30T10:00:00Z", 5)
    assert ruled(*june, last)["last"].ruling is Ruling.TOO_MANY
    assert ruled(*june, last, zone="Pacific/Kiritimati")["last"].ruling is Ruling.HONOURED


@pytest.mark.parametrize(("minutes", "ruling"), [(1.5, Ruling.HONOURED), (1.6, Ruling.SHORTENED)])
def test_a_hot_update_is_automatic_and_takes_ninety_seconds_at_most(minutes: float, ruling: Ruling) -> None:
    (found,) = ruled(ticket("h", "hot-update", T_11, minutes, approved_by=None)).values()
    assert found.ruling is ruling
    assert found.honoured == between(T_11, "2023-06-14T11:01:30Z")


@pytest.mark.parametrize(
    ("announced", "ruling"),
    [
        ("2023-06-11T11:00:00Z", Ruling.HONOURED),
        ("2023-06-11T11:00:00.000000001Z", Ruling.ANNOUNCED_LATE),
        (None, Ruling.ANNOUNCED_LATE),
    ],
)
def test_a_rotation_is_announced_72_hours_before(announced: str | None, ruling: Ruling) -> None:
    assert ruled(ticket("r", "rotation", T_11, 600, announced=announced))["r"].ruling is ruling


def test_a_rotation_announced_late_does_not_use_up_the_one_of_its_quarter() -> None:
    early, late = "2023-04-02T00:00:00Z", "2023-04-09T00:00:00Z"
    recorded = [
        ticket("late", "rotation", "2023-04-10T00:00:00Z", 60, announced=late),
        ticket("first", "rotation", "2023-05-10T00:00:00Z", 60, announced=early),
        ticket("second", "rotation", "2023-06-10T00:00:00Z", 60, announced=early),
        ticket("next", "rotation", "2023-07-01T00:00:00Z", 60, announced=early),
    ]
    rulings = {name: each.ruling for name, each in ruled(*recorded).items()}
    assert rulings == {
        "late": Ruling.ANNOUNCED_LATE,
        "first": Ruling.HONOURED,
        "second": Ruling.TOO_MANY,
        "next": Ruling.HONOURED,
    }


def test_without_an_approval_or_a_clause_nothing_is_honoured() -> None:
    found = ruled(
        ticket("a", "gray-release", T_11, 5, approved_by=None),
        ticket("b", "storm", T_11, 5, approved_by=None),
        ticket("c", "picnic", T_11, 5),
    )
    assert [each.ruling for each in found.values()] == [Ruling.NOT_APPROVED, Ruling.NOT_APPROVED, Ruling.NO_CLAUSE]
    assert "'picnic'" in found["c"].why


def test_the_cap_cuts_the_maintenance_of_a_period_and_no_carve_out() -> None:
    recorded = [
        ticket("a", "gray-release", "2023-06-14T10:00:00Z", 15),
        ticket("b", "gray-release", "2023-06-14T12:00:00Z", 15),
        ticket("c", "gray-release", "2023-06-14T14:00:00Z", 15),
        ticket("storm", "storm", "2023-06-14T20:00:00Z", 90),
    ]
    capped = terms(cap_minutes=20)
    found = excluded_in(capped, rule(capped, "UTC", recorded), FOREVER)
    assert [each.ruling for each in found.rulings] == [
        Ruling.HONOURED,
        Ruling.SHORTENED,
        Ruling.OVER_CAP,
        Ruling.HONOURED,
    ]
    assert spans(found) == [
        ("2023-06-14T10:00:00Z", "2023-06-14T10:15:00Z"),
        ("2023-06-14T12:00:00Z", "2023-06-14T12:05:00Z"),
        ("2023-06-14T20:00:00Z", "2023-06-14T21:30:00Z"),
    ]
    assert "cap of 20 minutes" in found.rulings[1].why


def test_the_cap_counts_overlapping_maintenance_once() -> None:
    recorded = [ticket(name, "gray-release", "2023-06-14T10:00:00Z", 15) for name in ("a", "b")]
    capped = terms(cap_minutes=15)
    found = excluded_in(capped, rule(capped, "UTC", recorded), FOREVER)
    assert [each.ruling for each in found.rulings] == [Ruling.HONOURED, Ruling.HONOURED]


def test_what_lies_outside_the_period_is_neither_taken_out_nor_capped() -> None:
    across = ticket("r", "rotation", "2023-06-13T23:00:00Z", 120, announced="2023-06-01T00:00:00Z")
    capped = terms(cap_minutes=60)
    found = excluded_in(capped, rule(capped, "UTC", [across]), between("2023-06-14T00:00:00Z", "2023-06-15T00:00:00Z"))
    assert spans(found) == [("2023-06-14T00:00:00Z", "2023-06-14T01:00:00Z")]
    assert found.rulings[0].ruling is Ruling.HONOURED
    elsewhere = excluded_in(capped, rule(capped, "UTC", [across]), between("2023-06-15T00:00:00Z", T_16))
    assert (elsewhere.rulings, elsewhere.parts) == ((), ())


T_16 = "2023-06-16T00:00:00Z"


def test_maintenance_ignores_dst_uptime_kuma_6233() -> None:
    """02:30 to 03:30 in Berlin on 29 October 2023 lasts two hours: the clock is put back in it. A ticket says its time
    with an offset, so it is those instants, and no zone's rule moves it."""
    night = between("2023-10-29T02:30:00+02:00", "2023-10-29T03:30:00+01:00")
    assert night.duration_ns == 120 * MINUTE_NS
    recorded = Exclusion("r", "rotation", night, parse_instant_ns("2023-10-01T00:00:00+02:00"), "change board")
    found = excluded_in(terms(), rule(terms(), "Europe/Berlin", [recorded]), FOREVER)
    assert spans(found) == [("2023-10-29T00:30:00Z", "2023-10-29T02:30:00Z")]
    october = Interval(parse_instant_ns("2023-09-30T22:00:00Z"), parse_instant_ns("2023-10-31T23:00:00Z"))
    assert make_period(parse_date("2023-10-01"), parse_period_length("P1M"), "Europe/Berlin").interval == october
    assert excluded_in(terms(), rule(terms(), "Europe/Berlin", [recorded]), october).union == found.union


def test_overlaps_counted_twice_uptime_monitor_287() -> None:
    recorded = [ticket("a", "storm", "2023-06-14T10:20:00Z", 5), ticket("b", "storm", "2023-06-14T10:22:00Z", 13)]
    found = excluded_in(terms(), rule(terms(), "UTC", recorded), FOREVER)
    assert spans(found) == [("2023-06-14T10:20:00Z", "2023-06-14T10:35:00Z")]
    assert sum(part.duration_ns for part, _ in found.parts) == 15 * MINUTE_NS
    assert found.position(parse_instant_ns("2023-06-14T10:24:00Z")) == 0
    assert found.position(parse_instant_ns("2023-06-14T10:25:00Z")) == 1
    assert found.position(parse_instant_ns("2023-06-14T10:35:00Z")) is None


def test_quarters_are_those_of_the_calendar() -> None:
    early = "2022-12-01T00:00:00Z"
    starts = {
        "jan": "2023-01-01",
        "mar": "2023-03-31",
        "apr": "2023-04-01",
        "jun": "2023-06-30",
        "jul": "2023-07-01",
        "oct": "2023-10-01",
        "dec": "2023-12-31",
        "next": "2024-01-01",
    }
    recorded = [ticket(name, "rotation", f"{day}T00:00:00Z", 5, announced=early) for name, day in starts.items()]
    refused = [name for name, each in ruled(*recorded).items() if each.ruling is Ruling.TOO_MANY]
    assert refused == ["mar", "jun", "dec"]


def test_the_next_month_of_a_quarter_has_releases_of_its_own() -> None:
    may = [ticket(f"g{day}", "gray-release", f"2023-05-0{day}T00:00:00Z", 5) for day in range(1, 5)]
    assert ruled(*may, ticket("june", "gray-release", "2023-06-01T00:00:00Z", 5))["june"].ruling is Ruling.HONOURED


def test_the_same_month_of_another_year_is_another_month() -> None:
    june = [ticket(f"g{day}", "gray-release", f"2023-06-0{day}T00:00:00Z", 5) for day in range(1, 5)]
    assert ruled(*june, ticket("later", "gray-release", "2024-06-01T00:00:00Z", 5))["later"].ruling is Ruling.HONOURED


def test_why_an_exclusion_is_not_honoured_says_numbers_and_instants() -> None:
    never, late = ticket("n", "rotation", T_11, 5), ticket("l", "rotation", T_11, 5, announced="2023-06-14T10:00:00Z")
    longer = Exclusion("h", "hot-update", Interval(DAY, DAY + 90_500_000_001), None, None)
    assert [each.why for each in ruled(never, late, longer).values()] == [
        "lasts 90.500000001 s; of hot-update the first 90 s are maintenance, and the rest counts as ordinary time",
        "announced at 2023-06-14T10:00:00Z; rotation is announced by 2023-06-11T11:00:00Z",
        "never announced; rotation is announced by 2023-06-11T11:00:00Z",
    ]
    half = Exclusion("h", "hot-update", Interval(DAY, DAY + 90_500_000_000), None, None)
    assert ruled(half)["h"].why.startswith("lasts 90.5 s;")
    assert ruled(ticket("a", "gray-release", T_11, 5, approved_by=None))["a"].why == (
        "gray-release needs an approval, and has none"
    )


def test_a_cap_that_is_used_up_leaves_nothing_of_the_next() -> None:
    recorded = [
        ticket("a", "gray-release", "2023-06-14T10:00:00Z", 15),
        ticket("b", "gray-release", "2023-06-14T12:00:00Z", 15),
    ]
    capped = terms(cap_minutes=15)
    found = excluded_in(capped, rule(capped, "UTC", recorded), FOREVER)
    assert [(each.ruling, each.honoured) for each in found.rulings] == [
        (Ruling.HONOURED, recorded[0].interval),
        (Ruling.OVER_CAP, None),
    ]
    assert found.rulings[1].why == (
        "the cap of 15 minutes of maintenance in a period is reached at 2023-06-14T12:00:00Z, and the rest counts as "
        "ordinary time"
    )


def test_maintenance_that_ends_where_the_cap_is_reached_is_honoured_whole() -> None:
    recorded = [
        ticket("a", "gray-release", "2023-06-14T10:00:00Z", 15),
        ticket("b", "gray-release", "2023-06-14T10:10:00Z", 15),
    ]
    capped = terms(cap_minutes=15)
    found = excluded_in(capped, rule(capped, "UTC", recorded), FOREVER)
    assert [each.ruling for each in found.rulings] == [Ruling.HONOURED, Ruling.SHORTENED]
    assert found.rulings[1].honoured == between("2023-06-14T10:10:00Z", "2023-06-14T10:15:00Z")


def test_which_exclusions_touch_an_hour() -> None:
    recorded = [
        ticket("a", "storm", "2023-06-14T09:00:00Z", 60),
        ticket("b", "storm", "2023-06-14T09:30:00Z", 31),
        ticket("c", "gray-release", "2023-06-14T10:30:00Z", 5, approved_by=None),
        ticket("d", "storm", "2023-06-14T10:59:00Z", 90),
        ticket("e", "storm", "2023-06-14T11:00:00Z", 5),
    ]
    found = excluded_in(terms(), rule(terms(), "UTC", recorded), FOREVER)
    hour = between("2023-06-14T10:00:00Z", "2023-06-14T11:00:00Z")
    assert [each.exclusion.id for each in found.touching(hour)] == ["b", "d"]
    assert found.position(parse_instant_ns("2023-06-14T08:59:59Z")) is None
    assert found.position(parse_instant_ns("2023-06-14T10:01:00Z")) is None
    assert found.part_at(parse_instant_ns("2023-06-14T10:01:00Z")) is None
    assert found.part_at(parse_instant_ns("2023-06-14T10:00:59Z")) == between(
        "2023-06-14T10:00:00Z", "2023-06-14T10:01:00Z"
    )


def test_rulings_as_statements_spell_them() -> None:
    words = ["honoured", "shortened", "no_clause", "not_approved", "announced_late", "too_many", "over_cap"]
    assert [str(ruling) for ruling in Ruling] == words


DAY = parse_instant_ns("2023-06-14T00:00:00Z")
TICKETS = st.lists(
    st.builds(
        lambda name, clause, start, minutes, announced, approved: Exclusion(
            f"x{name}",
            clause,
            Interval(DAY + start * MINUTE_NS, DAY + (start + minutes) * MINUTE_NS),
            None if announced is None else DAY - announced * MINUTE_NS,
            "board" if approved else None,
        ),
        st.integers(0, 10**6),
        st.sampled_from(["gray-release", "hot-update", "rotation", "storm", "picnic"]),
        st.integers(-3000, 3000),
        st.integers(1, 200),
        st.none() | st.integers(0, 10_000),
        st.booleans(),
    ),
    max_size=12,
    unique_by=lambda each: each.id,
)


@given(TICKETS, st.randoms(), st.none() | st.integers(1, 60))
def test_the_order_in_which_exclusions_are_recorded_changes_nothing(
    recorded: list[Exclusion], random: Any, cap: int | None
) -> None:
    limits = terms() if cap is None else terms(cap_minutes=cap)
    period = Interval(DAY, DAY + 1440 * MINUTE_NS)
    expected = excluded_in(limits, rule(limits, "UTC", recorded), period)
    random.shuffle(recorded)
    assert excluded_in(limits, rule(limits, "UTC", recorded), period) == expected


@given(TICKETS, st.none() | st.integers(1, 60))
def test_no_more_is_taken_out_than_was_recorded_and_the_limits_allow(
    recorded: list[Exclusion], cap: int | None
) -> None:
    limits = terms() if cap is None else terms(cap_minutes=cap)
    period = Interval(DAY, DAY + 1440 * MINUTE_NS)
    found = excluded_in(limits, rule(limits, "UTC", recorded), period)
    asked = union(each.interval for each in recorded)
    assert all(any(whole.covers(part) for whole in asked) and period.covers(part) for part in found.union)
    for each in found.rulings:
        assert (each.why == "") == (each.ruling is Ruling.HONOURED)
        assert (each.honoured is None) == (each.ruling not in (Ruling.HONOURED, Ruling.SHORTENED)) or not each.honoured
    maintenance = union(
        each.honoured for each in found.rulings if each.honoured and each.exclusion.clause in limits.classes
    )
    assert cap is None or sum(part.duration_ns for part in maintenance) <= cap * MINUTE_NS
    for part, at in found.parts:
        honoured = found.rulings[at].honoured
        assert honoured is not None
        assert honoured.covers(part)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("longest", "PT0M", "maintenance.classes[0].longest: 'PT0M'"),
        ("longest", "15 min", "maintenance.classes[0].longest: '15 min'"),
        ("at_most", {"count": 0, "per": "month"}, "maintenance.classes[0].at_most.count"),
        ("at_most", {"count": 4, "per": "week"}, "maintenance.classes[0].at_most.per"),
        ("notice", "3 days", "maintenance.classes[0].notice: '3 days'"),
        ("id", "hot-update", "maintenance.classes[1].id: 'hot-update' is the id of maintenance.classes[0]"),
        ("id", "storm", "carve_outs[0].id: 'storm' is the id of maintenance.classes[0]"),
        ("colour", "grey", "maintenance.classes[0]"),
    ],
)
def test_a_clause_that_cannot_be_is_refused_by_name_and_value(path: str, value: Any, said: str) -> None:
    plain = {"maintenance": {"classes": [dict(each) for each in CLASSES]}, "carve_outs": CARVE_OUTS}
    plain["maintenance"]["classes"][0][path] = value  # type: ignore[call-overload,index]
    with pytest.raises(DocumentInvalid) as refused:
        agreement(lambda whole: whole.update(plain))
    assert refused.value.message.startswith(said)


def test_an_agreement_without_the_members_is_the_same_document_as_before() -> None:
    assert agreement().doc_sha256.hex() == "76fac144ececeda6afacb529de0b24248ccd116b97f5b9e1333896ba37ecfaa2"
    assert agreement().exclusion_terms.clauses == ()
    assert "maintenance" not in document()
