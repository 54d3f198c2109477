"""The explanation over REST: what the command line says, without what the scopes do not cover."""

from __future__ import annotations

import json
from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.access import Role
from ledger.app.reading.explanation import read_explanation
from tests.api.asking import World, bearer, client_of_world
from tests.api.filled import Ledger

Client = TestClient[Any]
client = client_of_world


@pytest.fixture
def statement(ledger: Ledger) -> str:
    """A settled day with a judged hour, a violation and a credit line."""
    sla_id = ledger.agreement(1)
    ledger.window(sla_id, 0, good=7, bad=3)
    missed = ledger.violation(sla_id, 0, ended_by="met", clause="Annex 2, 3.1", unit="requests")
    name = ledger.statement(sla_id)
    ledger.credit_line(sla_id, name, violation_id=missed)
    return name


def asked(client: Client, headers: dict[str, str], statement: str, query: str = "") -> Any:
    return client.get(f"/v1/statements/{statement}/explanation{query}", headers=headers)


def test_it_is_what_the_command_line_shows(client: Client, world: World, statement: str) -> None:
    answer = asked(client, bearer(world.key(Role.CUSTOMER_ADMIN)), statement)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    with world.ledger.database.read() as tx:
        expected = json.loads(json.dumps(read_explanation(tx, statement), default=list))
    for name in ("format", "statement", "credit", "credit_lines"):
        assert found[name] == expected[name], name
    assert found["withheld"] == []
    assert found["credit"]["steps"][-1]["result"] == "80000"
    (violation,) = found["violations"]
    assert (violation["clause"], violation["target"], violation["withheld"]) == ("Annex 2, 3.1", "99.95", [])
    (availability,) = found["objectives"]
    assert availability["units"]["listed"][0]["bad"] == 3
    assert availability["verdict"]["left"] == str(999_949 * 10**9)


def test_all_windows_where_they_are_asked_for(client: Client, world: World, ledger: Ledger, statement: str) -> None:
    headers = bearer(world.key(Role.CUSTOMER_ADMIN))
    assert asked(client, headers, statement, "?windows=all").status_code == 200
    assert asked(client, headers, statement, "?windows=some").status_code == 400
    assert asked(client, headers, "1f0c3a9b7e21.2023-12-01.v1").status_code == 404


def test_a_viewer_sees_no_money_and_no_terms(client: Client, world: World, statement: str) -> None:
    answer = asked(client, bearer(world.key(Role.OPERATIONS_VIEWER)), statement)
    found = answer.json()
    assert (found["credit"], found["credit_lines"]) == (None, None)
    assert set(found["withheld"]) == {"credit", "credit_lines"}
    assert found["coverage"]["floor"] is None
    (objective,) = found["objectives"]
    assert [objective[name] for name in ("clause", "parameters", "verdict", "units")] == [None] * 4
    assert (objective["counts"]["bad"], objective["state"]) == (51, "breached")
    (violation,) = found["violations"]
    assert (violation["target"], violation["clause"], violation["bad"]) == (None, None, 3)
    assert not any(secret in answer.text for secret in ("99.95", '"80000"', '"800000"', "999500000", "Annex"))


def test_finance_sees_what_is_owed_and_no_counts(client: Client, world: World, statement: str) -> None:
    found = asked(client, bearer(world.key(Role.FINANCE)), statement).json()
    assert found["credit"] is found["violations"] is None
    assert [line["minor_units"] for line in found["credit_lines"]]
    assert found["objectives"][0]["counts"] is None
    assert "counts" in found["objectives"][0]["withheld"]
