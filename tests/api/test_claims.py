"""Charges are handed in and credits claimed over HTTP, by whoever may."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger.app.access import Role
from ledger.app.agreements.registering import load_agreement
from ledger.app.facts.observations import record_observations
from ledger.domain.record.naming import observations_stream
from ledger.domain.terms.period_names import period_named
from ledger.ingest.facts import read_facts
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services
from tests.api.settling import As, work
from tests.support.deployment import example_terms

DAY = datetime.now(UTC).date() - timedelta(days=20)
PERIOD = f"{DAY}/P1D"
LINE = {"service": "example-chat", "region": "eu", "kind": "recurring", "amount": "1000.00", "currency": "USD"}
CHARGED = """query ($sla: ID!, $period: String!, $statement: ID!) {
  charges(slaId: $sla, period: $period) { version lines { service amount } }
  claims(statementId: $statement) { status lineId evidence filedBy }
}"""


@pytest.fixture
def sla_id(services: Services, as_: As) -> str:
    """An agreement by recorded charges and claims, with a closed day of which half failed in one hour."""
    parties, terms = DemoParties(services.keyring), example_terms()
    compensation = {key: value for key, value in terms["compensation"].items() if key != "base"}
    terms |= {
        "nonce": "0x" + services.randomness.bytes(32).hex(),
        "compensation": {**compensation, "charges": {"of": "period"}},
        "effective": {"from": str(DAY - timedelta(days=5)), "until": str(DAY + timedelta(days=40))},
        "settlement": {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}},
    }
    document = parties.signed(parties.with_keys(terms))
    operator = as_(Role.OPERATOR)
    registered: str = operator.post("/v1/agreements", json={"document": document}).json()["sla_id"]
    rows = [
        {"request_id": "a", "error_code": None, "ttft_s": 0.2, "e2e_s": 1.0},
        {"request_id": "b", "error_code": 503},
    ]
    common = {"started_at": f"{DAY}T10:00:00Z", "service": "example-chat"}
    log = "".join(json.dumps({**row, **common}) + "\n" for row in rows)
    with services.database.begin() as tx:
        known = load_agreement(tx, registered, services.attestor)
        record_observations(
            tx,
            known,
            log.encode(),
            read_rows=read_facts,
            declared_complete=period_named(known.agreement, PERIOD).interval,
            now_ns=services.clock.now_ns(),
        )
    assert operator.post(f"/v1/agreements/{registered}/periods/{DAY}/close").status_code == 202
    work(services)
    return registered


def problem(response: Any, status: int, code: str) -> Any:
    assert response.status_code == status, response.text
    assert response.json()["code"] == code
    return response.json()["data"]


def batch_of(services: Services, sla_id: str) -> str:
    with services.database.read() as tx:
        source = load_agreement(tx, sla_id, services.attestor).agreement.source
        (event,) = tx.events.stream(observations_stream(sla_id, source))
        return str(event.payload["digest"])


def test_finance_hands_in_and_the_customer_claims(services: Services, as_: As, sla_id: str) -> None:
    finance, customer = as_(Role.FINANCE), as_(Role.CUSTOMER_ADMIN)
    path = f"/v1/agreements/{sla_id}/charges"
    problem(finance.get(path, params={"period": PERIOD}), 404, "not_found")
    recorded = finance.post(path, json={"period": PERIOD, "lines": [LINE]})
    assert recorded.status_code == 202, recorded.text
    assert finance.post(path, json={"period": PERIOD, "lines": [LINE]}).json() == recorded.json()
    shown = customer.get(path, params={"period": PERIOD}).json()
    assert (shown["version"], shown["lines"]) == (1, [LINE])
    work(services)
    statement = f"{sla_id[2:14]}.{DAY}.v1"
    claims = f"/v1/statements/{statement}/claims"
    (found,) = customer.get(claims).json()["items"]
    assert (found["status"], found["credit"]["amount"], found["scope"]) == ("open", "500.00", "all")
    assert found["deadline"]["rfc3339"] == f"{DAY + timedelta(days=31)}T00:00:00Z"
    assert customer.get("/v1/credit-lines").json()["items"] == []
    (shown_claim,) = customer.get("/v1/embed/summary", params={"sla_id": sla_id}).json()["claims"]
    assert shown_claim == {name: found[name] for name in shown_claim}
    viewer = as_(Role.OPERATIONS_VIEWER).get("/v1/embed/summary", params={"sla_id": sla_id}).json()
    assert viewer["claims"] is None
    key = {"idempotency-key": "k1"}
    unknown = problem(customer.post(claims, json={"evidence": "ab" * 32}, headers=key), 409, "claim_refused")
    assert unknown["evidence"] == "ab" * 32
    batch = batch_of(services, sla_id)
    filed = customer.post(claims, json={"evidence": batch}, headers=key)
    assert filed.status_code == 200, filed.text
    (claim,) = filed.json()["items"]
    assert (claim["by"], claim["evidence"]) == ("the customer_admin", batch)
    (line,) = customer.get("/v1/credit-lines").json()["items"]
    assert (line["id"], line["credit"]["minor_units"]) == (claim["line_id"], "50000")
    assert customer.post(claims, json={"evidence": batch}, headers=key).json() == filed.json()
    data = problem(customer.post(claims, json={}, headers={"idempotency-key": "k2"}), 409, "claim_refused")
    assert data["deadline"] == found["deadline"]["rfc3339"]
    problem(customer.post(claims, json={}, headers=key), 409, "idempotency_conflict")
    assert customer.get(claims).json()["items"][0]["filed"] == claim
    (shown_claim,) = customer.get("/v1/embed/summary", params={"sla_id": sla_id}).json()["claims"]
    assert (shown_claim["claim_id"], shown_claim["status"]) == (claim["claim_id"], "filed")
    asked = {"query": CHARGED, "variables": {"sla": sla_id, "period": PERIOD, "statement": statement}}
    assert customer.post("/graphql", json=asked).json()["data"] == {
        "charges": {"version": 1, "lines": [{"service": LINE["service"], "amount": LINE["amount"]}]},
        "claims": [{"status": "filed", "lineId": line["id"], "evidence": batch, "filedBy": "the customer_admin"}],
    }


def test_who_may_do_what(services: Services, as_: As, sla_id: str) -> None:
    charges, body = f"/v1/agreements/{sla_id}/charges", {"period": PERIOD, "lines": [LINE]}
    for role in (Role.CUSTOMER_ADMIN, Role.OPERATIONS_VIEWER):
        assert problem(as_(role).post(charges, json=body), 403, "access_denied") == {"scope": "sla:write:credits"}
    assert as_(Role.FINANCE).post(charges, json=body).status_code == 202
    work(services)
    claims = f"/v1/statements/{sla_id[2:14]}.{DAY}.v1/claims"
    for role in (Role.FINANCE, Role.OPERATIONS_VIEWER):
        refused = as_(role).post(claims, json={}, headers={"idempotency-key": "k1"})
        assert problem(refused, 403, "access_denied") == {"scope": "sla:write:claims"}
    for path in (claims, f"{charges}?period={PERIOD}"):
        problem(as_(Role.OPERATIONS_VIEWER).get(path), 403, "access_denied")
        assert as_(Role.CUSTOMER_ADMIN, frozenset({sla_id})).get(path).status_code == 200
        # One who is limited to other agreements is told no more than of one that is not there.
        problem(as_(Role.CUSTOMER_ADMIN, frozenset({"0x" + "00" * 32})).get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"period": PERIOD, "lines": []}, 400, "query_invalid"),
        ({"period": PERIOD, "lines": [{**LINE, "amount": "-1"}]}, 400, "document_invalid"),
        ({"period": PERIOD, "lines": [{**LINE, "currency": "XYZ"}]}, 400, "document_invalid"),
        ({"period": PERIOD, "lines": [{**LINE, "amount": "0"}]}, 409, "charges_refused"),
        ({"period": "1999-01-01/P1D", "lines": [LINE]}, 400, "document_invalid"),
        ({"lines": [LINE]}, 400, "query_invalid"),
    ],
)
def test_charges_that_cannot_be_used(as_: As, sla_id: str, body: Any, status: int, code: str) -> None:
    finance = as_(Role.FINANCE)
    refused = finance.post(f"/v1/agreements/{sla_id}/charges", json=body)
    assert refused.status_code == status, refused.text
    assert refused.json()["code"] == code, refused.text
    assert finance.get(f"/v1/agreements/{sla_id}/charges", params={"period": PERIOD}).status_code == 404
