"""Two writers who meet over one ledger, wherever between two looks of the one the other commits.

They must come to what one after the other comes to, in either order. Who is told to try again does, and must have left
nothing half done. Every try has a tenant of its own in one database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from ledger.app.ports.store import Database, Transaction
from ledger.errors import SlaLedgerError, StorageUnavailable
from ledger.store.database import SqliteDatabase
from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.interleaved import HURRY, Interleaved, Turn
from tests.support.postgres import ROLE_PREFIX
from tests.support.sqlite import with_schema
from tests.unit.app.conftest import Desk
from tests.unit.app.test_stages import runner

Act: TypeAlias = Callable[[Desk], object]
Ended: TypeAlias = tuple[str, ...]
"""What the one and the other were told, and then what log and outbox hold in the end, line by line."""

TRY_AGAIN = {"version_conflict", "storage_unavailable", "not_sequenced_yet", "not_yet"}
_NEVER = 10**6
_OF_ITS_OWN = {"at_ns", "old_secret_until_ns", "block_hash", "telemetry_root", "r8", "s", "seq"}
"""Members that follow from the time, from a salt or from what other tenants do."""
_EVENT_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class SequencedBeforeReading(PostgresDatabase):
    """Runs the sequencer before every read transaction alone: after every commit it would take half of the time."""

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        while self.sequence_once():
            pass
        with super()._snapshot() as tx:
            yield tx


@contextmanager
def meetings_on(url: str) -> Iterator[Meetings]:
    """Over one PostgreSQL database with the newest schema."""
    opened = [
        SequencedBeforeReading(each, StepClock(), SeededRandomness(seed), role_prefix=ROLE_PREFIX, migrated=True)
        for seed, each in enumerate((url, f"{url}?{HURRY}"))
    ]
    yield Meetings(*opened)
    for database in opened:
        database.close()


@contextmanager
def meetings_in(path: Path) -> Iterator[Meetings]:
    """Over one SQLite file, where the other one waits from the beginning of a transaction to its end."""
    with_schema(path)
    opened = [
        SqliteDatabase(path, StepClock(), SeededRandomness(seed), busy_timeout_ms=wait_ms, migrated=True)
        for seed, wait_ms in enumerate((10_000, 1))
    ]
    yield Meetings(*opened)
    for database in opened:
        database.close()


@dataclass
class Meetings:
    """Where they meet. ``hurried`` is the same database over connections that wait for no lock."""

    database: Database
    hurried: Database
    randomness: SeededRandomness = field(default_factory=lambda: SeededRandomness(1))
    _numbers: Iterator[int] = field(default_factory=count)

    def require_either_order(self, made: Desk, before: tuple[Act, ...], one: Act, other: Act) -> int:
        """Have ``other`` come before every look of ``one``, after what was done ``before``; how often it came."""
        # Before the first look it is the first, and after the last one the second.
        first, _ = self._met(made, before, one, other, 1)
        second, turn = self._met(made, before, one, other, _NEVER)
        looks, tries, at = turn.looks, 1, 2
        while at is not None and at <= looks:
            ended, turn = self._met(made, before, one, other, at)
            assert ended in (first, second), f"before look {at}:\n{_differences(ended, [first, second])}"
            tries, at = tries + 1, turn.following
        return tries

    def _met(self, made: Desk, before: tuple[Act, ...], one: Act, other: Act, at: int) -> tuple[Ended, Turn]:
        found, answers = self._prepared(made, before), list[str]()

        def meanwhile() -> None:
            answers.append(_told(other, found.other, but=StorageUnavailable))

        interleaved: Any = Interleaved(found.one.database, meanwhile, at)
        told = _told(one, replace(found.one, database=interleaved))
        if told in TRY_AGAIN:
            told = _told(one, found.one)
        if not answers or answers[0] in TRY_AGAIN:
            answers = [_told(other, found.one)]
        return (told, *answers, *found.state()), interleaved.turn

    def _prepared(self, made: Desk, before: tuple[Act, ...]) -> _Prepared:
        tenant, clock = f"t{next(self._numbers)}", StepClock(made.clock.now)
        with self.database.read() as tx:
            start = tx.log.size()
        one, other = (
            replace(made, database=each.of_tenant(tenant), randomness=self.randomness, clock=clock)  # type: ignore[arg-type]
            for each in (self.database, self.hurried)
        )
        for act in before:
            act(one)
        return _Prepared(tenant, start, one, other)


@dataclass(frozen=True)
class _Prepared:
    """A new tenant's desk for the one and for the other; its events are from ``start`` on."""

    tenant: str
    start: int
    one: Desk
    other: Desk

    def state(self) -> list[str]:
        """What follows is done. What every event says by its stream and version, and how the work stands."""
        settle(self.one)
        with self.one.database.read() as tx:
            events = [event for event in tx.events.since(self.start, limit=10**6) if event.tenant == self.tenant]
            work = tx.outbox.entries(states=["pending", "parked", "done"], limit=10**6)
        places = {event.id: f"{event.stream}@{event.version}" for event in events}
        lines = [
            f"{places[event.id]} {event.type} {json.dumps(_plain(None if event.erased else event.payload))}"
            for event in events
        ]
        lines += [f"{each.stage} of {each.event_id} is {each.state}" for each in work if each.event_id in places]
        return sorted(_EVENT_ID.sub(lambda found: places.get(found[0], "?"), line) for line in lines)


def settle(desk: Desk) -> None:
    """All that follows by itself is done."""
    with desk.database.read():
        pass
    while runner(desk).run_once():
        pass


def _told(act: Act, desk: Desk, *, but: type[SlaLedgerError] | tuple[()] = ()) -> str:
    """``done``, or the code of the refusal; ``but`` is raised, and where the refusal only names it."""
    try:
        act(desk)
    except SlaLedgerError as error:
        if isinstance(error, but):
            raise
        if isinstance(error.__cause__, but):
            raise error.__cause__ from None
        return error.code
    return "done"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(value[name]) for name in sorted(value) if name not in _OF_ITS_OWN}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _differences(ended: Ended, orders: list[Ended]) -> str:
    """From the nearest order to what it came to."""
    found = (list(unified_diff(order, ended, "in turn", "met", n=0, lineterm="")) for order in orders)
    return "\n".join(line[:400] for line in min(found, key=len)[:20])
