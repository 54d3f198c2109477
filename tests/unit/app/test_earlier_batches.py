"""A source that hands in something every minute: what one batch costs does not grow with those before it, and what
stands in their place when a batch comes is made anew from the events where it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ledger.app.facts.observations import RecordedBatch, record_observations
from ledger.app.ports.store import EventStore, Transaction
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import observations_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import DAY_NS, MINUTE_NS, format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk, log, make_desk, row, signed_agreement
from tests.unit.app.feeding import DAY, desk_of, figures, hand, settle, sha256, work
from tests.unit.app.test_agreement_lifecycle import JUNE, PARTS, amend, amended
from tests.unit.app.test_counter_feed import PROMISE, TOTAL, reading
from tests.unit.app.test_order_of_facts import close
from tests.unit.app.test_outage_feed import NEXT_DAY, UPTIME, outage

AVAILABILITY = {key: value for key, value in UPTIME.items() if key != "source"}


@dataclass
class Reads:
    """What one recording reads of what came before it."""

    events: int = 0
    bodies: int = 0


@dataclass
class CountedEvents:
    events: EventStore
    reads: Reads

    def stream(self, stream: str, *, start: int = 0) -> Iterator[StoredEvent]:
        for event in self.events.stream(stream, start=start):
            self.reads.events += stream.startswith("observations/")
            yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self.events, name)


@dataclass
class Counted:
    """A transaction that counts what is read through it."""

    tx: Transaction
    reads: Reads = field(default_factory=Reads)

    @property
    def events(self) -> Any:
        return CountedEvents(self.tx.events, self.reads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)


def start_ns(of: Desk) -> int:
    return of.period.interval.start_ns


def record(of: Desk, complete: Interval | None, *rows: dict[str, Any]) -> tuple[RecordedBatch, Reads]:
    data, registered = log(*rows), of.register()
    with of.database.begin() as tx:
        counted: Any = Counted(tx)

        def read(raw: bytes) -> Any:
            counted.reads.bodies += raw != data
            return read_facts(raw)

        found = record_observations(
            counted, registered, data, read_rows=read, declared_complete=complete, now_ns=of.clock.now_ns()
        )
    return found, counted.reads


def of_the_minute(of: Desk, minute: int) -> Interval:
    at_ns = start_ns(of) + minute * MINUTE_NS
    return Interval(at_ns, at_ns + MINUTE_NS)


def at(of: Desk, minute: int) -> str:
    return format_instant_ns(start_ns(of) + minute * MINUTE_NS)


def new_outage(of: Desk, minute: int) -> list[dict[str, Any]]:
    return [outage(f"o{minute}", at(of, minute)[:-1], at(of, minute + 1)[:-1])]


def all_outages(of: Desk, minute: int) -> list[dict[str, Any]]:
    return [each for before in range(1440, minute + 1, 50) for each in new_outage(of, before)]


def counters(of: Desk, minute: int) -> list[dict[str, Any]]:
    return [reading(TOTAL, (minute + 1) / 60, minute)]


def requests(of: Desk, minute: int) -> list[dict[str, Any]]:
    return [row(f"r{minute}", at=at(of, minute))]


@pytest.mark.long
@pytest.mark.parametrize(
    ("objective", "rows", "from_the_start"),
    [
        (UPTIME, new_outage, False),
        (UPTIME, all_outages, True),
        (PROMISE, counters, False),
        (AVAILABILITY, requests, False),
    ],
)
def test_what_a_batch_costs_does_not_grow_with_the_batches_before_it(
    objective: dict[str, Any], rows: Callable[[Desk, int], list[dict[str, Any]]], from_the_start: bool
) -> None:
    of = desk_of([objective], coverage_floor="1")
    settle(of)
    of.clock.now += DAY_NS
    found = []
    for minute in range(1440, 1440 + 60):
        span = of_the_minute(of, minute)
        complete = Interval(start_ns(of) + DAY_NS, span.end_ns) if from_the_start else span
        found.append(record(of, complete, *rows(of, minute))[1])
    # The few of the first look.
    assert max(reads.events for reads in found) <= 16
    assert max(reads.bodies for reads in found) == 0


def test_an_outage_that_goes_on_reads_no_earlier_list() -> None:
    of = desk_of([UPTIME], coverage_floor="1")
    settle(of)
    for revision in range(1, 40):
        end = at(of, 1440 + revision)[:-1]
        _, reads = record(of, None, outage("long", at(of, 1440)[:-1], end, revision=revision))
        assert reads.bodies == 0
    assert figures(settle(of, NEXT_DAY)) == {"uptime": (0, 0, "withheld")}


def lose_what_is_remembered(of: Desk) -> None:
    """As an import leaves a ledger: nobody exports it."""
    of.database._committed.state.identities.clear()


def test_what_is_remembered_is_made_anew_and_a_batch_that_comes_again_has_its_first_receipt() -> None:
    of = desk_of([UPTIME])
    first = hand(of, outage("a", "10:00:00", "10:20:00"))
    hand(of, outage("b", "10:00:00", "10:20:00"))
    lose_what_is_remembered(of)
    assert hand(of, outage("a", "10:00:00", "10:20:00")).batch.receipt == first.batch.receipt
    # With another declaration it says something else.
    assert hand(of, outage("a", "10:00:00", "10:20:00"), period=None).batch.receipt != first.batch.receipt
    with of.database.read() as tx:
        assert len(list(tx.events.stream(observations_stream(of.register().sla_id, of.agreement.source)))) == 3


@pytest.mark.parametrize("lost", [False, True])
def test_a_revision_restates_the_period_that_it_leaves_however_it_is_found(lost: bool) -> None:
    of = desk_of([UPTIME])
    hand(of, outage("a", "23:50:00", "23:59:00"))
    assert figures(settle(of)) == {"uptime": (1431, 1440, "met")}
    if lost:
        lose_what_is_remembered(of)
    moved = outage("a", "2023-06-15T00:00:00", "2023-06-15T00:09:00", revision=2)
    assert hand(of, moved, period=NEXT_DAY).batch.judged_anew == (DAY,)
    assert figures(work(of)) == {"uptime": (1440, 1440, "met")}


def test_what_counts_by_terms_that_came_later_is_remembered_too() -> None:
    """Nobody had promised anything of us-1 when its outage was told."""

    def terms(*resources: str) -> dict[str, Any]:
        objectives = [{**UPTIME, "id": each, "resource": each} for each in resources]
        return {"objectives": objectives, "compensation": desk_of(objectives).agreement.document["compensation"]}

    of = make_desk()
    of.agreement = Agreement.from_document(signed_agreement(**{**JUNE, **terms("eu")}))
    of.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    of.register()
    named = {"eu": "2023-06-02", "us": "2023-06-20"}
    rows = {name: outage(name, f"{day}T00:00:00", f"{day}T09:00:00", resource=name) for name, day in named.items()}
    assert hand(of, *rows.values(), period=None).batch.counts.rejected == {"not_promised": 1}
    amend(of, amended(**terms("eu", "us")))
    close(of)
    moved = {**rows["us"], "revision": 2, "from": "2023-06-10T00:00:00Z", "to": "2023-06-10T01:00:00Z"}
    assert record(of, None, moved)[0].judged_anew == PARTS


def test_a_list_that_is_complete_from_the_start_each_time_has_a_closed_period_judged_once() -> None:
    of, straight = desk_of([UPTIME]), desk_of([UPTIME])
    day = Interval(start_ns(of), start_ns(of) + DAY_NS)
    other = outage("x", revision=2, withdrawn=True)
    hand(of, other, complete=Interval(day.start_ns, day.end_ns - MINUTE_NS))
    settle(of)
    assert hand(of, other, complete=day).batch.judged_anew == (DAY,)
    for more in range(1, 40):
        longer = Interval(day.start_ns, day.end_ns + more * MINUTE_NS)
        assert hand(of, other, complete=longer).batch.judged_anew == ()
    assert figures(work(of)) == {"uptime": (1440, 1440, "met")}
    hand(straight, other, complete=day)
    assert sha256(settle(straight)) == sha256(work(of))


def test_time_that_was_declared_in_parts_long_ago_is_not_newly_complete() -> None:
    of = desk_of([UPTIME])
    other = outage("x", revision=2, withdrawn=True)
    parts = [Interval(start_ns(of) + at * DAY_NS // 48, start_ns(of) + (at + 1) * DAY_NS // 48) for at in range(48)]
    for part in parts[:-1]:
        hand(of, other, complete=part)
    settle(of)
    assert hand(of, other, complete=Interval(parts[0].start_ns, parts[-2].end_ns)).batch.judged_anew == ()
    assert hand(of, other, complete=Interval(parts[5].start_ns, parts[-1].end_ns)).batch.judged_anew == (DAY,)
