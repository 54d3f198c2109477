"""Reading outage lists: exact instants, and a reason for every row that cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.domain.facts.outages import OutageRow
from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.time.instant import parse_instant_ns
from ledger.ingest.facts import read_facts

ROW = {
    "outage_id": "o-1",
    "from": "2023-06-14T10:00:00Z",
    "to": "2023-06-14T12:00:00.5+01:00",
    "service": "example-chat",
}


def one(body: dict[str, Any]) -> Any:
    (found,) = read_facts(json.dumps(body).encode() + b"\n")
    return found


def test_a_row_is_read_as_it_stands() -> None:
    found = one({**ROW, "resource": "eu-1", "cause": "power"})
    start_ns, end_ns = parse_instant_ns("2023-06-14T10:00:00Z"), parse_instant_ns("2023-06-14T11:00:00.5Z")
    assert found._replace(body_digest=b"") == OutageRow(1, "o-1", 1, b"", "example-chat", start_ns, end_ns, "eu-1")


def test_a_revision_takes_an_outage_back() -> None:
    found = one({"outage_id": "o-1", "revision": 2, "withdrawn": True, "service": "example-chat"})
    assert (found.revision, found.from_ns, found.to_ns) == (2, None, None)


def test_the_order_of_keys_and_white_space_is_no_other_body() -> None:
    assert one(ROW).body_digest == one(dict(reversed(ROW.items()))).body_digest
    assert one(ROW).body_digest != one({**ROW, "cause": "power"}).body_digest


def test_an_outage_that_ends_too_early_is_read_and_judged_later() -> None:
    found = one({**ROW, "to": "2023-06-14T09:00:00Z"})
    assert isinstance(found, OutageRow)


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"from": None}, Reason.TIME_INVALID, "from"),
        ({"to": "2023-06-14T12:00:00"}, Reason.TIME_INVALID, "to"),
        ({"to": ...}, Reason.FIELD_MISSING, "to"),
        ({"service": ...}, Reason.FIELD_MISSING, "service"),
        ({"service": 7}, Reason.FIELD_INVALID, "service"),
        ({"outage_id": ""}, Reason.FIELD_INVALID, "outage_id"),
        ({"outage_id": "x" * 513}, Reason.FIELD_INVALID, "outage_id"),
        ({"resource": ["a"]}, Reason.FIELD_INVALID, "resource"),
        ({"revision": 0}, Reason.FIELD_INVALID, "revision"),
        ({"revision": True}, Reason.FIELD_INVALID, "revision"),
        ({"revision": 2**31}, Reason.FIELD_INVALID, "revision"),
        ({"withdrawn": "yes"}, Reason.FIELD_INVALID, "withdrawn"),
        ({"withdrawn": True, "from": ..., "to": ...}, Reason.FIELD_INVALID, "revision"),
        ({"withdrawn": True, "revision": 2}, Reason.FIELD_INVALID, "from"),
        ({"withdrawn": True, "revision": 2, "from": None}, Reason.FIELD_INVALID, "to"),
    ],
)
def test_what_cannot_be_used_is_said(changes: dict[str, Any], reason: Reason, field: str) -> None:
    body = {key: value for key, value in {**ROW, **changes}.items() if value is not ...}
    found = one(body)
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (reason, field)
