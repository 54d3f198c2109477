"""Read models follow from events alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.app.ports.store import Transaction
from ledger.domain.record.events import NewEvent
from ledger.errors import NotFound, VersionConflict
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import (
    HOUR_NS,
    OTHER_SLA_ID,
    PERIOD,
    SLA_ID,
    START_NS,
    agreement,
    anchor,
    anchor_confirmation,
    anchor_finalized,
    anchor_undone,
    attestation,
    batch_finalized,
    batch_undone,
    breaker,
    document,
    exclusion,
    finalized,
    line_applied,
    line_issued,
    line_reversed,
    point,
    published,
    restatement,
    statement,
    statement_id,
    telemetry,
    termination,
    unproved,
    violation,
    window,
)


def append(database: AnyDatabase, *events: NewEvent) -> int:
    """One transaction; the seq of the last event."""
    with database.begin() as tx:
        receipts = tx.events.append("any", list(events), expected_version=None)
    return database.wait_sequenced([receipts[-1].event_id])[0]


def everything(tx: Transaction) -> list[Any]:
    views = tx.views
    return [
        views.agreements(),
        views.statements(),
        views.credits(limit=1000),
        views.windows(SLA_ID, PERIOD),
        views.violations(limit=10),
        views.credit_lines(limit=10),
        views.exclusions(SLA_ID),
        views.evidence("chat-7b", START_NS, START_NS + HOUR_NS, 20),
        views.telemetry_source("chat-7b", "gpu-1"),
    ]


def test_an_agreement_shows_its_latest_terms(database: AnyDatabase) -> None:
    append(database, agreement(1), agreement(1, sla_id=OTHER_SLA_ID, service="vision-14b"))
    seq = append(database, agreement(2, service="chat-8b"))
    with database.read() as tx:
        found = tx.views.agreement(SLA_ID)
        assert [each["sla_id"] for each in tx.views.agreements()] == [OTHER_SLA_ID, SLA_ID]
        with pytest.raises(NotFound):
            tx.views.agreement("0x" + "00" * 32)
    assert found == {
        "sla_id": SLA_ID,
        "service": "chat-8b",
        "terms_version": 2,
        "doc_sha256": f"{2:064x}",
        "document": document("chat-8b"),
        "seq": seq,
    }


def test_a_window_shows_its_newest_judgement(database: AnyDatabase) -> None:
    append(database, window(1), window(0), window(10))
    seq = append(database, window(1, good=3, bad=4))
    with database.read() as tx:
        found = tx.views.windows(SLA_ID, PERIOD)
        assert tx.views.windows(OTHER_SLA_ID, PERIOD) == []
    assert [each["index"] for each in found] == [0, 1, 10]
    assert found[1] == {
        "sla_id": SLA_ID,
        "doc_sha256": "cd" * 32,
        "period": PERIOD,
        "index": 1,
        "start_ns": START_NS + HOUR_NS,
        "end_ns": START_NS + 2 * HOUR_NS,
        "state": "observed",
        "cells": {"availability": {"good": 3, "bad": 4}},
        "excluded_requests": {},
        "exclusions": {},
        "seq": seq,
    }


def test_a_window_shows_what_exclusions_took_out_of_it(database: AnyDatabase) -> None:
    event = window(0)
    append(database, replace(event, payload={**event.payload, "exclusions": {"release-7": 3}}))
    with database.read() as tx:
        (found,) = tx.views.windows(SLA_ID, PERIOD)
    assert found["exclusions"] == {"release-7": 3}


def test_exclusions_come_by_start_and_a_withdrawn_one_stays(database: AnyDatabase) -> None:
    append(database, exclusion("late", hour=5), exclusion("early", hour=2), exclusion("late", sla_id=OTHER_SLA_ID))
    seq = append(database, exclusion("early", "withdrawn", hour=2))
    with database.read() as tx:
        early, late = tx.views.exclusions(SLA_ID)
        assert [each["exclusion_id"] for each in tx.views.exclusions(OTHER_SLA_ID)] == ["late"]
    assert (late["state"], late["withdrawn_reason"], late["withdrawn_by"]) == ("recorded", None, None)
    assert early == {
        "exclusion_id": "early",
        "sla_id": SLA_ID,
        "state": "withdrawn",
        "clause": "gray-release",
        "ticket": "CHG-7",
        "from_ns": START_NS + 2 * HOUR_NS,
        "to_ns": START_NS + 3 * HOUR_NS,
        "announced_at_ns": START_NS,
        "approved_by": "change board",
        "reason": "a new version",
        "by": None,
        "withdrawn_reason": "called off",
        "withdrawn_by": None,
        "seq": seq,
    }


def test_a_statement_gathers_its_proof_and_its_anchor(database: AnyDatabase) -> None:
    name = statement_id()
    append(database, statement())
    with database.read() as tx:
        bare = tx.views.statement(name)
    assert (bare["attestation"], bare["anchor"], bare["seq"]) == (None, None, 0)
    append(database, attestation(name))
    append(database, anchor(name))
    with database.read() as tx:
        full = tx.views.statement(name)
        assert tx.views.statements() == [full]
    payload = statement().payload
    assert full["attestation"]["signals"] == ["0", "1", "2", "3", "4", "5"]
    assert full["attestation"]["proof_hash"] == "0x" + "d2" * 32
    assert (full["attestation"]["seq"], full["anchor"]["seq"], full["seq"]) == (1, 2, 2)
    assert full["anchor"]["block_number"] == 7
    assert (full["id"], full["sla_id"], full["period"]) == (name, SLA_ID, PERIOD)
    assert (full["start_ns"], full["end_ns"]) == (START_NS, START_NS + 24 * HOUR_NS)
    assert full["credit"] == {"currency": "USD", "minor_units": 120_000}
    for unchanged in ("objectives", "trace", "attestable", "unattested_reasons", "state", "statement_version"):
        assert full[unchanged] == payload[unchanged]


def test_an_anchor_stands_where_it_was_confirmed(database: AnyDatabase) -> None:
    name = statement_id()
    append(database, statement(), anchor(name))
    with database.read() as tx:
        placed = tx.views.statement(name)["anchor"]
    assert (placed["confirmed"], placed["confirmations"], placed["block_number"]) == (False, 0, 7)
    append(database, anchor_confirmation(name))
    with database.read() as tx:
        row = tx.views.statement(name)
        assert tx.views.statements() == [row]
    confirmed = row["anchor"]
    assert (confirmed["confirmed"], confirmed["confirmations"], confirmed["block_number"]) == (True, 12, 9)
    assert (confirmed["leaf"], confirmed["seq"], row["seq"]) == (placed["leaf"], 2, 2)


def test_a_statement_has_the_roots_that_cover_its_place(database: AnyDatabase) -> None:
    name, plain = statement_id(), statement_id(day=1)
    append(database, statement(), attestation(name), unproved(day=1), statement(day=2))
    append(database, published(target="home", until_seq=2))
    append(database, published(target="10", chain_id="10", until_seq=3), published(1, from_seq=2, until_seq=6))
    with database.read() as tx:
        first, second, third = tx.views.statements()
        assert [tx.views.statement(each["id"]) for each in (first, second, third)] == [first, second, third]
        waiting = tx.views.unbatched(0, 4, 10)
        assert tx.views.unbatched(2, 4, 10) == waiting[1:]
    assert [(root["chain_id"], root["block_number"]) for root in first["roots"]] == [("10", 11), ("31337", 11)]
    # Without a proof it is the statement's own place that counts, and what is to be proved waits for that.
    assert [(root["chain_id"], root["block_number"]) for root in second["roots"]] == [("10", 11), ("31337", 12)]
    assert third["roots"] == []
    assert (first["seq"], second["seq"], third["seq"]) == (5, 6, 3)
    assert [(row["tenant"], row["statement_id"], row["seq"], row["proved"]) for row in waiting] == [
        ("default", name, 1, True),
        ("default", plain, 2, False),
    ]


def test_a_root_that_was_undone_is_not_shown_until_it_is_published_again(database: AnyDatabase) -> None:
    name = statement_id()
    append(database, statement(), attestation(name), published(until_seq=2), published(target="10", chain_id="10"))

    def shown() -> list[str]:
        with database.read() as tx:
            return [root["chain_id"] for root in tx.views.statement(name)["roots"]]

    assert shown() == ["10", "31337"]
    append(database, batch_undone(until_seq=2))
    assert shown() == ["10"]
    append(database, published(until_seq=2), batch_finalized(until_seq=2))
    assert shown() == ["10", "31337"]


def test_batches_are_over_all_tenants(database: AnyDatabase) -> None:
    name = statement_id()
    other = database.of_tenant("bob")
    with other.begin() as tx:
        receipts = tx.events.append("any", [statement(), attestation(name)], expected_version=None)
    database.wait_sequenced([receipts[-1].event_id])
    append(database, published(until_seq=2))
    with other.read() as tx:
        assert [root["chain_id"] for root in tx.views.statement(name)["roots"]] == ["31337"]
    with database.read() as tx:
        assert [row["tenant"] for row in tx.views.unbatched(0, 2, 10)] == ["bob"]


def test_an_anchor_may_be_undone_until_it_is_final(database: AnyDatabase) -> None:
    name, chain = statement_id(), 131277322940537

    def stands() -> tuple[str, bool, int, int]:
        with database.read() as tx:
            placed = tx.views.statement(name)["anchor"]
            still_open = [row["statement_id"] for row in tx.views.open_anchors(chain, limit=9)]
        assert still_open == ([name] if placed["standing"] == "confirmed" else [])
        return placed["standing"], placed["confirmed"], placed["confirmations"], placed["block_number"]

    append(database, statement(), anchor(name))
    assert stands() == ("recorded", False, 0, 7)
    append(database, anchor_confirmation(name))
    assert stands() == ("confirmed", True, 12, 9)
    with database.read() as tx:
        (row,) = tx.views.open_anchors(chain, limit=9)
        assert (row["tx_hash"], row["block_hash"]) == ("0x" + "a1" * 32, "0x" + "b4" * 32)
        assert tx.views.open_anchors(chain, after=name, limit=9) == tx.views.open_anchors(1, limit=9) == []
    append(database, anchor_undone(name))
    assert stands() == ("undone", False, 0, 7)
    append(database, anchor_confirmation(name))
    assert stands() == ("confirmed", True, 12, 9)
    append(database, anchor_finalized(name))
    assert stands() == ("final", True, 70, 9)


DAY_NS = 24 * HOUR_NS


def test_a_statement_is_a_draft_until_it_is_final_or_replaced(database: AnyDatabase) -> None:
    append(database, statement(), statement(day=1))
    with database.read() as tx:
        draft = tx.views.statement(statement_id())
    assert (draft["standing"], draft["restated_by"], draft["restates"]) == ("draft", None, None)
    # It does not say until when facts are taken: those of its release were for 30 days.
    assert draft["accepts_until_ns"] == START_NS + 31 * DAY_NS
    seq = append(database, restatement())
    with database.read() as tx:
        first, second = tx.views.statement(statement_id()), tx.views.statement(statement_id(2))
    assert (first["standing"], first["restated_by"], first["seq"]) == ("restated", statement_id(2), seq)
    assert (second["standing"], second["restates"]["statement_id"]) == ("draft", statement_id())
    assert second["credit_delta"] == {"currency": "USD", "old": 120_000, "new": 150_000, "difference": 30_000}
    seq = append(database, finalized(2))
    with database.read() as tx:
        assert [row["standing"] for row in tx.views.statements()] == ["restated", "final", "draft"]
        assert tx.views.statement(statement_id(2))["seq"] == seq


def test_the_newest_versions_can_be_listed_alone(database: AnyDatabase) -> None:
    append(database, statement(), statement(day=1, credit=None), restatement(), statement(sla_id=OTHER_SLA_ID))
    mine = frozenset({SLA_ID})
    with database.read() as tx:
        pages = [tx.views.statements_page(sla_ids=mine, newest=newest, limit=9) for newest in (True, False)]
        newest, every = ([row["id"] for row in page] for page in pages)
        credited = [row["statement_id"] for row in tx.views.credits(sla_ids=mine, newest=True, limit=9)]
        after = (START_NS, statement_id(2))
        rest = [row["id"] for row in tx.views.statements_page(sla_ids=mine, after=after, newest=True, limit=9)]
        assert len(tx.views.statements_page(newest=True, limit=9)) == 3
    assert newest == [statement_id(2), statement_id(day=1)]
    assert every == [statement_id(), statement_id(2), statement_id(day=1)]
    assert rest == [statement_id(day=1)]
    assert credited == [statement_id(2)]


@pytest.mark.parametrize("newest", [True, False])
def test_lists_of_statements_and_credits_end_before_an_instant(database: AnyDatabase, newest: bool) -> None:
    append(database, statement(), statement(day=1))
    with database.read() as tx:
        for before_ns, found in ((START_NS, 0), (START_NS + 1, 1), (START_NS + DAY_NS, 1), (START_NS + DAY_NS + 1, 2)):
            asked = {"before_ns": before_ns, "newest": newest, "limit": 9}
            assert len(tx.views.statements_page(**asked)) == len(tx.views.credits(**asked)) == found


def test_drafts_are_found_when_they_are_due(database: AnyDatabase) -> None:
    append(database, statement(), statement(day=1), statement(day=2), restatement(day=1), finalized(day=2))
    due_ns = START_NS + 31 * DAY_NS
    with database.read() as tx:
        assert tx.views.due_statements(due_ns - 1, limit=9) == []
        (first,) = tx.views.due_statements(due_ns, limit=9)
        both = tx.views.due_statements(due_ns + 9 * DAY_NS, limit=9)
        (rest,) = tx.views.due_statements(due_ns + 9 * DAY_NS, after=(due_ns, statement_id()), limit=9)
    assert first == {"statement_id": statement_id(), "sla_id": SLA_ID, "due_ns": due_ns}
    assert [row["statement_id"] for row in both] == [statement_id(), statement_id(2, day=1)]
    assert rest == both[1]


def test_statements_come_by_period_and_version(database: AnyDatabase) -> None:
    append(database, statement(day=1), statement(2), statement(1), statement(sla_id=OTHER_SLA_ID))
    with database.read() as tx:
        mine = [each["id"] for each in tx.views.statements(SLA_ID)]
        assert len(tx.views.statements()) == 4
        with pytest.raises(NotFound):
            tx.views.statement("no statement")
    assert mine == [statement_id(1), statement_id(2), statement_id(day=1)]


def test_pages_of_agreements_statements_and_credits(database: AnyDatabase) -> None:
    append(database, agreement(1), agreement(1, sla_id=OTHER_SLA_ID), agreement(2))
    append(database, *(statement(version, day=day) for day in (2, 0, 1) for version in (2, 1)))
    append(database, statement(sla_id=OTHER_SLA_ID), statement(day=3, credit=None), attestation(statement_id(day=1)))
    with database.read() as tx:
        views = tx.views
        ids = sorted(each["sla_id"] for each in views.agreements())
        every = sorted(views.statements(), key=lambda row: (row["start_ns"], row["id"]))
        lists: list[tuple[Any, list[Any], Any]] = [
            (views.agreements_page, [views.agreement(name) for name in ids], lambda row: row["sla_id"]),
            (views.statements_page, every, lambda row: (row["start_ns"], row["id"])),
            (
                views.credits,
                list(views.credits(limit=100)),
                lambda row: (views.statement(row["statement_id"])["start_ns"], row["statement_id"]),
            ),
        ]
        assert [len(rows) for _, rows, _ in lists] == [2, 8, 7]
        for page, rows, place in lists:
            for limit in (1, 2, 3, 100):
                walked: list[Any] = []
                while found := page(after=place(walked[-1]) if walked else None, limit=limit):
                    assert len(found) <= limit
                    walked += found
                assert walked == rows
            mine = [row for row in rows if row["sla_id"] == SLA_ID]
            assert list(page(sla_ids=frozenset({SLA_ID}), limit=100)) == mine
            assert list(page(sla_ids=frozenset({SLA_ID, OTHER_SLA_ID}), limit=100)) == rows
            assert list(page(sla_ids=frozenset(), limit=100)) == []


def test_a_credit_refers_to_its_proof(database: AnyDatabase) -> None:
    append(database, statement(credit=str(2**64 - 1)), statement(day=1, credit=None))
    with database.read() as tx:
        (unproved,) = tx.views.credits(sla_ids=frozenset({SLA_ID}), limit=10)
    seq = append(database, attestation(statement_id()))
    with database.read() as tx:
        (proved,) = tx.views.credits(limit=1000)
        assert tx.views.credits(sla_ids=frozenset({OTHER_SLA_ID}), limit=10) == []
    assert unproved == {
        "statement_id": statement_id(),
        "sla_id": SLA_ID,
        "period": PERIOD,
        "currency": "USD",
        "minor_units": 2**64 - 1,
        "status": "issued",
        "proof_ref": None,
        "seq": 0,
    }
    assert proved == {**unproved, "proof_ref": "0x" + "d2" * 32, "seq": seq}


def test_a_violation_shows_its_last_state_and_its_credit(database: AnyDatabase) -> None:
    append(database, violation("opened"), violation("closed", good=5))
    with database.read() as tx:
        (row,) = tx.views.violations(limit=10)
        assert tx.views.violation(row["id"]) == row
        with pytest.raises(NotFound):
            tx.views.violation("no violation")
    assert (row["state"], row["good"], row["ended_by"], row["reason"], row["credit"]) == (
        "closed",
        5,
        "met",
        None,
        None,
    )
    assert (row["start_ns"], row["end_ns"], row["seq"]) == (START_NS + 3 * HOUR_NS, START_NS + 4 * HOUR_NS, 1)
    append(database, line_issued(1), line_issued(2, minor_units="34"), violation("withdrawn"))
    with database.read() as tx:
        (row,) = tx.views.violations(limit=10)
    assert (row["state"], row["reason"], row["ended_by"]) == ("withdrawn", "judged anew", None)
    assert row["credit"] == {"currency": "USD", "minor_units": 1234}


def test_violations_are_found_by_what_they_are(database: AnyDatabase) -> None:
    other = violation("opened", 4, sla_id=OTHER_SLA_ID, objective="ttft", indicator="first_token_latency")
    append(database, violation("closed"), violation("opened", 5), other)

    def hours(**asked: Any) -> list[int]:
        with database.read() as tx:
            return [row["first_window"] for row in tx.views.violations(limit=10, **asked)]

    assert hours() == [3, 4, 5]
    assert hours(sla_ids=frozenset({SLA_ID})) == [3, 5]
    assert hours(sla_ids=frozenset({SLA_ID, OTHER_SLA_ID}), state="open") == [4, 5]
    assert hours(sla_ids=frozenset()) == []
    assert hours(objective="ttft") == [4]


def test_pages_follow_each_other_by_start_and_id(database: AnyDatabase) -> None:
    # In the order of code points, which is not that of most languages.
    names = ["A-1", "B", "a.1", "a_1", "b", "z"]
    starts = [violation("opened", 4, name="earlier", from_ns=str(START_NS))]
    append(database, *(violation("opened", 4, name=name) for name in reversed(names)), *starts)
    seen: list[str] = []
    after = None
    while True:
        with database.read() as tx:
            page = tx.views.violations(after=after, limit=2)
        if not page:
            break
        seen += [row["id"] for row in page]
        after = page[-1]["start_ns"], page[-1]["id"]
    assert seen == ["earlier", *names]


def test_windows_come_in_pages(database: AnyDatabase) -> None:
    append(database, *(window(index) for index in (2, 0, 10, 1)))
    with database.read() as tx:
        first = tx.views.windows_page(SLA_ID, PERIOD, after=None, limit=3)
        rest = tx.views.windows_page(SLA_ID, PERIOD, after=2, limit=3)
        assert [*first, *rest] == list(tx.views.windows(SLA_ID, PERIOD))
        assert tx.views.windows_page(OTHER_SLA_ID, PERIOD, after=None, limit=3) == []
    assert [row["index"] for row in first] == [0, 1, 2]


def test_a_credit_line_is_a_draft_until_its_statement_is_proved(database: AnyDatabase) -> None:
    append(database, line_issued(1), line_issued(2), line_issued(3, proof_due=False), line_issued(4, status="void"))

    def numbers(**asked: Any) -> list[str]:
        with database.read() as tx:
            return [row["id"][-1] for row in tx.views.credit_lines(**{"limit": 10, **asked})]

    assert numbers(status="draft") == ["1", "2"]
    assert numbers(status="draft", limit=1) == ["1"]
    assert numbers(status="issued", limit=1) == ["3"]
    assert numbers(status="void") == ["4"]
    assert numbers() == ["1", "2", "3", "4"]
    append(database, attestation(statement_id()), anchor(statement_id()))
    assert numbers(status="issued") == ["1", "2", "3"]
    with database.read() as tx:
        row = tx.views.credit_line(f"{statement_id()}.l0001")
        with pytest.raises(NotFound):
            tx.views.credit_line("no line")
    assert (row["proof_ref"], row["anchor_tx"]) == ("0x" + "d2" * 32, "0x" + "a1" * 32)
    assert (row["line_seq"], row["seq"], row["minor_units"]) == (0, 5, 1200)


def test_a_reversal_sets_both_lines(database: AnyDatabase) -> None:
    append(database, line_issued(1), line_applied(1), line_reversed(1))
    with database.read() as tx:
        gone, entry = tx.views.credit_lines(statement_id=statement_id(), limit=10)
        assert tx.views.credit_lines(statement_id="another", limit=10) == []
        assert tx.views.credit_lines(before_ns=START_NS, limit=10) == []
        assert len(tx.views.credit_lines(after=(START_NS, ""), before_ns=START_NS + 1, limit=10)) == 2
    assert (gone["status"], gone["reversed_by"]) == ("void", entry["id"])
    assert (entry["minor_units"], entry["reverses"], entry["reason"]) == (-1200, gone["id"], "counted in error")


def test_what_is_owed_is_the_sum_of_all_lines(database: AnyDatabase) -> None:
    append(database, line_issued(1), line_issued(2, minor_units="34"), line_issued(3, currency="EUR"))
    append(database, line_applied(1), line_issued(4, sla_id=OTHER_SLA_ID))
    with database.read() as tx:
        assert tx.views.credit_totals(SLA_ID) == {"USD": 1200 + 34, "EUR": 1200}
        assert tx.views.credit_totals("0x" + "00" * 32) == {}
    append(database, line_reversed(1))
    with database.read() as tx:
        assert tx.views.credit_totals(SLA_ID) == {"USD": 34, "EUR": 1200}


def test_a_rebuild_gives_the_same_views(database: AnyDatabase) -> None:
    name = statement_id()
    for event in (agreement(), window(0), window(1), window(0, bad=2), statement(), agreement(2)):
        append(database, event)
    append(database, attestation(name), anchor(name), statement(day=1))
    append(database, violation("opened"), violation("closed"), line_issued(), line_applied(), line_reversed())
    append(database, telemetry(point(), point("XID", severity=95)), breaker(), termination(2))
    with database.read() as tx:
        before = everything(tx)
        row = tx.views.agreement(SLA_ID)
        assert (row["terms_version"], row["terminated_on"]) == (2, "2023-12-19")
    assert database.rebuild_views() == 17
    with database.read() as tx:
        assert everything(tx) == before


def append_and_fail(tx: Transaction) -> None:
    tx.events.append("any", [agreement(2)], expected_version=None)
    tx.events.append("any", [agreement(3)], expected_version=0)


def test_views_roll_back_with_their_events(database: AnyDatabase) -> None:
    append(database, agreement(1))
    with pytest.raises(VersionConflict), database.begin() as tx:
        append_and_fail(tx)
    with database.read() as tx:
        assert tx.views.agreement(SLA_ID)["terms_version"] == 1


def told(database: AnyDatabase, start_s: int, end_s: int, limit: int = 20, service: str = "chat-7b") -> list[str]:
    """What was recorded in some seconds from ``START_NS`` on, the most telling first."""
    with database.read() as tx:
        found = tx.views.evidence(service, START_NS + start_s * 10**9, START_NS + end_s * 10**9, limit)
    return [each.get("metric") or f"{each['breaker']} {each['to_state']}" for each in found]


def test_evidence_is_what_touches_the_interval(database: AnyDatabase) -> None:
    append(database, telemetry(point("A", from_s=10, to_s=20), point("B", from_s=0, to_s=3600)), breaker(at_s=30))
    assert told(database, 0, 10) == ["B"]
    assert told(database, 10, 11) == ["B", "A"]
    assert told(database, 20, 30) == ["B"]
    assert told(database, 3599, 4000) == ["B"]
    assert told(database, 3600, 4000) == []
    assert told(database, 30, 31) == ["upstream open", "B"]
    assert told(database, 0, 60, service="other") == []


def test_the_most_telling_comes_first_and_once(database: AnyDatabase) -> None:
    append(database, telemetry(point("DRAM", severity=80, to_s=5), point("XID", severity=95)))
    append(database, telemetry(point("DRAM", severity=10, from_s=5, to_s=9), point("TEMP", from_s=6, to_s=8)))
    append(database, breaker("open", at_s=1), breaker("closed", at_s=2), breaker("open", at_s=3))
    assert told(database, 0, 60) == ["upstream open", "XID", "DRAM", "upstream closed", "TEMP"]
    assert told(database, 0, 60, limit=2) == ["upstream open", "XID"]
    with database.read() as tx:
        (opened,) = tx.views.evidence("chat-7b", START_NS, START_NS + HOUR_NS, 1)
    assert opened["from_ns"] == START_NS + 3 * 10**9
    assert (opened["kind"], opened["event"], opened["failure_rate"]) == ("breaker_event", "state_transition", "62.5")


def test_the_last_batch_of_a_source_is_remembered(database: AnyDatabase) -> None:
    append(database, telemetry(digest="01" * 32), telemetry(digest="02" * 32), telemetry(source="gpu-2"))
    with database.read() as tx:
        last = tx.views.telemetry_source("chat-7b", "gpu-1")
        assert tx.views.telemetry_source("chat-7b", "gpu-3") is None
        assert tx.views.telemetry_source("other", "gpu-1") is None
    assert last == {"digest": "02" * 32, "format": "dcgm", "media_type": "text/plain", "scraped_at_ns": str(START_NS)}


def test_evidence_is_the_tenants_own(database: AnyDatabase) -> None:
    append(database, breaker())
    with database.of_tenant("b").read() as tx:
        assert tx.views.evidence("chat-7b", START_NS, START_NS + HOUR_NS, 20) == []
