"""Versions of terms over recorded facts: what is judged, closed and settled by which."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.app.agreements.registering import (
    RegisteredTimeline,
    load_timeline,
    register_agreement,
    terminate_agreement,
    timeline_of,
)
from ledger.app.facts.observations import record_observations
from ledger.app.facts.telemetry import find_evidence
from ledger.app.periods.closing import Cause, Schedule, close_period, closing_of, load_closing
from ledger.app.settlement.stages import compensate_period, evaluate_period
from ledger.attest.crypto.signing import SigningKey, verify
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import statement_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.termination import Notice, notice_message, unsigned_notice
from ledger.domain.time.calendar import tzdata_version
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import AgreementNotSigned, DocumentInvalid, VersionConflict
from tests.unit.app.conftest import (
    CUSTOMER,
    ISSUER,
    Desk,
    TestCollector,
    find_requests,
    log,
    make_desk,
    read_rows,
    row,
    signed_agreement,
)

JUNE = {"period": "P30D", "window": "PT48H", "effective": {"from": "2023-06-01", "until": "2023-07-31"}}
PARTS = ("2023-06-01/P14D", "2023-06-15/P16D")


class Collectors:
    def of(self, agreement: Agreement) -> TestCollector:
        return TestCollector()


@pytest.fixture
def desk() -> Desk:
    found = make_desk()
    found.agreement = Agreement.from_document(signed_agreement(**JUNE))
    found.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    found.register()
    return found


def amended(**changes: Any) -> Agreement:
    compensation = {**signed_agreement()["compensation"], "base": "9000.00"}
    own = {
        "effective": {"from": "2023-06-15", "until": "2023-07-31"},
        "anchor": "2023-06-01",
        "partial_periods": "prorate",
        "compensation": compensation,
    }
    return Agreement.from_document(signed_agreement(**{**JUNE, **own, **changes}))


def amend(desk: Desk, agreement: Agreement | None = None) -> RegisteredTimeline:
    agreement = agreement or amended()
    sla_id = desk.attestor.sla_id(agreement)
    with desk.database.begin() as tx:
        register_agreement(
            tx,
            agreement,
            attestor=desk.attestor,
            verify=verify,
            terms_version=len(load_timeline(tx, sla_id, desk.attestor).versions) + 1,
            registration=None,
            customer_signature=None,
            now_ns=desk.clock.now_ns(),
        )
    return found(desk)


def found(desk: Desk) -> RegisteredTimeline:
    with desk.database.read() as tx:
        return load_timeline(tx, desk.attestor.sla_id(desk.agreement), desk.attestor)


def notice(desk: Desk, effective: str, *signers: str, **changes: Any) -> Notice:
    unsigned = unsigned_notice(
        found(desk).sla_id, found(desk).timeline.newest.doc_sha256.hex(), effective, "moved away"
    )
    keys = {"issuer": SigningKey(ISSUER), "customer": SigningKey(CUSTOMER)}
    signatures = {name: keys[name].sign(notice_message(unsigned)).hex() for name in signers}
    return Notice.from_document({**unsigned, "signatures": signatures, **changes})


def terminate(desk: Desk, given: Notice) -> Any:
    at = found(desk)
    with desk.database.begin() as tx:
        return terminate_agreement(tx, at, given, verify=verify, now_ns=desk.clock.now_ns())


def observe(desk: Desk, *rows: dict[str, Any], first: str = "2023-06-01", last: str = "2023-07-31") -> None:
    with desk.database.begin() as tx:
        record_observations(
            tx,
            load_timeline(tx, desk.attestor.sla_id(desk.agreement), desk.attestor).versions[-1],
            log(*rows),
            read_rows=read_rows,
            declared_complete=Interval(parse_instant_ns(f"{first}T00:00:00Z"), parse_instant_ns(f"{last}T00:00:00Z")),
            now_ns=max(desk.clock.now_ns(), parse_instant_ns(f"{last}T00:00:00Z")),
        )


def settle(desk: Desk, name: str) -> dict[str, Any]:
    """Close a period, judge it and issue its statement: what that says."""
    at = found(desk)
    terms, period = at.timeline.named(name)
    with desk.database.begin() as tx:
        event_id = close_period(tx, at.of(terms), period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns()).event_id
    work(desk, event_id)
    return statement(desk, name)


def work(desk: Desk, event_id: str) -> None:
    shared: dict[str, Any] = {"attestor": desk.attestor, "clock": desk.clock}
    found: dict[str, Any] = {"find_evidence": find_evidence, "find_requests": find_requests}
    evaluate_period(desk.database, event_id, read_rows=read_rows, **found, **shared)
    compensate_period(desk.database, event_id, collectors=Collectors(), randomness=desk.randomness, **shared)


def statement(desk: Desk, name: str) -> dict[str, Any]:
    at = found(desk)
    _, period = at.timeline.named(name)
    with desk.database.read() as tx:
        *_, newest = tx.events.stream(statement_stream(at.sla_id, period.first))
    return dict(newest.payload)


def closed(desk: Desk, name: str) -> StoredEvent | None:
    at = found(desk)
    with desk.database.read() as tx:
        return closing_of(tx, at.sla_id, at.timeline.named(name)[1])


def test_each_part_is_settled_by_the_terms_in_force(desk: Desk) -> None:
    amend(desk)
    # One failure on either side of the change, in one batch.
    observe(desk, row("a", "2023-06-14T23:59:59Z", error_code=500), row("b", "2023-06-15T00:00:00Z", error_code=500))
    desk.clock.now = parse_instant_ns("2023-08-01T00:00:00Z")
    first, second = (settle(desk, name) for name in PARTS)
    assert (first["terms_version"], second["terms_version"]) == (1, 2)
    assert (first["end_ns"], first["windows"], second["windows"]) == (second["start_ns"], 7, 8)
    assert first["doc_sha256"] == desk.agreement.doc_sha256.hex()
    assert [each["objectives"][0]["valid"] for each in (first, second)] == [1, 1]
    assert (first["trace"]["base"], second["trace"]["base"]) == (str(800_000 * 14 // 30), str(480_000))
    assert {each["tzdata"] for each in (first, second)} == {tzdata_version()}
    assert first["attestable"]
    assert second["attestable"]


def test_equal_bases_give_parts_that_sum_to_the_whole(desk: Desk) -> None:
    amend(desk, amended(compensation=desk.agreement.document["compensation"], tier="silver"))
    observe(desk, row("a"))
    desk.clock.now = parse_instant_ns("2023-08-01T00:00:00Z")
    assert sum(int(settle(desk, name)["trace"]["base"]) for name in PARTS) == desk.agreement.compensation.base


def test_facts_that_come_late_are_judged_by_the_terms_of_their_time(desk: Desk) -> None:
    amend(desk)
    observe(desk, row("a", "2023-06-20T00:00:00Z"), last="2023-07-02")
    desk.clock.now = parse_instant_ns("2023-07-02T00:00:00Z")
    before = [settle(desk, name) for name in PARTS]
    observe(desk, row("late", "2023-06-03T00:00:00Z", error_code=500), last="2023-07-02")
    at = found(desk)
    with desk.database.read() as tx:
        pending = [
            entry.event_id for entry in tx.outbox.entries(states=["pending"], limit=99) if entry.stage == "evaluate"
        ]
        changed = [event for event in map(tx.events.by_id, pending) if event.type == "period_facts_changed"]
    assert [event.payload["period"] for event in changed] == [PARTS[0]]
    work(desk, changed[0].id)
    restated = statement(desk, PARTS[0])
    assert (restated["statement_version"], restated["terms_version"]) == (2, 1)
    assert restated["doc_sha256"] == before[0]["doc_sha256"]
    assert restated["trace"]["base"] == before[0]["trace"]["base"]
    assert at.timeline == found(desk).timeline
    assert statement(desk, PARTS[1]) == before[1]


def test_the_schedule_follows_the_timeline(desk: Desk) -> None:
    schedule = Schedule(desk.database, desk.attestor, desk.clock)
    assert schedule.close_due() == 0
    amend(desk)
    desk.clock.now = parse_instant_ns("2023-06-18T00:00:00Z")
    assert schedule.close_due() == 1
    terminate(desk, notice(desk, "2023-06-25", "customer"))
    for now, due in (("2023-06-27T12:00:00Z", False), ("2023-06-28T00:00:00Z", True), ("2023-12-01T00:00:00Z", True)):
        desk.clock.now = parse_instant_ns(now)
        schedule.close_due()
        assert (closed(desk, "2023-06-15/P10D") is not None) is due
    assert schedule.close_due() == 0
    with desk.database.read() as tx:
        for name, version in (("2023-06-01/P14D", 1), ("2023-06-15/P10D", 2)):
            event = closed(desk, name)
            assert event is not None
            closing = load_closing(tx, event.id, desk.attestor)
            assert (closing.registered.terms_version, str(closing.period)) == (version, name)


def test_rows_after_the_end_are_rejected(desk: Desk) -> None:
    terminate(desk, notice(desk, "2023-06-25", "issuer", "customer"))
    observe(desk, row("in", "2023-06-24T23:59:59Z"), row("out", "2023-06-25T00:00:00Z"), last="2023-06-30")
    with desk.database.read() as tx:
        (recorded,) = (event for event in tx.events.since(0) if event.type == "observations_recorded")
    assert recorded.payload["rows"] == {"accepted": 1, "duplicate": 0, "conflict": 0, "rejected": 1}


def test_a_notice_says_who_signed_and_ends_once(desk: Desk) -> None:
    given = notice(desk, "2023-06-25", "issuer")
    receipt = terminate(desk, given)
    assert terminate(desk, given) == receipt
    with desk.database.read() as tx:
        timeline = timeline_of(tx, found(desk).sla_id)
    assert timeline.notice is not None
    assert timeline.notice.signed_by == ("issuer",)
    with pytest.raises(DocumentInvalid, match="already"):
        terminate(desk, notice(desk, "2023-06-27", "customer"))


def test_a_signature_over_another_notice_ends_nothing(desk: Desk) -> None:
    given = notice(desk, "2023-06-25", "customer")
    for changes in ({"reason": "other"}, {"effective": "2023-06-27"}):
        with pytest.raises(AgreementNotSigned, match=r"signatures\.customer"):
            terminate(desk, Notice.from_document({**given.document, **changes}))
    # The other party's signature does not stand for this one's.
    swapped = {"issuer": given.document["signatures"]["customer"]}
    with pytest.raises(AgreementNotSigned, match=r"signatures\.issuer"):
        terminate(desk, Notice.from_document({**given.document, "signatures": swapped}))


def test_a_notice_for_terms_that_were_amended_ends_nothing(desk: Desk) -> None:
    given = notice(desk, "2023-06-25", "customer")
    amend(desk)
    with pytest.raises(DocumentInvalid, match="doc_sha256"):
        terminate(desk, given)


def test_the_next_version_is_registered_once(desk: Desk) -> None:
    amend(desk)
    other = amended(tier="silver")
    with desk.database.begin() as tx, pytest.raises(VersionConflict):
        register_agreement(
            tx,
            other,
            attestor=desk.attestor,
            verify=verify,
            terms_version=2,
            registration=None,
            customer_signature=None,
            now_ns=desk.clock.now_ns(),
        )


def test_a_timeline_reads_the_same_from_json(desk: Desk) -> None:
    amend(desk)
    document = json.loads(json.dumps(found(desk).timeline.newest.document))
    assert Agreement.from_document(document) == amended()
