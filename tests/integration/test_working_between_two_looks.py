"""Webhooks, telemetry, erasures, proofs and work that is handed out, met by the same or another change between any two
looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from sqlalchemy.event import listen, remove

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.chain.roots import Batches, RootPolicy
from ledger.app.facts.telemetry import RawTelemetry, record_telemetry
from ledger.app.log.erasure import erase_payload
from ledger.app.settlement.attestations import prove_statement
from ledger.app.settlement.statements import issued_event
from ledger.app.webhooks.desk import WebhookDesk
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.domain.record.naming import batches_stream
from ledger.errors import VersionConflict
from ledger.ingest.registry import read_telemetry
from tests.conformance.samples import StepClock, erasable, signed_checkpoint, window, windows
from tests.conformance.test_working_rows import TRANSACTION
from tests.support.interleaved import Interleaved, Turn
from tests.support.meetings import Act, Meetings, meetings_in, meetings_on, settle
from tests.support.postgres import Server
from tests.support.settled import ForgingAttestor
from tests.unit.app.conftest import Desk, make_desk, row
from tests.unit.app.test_restating import at_the_end, close, hand_in, statements

FINANCE = Principal("finance key", "alice", ROLE_SCOPES[Role.FINANCE])


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def meetings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meetings]:
    if request.param == "sqlite":
        with meetings_in(tmp_path_factory.mktemp("meetings") / "ledger.db") as meetings:
            yield meetings
        return
    server: Server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    with meetings_on(url) as meetings:
        yield meetings
    server.drop(url)


def webhooks(desk: Desk) -> WebhookDesk:
    return WebhookDesk(desk.database, desk.clock, desk.randomness)


def endpoint(request: str) -> Act:
    return lambda desk: webhooks(desk).register(
        FINANCE, url="https://billing.example/hooks", types=["statement.issued"], request=request
    )


def endpoint_id(desk: Desk) -> str:
    with desk.database.read() as tx:
        return str(tx.views.webhooks()[0]["id"])


def new_secret(request: str) -> Act:
    return lambda desk: webhooks(desk).rotate(FINANCE, endpoint_id(desk), request=request)


def make(state: str) -> Act:
    return lambda desk: webhooks(desk).set_state(FINANCE, endpoint_id(desk), state)


def telemetry(degrees: int) -> Act:
    text = f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-1"}} {degrees}\n'
    raw = RawTelemetry("dcgm", "text/plain", text.encode(), "test", "example-chat", 1_700_000_000_000_000_000)

    def act(desk: Desk) -> None:
        with desk.database.begin() as tx:
            record_telemetry(tx, raw, read_telemetry(raw), read=read_telemetry, now_ns=desk.clock.now_ns())

    return act


def keep(desk: Desk) -> None:
    with desk.database.begin() as tx:
        tx.events.append("s", [erasable(window(0))], expected_version=0)


def erase(desk: Desk) -> None:
    with desk.database.read() as tx:
        kept = next(iter(tx.events.stream("s")))
    with desk.database.begin() as tx:
        erase_payload(tx, kept.id, reason="asked for", requested_by=None, now_ns=desk.clock.now_ns())


def issued(desk: Desk) -> None:
    hand_in(desk, row("a"))
    close(desk)


def prove(desk: Desk) -> None:
    name = statements(desk)[-1]["statement_id"]
    with desk.database.read() as tx:
        event = issued_event(tx, name)
    prove_statement(
        desk.database, event.id, attestor=desk.attestor, chain_id=31337, registry="0x" + "5a" * 20, clock=desk.clock
    )


def plain() -> Desk:
    return at_the_end(make_desk())


def proving() -> Desk:
    return replace(plain(), attestor=ForgingAttestor())


LISTENING = (endpoint("r1"), settle)
MEETINGS: dict[str, tuple[Callable[[], Desk], tuple[Act, ...], Act, Act]] = {
    "the same endpoint": (plain, (), endpoint("r1"), endpoint("r1")),
    "an endpoint and another": (plain, (), endpoint("r1"), endpoint("r2")),
    "the same new secret": (plain, LISTENING, new_secret("r2"), new_secret("r2")),
    "a new secret and another": (plain, LISTENING, new_secret("r2"), new_secret("r3")),
    "a new secret and the end of its endpoint": (plain, LISTENING, new_secret("r2"), make("removed")),
    "the same disabling": (plain, LISTENING, make("disabled"), make("disabled")),
    "the end of an endpoint and a new secret": (plain, LISTENING, make("removed"), new_secret("r2")),
    "the same telemetry": (plain, (Desk.register, settle), telemetry(31), telemetry(31)),
    "telemetry and other": (plain, (Desk.register, settle), telemetry(31), telemetry(32)),
    "the same erasure": (plain, (keep, settle), erase, erase),
    "the same proof": (proving, (issued, settle), prove, prove),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_they_come_to_what_one_after_the_other_comes_to(meetings: Meetings, name: str) -> None:
    made, before, one, other = MEETINGS[name]
    assert meetings.require_either_order(made(), before, one, other) > 0


def test_work_is_handed_out_once(meetings: Meetings) -> None:
    done: list[str] = []

    def runner(database: Any) -> OutboxRunner:
        work = {Stage.DELIVER: lambda _, event_id: done.append(event_id)}
        return OutboxRunner(database, work, StepClock(), holder="one of two")

    for at in count(1):
        with meetings.database.begin() as tx:
            receipts = tx.events.append("s", windows(2), expected_version=None)
            for receipt in receipts:
                tx.outbox.add(receipt.event_id, Stage.DELIVER)
        with meetings.database.read():
            done.clear()
        interleaved = Interleaved(meetings.database, lambda: runner(meetings.hurried).run_once(), at)
        runner(interleaved).run_once()
        while runner(meetings.database).run_once():
            pass
        assert sorted(done) == sorted(receipt.event_id for receipt in receipts)
        if not interleaved.turn.came:
            break
    assert at > 2


def test_a_batch_is_formed_once(meetings: Meetings) -> None:
    tenant: Any = meetings.database.of_tenant("batches")
    desk = replace(proving(), database=tenant, randomness=meetings.randomness)
    for act in (issued, settle, prove):
        act(desk)
    with meetings.database.read() as tx:
        size, root = tx.log.size(), tx.log.root(tx.log.size())
    with meetings.database.begin() as tx:
        tx.log.save_checkpoint(size, root, signed_checkpoint(size, root))
    for at in count(1):
        # Each target has batches of its own.
        def form(database: Any, target: str = str(at)) -> None:
            Batches(database, desk.attestor, desk.clock, [target], RootPolicy(after_s=0, most=1)).form_due()

        interleaved = Interleaved(meetings.database, lambda form=form: form(meetings.hurried), at)  # type: ignore[misc]
        form(interleaved)
        with meetings.database.read() as tx:
            events = list(tx.events.stream(batches_stream(str(at))))
            work = tx.outbox.entries(states=["pending"], limit=10**6)
        assert [event.type for event in events] == ["batch_formed"]
        assert [each.stage for each in work if each.event_id == events[0].id] == [Stage.PUBLISH_FURTHER]
        if not interleaved.turn.came:
            break
    assert at > 4


def test_one_process_looks_at_a_chain_at_a_time(meetings: Meetings) -> None:
    for at in count(1):
        now_ns, taken = at * 10**12, list[str]()

        def take(database: Any, holder: str, now_ns: int = now_ns, taken: list[str] = taken) -> None:
            with database.begin() as tx:
                place = {"now_ns": now_ns, "until_ns": now_ns + 10**9, "due_ns": now_ns - 1}
                if tx.chain_looks.take(1, "0x" + "aa" * 20, holder=holder, **place) is not None:
                    taken.append(holder)

        interleaved = Interleaved(meetings.database, lambda take=take: take(meetings.hurried, "other"), at)  # type: ignore[misc]
        take(interleaved, "one")
        assert len(taken) == 1
        if not interleaved.turn.came:
            break


@contextmanager
def before_statement(database: Any, at: int, meanwhile: Callable[[], object]) -> Iterator[Turn]:
    """As ``Interleaved``, but before the statements of the store themselves."""
    turn = Turn(meanwhile, at)

    def look(*_: Any) -> None:
        turn.look()

    listen(database._app, "before_cursor_execute", look)
    try:
        yield turn
    finally:
        remove(database._app, "before_cursor_execute", look)
        turn.ended()


def test_a_block_that_is_noted_while_another_is_taken_back_stays(postgres_url: str) -> None:
    here, elsewhere = "0x" + "0a" * 32, "0x" + "0b" * 32
    with meetings_on(postgres_url) as meetings:
        for at in count(1):
            sent = replace(TRANSACTION, chain_id=at, tx_hash=f"0x{at:064x}")
            with meetings.database.begin() as tx:
                tx.chain.add(sent)
                tx.chain.included(sent.tx_hash, block_number=4, block_hash=here)

            def note(name: str = sent.tx_hash) -> None:
                with meetings.hurried.begin() as tx:
                    tx.chain.included(name, block_number=5, block_hash=elsewhere)

            with before_statement(meetings.database, at, note) as turn, meetings.database.begin() as tx:
                tx.chain.dropped(sent.tx_hash, block_hash=here)
            if not turn.came:
                break
            with meetings.database.read() as tx:
                assert tx.chain.by_hash(sent.tx_hash).block_hash == elsewhere
    assert at > 3


def test_a_follower_is_moved_on_by_one(postgres_url: str) -> None:
    with meetings_on(postgres_url) as meetings:
        for at in count(1):
            moved: list[str] = []

            def advance(database: Any, name: str = f"f{at}", moved: list[str] = moved) -> None:
                with suppress(VersionConflict), database.begin() as tx:
                    tx.followers.advance(name, before=0, now=3)
                    moved.append(name)

            with before_statement(meetings.database, at, lambda advance=advance: advance(meetings.hurried)) as turn:  # type: ignore[misc]
                advance(meetings.database)
            assert len(moved) == 1
            if not turn.came:
                break
    assert at > 2


def test_a_secret_has_one_value(postgres_url: str) -> None:
    with meetings_on(postgres_url) as meetings:
        for at in count(1):
            kept: list[bytes] = []

            def put(database: Any, value: bytes, name: str = f"s{at}", kept: list[bytes] = kept) -> None:
                with suppress(VersionConflict), database.begin() as tx:
                    tx.secrets.put(name, value)
                    kept.append(value)

            with before_statement(meetings.database, at, lambda put=put: put(meetings.hurried, b"2")) as turn:  # type: ignore[misc]
                put(meetings.database, b"1")
            with meetings.database.read() as tx:
                assert kept == [tx.secrets.get(f"s{at}")]
            if not turn.came:
                break
    assert at > 3
