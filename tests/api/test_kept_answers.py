"""Answers that are kept: given again while the log stands still, and to nobody they were not made for."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from api.answers import KeptAnswer, KeptAnswers
from ledger.app.access import ROLE_SCOPES, Principal, Role
from tests.api.conftest import Ledger

VIEWER = Principal("a", "alice", ROLE_SCOPES[Role.OPERATIONS_VIEWER])


def answer(body: bytes, log_size: int = 1) -> KeptAnswer:
    return KeptAnswer(body, b"application/json", b'"etag"', "/v1/statements", log_size)


def test_a_kept_answer_is_the_one_that_was_given(client: TestClient[Any], ledger: Ledger) -> None:
    ledger.statement(ledger.agreement(1))
    first, second = client.get("/v1/statements"), client.get("/v1/statements")
    assert first.content == second.content
    # What names the request differs, and nothing else.
    assert {**first.headers, "x-request-id": ""} == {**second.headers, "x-request-id": ""}
    assert client.get("/v1/statements", headers={"If-None-Match": first.headers["etag"]}).status_code == 304


def test_it_is_not_given_once_the_log_has_grown(client: TestClient[Any], ledger: Ledger) -> None:
    sla_id = ledger.agreement(1)
    for day in range(3):
        ledger.statement(sla_id, day)
        assert len(client.get("/v1/statements").json()["items"]) == day + 1


def test_each_query_has_its_own(client: TestClient[Any], ledger: Ledger) -> None:
    sla_id = ledger.agreement(1)
    for day in range(3):
        ledger.statement(sla_id, day)
    for _ in range(2):
        assert [len(client.get(f"/v1/statements?limit={n}").json()["items"]) for n in (1, 2, 3)] == [1, 2, 3]


def test_a_problem_is_not_kept(client: TestClient[Any], ledger: Ledger) -> None:
    name = "/v1/agreements/0x" + "00" * 32
    assert [client.get(name).status_code for _ in range(2)] == [404, 404]


@pytest.mark.parametrize(
    "other",
    [
        Principal("a", "bob", VIEWER.scopes),
        Principal("a", "alice", ROLE_SCOPES[Role.CUSTOMER_ADMIN]),
        Principal("a", "alice", VIEWER.scopes, frozenset({"0x01"})),
    ],
    ids=["another tenant", "other scopes", "fewer agreements"],
)
def test_who_sees_something_else_finds_nothing(other: Principal) -> None:
    kept = KeptAnswers()
    kept.keep(KeptAnswers.place("/v1/statements", b"", VIEWER), answer(b"of alice's viewers"))
    assert kept.find(KeptAnswers.place("/v1/statements", b"", other), 1) is None
    same = Principal("another subject", "alice", VIEWER.scopes)
    assert kept.find(KeptAnswers.place("/v1/statements", b"", same), 1) is not None


def test_the_oldest_make_room() -> None:
    kept = KeptAnswers(max_bytes=10)
    for number in range(5):
        kept.keep(number, answer(b"1234"))
    assert [kept.find(number, 1) is not None for number in range(5)] == [False, False, False, True, True]
    kept.find(3, 1)
    kept.keep(5, answer(b"1234"))
    assert kept.find(3, 1) is not None
    assert kept.find(4, 1) is None


def test_a_newer_answer_takes_the_place_of_the_older() -> None:
    kept = KeptAnswers(max_bytes=10)
    for size in range(1, 100):
        kept.keep("place", answer(b"12345678", size))
        assert kept.find("place", size) is not None
        assert kept.find("place", size - 1) is None


def test_a_giant_is_not_kept() -> None:
    kept = KeptAnswers()
    kept.keep("giant", answer(bytes(1024 * 1024 + 1)))
    assert kept.find("giant", 1) is None
