"""Processes that settle the same period of one ledger, SQLite file or PostgreSQL, at the same time, or die over it."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ledger.app.billing.claims import ClaimDesk
from ledger.app.facts.observations import record_observations
from ledger.app.facts.telemetry import find_evidence
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.settlement.stages import compensate_period, evaluate_period
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.domain.record.naming import closing_stream, credit_lines_stream, statement_stream, violation_id
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.errors import SlaLedgerError
from ledger.store.database import SqliteDatabase
from ledger.store.postgres import PostgresDatabase
from tests.conformance.samples import SeededRandomness
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows
from tests.unit.app.test_stages import Held

_FORK = multiprocessing.get_context("fork")
LEASE_NS = 30 * SECOND_NS
WITHIN_S = 300.0

Act = Callable[[Desk], object]


class Going:
    """A clock that stands at ``start_ns`` when it is made and goes on from there, in all processes alike."""

    def __init__(self, start_ns: int) -> None:
        self.ahead_ns = start_ns - time.monotonic_ns()

    def now_ns(self) -> int:
        return self.ahead_ns + time.monotonic_ns()


@dataclass
class Place:
    """One ledger: the path of a file, or the URL of a PostgreSQL, and the terms of its one agreement."""

    where: Path | str
    terms: dict[str, Any] = field(default_factory=dict)
    clock: Going = field(default_factory=lambda: Going(parse_instant_ns("2023-06-15T00:00:00Z")))
    opened: int = 0

    @contextmanager
    def open(self, seed: int = 0) -> Iterator[Desk]:
        """The ledger over connections of its own; two of one seed would make the same ids."""
        self.opened += 1
        randomness = SeededRandomness(1000 * self.opened + seed)
        database: SqliteDatabase | PostgresDatabase
        if isinstance(self.where, Path):
            database = SqliteDatabase(self.where, self.clock, randomness, migrated=self.where.exists())
        else:
            database = SequencedAfterCommit(self.where, self.clock, randomness, migrated=True, role_prefix=ROLE_PREFIX)
        desk = replace(make_desk(**self.terms), database=database, randomness=randomness, clock=self.clock)  # type: ignore[arg-type]
        try:
            yield desk
        finally:
            database.close()

    def do(self, *acts: Act) -> None:
        """One after the other."""
        with self.open() as desk:
            for act in acts:
                act(desk)

    def at_once(self, *acts: Act) -> list[str]:
        """Each in a process of its own, all let go together: of each ``done``, or the code of its refusal.

        What a program must not answer with is told in full.
        """
        gate, told = _FORK.Barrier(len(acts)), _FORK.SimpleQueue()

        def run(number: int, act: Act) -> None:
            with self.open(number + 1) as desk:
                gate.wait(WITHIN_S)
                told.put((number, _tried(act, desk)))

        processes = [_FORK.Process(target=run, args=each) for each in enumerate(acts)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(WITHIN_S)
        self.opened += len(acts)
        found = {}
        while not told.empty():
            number, answer = told.get()
            found[number] = answer
        return [found.get(number, "nothing") for number in range(len(acts))]

    def killed_after(self, transactions: int, act: Act) -> bool:
        """Whether a process that does ``act`` was killed (SIGKILL) right after so many transactions of its."""
        process = _FORK.Process(target=self._run_and_die, args=(transactions, act))
        process.start()
        process.join(WITHIN_S)
        self.opened += 1
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode != 0

    def _run_and_die(self, transactions: int, act: Act) -> None:
        with self.open(1) as desk:
            begin, count = desk.database.begin, itertools.count(1)

            @contextmanager
            def dying() -> Iterator[Any]:
                with begin() as tx:
                    yield tx
                if next(count) == transactions:
                    os.kill(os.getpid(), signal.SIGKILL)

            desk.database.begin = dying  # type: ignore[method-assign]
            # Each view of a tenant is a copy, and would begin by the method of the class.
            desk.database.of_tenant = lambda _tenant: desk.database  # type: ignore[method-assign]
            act(desk)


def _tried(act: Act, desk: Desk) -> str:
    try:
        act(desk)
    except SlaLedgerError as error:
        return error.code
    except BaseException as error:
        return f"a fault: {error!r}"
    return "done"


def sla_id(desk: Desk) -> str:
    return desk.attestor.sla_id(desk.agreement)


def observe(*rows: dict[str, Any]) -> Act:
    def act(desk: Desk) -> None:
        registered = desk.register()
        with desk.database.begin() as tx:
            record_observations(
                tx,
                registered,
                log(*rows),
                read_rows=read_rows,
                declared_complete=desk.period.interval,
                now_ns=desk.clock.now_ns(),
            )

    return act


def close(desk: Desk) -> None:
    registered = desk.register()
    with desk.database.begin() as tx:
        close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())


def exclude(name: str, start: str, end: str) -> Act:
    def act(desk: Desk) -> None:
        from_ns, to_ns = (parse_instant_ns(f"2023-06-14T{at}:00Z") for at in (start, end))
        asked = AskedExclusion(name, "dispute", from_ns, to_ns, "both agree", approved_by="board")
        ExclusionDesk(desk.database, desk.attestor, desk.clock).record(sla_id(desk), asked)

    return act


def claim(request: str, hour: int | None = None) -> Act:
    """What the newest statement credits for the violation of an hour, or all of it."""

    def act(desk: Desk) -> None:
        violation = None if hour is None else violation_id(sla_id(desk), desk.period.first, "availability", hour)
        desks = ClaimDesk(desk.database, desk.attestor, desk.clock)
        desks.file(statements(desk)[-1]["statement_id"], violation=violation, request=request)

    return act


def work(desk: Desk) -> None:
    """Judge and settle until nothing is due; proofs are left to others."""
    shared: dict[str, Any] = {"attestor": desk.attestor, "clock": desk.clock}
    found: dict[str, Any] = {"find_evidence": find_evidence, "find_requests": find_requests}
    given: dict[str, Any] = {"collectors": Held(desk.collector), "randomness": desk.randomness}
    stages = {
        Stage.EVALUATE: lambda database, event: evaluate_period(
            database, event, read_rows=read_rows, **found, **shared
        ),
        Stage.COMPENSATE: lambda database, event: compensate_period(database, event, **given, **shared),
    }
    runner = OutboxRunner(desk.database, stages, desk.clock, holder=f"process {os.getpid()}", lease_ns=LEASE_NS)
    runner.run_until_idle(time.sleep)


def statements(desk: Desk) -> list[dict[str, Any]]:
    with desk.database.read() as tx:
        return [dict(each.payload) for each in tx.events.stream(statement_stream(sla_id(desk), desk.period.first))]


def entries(desk: Desk) -> list[dict[str, Any]]:
    """The credit lines of all versions, oldest first."""
    with desk.database.read() as tx:
        return [
            dict(event.payload)
            for said in statements_of(desk, tx)
            for event in tx.events.stream(credit_lines_stream(said.payload["statement_id"]))
        ]


def statements_of(desk: Desk, tx: Any) -> Sequence[Any]:
    return list(tx.events.stream(statement_stream(sla_id(desk), desk.period.first)))


def require_sound(desk: Desk) -> dict[str, Any]:
    """The newest statement of a ledger of which all that is due was done: closed once, versions one after the other,
    each with its reason, and no entry twice."""
    with desk.database.read() as tx:
        issued = statements_of(desk, tx)
        closings = [event.type for event in tx.events.stream(closing_stream(sla_id(desk), desk.period.first))]
        open_stages = {entry.stage for entry in tx.outbox.entries(states=["pending", "parked"], limit=99)}
    assert closings.count("period_closed") == 1
    assert open_stages <= {"prove"}
    for version, (before, event) in enumerate(zip([None, *issued], issued, strict=False), 1):
        assert event.payload["statement_version"] == version
        restates = event.payload.get("restates")
        assert (restates and restates["event_id"]) == (before and before.id)
    lines = entries(desk)
    assert len({line["line_id"] for line in lines}) == len(lines)
    newest = dict(issued[-1].payload)
    if not desk.agreement.settlement.by_claim:
        assert sum(int(line["minor_units"]) for line in lines) == int(newest["credit"]["minor_units"])
    return newest
