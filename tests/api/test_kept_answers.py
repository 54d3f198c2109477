"""Answers that are kept: given again while the log stands still, and to nobody they were not made for."""

from __future__ import annotations

from typing import Any

import pytest
from litestar.testing import TestClient

from api.answers import ENTRY_BYTES, KeptAnswer, KeptAnswers, Place
from api.edge import Edge
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.reading.queries import Revision
from tests.api.filled import Ledger

NOW: Revision = (1, 0)
VIEWER = Principal("a", "alice", ROLE_SCOPES[Role.OPERATIONS_VIEWER])


def answer(body: bytes, revision: Revision = NOW) -> KeptAnswer:
    return KeptAnswer(body, b"application/json", b'"etag"', "/v1/statements", revision)


def place(number: int) -> Place:
    return KeptAnswers.place(f"/v1/{number}", b"", VIEWER)


ROOM = ENTRY_BYTES + len("/v1/0")


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
    assert kept.find(KeptAnswers.place("/v1/statements", b"", other), NOW) is None
    same = Principal("another subject", "alice", VIEWER.scopes)
    assert kept.find(KeptAnswers.place("/v1/statements", b"", same), NOW) is not None


SPELT = (b"limit=50&sla_id=0xab", b"limit=50&sla_id=0xab&&&&", b"%6Cimit=50&sla_id=0xab", b"sla_id=0x%61b&limit=5%30")


def test_a_query_has_one_place_however_it_is_spelt() -> None:
    assert len({KeptAnswers.place("/v1/statements", query, VIEWER) for query in SPELT}) == 1


@pytest.mark.parametrize(
    "other",
    [b"", b"limit=50&sla_id=0xac", b"limit=50", b"limit=50&sla_id=0xab&x", b"limit=50&sla_id=0xab&limit=50"],
)
def test_what_reads_differently_has_another_place(other: bytes) -> None:
    assert KeptAnswers.place("/v1/a", other, VIEWER) != KeptAnswers.place("/v1/a", SPELT[0], VIEWER)


def test_bytes_that_are_no_text_stay_apart() -> None:
    places = {KeptAnswers.place("/v1/a", query, VIEWER) for query in (b"a=%FF", b"a=%FE", b"a=%EF%BF%BD", b"a=\xfd")}
    assert len(places) == 4


def test_other_spellings_take_no_room(client: TestClient[Any], app: Edge, ledger: Ledger) -> None:
    ledger.statement(ledger.agreement(1))
    answers = [client.get(f"/v1/statements?{query}") for query in ("limit=50", "limit=50&&&&", "%6Cimit=50")]
    assert {(each.status_code, each.content) for each in answers} == {(200, answers[0].content)}
    assert len(app._kept._kept) == 1


def test_empty_answers_with_long_addresses_are_counted() -> None:
    kept = KeptAnswers(max_bytes=100_000)
    places = [KeptAnswers.place("/v1/statements", b"cursor=%05d" % n + b"x" * 9000, VIEWER) for n in range(50)]
    for each in places:
        kept.keep(each, answer(b""))
    assert sum(kept.find(each, NOW) is not None for each in places) == 10
    small = KeptAnswers(max_bytes=10 * ROOM)
    for number in range(100):
        small.keep(place(number), answer(b""))
    assert sum(small.find(place(number), NOW) is not None for number in range(100)) == 9


def test_the_oldest_make_room() -> None:
    kept = KeptAnswers(max_bytes=2 * ROOM + 10)
    for number in range(5):
        kept.keep(place(number), answer(b"1234"))
    assert [kept.find(place(number), NOW) is not None for number in range(5)] == [False, False, False, True, True]
    kept.find(place(3), NOW)
    kept.keep(place(5), answer(b"1234"))
    assert kept.find(place(3), NOW) is not None
    assert kept.find(place(4), NOW) is None


def test_a_newer_answer_takes_the_place_of_the_older() -> None:
    kept = KeptAnswers(max_bytes=ROOM + 10)
    for size in range(1, 100):
        kept.keep(place(0), answer(b"12345678", (size, 0)))
        assert kept.find(place(0), (size, 0)) is not None
        assert kept.find(place(0), (size - 1, 0)) is None


def test_a_giant_is_not_kept() -> None:
    kept = KeptAnswers()
    kept.keep(place(0), answer(bytes(1024 * 1024 + 1)))
    assert kept.find(place(0), NOW) is None
