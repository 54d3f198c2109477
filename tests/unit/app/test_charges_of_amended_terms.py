"""Charges where an amendment comes between the period that they are of and the one that is settled by them."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.charges import ChargeDesk, load_charges
from ledger.app.closing import Cause, close_period
from ledger.domain.agreement import Agreement
from ledger.domain.instant import parse_instant_ns
from tests.unit.app.conftest import Desk, make_desk, row, signed_agreement
from tests.unit.app.test_agreement_lifecycle import JUNE, amend, found, observe, statement, work

FIRST, SECOND = "2023-06-01/P30D", "2023-07-01/P30D"


def terms(of: str | None, **changes: Any) -> Agreement:
    compensation = dict(signed_agreement()["compensation"])
    if of is not None:
        del compensation["base"]
        compensation["charges"] = {"of": of}
    return Agreement.from_document(signed_agreement(**{**JUNE, "compensation": compensation, **changes}))


def amended(before: str | None) -> Desk:
    """June by the first terms; July by others that pay by the charges of the period before."""
    desk = make_desk()
    desk.agreement = terms(before)
    desk.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    desk.register()
    amend(desk, terms("previous_period", effective={"from": "2023-07-01", "until": "2023-07-31"}, tier="silver"))
    return desk


@pytest.mark.parametrize("before", [None, "previous_period"])
def test_the_first_period_of_an_amendment_is_paid_by_the_charges_of_the_last_before_it(before: str | None) -> None:
    desk = amended(before)
    observe(desk, row("a", "2023-07-02T00:00:00Z", error_code=500))
    desk.clock.now = parse_instant_ns("2023-08-01T00:00:00Z")
    at = found(desk)
    in_force, period = at.timeline.named(SECOND)
    with desk.database.begin() as tx:
        close_period(tx, at.of(in_force), period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())
    desk_of_finance = ChargeDesk(desk.database, desk.attestor, desk.clock)
    line = {"service": "example-chat", "kind": "recurring", "amount": "5000.00", "currency": "USD"}
    recorded = desk_of_finance.record(at.sla_id, FIRST, [line])
    assert recorded.period == FIRST
    assert desk_of_finance.of(at.sla_id, FIRST).lines == [line]
    with desk.database.read() as tx:
        charges = load_charges(tx, at.of(in_force), period)
        waiting = [each.event_id for each in tx.outbox.entries(states=["pending"], limit=9) if each.stage == "evaluate"]
        (changed,) = [event for event in map(tx.events.by_id, waiting) if event.type == "period_facts_changed"]
    assert charges is not None
    # The closed period that waited for them is settled.
    assert changed.payload["period"] == SECOND
    work(desk, changed.id)
    assert statement(desk, SECOND)["trace"]["charges"]["period"] == FIRST
