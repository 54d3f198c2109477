"""Charges where an amendment comes between the period that they are of and the one that is settled by them."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.periods.closing import Cause, close_period
from ledger.app.settlement.charges import ChargeDesk, load_charges
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import DocumentInvalid
from tests.unit.app.conftest import Desk, make_desk, row, signed_agreement
from tests.unit.app.test_agreement_lifecycle import JUNE, PARTS, amend, found, observe, settle, statement, work

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


def cut_in_june(*, charges_first: bool) -> Desk:
    """June by terms that others follow on the 15th; both pay by the charges of the period itself."""
    desk = make_desk()
    desk.agreement = terms("period", partial_periods="prorate")
    desk.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    desk.register()
    if charges_first:
        record(desk)
    own = {"effective": {"from": "2023-06-15", "until": "2023-07-31"}, "anchor": "2023-06-01"}
    amend(desk, terms("period", partial_periods="prorate", **own))
    if not charges_first:
        record(desk)
    return desk


def record(desk: Desk) -> None:
    # 100.00 on 20 June alone, and 30.01 all month: of that 14 of 30 days are 14.00 and a little.
    life = {"from": "2023-06-20T00:00:00Z", "until": "2023-06-21T00:00:00Z"}
    lines = [
        {"service": "example-chat", "kind": "recurring", "amount": "100.00", "currency": "USD", "life": life},
        {"service": "example-chat", "kind": "recurring", "amount": "30.01", "currency": "USD"},
    ]
    ChargeDesk(desk.database, desk.attestor, desk.clock).record(found(desk).sla_id, FIRST, lines)


@pytest.mark.parametrize("charges_first", [True, False])
def test_each_part_of_a_split_period_is_settled_by_its_share_of_the_charges_of_the_whole(charges_first: bool) -> None:
    desk = cut_in_june(charges_first=charges_first)
    observe(desk, row("a", "2023-06-02T00:00:00Z", error_code=500), row("b", "2023-06-16T00:00:00Z", error_code=500))
    desk.clock.now = parse_instant_ns("2023-08-01T00:00:00Z")
    first, second = (settle(desk, name)["trace"] for name in PARTS)
    assert {first["charges"]["period"], second["charges"]["period"]} == {FIRST}
    bases = [int(each["tiers"][0]["base"]["amount"]["numerator"]) for each in (first, second)]
    assert bases == [1400, 10_000 + 1601]


def test_charges_that_come_late_settle_both_parts() -> None:
    desk = cut_in_june(charges_first=True)
    observe(desk, row("a", "2023-06-02T00:00:00Z", error_code=500))
    desk.clock.now = parse_instant_ns("2023-07-05T00:00:00Z")
    for name in PARTS:
        settle(desk, name)
    line = {"service": "example-chat", "kind": "recurring", "amount": "30.00", "currency": "USD"}
    ChargeDesk(desk.database, desk.attestor, desk.clock).record(found(desk).sla_id, FIRST, [line])
    with desk.database.read() as tx:
        waiting = {each.event_id for each in tx.outbox.entries(states=["pending"], limit=20)}
        changed = [event for event in map(tx.events.by_id, waiting) if event.type == "period_facts_changed"]
    assert sorted(event.payload["period"] for event in changed) == sorted(PARTS)


def test_the_charges_of_a_part_are_asked_for_as_those_of_the_whole() -> None:
    desk = cut_in_june(charges_first=True)
    line = {"service": "example-chat", "kind": "recurring", "amount": "30.00", "currency": "USD"}
    with pytest.raises(DocumentInvalid, match=f"{PARTS[1]} is a part of {FIRST}; hand in the charges of the whole"):
        ChargeDesk(desk.database, desk.attestor, desk.clock).record(found(desk).sla_id, PARTS[1], [line])
