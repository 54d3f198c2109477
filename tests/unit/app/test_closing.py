"""Periods are closed once, when they are over, by request or by the clock."""

from __future__ import annotations

import pytest

from ledger.app.agreements.registering import RegisteredAgreement, RegisteredTimeline, load_timeline
from ledger.app.facts.observations import record_observations
from ledger.app.facts.telemetry import find_evidence
from ledger.app.periods import closing
from ledger.app.periods.closing import Cause, Schedule, close_period, closing_of, load_closing
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Receipt, Transaction
from ledger.app.settlement.stages import evaluate_period
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import ClosingFailed, DocumentInvalid, NotFound, PeriodNotOver
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows, row

HOUR_NS = 3600 * SECOND_NS
GRACE_NS = 72 * HOUR_NS


def at(desk: Desk, now_ns: int) -> None:
    """Set the desk's clock so that the next look says ``now_ns``."""
    desk.clock.now = now_ns - SECOND_NS


def close(desk: Desk, period: Period | None = None, cause: Cause = Cause.REQUEST) -> Receipt:
    registered = desk.register()
    with desk.database.begin() as tx:
        return close_period(tx, registered, period or desk.period, cause=cause, now_ns=desk.clock.now_ns())


def closed(desk: Desk, registered: RegisteredAgreement) -> list[str]:
    """The first dates of the closed periods."""
    with desk.database.read() as tx:
        days = (f"2023-06-{day:02}" for day in range(1, 31))
        periods = [period_named(registered.agreement, f"{day}/P1D") for day in days]
        return [str(period.first)[8:] for period in periods if closing_of(tx, registered.sla_id, period)]


class TestClosing:
    def test_is_one_event_and_queues_the_judging(self, desk: Desk) -> None:
        receipt = close(desk)
        with desk.database.read() as tx:
            event = tx.events.by_id(receipt.event_id)
            (entry,) = tx.outbox.entries(states=["pending"], limit=9)
        assert event.stream == f"closings/{desk.attestor.sla_id(desk.agreement)}/2023-06-14"
        assert event.payload == {
            "sla_id": desk.attestor.sla_id(desk.agreement),
            "period": "2023-06-14/P1D",
            "start_ns": str(desk.period.interval.start_ns),
            "end_ns": str(desk.period.interval.end_ns),
            "doc_sha256": desk.agreement.doc_sha256.hex(),
            "cause": "request",
        }
        assert (entry.event_id, entry.stage) == (receipt.event_id, "evaluate")

    @pytest.mark.parametrize("again", list(Cause))
    def test_again_gives_the_first_receipt(self, desk: Desk, again: Cause) -> None:
        first = close(desk)
        assert close(desk, cause=again) == first
        with desk.database.read() as tx:
            assert tx.outbox.pending() == 1

    @pytest.mark.parametrize(
        ("cause", "from_end_ns"), [(Cause.REQUEST, 0), (Cause.SCHEDULE, GRACE_NS)], ids=["request", "schedule"]
    )
    def test_waits_for_the_end_and_the_schedule_for_the_grace(self, desk: Desk, cause: Cause, from_end_ns: int) -> None:
        registered = desk.register()
        from_ns = desk.period.interval.end_ns + from_end_ns
        with desk.database.begin() as tx:
            with pytest.raises(PeriodNotOver) as refused:
                close_period(tx, registered, desk.period, cause=cause, now_ns=from_ns - 1)
            assert refused.value.data["from_ns"] == from_ns
            assert closing_of(tx, registered.sla_id, desk.period) is None
            close_period(tx, registered, desk.period, cause=cause, now_ns=from_ns)

    def test_names_no_period_outside_the_terms(self, desk: Desk) -> None:
        for text in ("2022-12-31/P1D", "2024-01-01/P1D", "2023-06-14/P7D"):
            with pytest.raises(DocumentInvalid):
                period_named(desk.agreement, text)

    def test_keeps_the_terms_it_was_closed_under(self, desk: Desk) -> None:
        receipt = close(desk)
        with desk.database.read() as tx:
            loaded = load_closing(tx, receipt.event_id, desk.attestor)
        assert (loaded.registered, loaded.period) == (desk.register(), desk.period)

    def test_belongs_to_its_tenant(self, desk: Desk) -> None:
        receipt = close(desk)
        with pytest.raises(NotFound):
            evaluate_period(
                desk.database.of_tenant("other"),
                receipt.event_id,
                attestor=desk.attestor,
                read_rows=read_rows,
                find_evidence=find_evidence,
                find_requests=find_requests,
                clock=desk.clock,
            )


class TestWaitingForTheSource:
    """``closing: {when: watermark, at_latest: PT168H}``: a week at most, registered on 2023-06-14 at noon."""

    @pytest.fixture
    def desk(self) -> Desk:
        desk = make_desk(closing={"when": "watermark", "at_latest": "PT168H"})
        at(desk, desk.period.interval.start_ns + 12 * HOUR_NS)
        desk.register()
        return desk

    def declare(self, desk: Desk, until_ns: int) -> None:
        registered = desk.register()
        with desk.database.begin() as tx:
            record_observations(
                tx,
                registered,
                log(row(f"r{until_ns}", format_instant_ns(until_ns - 1))),
                read_rows=read_rows,
                declared_complete=Interval(desk.period.interval.start_ns, until_ns),
                now_ns=desk.clock.now_ns(),
            )

    def test_closes_period_after_period_as_far_as_the_source_has_got(self, desk: Desk) -> None:
        schedule, registered = Schedule(desk.database, desk.attestor, desk.clock), desk.register()
        end_ns = desk.period.interval.end_ns
        at(desk, end_ns + GRACE_NS + 72 * HOUR_NS)
        assert schedule.close_due() == 0
        self.declare(desk, end_ns - 1)
        assert schedule.close_due() == 0
        self.declare(desk, end_ns + 24 * HOUR_NS)
        assert schedule.close_due() == 2
        assert closed(desk, registered) == ["14", "15"]

    def test_a_silent_source_is_waited_for_no_longer_than_agreed(self, desk: Desk) -> None:
        schedule, registered = Schedule(desk.database, desk.attestor, desk.clock), desk.register()
        at(desk, desk.period.interval.end_ns + 168 * HOUR_NS - 2 * SECOND_NS)
        assert schedule.close_due() == 0
        at(desk, desk.period.interval.end_ns + 168 * HOUR_NS)
        assert schedule.close_due() == 1
        assert closed(desk, registered) == ["14"]

    def test_who_asks_waits_for_nobody(self, desk: Desk) -> None:
        at(desk, desk.period.interval.end_ns + SECOND_NS)
        with pytest.raises(PeriodNotOver) as refused:
            close(desk, cause=Cause.SCHEDULE)
        assert refused.value.data["from_ns"] == desk.period.interval.end_ns + 168 * HOUR_NS
        close(desk)


class TestSchedule:
    """The example's agreement of 2023 with days and a grace of 72 hours, registered on 2023-06-14 at noon."""

    @pytest.fixture
    def registered(self, desk: Desk) -> RegisteredAgreement:
        at(desk, desk.period.interval.start_ns + 12 * HOUR_NS)
        return desk.register()

    @pytest.fixture
    def schedule(self, desk: Desk) -> Schedule:
        return Schedule(desk.database, desk.attestor, desk.clock)

    def test_closes_nothing_before_the_grace_is_over(
        self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule
    ) -> None:
        at(desk, desk.period.interval.end_ns + GRACE_NS - HOUR_NS)
        assert schedule.close_due() == 0
        assert closed(desk, registered) == []

    def test_closes_period_after_period_from_the_one_of_the_registration_on(
        self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule
    ) -> None:
        at(desk, desk.period.interval.end_ns + GRACE_NS)
        assert schedule.close_due() == 1
        assert closed(desk, registered) == ["14"]
        assert schedule.close_due() == 0
        at(desk, desk.period.interval.end_ns + GRACE_NS + 48 * HOUR_NS)
        assert schedule.close_due() == 2
        assert closed(desk, registered) == ["14", "15", "16"]
        with desk.database.read() as tx:
            causes = {
                tx.events.by_id(entry.event_id).payload["cause"]
                for entry in tx.outbox.entries(states=["pending"], limit=9)
            }
        assert causes == {"schedule"}

    def test_goes_on_after_what_was_closed_by_request(
        self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule
    ) -> None:
        at(desk, desk.period.interval.end_ns)
        first = close(desk)
        at(desk, desk.period.interval.end_ns + GRACE_NS + 24 * HOUR_NS)
        schedule.close_due()
        assert closed(desk, registered) == ["14", "15"]
        assert close(desk) == first

    def test_without_the_term_the_source_is_not_looked_at(
        self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(closing, "watermark_ns")
        at(desk, desk.period.interval.end_ns + GRACE_NS)
        assert schedule.close_due() == 1

    def test_two_at_a_time_do_no_harm(self, desk: Desk, registered: RegisteredAgreement) -> None:
        at(desk, desk.period.interval.end_ns + GRACE_NS)
        for _ in range(2):
            Schedule(desk.database, desk.attestor, desk.clock).close_due()
        assert closed(desk, registered) == ["14"]
        with desk.database.read() as tx:
            assert tx.outbox.pending() == 1

    def test_looks_after_every_tenant(self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule) -> None:
        other = make_desk(nonce="0x" + "77" * 32)
        other.database, other.clock = desk.database.of_tenant("acme"), desk.clock
        theirs = other.register()
        at(desk, desk.period.interval.end_ns + GRACE_NS)
        assert schedule.close_due() == 2
        assert closed(desk, registered) == closed(other, theirs) == ["14"]

    def test_one_that_fails_holds_up_no_other_and_is_named(
        self, desk: Desk, registered: RegisteredAgreement, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        others = []
        for tenant, nonce in (("aaa", "77"), ("zzz", "78")):
            other = make_desk(nonce="0x" + nonce * 32)
            other.database, other.clock = desk.database.of_tenant(tenant), desk.clock
            others.append((other, other.register()))
        bad = registered.sla_id

        def read(tx: Transaction, sla_id: str, attestor: Attestor) -> RegisteredTimeline:
            if sla_id == bad:
                raise DocumentInvalid("these terms cannot be read any more")
            return load_timeline(tx, sla_id, attestor)

        monkeypatch.setattr(closing, "load_timeline", read)
        at(desk, desk.period.interval.end_ns + GRACE_NS)
        with pytest.raises(ClosingFailed, match=bad) as caught:
            schedule.close_due()
        (failed,) = caught.value.data["failed"]
        assert (failed["tenant"], failed["sla_id"], failed["code"]) == ("default", bad, "document_invalid")
        assert [closed(*other) for other in others] == [["14"], ["14"]]
        assert closed(desk, registered) == []
        # Once it is mended, the next look closes it.
        monkeypatch.undo()
        assert schedule.close_due() == 1
        assert closed(desk, registered) == ["14"]

    def test_an_agreement_that_is_over_when_it_is_registered_is_closed_by_request_alone(self, desk: Desk) -> None:
        at(desk, desk.period.interval.end_ns + 1000 * 24 * HOUR_NS)
        desk.register()
        assert Schedule(desk.database, desk.attestor, desk.clock).close_due() == 0
        close(desk)

    def test_one_that_begins_later_begins_with_its_first_period(self, desk: Desk) -> None:
        start_ns = desk.agreement.period_starting(desk.agreement.effective_from).interval.start_ns
        at(desk, start_ns - 30 * 24 * HOUR_NS)
        desk.register()
        schedule = Schedule(desk.database, desk.attestor, desk.clock)
        assert schedule.close_due() == 0
        at(desk, start_ns + 24 * HOUR_NS + GRACE_NS)
        assert schedule.close_due() == 1
