"""Violations: figures by the scope of their indicator, targets and credits by theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.app.access import Scope
from tests.api.graphql.conftest import ADMIN, FINANCE, VIEWER, VIOLATIONS, Asker, codes, holding

QUERY = """query ($state: String, $after: String) { violations(first: 2, state: $state, after: $after) {
    edges { node { id objective good valid targetPercent credit { amount } } } pageInfo { hasNextPage endCursor } } }"""


REQUEST = {
    "request_id": "r-1",
    "trace_id": "abc",
    "at_ns": str(10**18),
    "batch": "ef" * 32,
    "line": 7,
    "error_code": None,
    "latency_ns": "1234567890",
    "conflict": False,
}

SIGNAL = {"kind": "gpu_sample", "event_id": "e-1", "at_ns": str(10**18), "summary": "DRAM_ACTIVE 0.91"}


def row(number: int, indicator: str = "availability", **changes: Any) -> dict[str, Any]:
    facts = {"service": "chat", "period": "2023-12-01/P1D", "first_window": 3, "windows": 2, "good": 90, "valid": 100}
    facts |= {"bad": 10, "worst": {"window": 4, "good": 40, "valid": 50}}
    ends = {"start_ns": 10**18, "end_ns": 10**18 + 1, "ended_by": "met", "reason": None, "revision": 1, "seq": number}
    names = {"id": f"v{number}", "sla_id": "0x" + "ab" * 32, "objective": indicator, "indicator": indicator}
    facts |= {"unit": "requests", "evidence": {"inputs": ["ef" * 32], "signals": [SIGNAL], "requests": [REQUEST]}}
    secrets = {"target": "99.95", "clause": "Annex 2, 3.1", "credit": {"currency": "USD", "minor_units": 80000}}
    return {**names, **facts, **ends, **secrets, "state": "closed", **changes}


@pytest.fixture(autouse=True)
def _rows() -> Iterator[None]:
    VIOLATIONS.rows = [row(0), row(1, "response_latency"), row(2, state="open", credit=None)]
    yield
    VIOLATIONS.rows = []


def nodes(answer: Any) -> list[dict[str, Any]]:
    return [edge["node"] for edge in answer["data"]["violations"]["edges"]]


def test_all_of_a_violation(ask: Asker) -> None:
    answer = ask(QUERY, by=ADMIN)
    assert "errors" not in answer
    first = {"id": "v0", "objective": "availability", "good": 90, "valid": 100}
    assert nodes(answer)[0] == {**first, "targetPercent": "99.95", "credit": {"amount": "800.00"}}
    rest = ask(QUERY, by=ADMIN, variables={"after": answer["data"]["violations"]["pageInfo"]["endCursor"]})
    assert [node["id"] for node in nodes(rest)] == ["v2"]
    assert [node["id"] for node in nodes(ask(QUERY, by=ADMIN, variables={"state": "open"}))] == ["v2"]


def test_its_evidence_is_shown_by_the_scope_of_the_indicator_and_its_clause_by_that_of_terms(ask: Asker) -> None:
    query = """{ violations(first: 2) { edges { node { clause unit inputs signals { kind summary }
        bad worst { window good } requests { requestId traceId line latencyNs } } } } }"""
    request = {"requestId": "r-1", "traceId": "abc", "line": 7, "latencyNs": "1234567890"}
    evidence = {"inputs": ["ef" * 32], "signals": [{"kind": "gpu_sample", "summary": "DRAM_ACTIVE 0.91"}]}
    counts = {"bad": 10, "worst": {"window": 4, "good": 40}, "requests": [request]}
    everything = {"clause": "Annex 2, 3.1", "unit": "requests", **evidence, **counts}
    assert nodes(ask(query, by=ADMIN)) == [everything, everything]
    answer = ask(query, by=holding(Scope.READ_VIOLATIONS, Scope.READ_UPTIME))
    hidden = dict.fromkeys(counts)
    assert nodes(answer) == [everything | {"clause": None}, everything | {"clause": None} | hidden]


def test_a_viewer_sees_neither_targets_nor_credits(ask: Asker) -> None:
    answer = ask(QUERY, by=VIEWER)
    assert nodes(answer)[0]["good"] == 90
    assert {error["extensions"]["scope"] for error in answer["errors"]} == {"sla:read:credits", "sla:read:thresholds"}
    assert not any(secret in json.dumps(answer) for secret in ("99.95", "800.00", "80000"))


def test_counts_need_the_scope_of_their_indicator(ask: Asker) -> None:
    answer = ask(QUERY, by=holding(Scope.READ_VIOLATIONS, Scope.READ_UPTIME))
    assert [node["good"] for node in nodes(answer)] == [90, None]
    assert "sla:read:latency" in {error["extensions"]["scope"] for error in answer["errors"]}


def test_violations_need_a_scope_of_their_own(ask: Asker) -> None:
    answer = ask(QUERY, by=FINANCE)
    assert answer["data"] == {"violations": None}
    assert codes(answer) == ["FORBIDDEN"]
    found = ask('{ violation(id: "v1") { id state } }', by=VIEWER)
    assert found["data"]["violation"] == {"id": "v1", "state": "closed"}
    assert codes(ask('{ violation(id: "none") { id } }', by=VIEWER)) == ["NOT_FOUND"]
