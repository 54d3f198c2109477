"""Reading counter logs: exact values, one spelling of labels, and a reason for every row that cannot be used."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from ledger.domain.facts.counter_log import CounterRow
from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.time.instant import parse_instant_ns
from ledger.ingest.facts import read_facts

ROW = {
    "counter": "llm_request_total",
    "series": {"pod": "a", "job": "chat"},
    "at": "2023-06-14T10:00:00Z",
    "service": "example-chat",
    "value": 12,
}


def one(body: dict[str, Any]) -> Any:
    (found,) = read_facts(json.dumps(body).encode() + b"\n")
    return found


def test_a_row_is_read_as_it_stands() -> None:
    found = one({**ROW, "start": "2023-06-14T09:00:00Z", "host": "x"})
    at_ns, start_ns = parse_instant_ns("2023-06-14T10:00:00Z"), parse_instant_ns("2023-06-14T09:00:00Z")
    labels = '{"job":"chat","pod":"a"}'
    expected = CounterRow(1, "llm_request_total", labels, b"", "example-chat", at_ns, Fraction(12), start_ns)
    assert found._replace(body_digest=b"") == expected


@pytest.mark.parametrize("value", ["12", 12.0, "12.000"])
def test_a_value_is_a_number_however_it_is_written(value: object) -> None:
    assert one({**ROW, "value": value, "host": "another"}).body_digest == one(ROW).body_digest


def test_another_start_is_another_reading() -> None:
    assert one({**ROW, "start": "2023-06-14T09:00:00Z"}).body_digest != one(ROW).body_digest


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"value": ...}, Reason.FIELD_MISSING, "value"),
        ({"value": "1e400"}, Reason.FIELD_INVALID, "value"),
        ({"value": None}, Reason.FIELD_INVALID, "value"),
        ({"at": "today"}, Reason.TIME_INVALID, "at"),
        ({"start": 7}, Reason.TIME_INVALID, "start"),
        ({"series": [1]}, Reason.FIELD_INVALID, "series"),
        ({"series": {"pod": 7}}, Reason.FIELD_INVALID, "series.pod"),
        ({"series": {f"l{n}": "" for n in range(51)}}, Reason.FIELD_INVALID, "series"),
        ({"counter": ""}, Reason.FIELD_INVALID, "counter"),
        ({"service": ...}, Reason.FIELD_MISSING, "service"),
    ],
)
def test_what_cannot_be_used_is_said(changes: dict[str, Any], reason: Reason, field: str) -> None:
    found = one({key: value for key, value in {**ROW, **changes}.items() if value is not ...})
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (reason, field)
