"""Walking lists: every row once, while rows are added, and no cursor but our own."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from api.parameters import decode_cursor, encode_cursor
from ledger.errors import CursorInvalid
from tests.api.filled import DAY_NS, FIRST_NS

Client = TestClient[Any]


def walk(client: Client, path: str, id_name: str, **query: Any) -> list[list[str]]:
    """The ids of every page."""
    pages: list[list[str]] = []
    cursor = None
    while True:
        page = client.get(path, params=query | ({} if cursor is None else {"cursor": cursor})).json()
        pages.append([item[id_name] for item in page["items"]])
        cursor = page["next_cursor"]
        if cursor is None:
            return pages


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
def test_walk_meets_every_row_once_in_order(ledger: Any, client: Client, limit: int) -> None:
    sla_ids = [ledger.agreement(number) for number in range(2)]
    names = [ledger.statement(sla_ids[day % 2], day) for day in range(7)]
    for path, id_name in (("/v1/statements", "id"), ("/v1/credits", "statement_id")):
        pages = walk(client, path, id_name, limit=limit)
        assert [name for page in pages for name in page] == names
        assert all(len(page) == limit for page in pages[:-1])
        assert pages[-1]
    filtered = walk(client, "/v1/statements", "id", limit=limit, sla_id=sla_ids[1])
    assert [name for page in filtered for name in page] == names[1::2]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_walk_between_bounds_meets_the_periods_that_start_there(ledger: Any, client: Client, limit: int) -> None:
    sla_ids = [ledger.agreement(number) for number in range(2)]
    named = [ledger.statement(sla_ids[day % 2], day) for day in range(6)]
    lines = [ledger.credit_line(sla_ids[day % 2], name, day=day) for day, name in enumerate(named)]
    for bounds, chosen in (
        ({"from": "2023-12-03"}, slice(2, None)),
        ({"to": "2023-12-03T00:00:00Z"}, slice(0, 2)),
        ({"from": "2023-12-02", "to": "2023-12-05T08:00:00+08:00"}, slice(1, 4)),
        # A zone's own month: the first period starts before it.
        ({"from": "2023-12-01T00:00:00.000000001Z", "to": "2023-12-02"}, slice(1, 1)),
    ):
        for path, id_name, rows in (
            ("/v1/statements", "id", named),
            ("/v1/credits", "statement_id", named),
            ("/v1/credit-lines", "id", lines),
        ):
            for versions in ({}, {"versions": "all"}) if path != "/v1/credit-lines" else ({},):
                pages = walk(client, path, id_name, limit=limit, **bounds, **versions)
                assert [name for page in pages for name in page] == rows[chosen]
        of_one = walk(client, "/v1/credit-lines", "id", limit=limit, sla_id=sla_ids[0], **bounds)
        assert [name for page in of_one for name in page] == [name for name in lines[chosen] if name in lines[::2]]


def test_a_cursor_does_not_lead_out_of_its_bounds(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    named = [ledger.statement(sla_id, day) for day in range(4)]
    bounds = {"from": "2023-12-03", "to": "2023-12-04"}
    # One that somebody wrote for this list, from before its first period.
    forged = encode_cursor(f"statements//newest/{(FIRST_NS + 2 * DAY_NS)}/{FIRST_NS + 3 * DAY_NS}", named[0])
    found = client.get("/v1/statements", params={"cursor": forged, **bounds}).json()
    assert [item["id"] for item in found["items"]] == [named[2]]
    free = client.get("/v1/statements?limit=1").json()["next_cursor"]
    for asked in ({"cursor": free, **bounds}, {"cursor": forged}):
        refused = client.get("/v1/statements", params=asked)
        assert (refused.status_code, refused.json()["code"]) == (400, "cursor_invalid")


def test_bounds_between_which_nothing_can_start_are_refused(client: Client) -> None:
    for path in ("/v1/statements", "/v1/credits", "/v1/credit-lines", "/v1/exports/credits.csv"):
        for bounds in ({"from": "2023-12-02", "to": "2023-12-02"}, {"from": "yesterday"}):
            refused = client.get(path, params=bounds)
            assert (refused.status_code, refused.json()["code"]) == (400, "query_invalid")


def test_walk_while_rows_are_added_before_and_behind(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    there = [ledger.statement(sla_id, day) for day in (2, 4, 6, 8)]
    seen: list[str] = []
    cursor: str | None = None
    for added in (1, 9, 3, 5):
        page = client.get("/v1/statements", params={"limit": 1} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        ledger.statement(sla_id, added)
        ledger.attest(there[0], sla_id) if added == 1 else None
    rest = client.get("/v1/statements", params={"limit": 100, "cursor": cursor}).json()["items"]
    seen += [item["id"] for item in rest]
    assert len(seen) == len(set(seen))
    assert [name for name in seen if name in there] == there


def test_amended_agreement_keeps_its_place(ledger: Any, client: Client) -> None:
    sla_ids = sorted(ledger.agreement(number) for number in range(3))
    first = client.get("/v1/agreements?limit=1").json()
    assert first["items"][0]["sla_id"] == sla_ids[0]
    ledger.agreement(next(number for number in range(3) if ledger.agreement(number) == sla_ids[0]))
    rest = client.get("/v1/agreements", params={"cursor": first["next_cursor"]}).json()
    assert [item["sla_id"] for item in rest["items"]] == sla_ids[1:]
    assert rest["next_cursor"] is None


def test_empty_ledger_has_one_empty_page(client: Client) -> None:
    for path in ("/v1/agreements", "/v1/statements", "/v1/credits"):
        assert client.get(path).json() == {"items": [], "next_cursor": None}


def test_cursor_of_another_list_or_filter(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    for day in range(2):
        ledger.statement(sla_id, day)
    cursor = client.get("/v1/statements?limit=1").json()["next_cursor"]
    for path in ("/v1/credits", "/v1/agreements", f"/v1/statements?sla_id={sla_id}"):
        response = client.get(path, params={**({"sla_id": sla_id} if "?" in path else {}), "cursor": cursor})
        assert (response.status_code, response.json()["code"]) == (400, "cursor_invalid")
        assert "another list or filter" in response.json()["detail"]


def test_cursor_of_another_ledger(client: Client) -> None:
    cursor = encode_cursor("statements/", "123456789abc.2023-12-19.v1")
    response = client.get("/v1/statements", params={"cursor": cursor})
    assert (response.status_code, response.json()["code"]) == (400, "cursor_invalid")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "....",
        "WyJzdGF0ZW1lbnRzLyIsIngiXQ==",
        "WyJzdGF0ZW1lbnRzLyIsIngiXR",
        urlsafe_b64encode(b'["statements/", "x"]').decode().rstrip("="),
        urlsafe_b64encode(b'["statements/",1]').decode().rstrip("="),
        urlsafe_b64encode(b'["statements/","x","y"]').decode().rstrip("="),
        urlsafe_b64encode(b"[" * 200).decode().rstrip("="),
        "ü",
        "A" * 400,
    ],
)
def test_forged_cursor(ledger: Any, client: Client, cursor: str) -> None:
    ledger.statement(ledger.agreement(1))
    response = client.get("/v1/statements", params={"cursor": cursor})
    assert response.status_code == 400
    assert response.json()["code"] in ("cursor_invalid", "query_invalid")


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + chr(ord(text[-1]) + 1), lambda text: f"{text[:4]}!{text[4:]}"]
)
def test_second_spelling_of_a_cursor(change: Callable[[str], str]) -> None:
    # Bits past the end and foreign characters, both of which a lenient base64 decoder skips.
    cursor = encode_cursor("statements/", "xy")
    assert cursor is not None
    assert len(cursor) % 4
    assert decode_cursor(cursor, "statements/") == "xy"
    with pytest.raises(CursorInvalid):
        decode_cursor(change(cursor), "statements/")


@given(listing=st.text(max_size=20), last_id=st.text(max_size=20))
def test_cursor_round_trip(listing: str, last_id: str) -> None:
    cursor = encode_cursor(listing, last_id)
    assert cursor is not None
    assert decode_cursor(cursor, listing) == last_id
    with pytest.raises(CursorInvalid):
        decode_cursor(cursor, listing + "x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    try:
        last_id = decode_cursor(text, "statements/")
    except CursorInvalid:
        return
    assert encode_cursor("statements/", last_id) == text
