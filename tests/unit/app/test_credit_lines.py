"""Credit lines: issued once with their statement, taken back by entries, booked by finance."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.billing.credit_changes import CreditDesk
from ledger.domain.credits.credit_lines import RULE_VERSION
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import attestation_stream, credit_lines_stream
from ledger.domain.time.interval import Interval
from ledger.errors import CreditLineRefused, IdempotencyConflict, NotFound
from tests.conformance.samples import attestation
from tests.unit.app.conftest import Desk, log, make_desk, row, share_as_cap
from tests.unit.app.test_settling import issue, record

HOUR_NS = 3600 * 10**9
STATEMENT = "2023-06-14.v1"


def failed(name: str, hour: int) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:00:00Z", error_code=500)


@pytest.fixture
def settled(desk: Desk) -> str:
    """A statement with violations at 3 and at 10 o'clock: 1 and 2 bad requests, and a credit of 4000.00."""
    record(desk, log(failed("a", 3), failed("b", 10), failed("c", 10), row("d", at="2023-06-14T10:00:00Z")))
    return issue(desk).id


def prove(desk: Desk, statement_id: str) -> None:
    with desk.database.begin() as tx:
        event = attestation(statement_id)
        tx.events.append(attestation_stream(statement_id), [event], expected_version=0)


def lines(desk: Desk, **asked: Any) -> list[dict[str, Any]]:
    with desk.database.read() as tx:
        return [dict(row) for row in tx.views.credit_lines(limit=100, **asked)]


def events(desk: Desk, statement_id: str) -> list[Any]:
    with desk.database.read() as tx:
        return list(tx.events.stream(credit_lines_stream(statement_id)))


def finance(desk: Desk) -> CreditDesk:
    return CreditDesk(desk.database, desk.clock)


def owed(desk: Desk) -> tuple[int, int]:
    """The sum of all entries, and of those that are not void."""
    found = lines(desk)
    return sum(line["minor_units"] for line in found), sum(
        line["minor_units"] for line in found if line["status"] != "void"
    )


class TestIssuing:
    def test_each_violation_has_a_line_and_they_sum_to_the_credit(self, desk: Desk, settled: str) -> None:
        first, second = lines(desk)
        assert (first["id"], second["id"]) == (f"{settled}.l0001", f"{settled}.l0002")
        assert (first["minor_units"], second["minor_units"]) == (133_333, 266_667)
        assert second["violation_id"].endswith(".availability.w10")
        assert (first["statement_id"], first["customer"], first["currency"]) == (settled, "customer", "USD")
        assert {line["status"] for line in (first, second)} == {"draft"}

    def test_they_are_issued_once_for_the_event_and_the_rule(self, desk: Desk, settled: str) -> None:
        issue(desk)
        issued = events(desk, settled)
        assert [event.type for event in issued] == ["credit_line_issued"] * 2
        with desk.database.read() as tx:
            statement = tx.events.by_id(issued[0].payload["statement_event"])
        assert (statement.type, statement.payload["statement_id"]) == ("statement_issued", settled)
        assert {event.payload["rule"] for event in issued} == {RULE_VERSION}

    def test_a_met_period_has_none(self, desk: Desk) -> None:
        record(desk, log(row("a")))
        assert events(desk, issue(desk).id) == []

    def test_a_withheld_statement_has_none(self, desk: Desk) -> None:
        start_ns = desk.period.interval.start_ns
        record(desk, log(failed("a", 3)), Interval(start_ns + 2 * HOUR_NS, start_ns + 5 * HOUR_NS))
        assert events(desk, issue(desk).id) == []

    def test_an_objective_that_earns_nothing_has_a_line_of_nothing(self, desk: Desk) -> None:
        record(desk, log(failed("a", 3), row("b", at="2023-06-14T05:00:00Z", ttft_s=0.9)))
        issue(desk)
        assert [(line["objective"], line["minor_units"]) for line in lines(desk)] == [
            ("availability", 400_000),
            ("ttft", 0),
        ]

    def test_what_no_circuit_proves_is_no_draft(self) -> None:
        desk = make_desk(compensation=share_as_cap())
        record(desk, log(failed("a", 3)))
        issue(desk)
        assert [line["status"] for line in lines(desk)] == ["issued"]


class TestTakingBack:
    def test_an_entry_takes_it_back_and_nothing_is_edited(self, desk: Desk, settled: str) -> None:
        prove(desk, settled)
        before = [event.payload for event in events(desk, settled)]
        line_id = f"{settled}.l0002"
        entry = finance(desk).reverse(line_id, reason="counted in error", request="k1", by="finance")
        assert (entry["line_id"], entry["minor_units"], entry["reverses"]) == (f"{line_id}.r", "-266667", line_id)
        assert [event.payload for event in events(desk, settled)][:2] == before
        shown = {line["id"]: line for line in lines(desk)}
        assert (shown[line_id]["status"], shown[line_id]["reversed_by"]) == ("void", f"{line_id}.r")
        assert (shown[f"{line_id}.r"]["status"], shown[f"{line_id}.r"]["reason"]) == ("void", "counted in error")
        assert owed(desk) == (133_333, 133_333)

    def test_what_was_booked_stays_booked_and_the_entry_is_to_be_booked(self, desk: Desk, settled: str) -> None:
        prove(desk, settled)
        line_id = f"{settled}.l0002"
        finance(desk).apply(line_id, reference="INV-7", request="k1")
        finance(desk).reverse(line_id, reason="counted in error", request="k2")
        assert owed(desk) == (133_333, 133_333)
        statuses = {line["id"]: line["status"] for line in lines(desk)}
        assert (statuses[line_id], statuses[f"{line_id}.r"]) == ("applied", "issued")
        finance(desk).apply(f"{line_id}.r", reference="CN-1", request="k3")
        assert [line["status"] for line in lines(desk)] == ["issued", "applied", "applied"]
        assert owed(desk) == (133_333, 133_333)

    def test_a_reversal_is_not_taken_back(self, desk: Desk, settled: str) -> None:
        finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1")
        with pytest.raises(CreditLineRefused, match="reversal itself"):
            finance(desk).reverse(f"{settled}.l0001.r", reason="r", request="k2")

    def test_nothing_is_taken_back_twice(self, desk: Desk, settled: str) -> None:
        finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1")
        with pytest.raises(CreditLineRefused, match="taken back before"):
            finance(desk).reverse(f"{settled}.l0001", reason="r", request="k2")
        assert len(events(desk, settled)) == 3


class TestBooking:
    def test_a_draft_is_not_booked(self, desk: Desk, settled: str) -> None:
        with pytest.raises(CreditLineRefused, match="draft"):
            finance(desk).apply(f"{settled}.l0001", reference="INV-7", request="k1")
        prove(desk, settled)
        line = finance(desk).apply(f"{settled}.l0001", reference="INV-7", request="k1", by="finance")
        assert (line["status"], line["billing"]["reference"], line["billing"]["by"]) == ("applied", "INV-7", "finance")

    def test_nothing_is_booked_twice_and_nothing_void(self, desk: Desk, settled: str) -> None:
        prove(desk, settled)
        finance(desk).apply(f"{settled}.l0001", reference="INV-7", request="k1")
        with pytest.raises(CreditLineRefused, match="INV-7"):
            finance(desk).apply(f"{settled}.l0001", reference="INV-8", request="k2")
        finance(desk).reverse(f"{settled}.l0002", reason="r", request="k3")
        for line_id in (f"{settled}.l0002", f"{settled}.l0002.r"):
            with pytest.raises(CreditLineRefused, match="void"):
                finance(desk).apply(line_id, reference="INV-9", request=f"k-{line_id}")

    def test_statuses_are_asked_for(self, desk: Desk, settled: str) -> None:
        assert len(lines(desk, status="draft")) == 2
        assert lines(desk, status="issued") == []
        prove(desk, settled)
        finance(desk).apply(f"{settled}.l0001", reference="INV-7", request="k1")
        assert [len(lines(desk, status=each)) for each in ("draft", "issued", "applied", "void")] == [0, 1, 1, 0]


class TestAskingAgain:
    def test_the_same_key_is_the_same_request(self, desk: Desk, settled: str) -> None:
        first = finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1")
        assert finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1") == first
        assert len(events(desk, settled)) == 3

    def test_the_same_key_for_something_else_is_refused(self, desk: Desk, settled: str) -> None:
        prove(desk, settled)
        finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1")
        for ask in (
            lambda: finance(desk).reverse(f"{settled}.l0001", reason="another", request="k1"),
            lambda: finance(desk).reverse(f"{settled}.l0002", reason="r", request="k1"),
            lambda: finance(desk).apply(f"{settled}.l0002", reference="INV-7", request="k1"),
        ):
            with pytest.raises(IdempotencyConflict):
                ask()
        assert len(events(desk, settled)) == 3

    def test_a_key_counts_over_all_statements(self, desk: Desk, settled: str) -> None:
        other = NewEvent("credit_line_issued", {**events(desk, settled)[0].payload, "line_id": "other.l0001"}, 1)
        with desk.database.begin() as tx:
            tx.events.append(credit_lines_stream("other"), [other], expected_version=0)
        finance(desk).reverse(f"{settled}.l0001", reason="r", request="k1")
        with pytest.raises(IdempotencyConflict):
            finance(desk).reverse("other.l0001", reason="r", request="k1")

    @pytest.mark.parametrize("line_id", ["nothing", "x" * 500, "a.l0001", "../../etc.l0001", ""])
    def test_no_such_line(self, desk: Desk, settled: str, line_id: str) -> None:
        with pytest.raises(NotFound):
            finance(desk).reverse(line_id, reason="r", request="k1")
