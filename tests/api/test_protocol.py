"""What holds for every answer: problems, methods, hosts, conditional requests, headers."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from api.problems import problem_of
from tests.api.serving import app_over

Client = TestClient[Any]
SLA = "0x" + "00" * 32
PATHS = (
    "/v1/agreements",
    f"/v1/agreements/{SLA}",
    "/v1/statements",
    "/v1/statements/x",
    "/v1/statements/x/inclusion",
    "/v1/credits",
    f"/v1/windows?sla_id={SLA}&period=2023-12-19/P1D",
    "/v1/violations",
    "/v1/violations/x",
    "/v1/credit-lines",
    "/v1/exports/credits.csv",
    f"/v1/webhooks/wh_{'0' * 24}/deliveries",
    "/v1/bundles/x",
    "/v1/events",
    "/v1/checkpoints/latest",
    "/v1/checkpoints/1",
    "/v1/chain",
    "/v1/log",
    "/v1/statements/x/tlog-proof",
    "/log/0123456789abcdef/checkpoint",
    "/log/0123456789abcdef/tile/0/000",
    "/dashboard",
    f"/embed?sla_id={SLA}",
    "/embed/sla-dashboard.js",
    "/embed/nothing.js",
    f"/v1/embed/summary?sla_id={SLA}",
    "/health/live",
    "/health/ready",
    "/schema/openapi.json",
    "/schema",
    "/schema/swagger",
    "/nothing",
    "/",
)


def assert_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert "etag" not in response.headers
    problem: dict[str, Any] = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:sla-ledger:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["instance"] == response.request.url.path
    return problem


UNSERVED = ("/nothing", "/", "/schema/swagger")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_route_that_reads_does_nothing_else(empty_client: Client, method: str) -> None:
    for path in PATHS:
        if path == "/v1/agreements":
            continue
        response = empty_client.request(method, path, content=b'{"a": 1}')
        if path in UNSERVED and path != "/schema/swagger":
            assert_problem(response, 404, "not_found")
        else:
            assert_problem(response, 405, "method_not_allowed")
            assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_route_that_reads_and_writes_names_both(empty_client: Client, method: str) -> None:
    for path in ("/v1/agreements", "/v1/webhooks"):
        response = empty_client.request(method, path, content=b'{"a": 1}')
        assert_problem(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "QUERY", "CONNECT"])
def test_methods_that_no_route_has(empty_client: Client, method: str) -> None:
    for path in PATHS:
        response = empty_client.request(method, path)
        assert_problem(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "GET, HEAD, POST, PUT, PATCH, DELETE"


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_the_body(empty_client: Client, path: str) -> None:
    whole, head = empty_client.get(path), empty_client.head(path)
    assert head.content == b""
    assert head.status_code == whole.status_code
    ids = [answer.headers.pop("x-request-id") for answer in (whole, head)]
    assert len(set(ids)) == 2
    assert dict(head.headers) == dict(whole.headers)
    assert int(head.headers["content-length"]) == len(whole.content)


@pytest.mark.parametrize("path", PATHS)
def test_security_headers_on_every_answer(empty_client: Client, path: str) -> None:
    for response in (empty_client.get(path), empty_client.post(path), empty_client.get(path, params={"unknown": "1"})):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["referrer-policy"] == "no-referrer"
        # The dashboard's modules hold no figures, and pages of any origin may load them.
        if path != "/embed/sla-dashboard.js":
            assert not [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/agreements", {}),
        ("/v1/agreements", {"Access-Control-Request-Method": "POST"}),
        ("/v1/agreements", {"Access-Control-Request-Headers": "authorization, sla-tenant"}),
        ("/v1/agreements", {"Access-Control-Request-Headers": "content-type"}),
        ("/v1/agreements", {"Origin": "null"}),
        ("/v1/agreements", {"Origin": "https://evil.example\r\nx: y"}),
        ("/graphql", {"Access-Control-Request-Headers": "authorization"}),
        ("/schema/openapi.json", {"Access-Control-Request-Headers": "authorization"}),
    ],
)
def test_cross_origin_preflight_gets_no_permission(empty_client: Client, path: str, headers: dict[str, str]) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"} | headers
    response = empty_client.options(path, headers=asked)
    assert_problem(response, 405, "method_not_allowed")
    assert not [name for name in response.headers if name.startswith("access-control-")]


def test_pages_elsewhere_read_nothing_without_a_token_made_for_them(ledger: Any, client: Client) -> None:
    ledger.agreement(1)
    for origin in ("https://evil.example", "http://127.0.0.1", "null"):
        for headers in ({}, {"authorization": "Bearer slk_x"}):
            response = client.get("/v1/agreements", headers={"origin": origin, **headers})
            assert not [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/nothing", "/", "/v1", "/v1/checkpoints/x", "/schema/swagger", "/schema/x.json"])
def test_unknown_path(empty_client: Client, path: str) -> None:
    assert_problem(empty_client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/agreements/{SLA}",
        f"/v1/statements?sla_id={SLA}",
        f"/v1/credits?sla_id={SLA}",
        "/v1/statements/x",
        "/v1/statements/x/inclusion",
        "/v1/bundles/x",
        "/v1/agreements/%00",
        "/v1/statements/%F0%9F%92%A9",
    ],
)
def test_unknown_id(empty_client: Client, path: str) -> None:
    assert_problem(empty_client.get(path), 404, "not_found")


@pytest.mark.parametrize("path", ["/v1/agreements", "/v1/statements", "/v1/credits", "/v1/events"])
@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "", "1_0", "10.5", "99999999999999999999999999"])
def test_limit_outside_its_bounds(empty_client: Client, path: str, limit: str) -> None:
    problem = assert_problem(empty_client.get(path, params={"limit": limit}), 400, "query_invalid")
    assert problem["data"]["parameters"][0]["parameter"] == "limit"


@pytest.mark.parametrize(
    "path",
    ["/v1/events?since=-1", f"/v1/events?since={2**63}", "/v1/statements?sla_id=0x12", f"/v1/checkpoints/{2**64}"],
)
def test_value_outside_its_bounds(empty_client: Client, path: str) -> None:
    assert_problem(empty_client.get(path), 400, "query_invalid")


@pytest.mark.parametrize("path", [path for path in PATHS if path not in UNSERVED])
def test_unknown_parameter_is_refused_everywhere(empty_client: Client, path: str) -> None:
    problem = assert_problem(empty_client.get(path, params={"sla": "typo"}), 400, "query_invalid")
    assert problem["data"] == {"parameter": "sla"}


@pytest.mark.parametrize("name", ["queries", "health", "request", "statement_id"])
def test_names_inside_the_program_are_no_parameters(empty_client: Client, name: str) -> None:
    assert_problem(empty_client.get("/v1/statements/x", params={name: "1"}), 400, "query_invalid")
    assert_problem(empty_client.get("/health/ready", params={name: "1"}), 400, "query_invalid")


def test_parameter_given_twice(empty_client: Client) -> None:
    assert_problem(empty_client.get("/v1/agreements?limit=1&limit=2"), 400, "query_invalid")


def test_body_of_a_get_is_ignored(ledger: Any, client: Client) -> None:
    ledger.agreement(1)
    whole = client.get("/v1/agreements")
    response = client.request("GET", "/v1/agreements", content=b"x" * 1_000_000)
    assert (response.status_code, response.content) == (200, whole.content)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "[::1]"])
def test_hosts_of_this_machine(empty_client: Client, host: str) -> None:
    assert empty_client.get("/health/live", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "127.0.0.1:8120@evil.example",
        "127.0.0.1:evil",
        "[::2]",
        "[::1",
        "",
    ],
)
def test_other_hosts_are_refused(empty_client: Client, host: str) -> None:
    # A page of evil.example whose name was rebound to 127.0.0.1 sends its own name here.
    assert_problem(empty_client.get("/v1/agreements", headers={"host": host}), 421, "host_not_served")


def test_etag_changes_with_the_answer_and_saves_the_body(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)
    for path in ("/v1/statements", f"/v1/statements/{name}", "/v1/events", "/schema/openapi.json"):
        first = client.get(path)
        etag = first.headers["etag"]
        for given in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            same = client.get(path, headers={"if-none-match": given})
            assert (same.status_code, same.content) == (304, b"")
            assert same.headers["etag"] == etag
            assert "content-type" not in same.headers
        for given in ('"other"', etag.strip('"'), ""):
            assert client.get(path, headers={"if-none-match": given}).status_code == 200
    stale = client.get("/v1/statements").headers["etag"]
    ledger.attest(name, sla_id)
    fresh = client.get("/v1/statements", headers={"if-none-match": stale})
    assert fresh.status_code == 200
    assert fresh.headers["etag"] != stale


def test_health_is_never_stored(empty_client: Client) -> None:
    for path in ("/health/live", "/health/ready"):
        response = empty_client.get(path, headers={"if-none-match": "*"})
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
        assert "etag" not in response.headers


def test_unforeseen_error_tells_nothing(ledger: Any, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_statement_id: str, _tenant: str) -> bytes:
        raise RuntimeError("the secret is 12345")

    name = ledger.statement(ledger.agreement(1))
    ledger.get = broken
    response = client.get(f"/v1/bundles/{name}")
    problem = assert_problem(response, 500, "internal")
    assert "12345" not in response.text
    assert problem["data"] == {}
    # The operator sees it, though.
    assert "12345" in caplog.text


def test_problem_data_has_no_number_beyond_2_to_the_53() -> None:
    from ledger.errors import Refused

    problem = problem_of(Refused("no", amount=2**64, raw=b"\x01", names={"b"}, deep={"n": [-(2**53)]}), "/x")
    assert problem.status == 409
    assert problem.data == {"amount": str(2**64), "raw": "01", "names": ["b"], "deep": {"n": [str(-(2**53))]}}


def test_other_names_can_be_served(ledger: Any) -> None:
    with TestClient(app_over(ledger, hosts=["sla.example"]), base_url="http://sla.example") as client:
        assert client.get("/health/live").status_code == 200
        assert client.get("/health/live", headers={"host": "127.0.0.1"}).status_code == 421
