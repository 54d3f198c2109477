"""Figures that a viewer may not see, looked for in every answer that a viewer can get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from litestar.testing import TestClient

from ledger.app.access import ROLE_SCOPES, Role, Scope
from tests.api.asking import (
    ABOUT_A_PERIOD,
    ABOUT_ONE,
    GRAPHQL,
    World,
    ask,
    bearer,
    body_of,
    client_of_world,
    every_route,
)
from tests.api.filled import EXAMPLE, REGISTRY, TRACE, Ledger
from tests.support.canaries import CANARIES, SPELLINGS, canary_document, found_in

Client = TestClient[Any]
QUERIES = (
    "",
    "?limit=1",
    "?limit=100",
    "?sla_id={sla_id}",
    "?sla_id={sla_id}&period={period}",
    "?period={period}",
    "?statement_id={statement_id}",
    "?state=closed",
    "?status=applied",
    "?from=2023-01-01&to=2025-01-01",
    "?cursor=x",
    "?limit=x",
    "?unknown=1",
    "?since=0",
    "?size=1",
)
ACCEPTED = ("*/*", "text/csv", "application/problem+json", "text/html")
client = client_of_world


@pytest.fixture
def values(world: World, ledger: Ledger) -> dict[str, str]:
    """A settled, proved and anchored period whose every figure about money or terms is a canary."""
    document = canary_document(yaml.safe_load(EXAMPLE.read_text()))
    sla_id = ledger.agreement(1, document)
    name = ledger.statement(
        sla_id,
        objectives=[
            {
                "id": "availability",
                "good": 999_949,
                "valid": 1_000_000,
                "target": CANARIES["target"],
                "state": "breached",
            },
            {"id": "ttft", "good": 9, "valid": 10, "target": CANARIES["target"], "state": "met"},
        ],
        credit={"currency": "USD", "minor_units": CANARIES["credit"]},
        trace={
            **TRACE,
            "base": "3131313",
            "steps": [f"{CANARIES['percent']} % of {CANARIES['base']}"],
            "credit": CANARIES["credit"],
        },
        attestable=False,
        unattested_reasons=[CANARIES["reason"]],
    )
    ledger.attest(name, sla_id, signals=[CANARIES["credit"], "1", "2", "3", "4", "5"])
    ledger.anchor(name, sla_id)
    ledger.bundles[name] = ("{" + ",".join(f'"{key}":"{value}"' for key, value in CANARIES.items()) + "}").encode()
    missed = ledger.violation(sla_id, target=CANARIES["target"], ended_by="met")
    amount = {"currency": "USD", "minor_units": CANARIES["credit"]}
    line = ledger.credit_line(sla_id, name, violation_id=missed, **amount)
    gone = ledger.credit_line(sla_id, name, 2, **amount)
    ledger.window(sla_id)
    ledger.charges(sla_id, amount=SPELLINGS["credit"][1])
    ledger.sign_checkpoint()
    headers = bearer(world.key(Role.OPERATOR))
    with world.client() as client:
        asked = {"url": "https://hooks.example/sla", "types": ["statement.issued", "credit.issued"]}
        endpoint = client.post("/v1/webhooks", json=asked, headers=headers | {"idempotency-key": "canary"}).json()
        for path, body in ((f"{line}/apply", {"reference": "INV-1"}), (f"{gone}/reverse", {"reason": "in error"})):
            changed = client.post(f"/v1/credit-lines/{path}", json=body, headers=headers | {"idempotency-key": path})
            assert changed.status_code == 200, changed.text
        path = "/v1/agreements/{sla_id}/exclusions"
        for release in ("release-6", "release-7"):
            body = {**body_of(path, {}).content, "id": release}
            recorded = client.post(path.format(sla_id=sla_id), json=body, headers=headers)
            assert recorded.json()["exclusion"]["ruling"] == "shortened", recorded.text
    return {
        "sla_id": sla_id,
        "statement_id": name,
        "violation_id": missed,
        "line_id": line,
        "exclusion_id": "release-6",
        "endpoint_id": endpoint["id"],
        "size": "1",
        "registry": REGISTRY,
        "period": "2023-12-01/P1D",
        "first": "2023-12-01",
    }


def answers(world: World, client: Client, values: dict[str, str], headers: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """What every route answers, to good and bad questions alike."""
    for method, path, _ in every_route(world.app):
        for query in QUERIES:
            for accept in ACCEPTED if not query else ACCEPTED[:1]:
                asked = query.format(**values)
                yield f"{method} {path}{asked}", ask(client, method, path, values, headers | {"accept": accept}, asked)


def callers(world: World, values: dict[str, str]) -> dict[str, str]:
    viewer = world.key(Role.OPERATIONS_VIEWER)
    maker = world.app._authentication.verify([f"Bearer {world.key(Role.CUSTOMER_ADMIN)}".encode()], [])
    guest = world.guests.make(maker, [values["sla_id"]], ttl_s=300, origin="https://p.example", scopes=None)
    return {
        "a viewer's key": viewer,
        "a viewer's access token": world.token(tenant="default", roles=["operations_viewer"]),
        "an admin's access token narrowed to uptime": world.token(
            tenant="default", roles=["customer_admin"], scope="sla:read:agreements sla:read:uptime sla:read:latency"
        ),
        "a guest": guest.text,
    }


def test_the_canaries_are_there_for_who_may_see_them(world: World, client: Client, values: dict[str, str]) -> None:
    headers = bearer(world.key(Role.OPERATOR))
    seen = {name for _, response in answers(world, client, values, headers) for name in found_in(response)}
    assert seen == set(CANARIES)


def test_a_viewer_meets_none_of_them(world: World, client: Client, values: dict[str, str]) -> None:
    for who, text in callers(world, values).items():
        statuses = set()
        for asked, response in answers(world, client, values, bearer(text)):
            statuses.add(response.status_code)
            assert not found_in(response), (who, asked, response.text)
        assert {200, 400, 403} <= statuses
        assert not statuses & set(range(500, 600))


def test_the_questions_reach_every_route(world: World, client: Client, values: dict[str, str]) -> None:
    """Of each route at least one question is good: nothing is hidden behind a 400 that asks for more."""
    headers = bearer(world.key(Role.OPERATOR))
    statuses: dict[str, set[int]] = {}
    for asked, response in answers(world, client, values, headers):
        statuses.setdefault(asked.partition("?")[0], set()).add(response.status_code)
    refused = {
        # What they take needs keys, names a file of this very log, or was done before.
        "GET /log/{log_id}/checkpoint",
        "GET /log/{log_id}/tile/{tile_path}",
        "GET /embed/{file_name}",
        "GET /schema/{path}",
        "GET /v1/checkpoints/{size}",
        "POST /v1/agreements",
        "POST /v1/agreements/registration-digest",
        # These terms have a base and settle by themselves.
        "POST /v1/agreements/{sla_id}/charges",
        "POST /v1/statements/{statement_id}/claims",
        "POST /v1/statements/{statement_id}/probe-signature",
        "POST /v1/agreements/{sla_id}/amendments",
        "POST /v1/agreements/{sla_id}/terminate",
        "POST /v1/agreements/{sla_id}/periods/{first}/close",
        "POST /v1/credit-lines/{line_id}/apply",
        "POST /v1/breaker-events",
        "POST /v1/observations",
    }
    assert {asked for asked, found in statuses.items() if not found & {200, 201, 202}} <= refused


def test_graphql_withholds_what_rest_withholds(world: World, client: Client, values: dict[str, str]) -> None:
    found = {}
    for role in (Role.OPERATOR, Role.OPERATIONS_VIEWER):
        found[role] = set()
        variables = {"sla": values["sla_id"], "statement": values["statement_id"]}
        period = {"sla": values["sla_id"], "period": values["period"]}
        for asked in (
            {"query": GRAPHQL},
            {"query": ABOUT_ONE, "variables": variables},
            {"query": ABOUT_A_PERIOD, "variables": period},
        ):
            answer = client.post("/graphql", json=asked, headers=bearer(world.key(role)))
            assert answer.status_code == 200
            found[role] |= found_in(answer)
            denied = {each["extensions"]["code"] for each in answer.json().get("errors", [])}
            assert denied == (set() if role is Role.OPERATOR else {"FORBIDDEN"}), answer.text
    assert found[Role.OPERATOR] == set(CANARIES)
    assert found[Role.OPERATIONS_VIEWER] == set()


def test_finance_sees_the_credit_and_no_threshold(world: World, client: Client, values: dict[str, str]) -> None:
    headers = bearer(world.key(Role.FINANCE))
    assert Scope.READ_THRESHOLDS not in ROLE_SCOPES[Role.FINANCE]
    seen = {name for _, response in answers(world, client, values, headers) for name in found_in(response)}
    assert seen == {"credit"}


def test_what_is_withheld_is_null_and_named(world: World, client: Client, values: dict[str, str]) -> None:
    headers = bearer(world.key(Role.OPERATIONS_VIEWER))
    agreement = client.get(f"/v1/agreements/{values['sla_id']}", headers=headers).json()
    assert (agreement["document"], agreement["withheld"]) == (None, ["document"])
    assert agreement["summary"]["objectives"] == ["availability", "ttft", "response"]
    detail = client.get(f"/v1/statements/{values['statement_id']}", headers=headers).json()
    assert (detail["trace"], detail["withheld"]) == (None, ["trace"])
    statement = detail["statement"]
    withheld = ["anchor", "attestation", "credit", "credit_delta", "roots", "unattested_reasons"]
    assert sorted(statement["withheld"]) == withheld
    assert [statement[name] for name in withheld] == [None] * 6
    for result in statement["objectives"]:
        assert (result["target_percent"], result["withheld"]) == (None, ["target_percent"])
        assert result["good"] is not None
        assert result["attainment_percent"] is not None
    (listed,) = client.get("/v1/statements", headers=headers).json()["items"]
    assert listed == statement


@pytest.mark.parametrize(
    ("scope", "seen"), [("sla:read:uptime", ["availability"]), ("sla:read:latency", ["ttft"]), ("sla:read:proofs", [])]
)
def test_counts_need_the_scope_of_their_indicator(
    world: World, client: Client, values: dict[str, str], scope: str, seen: list[str]
) -> None:
    text = world.token(tenant="default", roles=None, scope=f"sla:read:agreements {scope}")
    (statement,) = client.get("/v1/statements", headers=bearer(text)).json()["items"]
    for result in statement["objectives"]:
        assert (result["good"] is not None) == (result["id"] in seen)
        if result["good"] is None:
            assert (result["valid"], result["attainment_percent"]) == (None, None)
            assert {"good", "valid", "attainment_percent"} <= set(result["withheld"])


def test_everything_is_there_for_an_admin(world: World, client: Client, values: dict[str, str]) -> None:
    headers = bearer(world.key(Role.CUSTOMER_ADMIN))
    detail = client.get(f"/v1/statements/{values['statement_id']}", headers=headers).json()
    assert detail["statement"]["credit"]["minor_units"] == CANARIES["credit"]
    assert detail["statement"]["unattested_reasons"] == [CANARIES["reason"]]
    assert detail["statement"]["withheld"] == detail["withheld"] == []
    assert all(result["withheld"] == [] for result in detail["statement"]["objectives"])
