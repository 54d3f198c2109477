"""The report counts what settlement counts, and its percentile is the exact nearest rank of the rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.app.facts.observations import record_observations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.reading import sla_report
from ledger.app.reading.sla_report import Latency, LatencyCache, Uptime, nearest_rank, response_latency, uptime
from ledger.domain.rows.observation import RequestRow
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import QueryInvalid
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row
from tests.unit.app.test_exclusions import MEMBERS

HOUR_NS = 3600 * SECOND_NS
DAY = make_desk().period.interval
MS = 10**6

Batch = tuple[bytes, Interval | None]

ROWS = st.builds(
    lambda name, hour, code, e2e: row(
        name, format_instant_ns(DAY.start_ns + hour * HOUR_NS), error_code=code, e2e_s=e2e
    ),
    st.sampled_from("abcdef"),
    st.sampled_from([-6, 1, 11, 12, 30]),
    st.sampled_from([None, None, None, 429]),
    st.sampled_from([0.5, 0.75, 2.5]),
)
SPANS = st.sampled_from([None, DAY, Interval(DAY.start_ns, DAY.start_ns + 12 * HOUR_NS)])
BATCHES = st.lists(st.tuples(st.lists(ROWS, min_size=1, max_size=8).map(lambda rows: log(*rows)), SPANS), max_size=4)
WITHIN = st.sampled_from(
    [
        DAY,
        Interval(DAY.start_ns + HOUR_NS, DAY.start_ns + 12 * HOUR_NS),
        Interval(DAY.start_ns - DAY.duration_ns, DAY.end_ns),
    ]
)


def record(desk: Desk, *batches: Batch) -> None:
    registered = desk.register()
    for data, span in batches:
        with desk.database.begin() as tx:
            record_observations(tx, registered, data, read_rows=read_rows, declared_complete=span, now_ns=DAY.end_ns)


def latency(desk: Desk, within: Interval, cache: LatencyCache | None = None, sees: bool = True) -> Latency:
    with desk.database.read() as tx:
        return response_latency(tx, within, read_rows=read_rows, may_see=lambda _: sees, cache=cache or LatencyCache())


def by_hand(desk: Desk, batches: list[Batch], within: Interval) -> Latency:
    """The definition, slowly: every identity with every body it was reported with."""
    bodies: dict[tuple[str, str], set[RequestRow]] = {}
    for data in dict.fromkeys(data for data, _ in batches):
        spans = [span for found, span in batches if found == data]
        for found in read_rows(data):
            assert isinstance(found, RequestRow)
            if None not in spans and not any(found.started_at_ns in span for span in spans if span):
                continue
            period = str(desk.agreement.periods.at(found.started_at_ns))
            bodies.setdefault((period, found.request_id), set()).add(found._replace(line=0))
    measured = sorted(
        found.response_ns
        for reported in bodies.values()
        for found in reported
        if len(reported) == 1 and found.error_code is None and found.response_ns and found.started_at_ns in within
    )
    rank = math.ceil(Fraction(95, 100) * len(measured))
    return Latency(measured[rank - 1] if measured else None, len(measured))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(BATCHES, WITHIN)
def test_the_percentile_is_that_of_the_rows_as_they_are_judged(batches: list[Batch], within: Interval) -> None:
    desk = make_desk()
    record(desk, *batches)
    assert latency(desk, within) == by_hand(desk, batches, within)


@given(st.lists(st.integers(0, 1000), min_size=1), st.integers(1, 100))
def test_nearest_rank_is_the_smallest_value_that_enough_values_do_not_exceed(values: list[int], percent: int) -> None:
    found = nearest_rank(values, percent, 100)
    assert found in values
    enough = Fraction(percent, 100) * len(values)
    assert sum(value <= found for value in values) >= enough
    assert sum(value < found for value in values) < enough


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (19, 19), (20, 19), (21, 20), (100, 95), (101, 96)])
def test_ranks_known_from_the_definition(count: int, rank: int) -> None:
    assert nearest_rank(range(1, count + 1), 95, 100) == rank
    assert nearest_rank([], 95, 100) is None


def test_nothing_is_interpolated() -> None:
    desk = make_desk()
    record(desk, (log(*(row(f"r{n}", e2e_s=e2e) for n, e2e in enumerate([0.1] * 18 + [1.0, 9.0]))), DAY))
    assert latency(desk, DAY) == Latency(1000 * MS, 20)


def test_the_report_counts_committed_windows_wholly_inside() -> None:
    desk = make_desk()
    rows = [
        row(f"r{n}", format_instant_ns(DAY.start_ns + n * HOUR_NS), error_code=429 if n == 3 else None)
        for n in range(24)
    ]
    record(desk, (log(*rows), DAY))
    with desk.database.read() as tx:
        assert uptime(tx, DAY, may_see=lambda _: True) == Uptime(0, 0, 0), "nothing is judged yet"
    registered = desk.register()
    with desk.database.begin() as tx:
        evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
    halves = Interval(DAY.start_ns + HOUR_NS // 2, DAY.start_ns + 5 * HOUR_NS - 1)
    with desk.database.read() as tx:
        assert uptime(tx, DAY, may_see=lambda _: True) == Uptime(23, 24, 24)
        assert uptime(tx, halves, may_see=lambda _: True) == Uptime(2, 3, 3)
        assert uptime(tx, DAY, may_see=lambda _: False) == Uptime(0, 0, 0)
        far = Interval(DAY.start_ns + 10_000 * DAY.duration_ns, DAY.start_ns + 10_001 * DAY.duration_ns)
        assert uptime(tx, far, may_see=lambda _: True) == Uptime(0, 0, 0)


def test_agreements_that_are_not_to_be_seen_are_not_measured() -> None:
    desk = make_desk()
    record(desk, (log(row("a")), DAY))
    assert latency(desk, DAY) == Latency(1500 * MS, 1)
    assert latency(desk, DAY, sees=False) == Latency(None, 0)


def test_a_result_is_remembered_until_another_batch_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, cache = make_desk(), LatencyCache(size=1)
    record(desk, (log(row("a")), DAY))
    first = latency(desk, DAY, cache)
    monkeypatch.setattr(sla_report, "_Sample", None)  # nothing may be read again
    assert latency(desk, DAY, cache) == first
    monkeypatch.undo()
    record(desk, (log(row("b", e2e_s=2.0)), DAY))
    assert latency(desk, DAY, cache) == Latency(2000 * MS, 2)


def test_a_request_in_excluded_time_is_measured_nowhere_once_that_is_recorded() -> None:
    desk, cache = make_desk(**MEMBERS), LatencyCache()
    record(desk, (log(row("a"), row("b", at="2023-06-14T10:05:00Z", e2e_s=9.0)), DAY))
    assert latency(desk, DAY, cache) == Latency(9000 * MS, 2)
    hour_ns = DAY.start_ns + 10 * HOUR_NS
    asked = AskedExclusion("d", "dispute", hour_ns + 1, hour_ns + HOUR_NS, "agreed", approved_by="both")
    ExclusionDesk(desk.database, desk.attestor, desk.clock).record(desk.attestor.sla_id(desk.agreement), asked)
    assert latency(desk, DAY, cache) == Latency(1500 * MS, 1)


def test_the_memory_of_results_is_bounded() -> None:
    cache = LatencyCache(size=2)
    for key in range(5):
        cache.put(key, Latency(key, 1))
    assert [cache.get(key) for key in range(5)] == [None, None, None, Latency(3, 1), Latency(4, 1)]


@pytest.mark.parametrize(("limit", "value"), [("MAX_RAW_BYTES", 10), ("MAX_REQUESTS", 2), ("MAX_WINDOWS", 5)])
def test_too_much_is_refused_and_named(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    desk = make_desk()
    record(desk, (log(*(row(f"r{n}") for n in range(3))), DAY))
    monkeypatch.setattr(sla_report, limit, value)
    with pytest.raises(QueryInvalid, match="shorter") as caught:
        latency(desk, DAY)
    assert caught.value.data["allowed"] == value


def test_a_batch_of_another_time_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk()
    tomorrow = Interval(DAY.end_ns, DAY.end_ns + DAY.duration_ns)
    record(desk, (log(row("a")), DAY), (log(row("b", format_instant_ns(tomorrow.start_ns))), tomorrow))
    read: list[Any] = []

    def counting(data: bytes) -> Any:
        read.append(data)
        return read_rows(data)

    with desk.database.read() as tx:
        response_latency(tx, DAY, read_rows=counting, may_see=lambda _: True, cache=LatencyCache())
    assert len(read) == 1
