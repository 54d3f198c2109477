"""Reading sample logs: exact values, and a reason for every row that cannot be used."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.rows.observation import Reason, RequestRow, RowRejection, SampleRow, one_by_one
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import RequestLogUnusable
from ledger.ingest.facts import read_facts
from ledger.ingest.ndjson import MAX_LINE_BYTES
from ledger.ingest.sample_log import SampleLog

ROW = {
    "sample_id": "s-1",
    "at": "2023-06-14T10:00:00.123456789Z",
    "service": "example-chat",
    "indicator": "fact_consistency",
    "good": 98,
    "bad": 2,
}


def read(*lines: bytes | dict[str, Any]) -> list[SampleRow | RowRejection]:
    data = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    return list(SampleLog(io.BytesIO(data), "log"))


def one(line: bytes | dict[str, Any]) -> SampleRow:
    (found,) = read(line)
    assert isinstance(found, SampleRow), found
    return found


def valued(value: object) -> dict[str, Any]:
    return {**without("good", "bad"), "indicator": "token_rate", "value": value}


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in ROW.items() if key not in keys}


def test_a_row_is_read_as_it_stands() -> None:
    found = one({**ROW, "evaluator": "factbench 2.1", "resource": "eu-1", "trace_id": "4bf92f", "note": [1]})
    assert found._replace(body_digest=b"") == SampleRow(
        1,
        "s-1",
        b"",
        "example-chat",
        parse_instant_ns("2023-06-14T10:00:00.123456789Z"),
        "fact_consistency",
        (98, 2, 0),
        None,
        "factbench 2.1",
        "eu-1",
        "4bf92f",
    )


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({"good": 1, "bad": 2, "undecided": 3}, (1, 2, 3)),
        ({"good": 1, "total": 4}, (1, 3, 0)),
        ({"good": 1, "total": 4, "undecided": 2}, (1, 1, 2)),
        ({"good": 5, "total": 4}, (5, -1, 0)),
        ({"good": -1, "bad": 0}, (-1, 0, 0)),
    ],
)
def test_counts_are_read_and_judged_later(said: dict[str, int], counts: tuple[int, int, int]) -> None:
    assert one({**without("good", "bad"), **said}).counts == counts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"81.30", "81.3"),
        (b'"81.30"', "81.3"),
        (b"0.1", "1/10"),
        (b'"0.100000000000000000000000000001"', "0.100000000000000000000000000001"),
        (b"0.100000000000000000000000000001", "0.100000000000000000000000000001"),
        (b"1e-7", "0.0000001"),
        (b"8e2", "800"),
        (b"-3", "-3"),
        (b"0", "0"),
    ],
)
def test_a_value_is_exact_to_the_last_digit(text: bytes, value: str) -> None:
    line = json.dumps(valued(None)).encode().replace(b"null", text)
    assert one(line).value == Fraction(value)


@pytest.mark.parametrize("value", ["", "1e3", "+1", "NaN", " 1", "1.", "٣", True, [1], {"a": 1}, "1" * 31])
def test_what_is_no_plain_number_is_no_value(value: object) -> None:
    (found,) = read(valued(value))
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (Reason.FIELD_INVALID, "value")


def test_a_number_of_endless_digits_is_no_value() -> None:
    line = json.dumps(valued(None)).encode()
    for text in (b"1e99", b"1e-99", b"1e400"):
        (found,) = read(line.replace(b"null", text))
        assert isinstance(found, RowRejection)
        assert found.reason is Reason.FIELD_INVALID


@pytest.mark.parametrize(
    ("line", "reason", "field"),
    [
        (b"nonsense", Reason.MALFORMED, ""),
        (b"[1]", Reason.NOT_AN_OBJECT, ""),
        (b'{"sample_id":"a","sample_id":"b"}', Reason.DUPLICATE_KEY, "sample_id"),
        (without("sample_id"), Reason.FIELD_MISSING, "sample_id"),
        (without("at"), Reason.FIELD_MISSING, "at"),
        (without("indicator"), Reason.FIELD_MISSING, "indicator"),
        (without("good", "bad"), Reason.FIELD_MISSING, "value"),
        (without("good"), Reason.FIELD_INVALID, "bad"),
        ({**ROW, "value": 1}, Reason.FIELD_INVALID, "bad"),
        ({**ROW, "total": 100}, Reason.FIELD_INVALID, "bad"),
        ({**ROW, "good": 1.5}, Reason.FIELD_INVALID, "good"),
        ({**ROW, "good": True}, Reason.FIELD_INVALID, "good"),
        ({**ROW, "good": "98"}, Reason.FIELD_INVALID, "good"),
        ({**ROW, "sample_id": ""}, Reason.FIELD_INVALID, "sample_id"),
        ({**ROW, "sample_id": 7}, Reason.FIELD_INVALID, "sample_id"),
        ({**ROW, "evaluator": "x" * 121}, Reason.FIELD_INVALID, "evaluator"),
        ({**ROW, "indicator": "availability"}, Reason.FIELD_INVALID, "indicator"),
        ({**ROW, "indicator": "luck"}, Reason.FIELD_INVALID, "indicator"),
        ({**ROW, "at": "2023-06-14T10:00:00"}, Reason.TIME_INVALID, "at"),
        ({**ROW, "at": 5}, Reason.TIME_INVALID, "at"),
    ],
)
def test_a_row_that_cannot_be_used_costs_itself(line: Any, reason: Reason, field: str) -> None:
    (kept, found) = read(ROW, line)
    assert isinstance(kept, SampleRow)
    assert isinstance(found, RowRejection)
    assert (found.line, found.reason, found.field) == (2, reason, field)


def test_a_body_is_what_it_says_and_not_how_it_is_written() -> None:
    other = json.dumps(dict(reversed(ROW.items())), indent=None, separators=(" ,", " : ")).encode()
    assert one(ROW).body_digest == one(other).body_digest
    assert one(valued(81.3)).body_digest != one(valued("81.3")).body_digest


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[1]\n", b'{"sample_id":', b"x" * (MAX_LINE_BYTES + 1)])
def test_a_file_that_is_no_log_is_refused(data: bytes) -> None:
    with pytest.raises(RequestLogUnusable):
        list(SampleLog(io.BytesIO(data), "log"))


def test_either_log_is_read_by_what_it_holds() -> None:
    request = {"request_id": "a", "started_at": ROW["at"], "service": "x", "error_code": 500}
    assert [type(each) for each in read_facts(json.dumps(ROW).encode())] == [SampleRow]
    (found,) = one_by_one(read_facts(json.dumps(request).encode()))  # type: ignore[arg-type]
    assert isinstance(found, RequestRow)


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_break_the_reader(lines: list[bytes]) -> None:
    data = json.dumps(ROW).encode() + b"\n" + b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    found = list(SampleLog(io.BytesIO(data), "log"))
    assert isinstance(found[0], SampleRow)
    assert len(found) <= len(lines) + 1
