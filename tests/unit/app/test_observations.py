"""The verdicts that a batch's event records are those by which its rows are judged."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.app.facts.observations import record_observations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.settlement.statements import issue_statement
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.record.naming import observations_stream, windows_stream
from ledger.domain.rows.observation import Reason, Rows
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.ingest.agreement_yaml import parse_document
from ledger.ingest.request_log import RequestLog
from ledger.resources import resource_dir
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row

pytestmark = pytest.mark.slow

HOUR_NS = 3600 * SECOND_NS
DAY = make_desk().period.interval
LATER_NS = DAY.end_ns + 2 * DAY.duration_ns
DAYS = ("2023-06-13/P1D", "2023-06-14/P1D", "2023-06-15/P1D")
CLAUSES = [{"id": "rate-limit", "error_codes": [429], "reason": "over the agreed rate"}]
NOTHING = {"accepted": 0, "duplicate": 0, "conflict": 0, "rejected": 0}

Batch = tuple[bytes, Interval | None]

# Few ids and bodies, so that most rows repeat or contradict one another, in three periods and outside of all.
ROWS = st.builds(
    lambda name, hour, code: row(name, format_instant_ns(DAY.start_ns + hour * HOUR_NS), error_code=code),
    st.sampled_from("abc"),
    st.sampled_from([-6, 1, 11, 12, 30, 10_000]),
    st.sampled_from([None, 429]),
)
SPANS = st.sampled_from(
    [None, DAY, *(Interval(DAY.start_ns + a * HOUR_NS, DAY.start_ns + b * HOUR_NS) for a, b in ((0, 12), (12, 40)))]
)
BATCHES = st.lists(st.tuples(st.lists(ROWS, min_size=1, max_size=6).map(lambda rows: log(*rows)), SPANS), max_size=4)


def record(desk: Desk, batches: list[Batch]) -> Counter[str]:
    """Record batches one by one; the sum of what their events say."""
    registered = desk.register()
    for data, span in batches:
        with desk.database.begin() as tx:
            record_observations(tx, registered, data, read_rows=read_rows, declared_complete=span, now_ns=LATER_NS)
    found: Counter[str] = Counter()
    with desk.database.read() as tx:
        for event in tx.events.stream(observations_stream(registered.sla_id, desk.agreement.source)):
            found.update(event.payload["rows"])
            found.update(event.payload["rejected_reasons"])
    return found


def judged(desk: Desk, batches: list[Batch]) -> Counter[str]:
    """The verdicts of the evaluator over the periods that the batches touch."""
    found: Counter[str] = Counter()
    for name in DAYS:
        evaluator = Evaluator(desk.agreement, period_named(desk.agreement, name))
        for data, span in dict.fromkeys(batches):
            evaluator.add_all(read_rows(data), within=[] if span is None else [span])
        counts = evaluator.counts
        found.update(accepted=counts.accepted, duplicate=counts.duplicates, conflict=counts.conflicts)
        found.update({"outside_span": counts.rejected.get(Reason.OUTSIDE_SPAN, 0)})
    return found


@settings(max_examples=60, deadline=None)
@given(BATCHES)
def test_what_events_record_is_what_is_judged(batches: list[Batch]) -> None:
    desk = make_desk()
    recorded, evaluated = record(desk, batches), judged(desk, batches)
    names = ("accepted", "duplicate", "conflict", "outside_span")
    assert [recorded[name] for name in names] == [evaluated[name] for name in names]


TOKENS = st.sampled_from([10, 5000, "many", None])
SAYING = st.builds(lambda hour, tokens: plain("a", hour, input_tokens=tokens), st.sampled_from([1, 2, 30]), TOKENS)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(SAYING, min_size=1, max_size=6).map(lambda rows: log(*rows)), SPANS), max_size=3))
def test_what_a_selector_refuses_is_recorded_as_it_is_judged(batches: list[Batch]) -> None:
    desk = selecting_desk()
    recorded, evaluated = record(desk, batches), judged(desk, batches)
    names = ("accepted", "duplicate", "conflict", "outside_span")
    assert [recorded[name] for name in names] == [evaluated[name] for name in names]
    assert recorded["field_invalid"] == sum(
        each["input_tokens"] == "many" and (span is None or parse_instant_ns(each["started_at"]) in span)
        for data, span in dict.fromkeys(batches)
        for each in map(json.loads, data.splitlines())
    )


def selecting_desk() -> Desk:
    """The first-token objective of the example is about short inputs."""
    document: Any = parse_document((resource_dir("examples") / "agreement.yaml").read_bytes(), "", AGREEMENT)[0]
    objectives = [dict(each) for each in document["objectives"]]
    objectives[1]["where"] = {"input_tokens_at_most": 4096}
    return make_desk(objectives=objectives)


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=2, max_size=10), st.lists(st.integers(1, 9), max_size=3), st.randoms(), SPANS)
def test_order_and_cutting_change_no_verdict(
    rows: list[dict[str, Any]], cuts: list[int], random: Any, span: Interval | None
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    whole = record(make_desk(), [(log(*rows), span)])
    parts = [(log(*shuffled[start:end]), span) for start, end in itertools.pairwise(edges)]
    # A batch that is recorded again, equal to the byte, is one batch and leaves no second event.
    if len(set(parts)) == len(parts):
        assert record(make_desk(), parts) == whole


def test_a_row_outside_its_batch_s_span_is_not_judged_though_another_batch_declares_that_span() -> None:
    desk = make_desk()
    morning, evening = (Interval(DAY.start_ns + a * HOUR_NS, DAY.start_ns + (a + 12) * HOUR_NS) for a in (0, 12))
    undeclared = log(row("c", "2023-06-14T15:00:00Z"))
    batches = [(log(row("a"), row("b", "2023-06-14T15:00:00Z")), morning), (log(row("d")), evening), (undeclared, None)]
    assert record(desk, batches) == NOTHING | {"accepted": 2, "rejected": 2, "outside_span": 2}
    registered = desk.register()
    with desk.database.begin() as tx:
        judgement = evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
    valid = {hour: window.cells[0].valid for hour, window in enumerate(judgement.windows) if not window.empty}
    assert valid == {10: 1, 15: 1}


def test_a_row_outside_the_declared_span_is_rejected_and_makes_no_conflict() -> None:
    noon = "2023-06-14T12:00:00Z"
    morning = Interval(DAY.start_ns, DAY.start_ns + 12 * HOUR_NS)
    recorded = record(make_desk(), [(log(row("a"), row("a", noon), row("b", noon)), morning)])
    assert recorded == NOTHING | {"accepted": 1, "rejected": 2, "outside_span": 2}


def test_an_id_in_two_periods_is_two_requests() -> None:
    recorded = record(make_desk(), [(log(row("a"), row("a", "2023-06-15T10:00:00Z", error_code=500)), None)])
    assert recorded == NOTHING | {"accepted": 2}


@pytest.mark.parametrize("clauses", [[], CLAUSES])
def test_an_agreement_without_availability_is_judged_and_settled(clauses: list[Any]) -> None:
    plain = parse_document((resource_dir("examples") / "agreement.yaml").read_bytes(), "agreement.yaml", AGREEMENT)[0]
    tiers = {key: value for key, value in plain["compensation"]["rules"][0]["tiers"].items() if key != "availability"}
    compensation = {**plain["compensation"], "rules": [{**plain["compensation"]["rules"][0], "tiers": tiers}]}
    desk = make_desk(objectives=plain["objectives"][1:], compensation=compensation, exclusions=clauses)
    registered = desk.register()
    record(desk, [(log(row("a"), row("b", error_code=500), row("c", error_code=429)), DAY)])
    with desk.database.begin() as tx:
        judgement = evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
        events = list(tx.events.stream(windows_stream(registered.sla_id, desk.period.first)))
        issued = issue_statement(
            tx,
            registered,
            desk.period,
            judgement,
            attestor=desk.attestor,
            collector=desk.collector,
            randomness=desk.randomness,
            now_ns=desk.clock.now_ns(),
        )
    assert events[10].payload["excluded_requests"] == ({"rate-limit": 1} if clauses else {})
    assert not any(count for at in (9, 11) for count in events[at].payload["excluded_requests"].values())
    assert [(result.good, result.valid) for result in issued.settlement.objectives] == [(1, 1), (1, 1)]


def plain(name: str, hour: int, **changes: Any) -> dict[str, Any]:
    """A row whose line is read together with its neighbours."""
    start_ns = DAY.start_ns + hour * HOUR_NS
    return row(name, format_instant_ns(start_ns).removesuffix("Z") + ".000000000Z", **changes)


def in_bulk(data: bytes) -> Rows:
    return RequestLog(io.BytesIO(data), "batch").in_bulk()


def by_rows(data: bytes) -> Rows:
    return RequestLog(io.BytesIO(data), "batch")


PLAIN = st.builds(
    lambda name, hour, code, service: plain(name, hour, error_code=code, service=service),
    st.sampled_from("abcdefgh"),
    st.sampled_from([1, 11, 12, 12, 12, -6, 10_000]),
    st.sampled_from([None, 429]),
    st.sampled_from(["example-chat"] * 9 + ["other"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(PLAIN, min_size=1, max_size=4).map(lambda rows: log(*rows)), SPANS), max_size=4))
def test_what_is_read_in_bulk_is_recorded_and_judged_as_its_rows(batches: list[Batch]) -> None:
    found = []
    for reader in (in_bulk, by_rows):
        desk = make_desk()
        registered = desk.register()
        for data, span in batches:
            with desk.database.begin() as tx:
                record_observations(tx, registered, data, read_rows=reader, declared_complete=span, now_ns=LATER_NS)
        with desk.database.begin() as tx:
            stream = tx.events.stream(observations_stream(registered.sla_id, desk.agreement.source))
            events = [event.payload for event in stream]
            windows = [
                evaluate_windows(tx, registered, period_named(desk.agreement, name), read_rows=reader) for name in DAYS
            ]
        found.append((events, windows))
    assert found[0] == found[1]


def test_an_id_that_comes_again_is_found_though_no_event_tells_of_it() -> None:
    """The counts of events choose the shorter way alone; what is judged is what the batches say."""
    desk = make_desk()
    registered = desk.register()
    repeated = log(plain("a", 1), plain("b", 2)) + log(plain("a", 3, error_code=500))
    with desk.database.begin() as tx:
        record_observations(tx, registered, repeated, read_rows=lambda _: [], declared_complete=DAY, now_ns=LATER_NS)
        (event,) = tx.events.stream(observations_stream(registered.sla_id, desk.agreement.source))
        assert event.payload["rows"] == NOTHING
        windows = evaluate_windows(tx, registered, desk.period, read_rows=in_bulk).windows
    counts = [(window.cells[0].good, window.cells[0].bad) for window in windows]
    assert counts[1:4] == [(0, 1), (1, 0), (0, 0)]
    assert sum(good + bad for good, bad in counts) == 2
