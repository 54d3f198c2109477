"""Facts that come after a period was closed: another version of its statement, differences, and an end to it."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import pytest

from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.facts.observations import RecordedBatch, record_observations
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.late_facts import facts_changed
from ledger.app.settlement.sealing import load_salts, seals_of
from ledger.app.settlement.statements import issued_event, issued_for
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.naming import (
    closing_stream,
    credit_lines_stream,
    seal_stream,
    statement_stream,
    telemetry_stream,
    windows_stream,
)
from ledger.domain.time.instant import DAY_NS
from ledger.domain.time.interval import Interval
from ledger.errors import ClaimDeadlinePassed
from tests.unit.app.conftest import Desk, log, make_desk, read_rows, row
from tests.unit.app.test_stages import runner

HOUR_NS = 3600 * 10**9


@pytest.fixture
def desk() -> Desk:
    """A desk whose clock stands at the end of the period."""
    return at_the_end(make_desk())


def at_the_end(desk: Desk) -> Desk:
    desk.clock.now = desk.period.interval.end_ns
    return desk


def failed(name: str, hour: int) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:00:00Z", error_code=500)


def hand_in(desk: Desk, *rows: dict[str, Any], span: Interval | None = None) -> RecordedBatch:
    registered = desk.register()
    with desk.database.begin() as tx:
        return record_observations(
            tx,
            registered,
            log(*rows),
            read_rows=read_rows,
            declared_complete=span or desk.period.interval,
            now_ns=desk.clock.now_ns(),
        )


def close(desk: Desk) -> None:
    registered = desk.register()
    with desk.database.begin() as tx:
        close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
    settle(desk)


def settle(desk: Desk) -> None:
    while runner(desk).run_once():
        pass


def late(desk: Desk, *rows: dict[str, Any], span: Interval | None = None) -> RecordedBatch:
    batch = hand_in(desk, *rows, span=span)
    settle(desk)
    return batch


def statements(desk: Desk) -> list[dict[str, Any]]:
    with desk.database.read() as tx:
        stream = statement_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        return [dict(event.payload) for event in tx.events.stream(stream)]


def count(desk: Desk, stream: str) -> int:
    with desk.database.read() as tx:
        return sum(1 for _ in tx.events.stream(stream))


def owed(desk: Desk) -> int:
    with desk.database.read() as tx:
        return sum(line["minor_units"] for line in tx.views.credit_lines(limit=1000))


def lines(desk: Desk, statement_id: str) -> list[tuple[str, int]]:
    """(violation's end of the name, minor units) of the lines of one statement."""
    with desk.database.read() as tx:
        found = [event.payload for event in tx.events.stream(credit_lines_stream(statement_id))]
    return [(str(line["violation_id"]).rpartition(".")[2], int(line["minor_units"])) for line in found]


class TestLateFacts:
    def test_who_hands_them_in_is_told_which_closed_periods_are_judged_anew(self, desk: Desk) -> None:
        assert hand_in(desk, row("a"), row("b")).judged_anew == ()
        close(desk)
        assert late(desk, failed("late", 10)).judged_anew == (str(desk.period),)
        # The same batch again changes nothing and is answered alike; another that says nothing new is judged by nobody.
        assert late(desk, failed("late", 10)).judged_anew == (str(desk.period),)
        assert late(desk, row("a"), failed("late", 10)).judged_anew == ()
        assert hand_in(desk, row("a"), row("b")).judged_anew == ()
        assert len(statements(desk)) == 2

    def test_give_a_version_that_names_what_it_replaces_why_and_by_how_much(self, desk: Desk) -> None:
        hand_in(desk, row("a"), row("b"))
        close(desk)
        batch = late(desk, failed("late", 10))
        first, second = statements(desk)
        with desk.database.read() as tx:
            event = issued_event(tx, first["statement_id"])
        assert second["statement_version"] == 2
        assert second["restates"] == {
            "statement_id": first["statement_id"],
            "event_id": event.id,
            "facts": [batch.receipt.event_id],
        }
        assert batch.digest[:16] in second["reason"]
        assert second["objective_deltas"] == [
            {
                "id": "availability",
                "good": {"old": 2, "new": 2, "difference": 0},
                "valid": {"old": 2, "new": 3, "difference": 1},
                "state": {"old": "met", "new": "breached"},
            }
        ]
        assert second["credit_delta"] == {"currency": "USD", "old": "0", "new": "400000", "difference": "400000"}
        assert "restates" not in first
        assert "reason" not in first

    def test_that_change_no_figure_give_no_version_but_new_judgements(self) -> None:
        clause = {"id": "client-cancel", "error_codes": [499], "reason": "the client went away"}
        desk = at_the_end(make_desk(exclusions=[clause]))
        hand_in(desk, row("a"))
        close(desk)
        stream = windows_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        judged = count(desk, stream)
        late(desk, row("excluded", error_code=499))
        assert len(statements(desk)) == 1
        assert count(desk, stream) > judged

    def test_that_say_nothing_new_are_nothing_to_judge(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        stream = closing_stream(desk.attestor.sla_id(desk.agreement), desk.period.first)
        late(desk, row("a"), row("a"))
        late(desk, row("c", service="another-service"), row("a"))
        assert (len(statements(desk)), count(desk, stream)) == (1, 1)

    def test_whose_sums_stay_and_whose_hour_differs_pay_another_violation(self, desk: Desk) -> None:
        """A conflict counts in the hour of its earliest start: the sums stay, the violation moves."""
        hand_in(desk, failed("a", 10))
        close(desk)
        late(desk, failed("a", 3))
        first, second = statements(desk)
        assert first["objectives"] == second["objectives"]
        assert second["objective_deltas"] == []
        assert second["credit_delta"]["difference"] == "0"
        assert sorted(lines(desk, second["statement_id"])) == [("w10", -400_000), ("w3", 400_000)]
        assert owed(desk) == 400_000

    def test_in_quick_succession_are_one_version_that_names_them_all(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        batches = [hand_in(desk, failed(name, 10)) for name in "bcd"]
        settle(desk)
        _, second = statements(desk)
        assert second["restates"]["facts"] == [batch.receipt.event_id for batch in batches]
        assert second["objective_deltas"][0]["valid"]["difference"] == 3

    def test_name_only_what_came_since_the_version_before(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        late(desk, failed("b", 10))
        third_batch = late(desk, failed("c", 11))
        third = statements(desk)[-1]
        assert third["statement_version"] == 3
        assert third["restates"]["facts"] == [third_batch.receipt.event_id]

    def test_that_were_taken_in_by_the_first_version_are_no_restatement(self, desk: Desk) -> None:
        registered = desk.register()
        hand_in(desk, row("a"))
        with desk.database.begin() as tx:
            close_period(tx, registered, desk.period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
        hand_in(desk, failed("late", 10))
        settle(desk)
        (only,) = statements(desk)
        assert only["objectives"][0]["valid"] == 2
        assert "restates" not in only

    def test_of_any_kind_are_told_by_one_function(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        batch = hand_in(desk, failed("b", 10))
        registered = desk.register()
        with desk.database.begin() as tx:
            told = facts_changed(
                tx,
                registered,
                desk.period,
                cause="exclusion",
                reason="an outage of the customer's network was agreed on",
                fact=batch.receipt.event_id,
                now_ns=desk.clock.now_ns(),
            )
        assert told is not None
        settle(desk)
        assert "customer's network" in statements(desk)[-1]["reason"]

    def test_of_an_open_period_are_nothing_to_tell(self, desk: Desk) -> None:
        batch = hand_in(desk, row("a"))
        registered = desk.register()
        with desk.database.begin() as tx:
            assert (
                facts_changed(tx, registered, desk.period, cause="x", reason="y", fact=batch.receipt.event_id, now_ns=0)
                is None
            )

    def test_of_a_period_that_was_missing_make_a_withheld_statement_a_settled_one(self, desk: Desk) -> None:
        start_ns = desk.period.interval.start_ns
        hand_in(desk, failed("a", 3), span=Interval(start_ns + 2 * HOUR_NS, start_ns + 5 * HOUR_NS))
        close(desk)
        late(desk, row("b"))
        first, second = statements(desk)
        assert (first["state"], second["state"]) == ("withheld", "settled")
        assert second["credit_delta"] == {"currency": "USD", "old": None, "new": "400000", "difference": "400000"}
        assert owed(desk) == 400_000
        with desk.database.read() as tx:
            assert [entry.stage for entry in tx.outbox.entries(states=["pending"], limit=9)] == ["prove"]


class TestDeadline:
    def test_what_comes_later_is_refused_and_nothing_of_it_is_written(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        desk.clock.now = desk.period.interval.end_ns + 30 * DAY_NS
        with desk.database.read() as tx:
            size = tx.log.size()
        with pytest.raises(ClaimDeadlinePassed, match="2023-07-15T00:00:00Z") as refused:
            hand_in(desk, failed("late", 10))
        assert refused.value.data["deadline"] == "2023-07-15T00:00:00Z"
        with desk.database.read() as tx:
            assert tx.log.size() == size

    def test_what_comes_just_before_is_taken(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        desk.clock.now = desk.period.interval.end_ns + 30 * DAY_NS - 60 * 10**9
        late(desk, failed("late", 10))
        assert len(statements(desk)) == 2

    def test_what_says_nothing_new_is_taken_at_any_time(self, desk: Desk) -> None:
        first = hand_in(desk, row("a"), row("b"))
        close(desk)
        desk.clock.now = desk.period.interval.end_ns + 60 * DAY_NS
        assert hand_in(desk, row("a"), row("b")).receipt == first.receipt
        assert hand_in(desk, row("b")).counts.duplicates == 1

    def test_a_longer_declaration_is_something_new(self, desk: Desk) -> None:
        start_ns = desk.period.interval.start_ns
        hand_in(desk, row("a"), span=Interval(start_ns, start_ns + 20 * HOUR_NS))
        close(desk)
        desk.clock.now = desk.period.interval.end_ns + 60 * DAY_NS
        with pytest.raises(ClaimDeadlinePassed):
            hand_in(desk, row("a"))

    def test_is_that_of_the_agreement(self) -> None:
        deadline = {"kind": "days_after_period", "count": 2}
        desk = at_the_end(make_desk(settlement={"mode": "automatic", "deadline": deadline}))
        hand_in(desk, row("a"))
        close(desk)
        desk.clock.now = desk.period.interval.end_ns + 2 * DAY_NS
        with pytest.raises(ClaimDeadlinePassed, match="2023-06-17T00:00:00Z"):
            hand_in(desk, failed("late", 10))
        assert statements(desk)[0]["accepts_until_ns"] == str(desk.period.interval.end_ns + 2 * DAY_NS)

    def test_a_period_that_is_not_closed_has_none(self, desk: Desk) -> None:
        desk.clock.now = desk.period.interval.end_ns + 400 * DAY_NS
        hand_in(desk, row("a"))
        close(desk)
        assert len(statements(desk)) == 1


class TestSeals:
    def test_replace_the_blocks_that_differ_with_a_reason_and_salts_of_their_own(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        late(desk, failed("b", 10))
        first, second = statements(desk)
        seal_key = int(first["seal_key"])
        assert second["seal_key"] == first["seal_key"]
        assert second["telemetry_root"] != first["telemetry_root"]
        with desk.database.read() as tx:
            sealed, resealed = tx.events.stream(seal_stream(seal_key))
            assert (sealed.type, resealed.type) == ("block_sealed", "block_resealed")
            assert (resealed.payload["replaces"], resealed.payload["statement_version"]) == (sealed.id, 2)
            assert resealed.payload["reason"] == second["reason"]
            assert seals_of(tx, seal_key, 1) == [sealed]
            assert seals_of(tx, seal_key, 2) == [resealed]
            roots = [event.payload["telemetry_root"] for event in tx.events.stream(telemetry_stream(seal_key))]
            assert roots == [first["telemetry_root"], second["telemetry_root"]]
            old, new = load_salts(tx, first), load_salts(tx, second)
        assert len({*old.blocks, *new.blocks, old.base, new.base, old.credit, new.credit}) == 6

    def test_stay_where_no_window_counts_anything_else(self, desk: Desk) -> None:
        """Version 3 goes back to no window of version 2: it replaces that block once more."""
        hand_in(desk, row("a"))
        close(desk)
        late(desk, failed("b", 10))
        late(desk, failed("c", 10))
        seal_key = int(statements(desk)[0]["seal_key"])
        with desk.database.read() as tx:
            versions = [event.payload.get("statement_version", 1) for event in tx.events.stream(seal_stream(seal_key))]
            assert versions == [1, 2, 3]
            assert [event.version for event in seals_of(tx, seal_key, 2)] == [1]


class TestCreditLines:
    def test_are_differences_violation_by_violation(self, desk: Desk) -> None:
        hand_in(desk, failed("a", 3), failed("b", 10), failed("c", 10))
        close(desk)
        late(desk, failed("d", 3), failed("e", 3), failed("f", 3))
        first, second = statements(desk)
        assert lines(desk, first["statement_id"]) == [("w3", 133_333), ("w10", 266_667)]
        assert lines(desk, second["statement_id"]) == [("w3", 133_334), ("w10", -133_334)]
        assert owed(desk) == 400_000

    def test_say_why_and_what_they_restate(self, desk: Desk) -> None:
        hand_in(desk, row("a"))
        close(desk)
        late(desk, failed("b", 10))
        first, second = statements(desk)
        with desk.database.read() as tx:
            (line,) = tx.events.stream(credit_lines_stream(second["statement_id"]))
        assert line.payload["restates"] == first["statement_id"]
        assert line.payload["reason"] == second["reason"]

    def test_sum_to_the_newest_credit_even_after_finance_took_one_back(self, desk: Desk) -> None:
        hand_in(desk, failed("a", 3), failed("b", 10))
        close(desk)
        first = statements(desk)[0]["statement_id"]
        finance = CreditDesk(desk.database, desk.clock)
        finance.reverse(f"{first}.l0001", reason="paid by another way", request="k1")
        assert owed(desk) == 200_000
        late(desk, failed("c", 10))
        second = statements(desk)[-1]
        assert owed(desk) == int(second["credit"]["minor_units"])
        with desk.database.read() as tx:
            entries = {line["id"]: line for line in tx.views.credit_lines(limit=100)}
        assert entries[f"{first}.l0001.r"]["minor_units"] == -200_000
        assert entries[f"{first}.l0001.r"]["reason"] == "paid by another way"

    def test_a_reversal_alone_is_no_late_fact(self, desk: Desk) -> None:
        hand_in(desk, failed("a", 3))
        close(desk)
        first = statements(desk)[0]["statement_id"]
        CreditDesk(desk.database, desk.clock).reverse(f"{first}.l0001", reason="r", request="k1")
        registered = desk.register()
        with desk.database.begin() as tx:
            closing = next(iter(tx.events.stream(closing_stream(registered.sla_id, desk.period.first))))
            facts_changed(
                tx, registered, desk.period, cause="x", reason="y", fact=closing.id, now_ns=desk.clock.now_ns()
            )
        settle(desk)
        assert len(statements(desk)) == 1
        assert owed(desk) == 0


class TestOrder:
    """The same facts in any order, before the closing and after it, say the same in the end."""

    BATCHES = (
        [row("a"), failed("b", 3)],
        [failed("c", 10), row("b", at="2023-06-14T05:00:00Z")],
        [row("a"), row("d", at="2023-06-14T11:00:00Z", ttft_s=0.9)],
    )

    def newest(self, order: tuple[int, ...], before: int) -> tuple[str, int]:
        """The digest of everything the newest statement says, and what is owed."""
        desk = at_the_end(make_desk())
        for index in order[:before]:
            hand_in(desk, *self.BATCHES[index])
        close(desk)
        for index in order[before:]:
            late(desk, *self.BATCHES[index])
        with desk.database.read() as tx:
            issued = issued_for(tx, desk.register(), desk.period)
            lines = {(line["objective"], line["violation_id"]): 0 for line in tx.views.credit_lines(limit=1000)}
            for line in tx.views.credit_lines(limit=1000):
                lines[line["objective"], line["violation_id"]] += line["minor_units"]
            windows = tx.views.windows(desk.attestor.sla_id(desk.agreement), str(desk.period))
        document = {
            "settlement": issued.settlement.as_document(),
            "windows": [{"state": window["state"], "cells": window["cells"]} for window in windows],
            "lines": sorted([*map(str, key), units] for key, units in lines.items() if units),
        }
        return hashlib.sha256(canonical_bytes(document)).hexdigest(), owed(desk)

    @pytest.mark.long
    def test_does_not_matter(self) -> None:
        orders = list(itertools.permutations(range(len(self.BATCHES))))
        found = {self.newest(order, before) for order in orders for before in (0, 2)}
        assert len(found) == 1
