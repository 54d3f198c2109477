"""The OpenAPI document describes what is served, all of it, and loads nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import operation_id
from api.auth.guard import needed_scopes
from api.edge import Edge
from tests.api.asking import body_of, every_route

Client = TestClient[Any]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "api.md"


@pytest.fixture
def document(client: Client) -> dict[str, Any]:
    response = client.get("/schema/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/vnd.oai.openapi+json"
    found: dict[str, Any] = response.json()
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_version_and_every_route(app: Edge, document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    # GraphQL has a schema of its own, docs/schema.graphql.
    served: dict[str, set[str]] = {}
    for method, path, _ in every_route(app):
        if not path.startswith(("/schema", "/graphql")):
            served.setdefault(path, set()).add(method.lower())
    assert {path: set(item) for path, item in document["paths"].items()} == served
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert len(operations) == sum(len(methods) for methods in served.values())
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation of each."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_every_reference_resolves_inside_the_document(document: dict[str, Any]) -> None:
    found = set(references(document))
    assert found
    for reference in found:
        assert reference.startswith("#/")
        target: Any = document
        for part in reference[2:].split("/"):
            target = target[part]
        assert target


def test_errors_are_documented_as_problems(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                (media_type,) = response["content"]
                assert media_type == "application/problem+json", path
                assert response["content"][media_type]["schema"]["$ref"].endswith("/Problem")
        if path.startswith("/v1/"):
            assert "400" in operation["responses"], path
        # Credentials that do not hold are refused everywhere, and scopes can only be lacking where some are needed.
        assert "401" in operation["responses"], path
        assert ("403" in operation["responses"]) == (operation["security"] != [{}]), path
        if "{" in path:
            assert "404" in operation["responses"], path
        if method == "post" and "requestBody" in operation:
            assert "413" in operation["responses"], path


def test_each_problem_is_described_alike(document: dict[str, Any]) -> None:
    meanings: dict[str, set[str]] = {}
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                meanings.setdefault(status, set()).add(response["description"])
    assert {status: len(found) for status, found in meanings.items()} == dict.fromkeys(meanings, 1)


NAMED_BY_A_KEY = {
    "/v1/credit-lines/{line_id}/apply",
    "/v1/credit-lines/{line_id}/reverse",
    "/v1/statements/{statement_id}/claims",
    "/v1/webhooks",
    "/v1/webhooks/{endpoint_id}/secret",
}
"""What may be meant twice although it is asked in the same words. Of all other changes the words are the name."""


def test_what_may_be_meant_twice_needs_a_key(document: dict[str, Any]) -> None:
    keyed = {
        path
        for path, method, operation in operations(document)
        for parameter in operation.get("parameters", [])
        if (method, parameter["in"], parameter["name"].lower()) == ("post", "header", "idempotency-key")
        and parameter["required"]
    }
    assert keyed == NAMED_BY_A_KEY


@pytest.mark.parametrize("key", [None, "", "two words", "x" * 101, "é"])
def test_a_key_that_is_none_is_refused(ledger: Any, client: Client, key: str | None) -> None:
    sla_id = ledger.agreement(1)
    statement = ledger.statement(sla_id)
    values = {"line_id": ledger.credit_line(sla_id, statement), "endpoint_id": "wh_" + "0" * 24}
    values["statement_id"] = statement
    for path in NAMED_BY_A_KEY:
        headers = {} if key is None else {"idempotency-key": key.encode("latin-1")}
        answer = client.post(path.format(**values), headers=headers, **body_of(path, values).options())  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["code"]) == (400, "query_invalid"), path
        assert "idempotency-key" in answer.json()["detail"].lower(), path
    assert client.get("/v1/webhooks").json() == {"items": []}


def test_every_operation_names_its_scopes(app: Edge, document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    handlers = {
        operation_id(handler): needed_scopes(handler)
        for route in app.app.routes
        for handler in getattr(route, "route_handlers", [])
    }
    for path, _, operation in operations(document):
        needed = handlers[operation["operationId"]]
        assert needed is not None, path
        security = operation.get("security", [{}])
        assert security == ([{"bearer": list(needed)}] if needed else [{}]), path


def test_the_page_of_the_api_lists_every_route(document: dict[str, Any]) -> None:
    rows = re.findall(r"^\| `(GET|POST) ([^|]*) \|", DOCUMENT.read_text(), re.MULTILINE)
    listed = [
        (method.lower(), path.strip("`").partition("?")[0]) for method, paths in rows for path in paths.split(", ")
    ]
    assert len(listed) == len(set(listed))
    assert set(listed) == {(method, path) for path, method, _ in operations(document)}


def test_the_page_names_the_query_parameters(document: dict[str, Any]) -> None:
    """Those that choose what is listed; `limit` and `cursor` are those of every list."""
    for path, query in re.findall(r"`(?:GET |POST )?(/[^`?]+)\?([^`]*)`", DOCUMENT.read_text()):
        of_all = [operation.get("parameters", []) for operation in document["paths"][path].values()]
        named = {each["name"] for parameters in of_all for each in parameters if each["in"] == "query"}
        assert {each.partition("=")[0] for each in query.split("&")} == named - {"limit", "cursor", "theme", "locale"}


def test_nothing_points_outside(client: Client, document: dict[str, Any]) -> None:
    assert document["servers"] == [{"url": "/"}]
    assert not re.search(r"https?://", client.get("/schema/openapi.json").text)
    # The root of the schema is the same document, not a page that loads scripts from elsewhere.
    root = client.get("/schema")
    assert root.json() == document
    assert "html" not in root.headers["content-type"]


def test_answers_have_the_documented_members(ledger: Any, client: Client, document: dict[str, Any]) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)
    ledger.attest(name, sla_id)
    ledger.anchor(name, sla_id)
    violation = ledger.violation(sla_id, ended_by="met")
    ledger.credit_line(sla_id, name, violation_id=violation)
    ledger.window(sla_id)
    ledger.charges(sla_id)
    hook = client.post("/v1/webhooks", headers={"idempotency-key": "1"}, **body_of("/v1/webhooks", {}).options()).json()
    values = {"sla_id": sla_id, "statement_id": name, "violation_id": violation, "period": "2023-12-01/P1D"}
    values["endpoint_id"] = hook["id"]
    reading = {path: item["get"] for path, item in document["paths"].items() if "get" in item}
    for path, operation in reading.items():
        content = operation["responses"]["200"]["content"]
        schema = content.get("application/json", {}).get("schema", {})
        if "$ref" in schema:
            needed = [
                each["name"] for each in operation.get("parameters", []) if each["in"] == "query" and each["required"]
            ]
            answer = client.get(path.format(**values), params={name: values[name] for name in needed})
            assert answer.status_code == 200, path
            check(answer.json(), schema, document, path)


def check(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str) -> None:
    """Members, nesting, patterns and bounds of the keywords that these schemas use."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if "oneOf" in schema:
        options = [option for option in schema["oneOf"] if (option.get("type") == "null") == (value is None)]
        assert options, at
        return check(value, options[0], document, at)
    if schema.get("type") == "object" and "properties" in schema:
        assert set(value) == set(schema["properties"]), at
        for name, member in schema["properties"].items():
            check(value[name], member, document, f"{at}.{name}")
    elif schema.get("type") == "array":
        for index, item in enumerate(value):
            check(item, schema["items"], document, f"{at}[{index}]")
    elif schema.get("type") == "string":
        assert isinstance(value, str), at
        assert re.search(schema.get("pattern", ""), value), at
    elif schema.get("type") == "integer":
        assert isinstance(value, int), at
        assert value >= schema.get("minimum", value), at
    return None
