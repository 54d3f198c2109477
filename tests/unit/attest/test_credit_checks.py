"""What a verifier says of credits that stand on incidents and on charges: what follows from the terms, and lies."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from ledger.app.settlement.charges import ChargeDesk
from ledger.attest.checks.case import Case
from ledger.attest.checks.statement_checks import verdict
from ledger.errors import BundleCheckFailed
from tests.unit.app.conftest import make_desk, row
from tests.unit.app.test_restating import at_the_end, close, failed, hand_in, statements
from tests.unit.domain.samples import put
from tests.vectors.kinds import evidence

LINES = [
    {"service": "example-chat", "kind": "recurring", "amount": "2400.00", "currency": "USD"},
    {"service": "example-chat", "kind": "tax", "amount": "456.00", "currency": "USD"},
]
RULES = [
    {
        "kind": "tiered",
        "method": "tiered-v1",
        "tiers": {"availability": [{"below": "99.95", "credit_percent": "10"}]},
    },
    {
        "kind": "multiplier",
        "method": "multiplier-v1",
        "objective": "availability",
        "factor": "2",
        "per": "incident",
        "incident_cap": "100 %",
    },
]


@pytest.fixture(scope="module")
def settled() -> dict[str, Any]:
    """The agreement and the statement of a day with an hour down; 10 % of 2400.00 and two hours of it, the better."""
    terms = dict(make_desk().agreement.document["compensation"])
    del terms["base"]
    compensation = {**terms, "charges": {"of": "period"}, "rules": RULES, "caps": {"contract": "50 %"}}
    desk = at_the_end(make_desk(compensation=compensation))
    hand_in(desk, row("a", at="2023-06-14T08:00:00Z"), failed("b", 10))
    ChargeDesk(desk.database, desk.attestor, desk.clock).record(
        desk.attestor.sla_id(desk.register().agreement), "2023-06-14/P1D", LINES
    )
    close(desk)
    (issued,) = statements(desk)
    absent = dict.fromkeys(("proof", "context", "base", "credit_salt", "anchor"))
    return {"agreement": dict(desk.agreement.document), "statement": {"payload": issued}, **absent}


def test_a_statement_by_charges_and_incidents_verifies(settled: dict[str, Any]) -> None:
    assert settled["statement"]["payload"]["credit"] == {"currency": "USD", "minor_units": "24000"}
    assert "the incidents stand as stated" in verdict(Case(settled))


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no charges": lambda trace: trace.update(charges=None),
    "charges of another day": lambda trace: put(trace, "charges.period", "2023-06-13/P1D"),
    "fewer charges than the base has": lambda trace: put(trace, "charges.lines.0.amount", "24.00"),
    "charges that leave no base": lambda trace: put(trace, "charges.lines.0.kind", "tax"),
    "charges that are none": lambda trace: put(trace, "charges.lines", "all of them"),
    "tax in the base": lambda trace: put(trace, "tiers.0.base.lines", [0, 1]),
    "a smaller base": lambda trace: put(trace, "tiers.0.base.amount.numerator", "24000"),
    "another rule": lambda trace: put(trace, "rules.0.method", "step_table-v1"),
    "a rule of another objective": lambda trace: put(trace, "rules.0.objective", "ttft"),
    "no rules": lambda trace: trace.update(rules=[]),
    "rules that are none": lambda trace: trace.update(rules="two"),
    "no member for caps": lambda trace: trace.pop("caps"),
    "a credit that is not its last step": lambda trace: trace.update(credit="1"),
    "a minimum that is not the agreement's": lambda trace: trace.update(minimum="1000000"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_in_the_trace_is_caught(settled: dict[str, Any], name: str) -> None:
    forged = copy.deepcopy(settled)
    LIES[name](forged["statement"]["payload"]["trace"])
    with pytest.raises(BundleCheckFailed):
        verdict(Case(forged))


def _one_more(issued: dict[str, Any]) -> None:
    """A credit of one minor unit more, in every place that says it."""
    more = str(int(issued["credit"]["minor_units"]) + 1)
    issued["trace"]["credit"] = issued["credit"]["minor_units"] = more


BY_TOTALS = ("a cap in percent", "caps of scopes")
"""Kinds of terms beside tiers and fixed caps of which totals say everything."""

LIES_BESIDE_TOTALS: dict[str, Callable[[dict[str, Any]], object]] = {
    "more than the terms give": _one_more,
    "another combined amount": lambda issued: put(issued, "trace.combined_amount.numerator", "1"),
    "no capped amount": lambda issued: put(issued, "trace.capped_amount", None),
    "payable, as a number": lambda issued: put(issued, "trace.payable", 1),
    "incidents that no rule pays for": lambda issued: put(issued, "trace.incidents", "0"),
    "another scope": lambda issued: put(issued, "trace.scopes", [{"scope": "region=ap"}]),
    "no caps": lambda issued: put(issued, "trace.caps", ["none"]),
}


@pytest.mark.parametrize("kind", BY_TOTALS)
@pytest.mark.parametrize("name", LIES_BESIDE_TOTALS)
def test_where_no_rule_looks_at_incidents_every_step_follows_from_totals(kind: str, name: str) -> None:
    """A credit above what the terms give verified: it was taken for one of incidents."""
    honest = json.loads(evidence(kind).bundle)
    assert verdict(Case(honest)).endswith("USD by the terms")
    LIES_BESIDE_TOTALS[name](honest["statement"]["payload"])
    with pytest.raises(BundleCheckFailed):
        verdict(Case(honest))


def test_a_credit_below_its_tiers_is_caught(settled: dict[str, Any]) -> None:
    forged = copy.deepcopy(settled)
    issued = forged["statement"]["payload"]
    issued["trace"]["credit"] = issued["credit"]["minor_units"] = "23999"
    with pytest.raises(BundleCheckFailed, match="the tiers alone give 24000"):
        verdict(Case(forged))


@pytest.mark.parametrize("currency", ["JPY", None])
def test_a_credit_that_is_missing_or_in_another_money_is_caught(settled: dict[str, Any], currency: str | None) -> None:
    forged = copy.deepcopy(settled)
    issued = forged["statement"]["payload"]
    issued["credit"] = None if currency is None else issued["credit"] | {"currency": currency}
    with pytest.raises(BundleCheckFailed, match="the credit is missing or in another money"):
        verdict(Case(forged))
