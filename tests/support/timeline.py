"""Scenarios with a ``timeline``: what happened to one period, act by act, over the use cases; what its statements say.

Each act has ``at``, when it happened, one verb, and ``refused`` where it must be, with the code of the refusal:

* ``facts``: request rows in short (``scenario_texts``), complete for the whole period, for ``complete`` (from/to), or
  (``complete: unsaid``) without a word of it; ``heartbeats``: of the source, in short
* ``close``: the period is closed, because somebody asked or by the ``schedule``
* ``exclude``: an exclusion of this id by ``clause``, ``from``, ``to``, ``announced`` and ``approved_by`` (a change
  board, where it says nothing; empty: nobody); ``withdraw`` takes one back
* ``claim``: a violation such as ``availability w10``, or ``everything``; of the newest statement or ``of`` one (``v1``)
* ``charges``: lines that finance handed in; ``reverse``: a credit line (``v1 l0001``) that it took back
* ``finalize``: the schedule looks whether the deadline has passed

What follows from an act is worked out before the next one, unless that is at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.app.billing.claims import ClaimDesk
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.facts.observations import record_observations
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.reading.explanation import read_explanation
from ledger.app.settlement.charges import ChargeDesk
from ledger.app.settlement.finality import Finality
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.circuits import load_circuits
from ledger.domain.record.naming import credit_lines_stream, statement_stream, violation_id
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import DAY_NS, format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import SlaLedgerError
from ledger.resources import resource_dir
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.scenario_texts import heartbeat_lines, merged, request_lines, set_member
from tests.unit.app.conftest import Desk, TestCollector, read_rows, signed_agreement
from tests.unit.app.test_stages import runner
from tests.unit.domain.samples import document

_REST = {"at", "refused"}


def played(case: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a case: ``v1``, ``v2``... say what each statement says, the other members what is owed now."""
    stage = _Stage(case)
    acts = case["timeline"]
    for number, act in enumerate(acts):
        stage.act(act)
        if number + 1 == len(acts) or acts[number + 1]["at"] != act["at"]:
            stage.work()
    return stage.outcome()


class _Stage:
    """One ledger in memory, with one agreement and the period that is looked at."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        plain = document(f"{case.get('example', 'agreement')}.yaml")
        for path, value in merged(case.get("set", {})).items():
            set_member(plain, path, value)
        agreement = Agreement.from_document(signed_agreement(**plain))
        clock = StepClock(parse_instant_ns(case["timeline"][0]["at"]) - DAY_NS)
        randomness = SeededRandomness(7)
        self.desk = Desk(
            database=MemoryDatabase(clock, randomness),
            attestor=CircuitAttestor(load_circuits(resource_dir("circuits")), {}),
            randomness=randomness,
            clock=clock,
            collector=TestCollector(),
            agreement=agreement,
            period=period_named(agreement, case.get("period", "2023-06-14/P1D")),
        )
        self.sla_id = self.desk.attestor.sla_id(agreement)
        self.requests = 0
        self.desk.register()

    def work(self) -> None:
        """Whatever is due in the outbox."""
        while runner(self.desk).run_once():
            pass

    def act(self, act: Mapping[str, Any]) -> None:
        now_ns = parse_instant_ns(act["at"])
        assert now_ns >= self.desk.clock.now - 60 * 10**9, f"{act['at']} comes before the act above it"
        self.desk.clock.now = max(now_ns, self.desk.clock.now)
        (verb,) = set(act) & set(_VERBS)
        expected = act.get("refused")
        try:
            _VERBS[verb](self, act[verb], act)
        except SlaLedgerError as error:
            assert error.code == expected, f"{act}: {error.code}: {error.message}"  # noqa: PT017 - says which act
        else:
            assert expected is None, f"{act} was not refused"

    def facts(self, rows: Sequence[Any], act: Mapping[str, Any]) -> None:
        said = act.get("complete", "")
        start, _, end = said.partition("/")
        span = Interval(parse_instant_ns(start), parse_instant_ns(end)) if end else self.desk.period.interval
        lines = [f"{line}\n" for item in rows for line in request_lines(item, self.desk.agreement.service)]
        self._record("".join(lines), None if said == "unsaid" else span)

    def heartbeats(self, beats: Sequence[Any], _act: Mapping[str, Any]) -> None:
        self._record("".join(heartbeat_lines(item, self.desk.agreement.service) for item in beats), None)

    def _record(self, text: str, complete: Interval | None) -> None:
        registered = self.desk.register()
        with self.desk.database.begin() as tx:
            record_observations(
                tx,
                registered,
                text.encode(),
                read_rows=read_rows,
                declared_complete=complete,
                now_ns=self.desk.clock.now_ns(),
            )

    def close(self, cause: str, _act: Mapping[str, Any]) -> None:
        registered = self.desk.register()
        with self.desk.database.begin() as tx:
            close_period(
                tx, registered, self.desk.period, cause=Cause(cause or "request"), now_ns=self.desk.clock.now_ns()
            )

    def exclude(self, name: str, act: Mapping[str, Any]) -> None:
        announced = act.get("announced")
        asked = AskedExclusion(
            id=name,
            clause=act["clause"],
            from_ns=parse_instant_ns(act["from"]),
            to_ns=parse_instant_ns(act["to"]),
            reason="as the contract says",
            ticket=f"ticket of {name}",
            announced_at_ns=None if announced is None else parse_instant_ns(announced),
            approved_by=act.get("approved_by", "change board") or None,
        )
        self._exclusions.record(self.sla_id, asked)

    def withdraw(self, name: str, _act: Mapping[str, Any]) -> None:
        self._exclusions.withdraw(self.sla_id, name, reason="a mistake")

    def claim(self, what: str, act: Mapping[str, Any]) -> None:
        self.requests += 1
        violation = None
        if what != "everything":
            objective, window = what.split(" w")
            violation = violation_id(self.sla_id, self.desk.period.first, objective, int(window))
        desk = ClaimDesk(self.desk.database, self.desk.attestor, self.desk.clock)
        desk.file(self._statement(act.get("of")), violation=violation, request=f"request {self.requests}")

    def charges(self, lines: Sequence[Any], _act: Mapping[str, Any]) -> None:
        desk = ChargeDesk(self.desk.database, self.desk.attestor, self.desk.clock)
        desk.record(self.sla_id, str(self.desk.period), list(lines))

    def reverse(self, line: str, _act: Mapping[str, Any]) -> None:
        self.requests += 1
        version, name = line.split()
        desk = CreditDesk(self.desk.database, self.desk.clock)
        desk.reverse(f"{self._statement(version)}.{name}", reason="paid before", request=f"request {self.requests}")

    def finalize(self, _said: str, _act: Mapping[str, Any]) -> None:
        Finality(self.desk.database, self.desk.attestor, self.desk.clock).finalize_due()

    @property
    def _exclusions(self) -> ExclusionDesk:
        return ExclusionDesk(self.desk.database, self.desk.attestor, self.desk.clock)

    def _statement(self, version: str | None) -> str:
        statements = self._statements()
        found = statements[-1] if version is None else statements[int(version[1:]) - 1]
        return str(found["statement_id"])

    def _statements(self) -> list[Mapping[str, Any]]:
        with self.desk.database.read() as tx:
            return [event.payload for event in tx.events.stream(statement_stream(self.sla_id, self.desk.period.first))]

    def outcome(self) -> dict[str, Any]:
        statements, entries, owed = self._statements(), list[str](), 0
        with self.desk.database.read() as tx:
            for version, said in enumerate(statements, 1):
                for event in tx.events.stream(credit_lines_stream(said["statement_id"])):
                    line = event.payload.get("entry", event.payload)
                    owed += int(line["minor_units"])
                    of = "all" if line["violation_id"] is None else f"{line['objective']} {_window(line)}"
                    entries.append(f"v{version} {of} {line['minor_units']}")
            rulings = [read_explanation(tx, said["statement_id"])["exclusions"] for said in statements]
            standing = tx.views.statement(statements[-1]["statement_id"])["standing"] if statements else "none"
        return {
            "versions": str(len(statements)),
            "standing": standing,
            "owed": str(owed),
            "entries": entries,
            **{
                f"v{version}": _said(*each)
                for version, each in enumerate(zip(statements, rulings, strict=True), start=1)
            },
        }


_VERBS = {
    "facts": _Stage.facts,
    "heartbeats": _Stage.heartbeats,
    "close": _Stage.close,
    "exclude": _Stage.exclude,
    "withdraw": _Stage.withdraw,
    "claim": _Stage.claim,
    "charges": _Stage.charges,
    "reverse": _Stage.reverse,
    "finalize": _Stage.finalize,
}


def _said(statement: Mapping[str, Any], rulings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What one statement says, in the words of ``expect``; what became of each exclusion its explanation says."""
    credit, delta = statement["credit"], statement.get("credit_delta")
    return {
        "state": statement["state"],
        "credit": "none" if credit is None else credit["minor_units"],
        "difference": "none" if delta is None else delta["difference"],
        "because": statement.get("reason", ""),
        "differing": [each["id"] for each in statement.get("objective_deltas", ())],
        "excluded": str(statement["excluded"]),
        "observed": str(statement["observed"]),
        "exclusions": [_exclusion(each, statement) for each in rulings],
        "listed": [each["exclusion_id"] for each in statement.get("exclusions", ())],
        "accepts_until": format_instant_ns(int(statement["accepts_until_ns"])),
        **{each["id"]: f"{each['good']}/{each['valid']} {each['state']}" for each in statement["objectives"]},
    }


def _exclusion(said: Mapping[str, Any], statement: Mapping[str, Any]) -> str:
    if said["honoured_from_ns"] is None:
        return f"{said['id']} {said['ruling']}"
    start_ns = max(int(said["honoured_from_ns"]), int(statement["start_ns"]))
    end_ns = min(int(said["honoured_to_ns"]), int(statement["end_ns"]))
    return f"{said['id']} {said['ruling']}, {(end_ns - start_ns) // 60_000_000_000} minutes"


def _window(line: Mapping[str, Any]) -> str:
    return str(line["violation_id"]).rpartition(".")[2]
