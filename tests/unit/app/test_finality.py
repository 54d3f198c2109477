"""Statements become final when their deadline has passed, once, and not before what came in time is judged."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.periods.closing import Cause, Schedule, close_period
from ledger.app.settlement.finality import DueWork, Finality, finalize_statement
from ledger.app.webhooks.messages import message
from ledger.domain.record.naming import finality_stream
from ledger.domain.time.instant import DAY_NS
from ledger.errors import ClosingFailed
from tests.unit.app.conftest import Desk, make_desk, row
from tests.unit.app.test_restating import at_the_end, close, failed, hand_in, late, settle, statements

OPERATOR = Principal("operator", "default", ROLE_SCOPES[Role.OPERATOR])


@pytest.fixture
def desk() -> Desk:
    """A desk with a statement, whose clock stands at the end of the period."""
    desk = at_the_end(make_desk())
    hand_in(desk, row("a"))
    close(desk)
    return desk


def finality(desk: Desk) -> Finality:
    return Finality(desk.database, desk.attestor, desk.clock)


def standings(desk: Desk) -> list[str]:
    with desk.database.read() as tx:
        return [str(found["standing"]) for found in tx.views.statements()]


def deadline(desk: Desk, off_ns: int = 0) -> None:
    desk.clock.now = desk.period.interval.end_ns + 30 * DAY_NS + off_ns


def test_a_draft_becomes_final_when_its_deadline_has_passed(desk: Desk) -> None:
    deadline(desk, -60 * 10**9)
    assert finality(desk).finalize_due() == 0
    assert standings(desk) == ["draft"]
    deadline(desk)
    assert finality(desk).finalize_due() == 1
    assert standings(desk) == ["final"]


def test_it_happens_once(desk: Desk) -> None:
    deadline(desk)
    assert finality(desk).finalize_due() == 1
    assert finality(desk).finalize_due() == 0
    name = statements(desk)[0]["statement_id"]
    with desk.database.begin() as tx:
        assert finalize_statement(tx, name, attestor=desk.attestor, now_ns=desk.clock.now_ns()) is None
    with desk.database.read() as tx:
        (event,) = tx.events.stream(finality_stream(name))
    assert event.payload["credit"] == {"currency": "USD", "minor_units": "0"}


def test_of_several_versions_the_newest_becomes_final(desk: Desk) -> None:
    late(desk, failed("b", 10))
    deadline(desk)
    assert finality(desk).finalize_due() == 1
    assert standings(desk) == ["restated", "final"]


def test_what_came_in_time_is_judged_first(desk: Desk) -> None:
    deadline(desk, -60 * 10**9)
    hand_in(desk, failed("b", 10))
    deadline(desk)
    assert finality(desk).finalize_due() == 0
    settle(desk)
    assert finality(desk).finalize_due() == 1
    assert standings(desk) == ["restated", "final"]


def test_a_period_that_is_settled_after_its_deadline_is_final_at_once() -> None:
    desk = make_desk()
    hand_in(desk, row("a"))
    close(desk)
    assert finality(desk).finalize_due() == 1


def test_those_who_listen_are_told(desk: Desk) -> None:
    deadline(desk)
    finality(desk).finalize_due()
    with desk.database.read() as tx:
        (event,) = tx.events.stream(finality_stream(statements(desk)[0]["statement_id"]))
    told = message(event, OPERATOR)
    assert told is not None
    assert told["type"] == "statement.finalized"
    assert told["data"]["accepted_until"] == "2023-07-15T00:00:00Z"


class _Failing:
    def close_due(self) -> int:
        raise ClosingFailed("one agreement cannot be closed")


def test_the_clock_finalizes_also_where_closing_fails(desk: Desk) -> None:
    deadline(desk)
    with pytest.raises(ClosingFailed):
        DueWork(_Failing(), finality(desk)).close_due()
    assert standings(desk) == ["final"]
    schedule = Schedule(desk.database, desk.attestor, desk.clock)
    assert DueWork(schedule, finality(desk)).close_due() > 1


def test_one_that_fails_holds_up_no_other(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    registered = desk.register()
    following = desk.agreement.periods.after(desk.period)
    assert following is not None
    desk.clock.now = following.interval.end_ns
    with desk.database.begin() as tx:
        close_period(tx, registered, following, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
    settle(desk)
    first = statements(desk)[0]["statement_id"]
    deadline(desk, DAY_NS)
    real = finalize_statement

    def one_fails(tx: Any, statement_id: str, **given: Any) -> Any:
        if statement_id == first:
            raise ClosingFailed("the disk is full")
        return real(tx, statement_id, **given)

    monkeypatch.setattr("ledger.app.settlement.finality.finalize_statement", one_fails)
    with pytest.raises(ClosingFailed, match=first):
        finality(desk).finalize_due()
    assert standings(desk) == ["draft", "final"]


def test_a_log_that_is_handed_in_again_after_it_is_final_is_no_late_fact(desk: Desk) -> None:
    deadline(desk)
    finality(desk).finalize_due()
    assert hand_in(desk, row("a"), row("a")).counts.accepted == 0
    assert standings(desk) == ["final"]
