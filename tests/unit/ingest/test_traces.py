"""Trace ids of single rows: by either name, and none where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.ingest.traces import trace_ids

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_the_lines_asked_for() -> None:
    data = lines({"trace_id": "abc"}, {}, {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, {"trace_id": "not asked"})
    assert trace_ids(data, {1, 2, 3}) == {1: "abc", 3: TRACE}
    assert trace_ids(data, ()) == {}


def test_blank_lines_and_a_byte_order_mark_count_as_lines_do() -> None:
    assert trace_ids(b"\xef\xbb\xbf" + b'{"trace_id": "a"}\r\n\n{"trace_id": "b"}', {1, 3}) == {1: "a", 3: "b"}


@pytest.mark.parametrize(
    "row",
    [
        {"trace_id": 7},
        {"trace_id": ""},
        {"trace_id": "a b"},
        {"trace_id": "x" * 129},
        {"trace_id": "\u0000"},
        {"traceparent": TRACE},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": f"00-{TRACE.upper()}-00f067aa0ba902b7-01"},
        {"traceparent": None},
        ["trace_id"],
        "trace_id",
    ],
)
def test_what_is_no_trace_id_is_left_out(row: Any) -> None:
    assert trace_ids(lines(row), {1}) == {}


def test_lines_that_are_not_there_or_no_json() -> None:
    assert trace_ids(b"{\n" + b"[" * 100_000 + b"\n", {1, 2, 3, 99, 0, -1}) == {}
