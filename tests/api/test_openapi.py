"""The OpenAPI document describes what is served, all of it, and loads nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient

from api.edge import Edge

Client = TestClient[Any]


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
    served = {route.path_format for route in app.app.routes if not route.path.startswith(("/schema", "/graphql"))}
    assert set(document["paths"]) == served
    assert len(served) == 17
    assert {method for item in document["paths"].values() for method in item} == {"get"}
    names = [item["get"]["operationId"] for item in document["paths"].values()]
    assert len(names) == len(set(names))


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
    for path, item in document["paths"].items():
        for status, response in item["get"]["responses"].items():
            if int(status) >= 400:
                (media_type,) = response["content"]
                assert media_type == "application/problem+json", path
                assert response["content"][media_type]["schema"]["$ref"].endswith("/Problem")
        if path.startswith("/v1/"):
            assert "400" in item["get"]["responses"], path
        if "{" in path:
            assert "404" in item["get"]["responses"], path


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
    values = {"sla_id": sla_id, "statement_id": name}
    for path, item in document["paths"].items():
        content = item["get"]["responses"]["200"]["content"]
        schema = content.get("application/json", {}).get("schema", {})
        if "$ref" in schema:
            answer = client.get(path.format(**values))
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
