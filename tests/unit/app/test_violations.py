"""Violations as events: opened, updated, closed, withdrawn, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.facts.telemetry import Evidence
from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import JudgedPeriod, evaluate_windows
from ledger.app.ports.store import Transaction
from ledger.domain.record.naming import violations_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.interval import Interval
from ledger.domain.violations.violation import Violation
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.app.conftest import Desk, find_requests, log, read_rows, row
from tests.unit.app.test_settling import record

HOUR_NS = 3600 * 10**9
GPU = Evidence("gpu_sample", "0" * 8 + "-0000-0000-0000-" + "0" * 12, 1_686_738_000_000_000_000, "DRAM_ACTIVE 0.91")


def judged(desk: Desk, bad: dict[int, int], *, until: int = 24, idle: tuple[int, ...] = ()) -> JudgedPeriod:
    """10 good requests in every hour before ``until``, none in the idle ones, and bad ones of availability."""
    windows = []
    for hour, interval in enumerate(desk.agreement.windows(desk.period)):
        state = WindowState.OBSERVED if hour < until else WindowState.NO_DATA
        good = 10 if hour < until and hour not in idle else 0
        cells = (Cell(good, bad.get(hour, 0)), Cell(good, 0), Cell(good, 0))
        windows.append(Window(interval, state, cells))
    return JudgedPeriod(tuple(windows), ())


def no_requests(tx: Transaction, agreement: Agreement, found: Sequence[Violation], *_: object) -> Any:
    return [[] for _ in found]


class Book:
    """Records violations at chosen times and shows what was appended."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.seen = 0
        self.asked: list[tuple[str, Interval]] = []

    def evidence(self, tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]:
        self.asked.append((service, interval))
        return [GPU]

    def record(self, windows: JudgedPeriod, *, hour: float = 99) -> list[tuple[str, str, int]]:
        """Record at an hour of the period; (type, id without prefix, revision) of the new events."""
        registered = self.desk.register()
        now_ns = self.desk.period.interval.start_ns + int(hour * HOUR_NS)
        with self.desk.database.begin() as tx:
            record_violations(
                tx,
                registered,
                self.desk.period,
                windows,
                find_evidence=self.evidence,
                find_requests=no_requests,
                now_ns=now_ns,
            )
        new = self.events()[self.seen :]
        self.seen += len(new)
        return [
            (each.type.removeprefix("violation_"), each.payload["violation_id"][24:], each.payload["revision"])
            for each in new
        ]

    def events(self) -> list[Any]:
        sla_id = self.desk.attestor.sla_id(self.desk.agreement)
        with self.desk.database.read() as tx:
            return list(tx.events.stream(violations_stream(sla_id, self.desk.period.first)))

    def states(self) -> dict[str, str]:
        with self.desk.database.read() as tx:
            return {row["id"][24:]: row["state"] for row in tx.views.violations(limit=100)}


@pytest.fixture
def book(desk: Desk) -> Book:
    return Book(desk)


def test_a_run_is_opened_and_closed_with_its_figures(desk: Desk, book: Book) -> None:
    assert book.record(judged(desk, {3: 5, 4: 90})) == [
        ("opened", "availability.w3", 1),
        ("closed", "availability.w3", 1),
    ]
    closed = book.events()[-1]
    payload = closed.payload
    assert (payload["first_window"], payload["windows"], payload["good"], payload["valid"], payload["bad"]) == (
        3,
        2,
        20,
        115,
        95,
    )
    assert payload["worst"] == {"window": 4, "good": 10, "valid": 100}
    assert (payload["objective"], payload["target"], payload["ended_by"]) == ("availability", "99.95", "met")
    assert (payload["clause"], payload["unit"]) == ("objectives[0]", "requests")
    assert payload["evidence"]["signals"] == [
        {"kind": "gpu_sample", "event_id": GPU.event_id, "at_ns": str(GPU.at_ns), "summary": "DRAM_ACTIVE 0.91"}
    ]
    start_ns = desk.period.interval.start_ns
    assert set(book.asked) == {("example-chat", Interval(start_ns + 3 * HOUR_NS, start_ns + 5 * HOUR_NS))}
    assert closed.occurred_at_ns == start_ns + 5 * HOUR_NS
    assert book.states() == {"availability.w3": "closed"}


def test_the_same_windows_again_change_nothing(desk: Desk, book: Book) -> None:
    windows = judged(desk, {3: 5, 20: 1})
    assert len(book.record(windows)) == 4
    assert book.record(windows) == []
    # Telemetry that comes later changes no violation either.
    assert book.record(replace(windows, inputs_of=(frozenset({"ab" * 32}),))) == []


def test_it_stays_open_as_long_as_nothing_ends_it(desk: Desk, book: Book) -> None:
    assert book.record(judged(desk, {3: 5}, until=4), hour=4.5) == [("opened", "availability.w3", 1)]
    assert book.record(judged(desk, {3: 5}, until=4), hour=4.9) == []
    assert book.record(judged(desk, {3: 5, 4: 1}, until=5), hour=5.1) == [("updated", "availability.w3", 1)]
    assert book.states() == {"availability.w3": "open"}
    assert book.record(judged(desk, {3: 5, 4: 1}, until=6), hour=6.1) == [("closed", "availability.w3", 1)]
    assert book.states() == {"availability.w3": "closed"}


def test_the_end_of_the_period_ends_it(desk: Desk, book: Book) -> None:
    windows = judged(desk, {23: 5})
    assert book.record(windows, hour=23.9) == [("opened", "availability.w23", 1)]
    assert book.record(windows, hour=24) == [("closed", "availability.w23", 1)]
    assert book.events()[-1].payload["ended_by"] == "period_end"


def test_other_facts_withdraw_what_no_longer_holds(desk: Desk, book: Book) -> None:
    book.record(judged(desk, {3: 5, 9: 1}))
    assert book.record(judged(desk, {2: 1, 3: 5})) == [
        ("withdrawn", "availability.w3", 1),
        ("withdrawn", "availability.w9", 1),
        ("opened", "availability.w2", 1),
        ("closed", "availability.w2", 1),
    ]
    assert book.states() == {
        "availability.w2": "closed",
        "availability.w3": "withdrawn",
        "availability.w9": "withdrawn",
    }
    assert "judged anew" in book.events()[-3].payload["reason"]
    # What comes back is opened again, and says how often.
    assert ("opened", "availability.w9", 2) in book.record(judged(desk, {2: 1, 3: 5, 9: 1}))


def test_other_figures_of_a_closed_one_are_told(desk: Desk, book: Book) -> None:
    book.record(judged(desk, {3: 5}))
    assert book.record(judged(desk, {3: 6})) == [
        ("withdrawn", "availability.w3", 1),
        ("opened", "availability.w3", 2),
        ("closed", "availability.w3", 2),
    ]
    assert book.record(judged(desk, {3: 6, 4: 1}, until=5), hour=5) == [
        ("withdrawn", "availability.w3", 2),
        ("opened", "availability.w3", 3),
    ]
    # Now it ends with an idle hour.
    assert book.record(judged(desk, {3: 6, 4: 1}, idle=(5,))) == [("closed", "availability.w3", 3)]


def test_facts_as_they_come_in_lead_to_batches_as_evidence(desk: Desk) -> None:
    early = record(desk, log(row("a", at="2023-06-14T03:00:00Z", error_code=500)))
    late = record(desk, log(row("b", at="2023-06-14T10:00:00Z")))
    registered = desk.register()
    with desk.database.begin() as tx:
        found = evaluate_windows(tx, registered, desk.period, read_rows=read_rows)
        record_violations(
            tx,
            registered,
            desk.period,
            found,
            find_evidence=lambda *_: (),
            find_requests=find_requests,
            now_ns=desk.period.interval.end_ns,
        )
    book = Book(desk)
    (violation,) = {each.payload["violation_id"] for each in book.events()}
    assert violation.endswith(".availability.w3")
    evidence = book.events()[0].payload["evidence"]
    assert (evidence["inputs"], evidence["signals"]) == ([early.digest], [])
    assert [(each["request_id"], each["batch"], each["line"]) for each in evidence["requests"]] == [
        ("a", early.digest, 1)
    ]
    assert late.digest not in book.events()[0].payload["evidence"]["inputs"]


def test_evidence_is_bounded(desk: Desk) -> None:
    registered = desk.register()
    with desk.database.begin() as tx:
        record_violations(
            tx,
            registered,
            desk.period,
            judged(desk, {3: 1}),
            find_evidence=lambda *_: [GPU] * 1000,
            find_requests=no_requests,
            now_ns=desk.period.interval.end_ns,
        )
    assert len(Book(desk).events()[0].payload["evidence"]["signals"]) == 100
