"""What two writers come to who work on the same at the same time, whenever the one commits between two looks of the
other: the same as one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ledger.app.agreements.registering import load_timeline
from ledger.app.billing.claims import ClaimDesk
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.commands import Commands
from ledger.app.facts.handing_in import hand_in
from ledger.app.facts.telemetry import find_evidence
from ledger.app.judgement.judging import Judge
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.settlement.block_seals import BlockSeals
from ledger.app.settlement.charges import ChargeDesk
from ledger.app.settlement.finality import finalize_statement
from ledger.app.settlement.probe import ProbeDesk
from ledger.app.settlement.stages import compensate_period, evaluate_period
from ledger.attest.checks.probe_checks import telemetry_signature_holds
from ledger.attest.crypto.signing import SigningKey, verify
from ledger.domain.record.naming import closing_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.termination import notice_message, unsigned_notice
from ledger.domain.time.instant import DAY_NS, SECOND_NS, parse_instant_ns
from tests.support.meetings import Act, Meetings, meetings_on, settle
from tests.support.postgres import Server
from tests.unit.app.conftest import (
    CUSTOMER,
    Desk,
    find_requests,
    log,
    make_desk,
    read_rows,
    row,
    share_as_cap,
    signed_agreement,
)
from tests.unit.app.test_claims import THIRTY_DAYS, line, with_charges
from tests.unit.app.test_probe import named, signed
from tests.unit.app.test_restating import at_the_end, failed, statements

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def meetings(postgres_server: Server) -> Iterator[Meetings]:
    url = postgres_server.new_database()
    with meetings_on(url) as meetings:
        yield meetings
    postgres_server.drop(url)


def asked_before(desk: Desk) -> Desk:
    """For what somebody knows before they do something: no look of theirs."""
    return replace(desk, database=getattr(desk.database, "undisturbed", desk.database))


def sla_id(desk: Desk) -> str:
    return desk.attestor.sla_id(desk.agreement)


# --- what can be done at a desk ---


def facts(*rows: dict[str, Any]) -> Act:
    def act(desk: Desk) -> None:
        hand_in(
            desk.database,
            sla_id(desk),
            log(*rows),
            attestor=desk.attestor,
            clock=desk.clock,
            read_rows=read_rows,
            declared_complete=desk.period.interval,
        )

    return act


def commands(desk: Desk) -> Commands:
    anyone: Any = None
    return Commands(
        desk.database,
        desk.attestor,
        collectors=AnyCollector(),
        signing=anyone,
        verify=verify,
        clock=desk.clock,
        verify_telemetry=telemetry_signature_holds,
    )


class AnyCollector:
    def require(self, agreement: Agreement) -> None:
        pass


def register(**changes: Any) -> Act:
    return lambda desk: commands(desk).register(signed_agreement(**changes))


def amend(since: str, **changes: Any) -> Act:
    effective = {"from": since, "until": "2024-06-14"}
    return lambda desk: commands(desk).amend(sla_id(desk), signed_agreement(effective=effective, **changes))


def terminate(day: str) -> Act:
    """By a notice that was signed before anybody amended anything."""
    first = plain().agreement

    def act(desk: Desk) -> None:
        unsigned = unsigned_notice(sla_id(desk), first.doc_sha256.hex(), day, "moved away")
        signature = SigningKey(CUSTOMER).sign(notice_message(unsigned)).hex()
        commands(desk).terminate(sla_id(desk), effective=day, reason="moved away", signatures={"customer": signature})

    return act


def close(desk: Desk) -> None:
    commands(desk).close(sla_id(desk), str(desk.period))


def exclude(name: str, hour: int) -> Act:
    start_ns = parse_instant_ns(f"2023-06-14T{hour:02}:00:00Z")
    asked = AskedExclusion(
        name, "dispute", start_ns, start_ns + 3600 * 10**9, reason="agreed", ticket="T", approved_by="board"
    )
    return lambda desk: ExclusionDesk(desk.database, desk.attestor, desk.clock).record(sla_id(desk), asked)


def withdraw(name: str) -> Act:
    def act(desk: Desk) -> None:
        ExclusionDesk(desk.database, desk.attestor, desk.clock).withdraw(sla_id(desk), name, reason="a mistake")

    return act


def charge(amount: str) -> Act:
    def act(desk: Desk) -> None:
        ChargeDesk(desk.database, desk.attestor, desk.clock).record(sla_id(desk), str(desk.period), [line(amount)])

    return act


def statement(desk: Desk, version: int = -1) -> str:
    return str(statements(asked_before(desk))[version]["statement_id"])


def claim(request: str, version: int = -1) -> Act:
    def act(desk: Desk) -> None:
        ClaimDesk(desk.database, desk.attestor, desk.clock).file(statement(desk, version), request=request)

    return act


def reverse(request: str) -> Act:
    def act(desk: Desk) -> None:
        desk_of_credits = CreditDesk(desk.database, desk.clock)
        desk_of_credits.reverse(f"{statement(desk, 0)}.l0001", reason="counted in error", request=request)

    return act


def book(request: str) -> Act:
    def act(desk: Desk) -> None:
        CreditDesk(desk.database, desk.clock).apply(f"{statement(desk, 0)}.l0001", reference="INV-7", request=request)

    return act


def evaluate(change: int = -1) -> Act:
    """The stage of a change of the period's facts; 0: of its closing."""

    def act(desk: Desk) -> None:
        evaluate_period(
            desk.database,
            change_of(desk, change),
            attestor=desk.attestor,
            read_rows=read_rows,
            find_evidence=find_evidence,
            find_requests=find_requests,
            clock=desk.clock,
        )

    return act


def compensate(change: int = -1) -> Act:
    def act(desk: Desk) -> None:
        collectors: Any = Collectors(desk)
        compensate_period(
            desk.database,
            change_of(desk, change),
            attestor=desk.attestor,
            collectors=collectors,
            randomness=desk.randomness,
            clock=desk.clock,
        )

    return act


class Collectors:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def of(self, agreement: Agreement) -> Any:
        return self._desk.collector


def change_of(desk: Desk, which: int) -> str:
    with asked_before(desk).database.read() as tx:
        return list(tx.events.stream(closing_stream(sla_id(desk), desk.period.first)))[which].id


def judge(desk: Desk) -> None:
    judge = Judge(desk.attestor, read_rows, find_evidence, find_requests, desk.clock)
    with desk.database.begin() as tx:
        registered = load_timeline(tx, sla_id(desk), desk.attestor).versions[-1]
        judge.judge(tx, registered, desk.period)


def seal(desk: Desk) -> None:
    judge = Judge(desk.attestor, read_rows, find_evidence, find_requests, desk.clock)
    BlockSeals(desk.database, judge, desk.randomness).seal_due()


def finalize(desk: Desk) -> None:
    name = statement(desk)
    with desk.database.begin() as tx:
        finalize_statement(tx, name, attestor=desk.attestor, now_ns=desk.clock.now_ns())


def ended(desk: Desk) -> None:
    desk.clock.now = desk.period.interval.end_ns


def graced(desk: Desk) -> None:
    desk.clock.now += desk.agreement.grace_seconds * SECOND_NS


def later(desk: Desk) -> None:
    desk.clock.now += 30 * DAY_NS


def countersign(desk: Desk) -> None:
    ProbeDesk(desk.database, telemetry_signature_holds, desk.clock).record(signed(asked_before(desk)))


# --- who meets whom ---

DISPUTE = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}
FACTS, LATE, LATER = facts(row("a"), failed("b", 3)), facts(failed("late", 10)), facts(failed("later", 16))
"""Each hour that failed is a violation of its own, and a later one takes from what the others are credited."""


def plain(**terms: Any) -> Desk:
    return at_the_end(make_desk(**DISPUTE, compensation=share_as_cap(), **terms))


def sealed(**terms: Any) -> Desk:
    return at_the_end(make_desk(**DISPUTE, **terms))


def running() -> Desk:
    desk = sealed()
    desk.clock.now = desk.period.interval.start_ns
    return desk


def claimed() -> Desk:
    return plain(settlement=THIRTY_DAYS)


OPEN = (Desk.register, FACTS)
CLOSED = (*OPEN, close)
SETTLED = (*CLOSED, settle)
CHANGED = (*SETTLED, LATE)
MEETINGS: dict[str, tuple[Callable[[], Desk], tuple[Act, ...], Act, Act]] = {
    "the same facts": (plain, OPEN[:1], FACTS, FACTS),
    "facts and others of the same requests": (plain, OPEN[:1], FACTS, facts(row("b"), row("c"))),
    "facts and the closing": (plain, OPEN, LATE, close),
    "the same closing": (plain, OPEN, close, close),
    "late facts and others": (plain, SETTLED, LATE, LATER),
    "the same exclusion": (plain, OPEN, exclude("d1", 3), exclude("d1", 3)),
    "an exclusion and another of its name": (plain, OPEN, exclude("d1", 3), exclude("d1", 4)),
    "an exclusion and its withdrawal": (plain, (*CLOSED, exclude("d1", 3)), exclude("d1", 3), withdraw("d1")),
    "judging and late facts": (plain, CLOSED, evaluate(0), LATE),
    "the same sealing as it runs": (running, (Desk.register, ended, FACTS, graced), seal, seal),
    "the same statement": (sealed, (*CLOSED, evaluate()), compensate(), compensate()),
    "a statement and late facts": (sealed, (*CLOSED, evaluate()), compensate(0), LATE),
    "a statement and charges": (with_charges, (*CLOSED, evaluate()), compensate(), charge("10.00")),
    "a restatement and a reversal": (plain, (*CHANGED, evaluate()), compensate(), reverse("k1")),
    "a reversal and a restatement": (plain, (*CHANGED, evaluate()), reverse("k1"), compensate()),
    "a claim and a restatement": (claimed, (*CHANGED, evaluate()), claim("k1", 0), compensate()),
    "the same claim": (claimed, SETTLED, claim("k1"), claim("k1")),
    "a claim and a reversal": (claimed, (*SETTLED, claim("k1")), claim("k2"), reverse("k1")),
    "the same reversal": (plain, SETTLED, reverse("k1"), reverse("k1")),
    "a reversal and the booking": (plain, SETTLED, reverse("k1"), book("k2")),
    "the same booking": (plain, SETTLED, book("k1"), book("k1")),
    "charges and others": (with_charges, OPEN, charge("10.00"), charge("20.00")),
    "the same finality": (plain, (*SETTLED, later), finalize, finalize),
    "finality and a restatement": (plain, (*CHANGED, evaluate(), later), finalize, compensate()),
    "the same signature of a probe": (lambda: sealed(**named()), SETTLED, countersign, countersign),
    "the same agreement": (plain, (), register(), register()),
    "an agreement and other terms": (plain, (), register(), register(coverage_floor="0.5")),
    "the same amendment": (plain, OPEN[:1], amend("2023-08-01"), amend("2023-08-01")),
    "an amendment and another": (plain, OPEN[:1], amend("2023-08-01"), amend("2023-09-01")),
    "an amendment and a notice": (plain, OPEN[:1], amend("2023-08-01"), terminate("2023-09-01")),
    "a notice and an amendment": (plain, OPEN[:1], terminate("2023-09-01"), amend("2023-08-01")),
    "the same notice": (plain, OPEN[:1], terminate("2023-09-01"), terminate("2023-09-01")),
    "a notice and another": (plain, OPEN[:1], terminate("2023-09-01"), terminate("2023-10-01")),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_they_come_to_what_one_after_the_other_comes_to(meetings: Meetings, name: str) -> None:
    made, before, one, other = MEETINGS[name]
    assert meetings.require_either_order(made(), before, one, other) > 0
