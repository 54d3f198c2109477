"""Blocks are sealed while their period runs, when the grace of their last window is over."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ledger.app.agreements.registering import load_timeline, terminate_agreement
from ledger.app.bundles.building import build_opening
from ledger.app.facts.observations import record_observations
from ledger.app.judgement.judging import Judge
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.app.settlement.block_seals import BlockSeals
from ledger.app.settlement.sealing import seals_of
from ledger.attest.checks.verification import read_opening
from ledger.attest.crypto.signing import SigningKey, verify
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import seal_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.termination import Notice, notice_message, unsigned_notice
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.blocks import block_ends_ns
from ledger.errors import SealingFailed, StorageUnavailable
from tests.unit.app.conftest import CUSTOMER, Desk, find_requests, log, make_desk, read_rows, row, signed_agreement
from tests.unit.app.test_restating import settle, statements
from tests.unit.app.test_sealed_again import require_sealed

pytestmark = pytest.mark.slow

WINDOW_NS = 900 * SECOND_NS
BLOCK_NS = 25 * WINDOW_NS
HOUR_NS = 3600 * SECOND_NS
GRACE_NS = HOUR_NS
TERMS: dict[str, Any] = {"window": "PT15M", "grace": "PT1H", "coverage_floor": "1"}
"""A day of 96 windows, in four blocks of the seven that its circuit has."""
CARVED = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}


class Day:
    """A day whose blocks are sealed as it goes by."""

    def __init__(self, registered_ns: int = 0, **terms: Any) -> None:
        self.desk: Desk = make_desk(**TERMS)
        if terms:
            self.desk.agreement = Agreement.from_document(signed_agreement(**{**TERMS, **terms}))
            first = date.fromisoformat(terms["effective"]["from"]) if "effective" in terms else self.desk.period.first
            self.desk.period = self.desk.agreement.period_starting(first)
        self.start_ns = self.desk.period.interval.start_ns
        self.desk.clock.now = self.start_ns + registered_ns
        self.registered = self.desk.register()
        self.seals = self.sealer()

    def sealer(self) -> BlockSeals:
        desk = self.desk
        judge = Judge(
            desk.attestor,
            read_rows=read_rows,
            find_evidence=lambda *_: (),
            find_requests=find_requests,
            clock=desk.clock,
        )
        return BlockSeals(desk.database, judge, desk.randomness)

    def hand_in(self, block: int, *names: str, error: int | None = None) -> str:
        """Requests of a block, declared complete for it; the digest of the batch."""
        span = Interval(self.start_ns + block * BLOCK_NS, self.start_ns + (block + 1) * BLOCK_NS)
        at = f"2023-06-14T{span.start_ns // 10**9 % 86400 // 3600:02}:30:00Z"
        with self.desk.database.begin() as tx:
            return record_observations(
                tx,
                self.registered,
                log(*(row(name, at=at, error_code=error) for name in names)),
                read_rows=read_rows,
                declared_complete=span,
                now_ns=self.desk.clock.now_ns(),
            ).digest

    def over(self, block: int) -> None:
        """The clock stands at the instant at which a block is due."""
        ends_ns = min(self.start_ns + (block + 1) * BLOCK_NS, self.desk.period.interval.end_ns)
        self.desk.clock.now = ends_ns + GRACE_NS

    def look(self) -> int:
        return self.seals.seal_due()

    @property
    def seal_key(self) -> int:
        return self.desk.attestor.seal_key(self.desk.agreement, self.desk.period)

    def stream(self) -> list[StoredEvent]:
        with self.desk.database.read() as tx:
            return list(tx.events.stream(seal_stream(self.seal_key)))

    def settle(self) -> dict[str, Any]:
        self.desk.clock.now = self.desk.period.interval.end_ns + GRACE_NS
        with self.desk.database.begin() as tx:
            close_period(tx, self.registered, self.desk.period, cause=Cause.SCHEDULE, now_ns=self.desk.clock.now_ns())
        settle(self.desk)
        return statements(self.desk)[-1]


@pytest.fixture
def day() -> Day:
    return Day()


def test_a_block_is_sealed_when_its_last_window_and_the_grace_are_over(day: Day) -> None:
    day.over(0)
    first = day.hand_in(0, "a")
    day.desk.clock.now -= 10 * SECOND_NS
    assert day.look() == 0
    day.over(0)
    assert day.look() == 1
    assert day.look() == 0
    day.over(1)
    second = day.hand_in(1, "b")
    assert day.look() == 1
    sealed = day.stream()
    assert [(event.version, event.payload["block"], event.payload["windows"]) for event in sealed] == [
        (0, 0, 25),
        (1, 1, 25),
    ]
    assert [event.payload["inputs"] for event in sealed] == [[first], [second]]
    assert [event.occurred_at_ns for event in sealed] == [day.start_ns + BLOCK_NS, day.start_ns + 2 * BLOCK_NS]


def test_what_was_sealed_is_what_the_statement_is_settled_from(day: Day) -> None:
    for block in range(4):
        day.hand_in(block, f"r{block}")
        day.over(block)
        # The last block is due with the end of the day, and with it those past the last window.
        assert day.look() == (1 if block < 3 else 4)
    before = day.stream()
    said = day.settle()
    assert day.stream() == before
    assert [event.version for event in before] == list(range(7))
    require_sealed(day.desk, said)
    with day.desk.database.read() as tx:
        opening = read_opening(build_opening(tx, said["statement_id"]))
    assert len(opening["windows"]) == 96


@pytest.mark.parametrize(
    ("terms", "windows", "blocks"),
    [
        ({"period": "P7D", "effective": {"from": "2023-06-12", "until": "2023-06-26"}}, 168, 7),
        (
            # The clocks of Berlin go back in October: a month of 745 hours.
            {"period": "P1M", "effective": {"from": "2023-10-01", "until": "2023-12-01"}, "timezone": "Europe/Berlin"},
            745,
            30,
        ),
    ],
    ids=["week", "month"],
)
def test_every_block_of_a_real_size_is_sealed_as_it_closes(terms: dict[str, Any], windows: int, blocks: int) -> None:
    day = Day(window="PT1H", **terms)
    assert day.desk.agreement.window_count(day.desk.period) == windows
    ends = block_ends_ns(day.desk.agreement, day.desk.period, blocks)
    for ends_ns in ends:
        day.desk.clock.now = ends_ns + GRACE_NS
        day.look()
    sealed = day.stream()
    assert [(event.version, event.payload["block"]) for event in sealed] == [(block, block) for block in range(blocks)]
    assert sum(event.payload["windows"] for event in sealed) == windows
    late_ns = [event.recorded_at_ns - ends_ns - GRACE_NS for event, ends_ns in zip(sealed, ends, strict=True)]
    assert max(late_ns) < 60 * SECOND_NS
    said = day.settle()
    assert day.stream() == sealed
    require_sealed(day.desk, said)


def test_facts_that_come_after_the_seal_replace_it_before_the_first_version_and_say_so(day: Day) -> None:
    day.hand_in(0, "a")
    day.over(0)
    day.look()
    (sealed,) = day.stream()
    day.hand_in(0, "late", error=500)
    said = day.settle()
    resealed = day.stream()[-1]
    assert (resealed.type, resealed.version) == ("block_resealed", 7)
    assert resealed.payload["statement_version"] == 1
    assert resealed.payload["replaces"] == sealed.id
    assert "after the block was sealed 1 batch(es) with facts of its windows came in" in resealed.payload["reason"]
    assert said["statement_version"] == 1
    require_sealed(day.desk, said)
    with day.desk.database.read() as tx:
        assert seals_of(tx, day.seal_key, 1)[0] == resealed


def test_an_exclusion_that_takes_out_sealed_windows_replaces_their_block() -> None:
    day = Day(**CARVED)
    day.hand_in(0, "a")
    day.over(0)
    day.look()
    asked = AskedExclusion("d", "dispute", day.start_ns, day.start_ns + 2 * WINDOW_NS, "agreed", approved_by="both")
    ExclusionDesk(day.desk.database, day.desk.attestor, day.desk.clock).record(day.registered.sla_id, asked)
    said = day.settle()
    assert said["excluded"] == 2
    (resealed,) = (event for event in day.stream() if event.type == "block_resealed")
    assert "exclusions" in resealed.payload["reason"]
    require_sealed(day.desk, said)


def test_two_processes_and_one_that_died_seal_each_block_once(day: Day) -> None:
    day.hand_in(0, "a")
    day.over(1)
    other = day.sealer()
    assert [day.look(), other.seal_due(), day.sealer().seal_due()] == [2, 0, 0]
    assert [event.payload["block"] for event in day.stream()] == [0, 1]


def test_a_look_that_fails_seals_nothing_and_the_next_one_does(day: Day) -> None:
    class Broken:
        def bytes(self, count: int) -> bytes:
            raise StorageUnavailable("the disk went away")

    day.over(0)
    honest, day.seals.randomness = day.seals.randomness, Broken()
    with pytest.raises(SealingFailed, match="the disk went away"):
        day.look()
    assert day.stream() == []
    day.seals.randomness = honest
    assert day.look() == 1


def test_a_closed_period_is_left_to_its_statement(day: Day) -> None:
    day.desk.clock.now = day.desk.period.interval.end_ns
    with day.desk.database.begin() as tx:
        close_period(tx, day.registered, day.desk.period, cause=Cause.REQUEST, now_ns=day.desk.clock.now_ns())
    day.over(3)
    assert day.look() == 0
    settle(day.desk)
    require_sealed(day.desk, statements(day.desk)[-1])


def test_terms_that_no_circuit_attests_are_not_sealed() -> None:
    objectives = make_desk().agreement.document["objectives"]
    day = Day(objectives=[{**objectives[0], "confidence": "wilson-95"}, *objectives[1:]])
    day.over(2)
    assert day.look() == 0


def test_a_period_that_was_over_when_its_agreement_was_registered_waits_for_its_facts() -> None:
    day = Day(registered_ns=24 * HOUR_NS)
    assert day.look() == 0
    assert day.stream() == []


def test_blocks_that_ended_before_the_registration_have_their_grace_from_there() -> None:
    day = Day(registered_ns=2 * BLOCK_NS)
    assert day.look() == 0
    day.desk.clock.now += GRACE_NS
    assert day.look() == 2


def test_a_notice_that_cuts_the_period_gives_it_another_seal_and_leaves_the_old_one_as_it_was() -> None:
    terms = {"period": "P14D", "window": "PT4H", "effective": {"from": "2023-06-14", "until": "2023-07-26"}}
    day = Day(**terms)
    day_ns = 86_400 * SECOND_NS
    uncut = day.desk.period
    old = day.desk.attestor.seal_key(day.desk.agreement, uncut)
    day.desk.clock.now = day.start_ns + 5 * day_ns
    assert day.look() == 1
    document = unsigned_notice(day.registered.sla_id, day.desk.agreement.doc_sha256.hex(), "2023-06-20", "moved away")
    signature = SigningKey(CUSTOMER).sign(notice_message(document)).hex()
    notice = Notice.from_document({**document, "signatures": {"customer": signature}})
    with day.desk.database.begin() as tx:
        found = load_timeline(tx, day.registered.sla_id, day.desk.attestor)
        terminate_agreement(tx, found, notice, verify=verify, now_ns=day.desk.clock.now_ns())
    assert day.look() == 1
    with day.desk.database.read() as tx:
        found = load_timeline(tx, day.registered.sla_id, day.desk.attestor)
        part = found.timeline.terms[0].agreement
        cut = part.period_starting(uncut.first)
        new = day.desk.attestor.seal_key(part, cut)
        streams = [[event.payload["block"] for event in tx.events.stream(seal_stream(key))] for key in (old, new)]
    assert cut.interval.end_ns < uncut.interval.end_ns
    assert (old != new, streams) == (True, [[0], [0]])


def test_a_process_that_was_away_over_the_end_of_the_period_seals_what_waits(day: Day) -> None:
    day.desk.clock.now = day.desk.period.interval.end_ns + GRACE_NS + 23 * HOUR_NS
    assert day.look() > 7
    assert len(day.stream()) == 7
