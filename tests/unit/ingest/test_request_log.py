from __future__ import annotations

import contextlib
import errno
import io
import json
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.rows.observation import Reason, RequestRow, RowRejection
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import RequestLogUnusable
from ledger.ingest.ndjson import MAX_LINE_BYTES, READ_BYTES
from ledger.ingest.request_log import RequestLog

GOOD: dict[str, Any] = {
    "request_id": "r-1",
    "started_at": "2023-12-19T00:00:02.106523644Z",
    "service": "chat",
    "ttft_s": 0.3148573649999662,
    "e2e_s": 2.532841702999974,
    "error_code": None,
}


def line(**changes: Any) -> bytes:
    """One row as bytes; ``...`` takes a key away."""
    members = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    return json.dumps(members).encode() + b"\n"


def read(data: bytes) -> list[RequestRow | RowRejection]:
    return list(RequestLog(io.BytesIO(data), "f.ndjson"))


def only(data: bytes) -> RequestRow | RowRejection:
    (row,) = read(data)
    return row


def accepted(data: bytes) -> RequestRow:
    row = only(data)
    assert isinstance(row, RequestRow), row
    return row


def test_a_row_is_read_exactly() -> None:
    row = accepted(line())
    assert row[:2] + row[3:8] == (
        1,
        "r-1",
        "chat",
        parse_instant_ns("2023-12-19T00:00:02.106523644Z"),
        None,
        314_857_365,
        2_532_841_703,
    )


@pytest.mark.parametrize(
    ("text", "latency_ns"),
    [
        ("0.8", 800_000_000),
        ("0.800000000", 800_000_000),
        ("8e-1", 800_000_000),
        ("80E-2", 800_000_000),
        ("0.8000000000000000000000000000000000000000000000001", 800_000_001),
        ("0.79999999999999999999999999999999999999999999999999", 800_000_000),
        ("0.8000000001", 800_000_001),
        ("3", 3_000_000_000),
        ("3.0", 3_000_000_000),
        ("1e-12", 1),
        ("10000000", 10**16),
    ],
)
def test_latencies_are_exact_and_rounded_up_to_nanoseconds(text: str, latency_ns: int) -> None:
    assert accepted(line(ttft_s="@").replace(b'"@"', text.encode())).first_token_ns == latency_ns


@given(st.decimals("0.000000001", "10000", places=12), st.integers(1, 10**13))
def test_rounding_up_changes_no_comparison_with_a_threshold(seconds: Decimal, threshold_ns: int) -> None:
    latency_ns = accepted(line(ttft_s="@").replace(b'"@"', f"{seconds:f}".encode())).first_token_ns
    assert latency_ns is not None
    assert (latency_ns <= threshold_ns) == (seconds * 10**9 <= threshold_ns)


@pytest.mark.parametrize(
    ("data", "reason", "field"),
    [
        (line(ttft_s=-0.1), Reason.LATENCY_NEGATIVE, "ttft_s"),
        (line(e2e_s=-1e-15), Reason.LATENCY_NEGATIVE, "e2e_s"),
        (line(error_code=500, ttft_s=-1), Reason.LATENCY_NEGATIVE, "ttft_s"),
        (line(ttft_s=None), Reason.LATENCY_MISSING, "ttft_s"),
        (line(ttft_s=...), Reason.LATENCY_MISSING, "ttft_s"),
        (line(e2e_s=None), Reason.LATENCY_MISSING, "e2e_s"),
        (line(e2e_s=0), Reason.LATENCY_MISSING, "e2e_s"),
        (line(ttft_s=0.0), Reason.LATENCY_MISSING, "ttft_s"),
        (line(ttft_s="0.8"), Reason.FIELD_INVALID, "ttft_s"),
        (line(ttft_s=True), Reason.FIELD_INVALID, "ttft_s"),
        (line(e2e_s=10_000_001), Reason.LATENCY_OUT_OF_RANGE, "e2e_s"),
        (line(e2e_s=1e50), Reason.LATENCY_OUT_OF_RANGE, "e2e_s"),
        (line(request_id=...), Reason.FIELD_MISSING, "request_id"),
        (line(started_at=...), Reason.FIELD_MISSING, "started_at"),
        (line(service=...), Reason.FIELD_MISSING, "service"),
        (line(error_code=...), Reason.FIELD_MISSING, "error_code"),
        (line(request_id=""), Reason.FIELD_INVALID, "request_id"),
        (line(request_id=7), Reason.FIELD_INVALID, "request_id"),
        (line(request_id="x" * 513), Reason.FIELD_INVALID, "request_id"),
        (line(service=None), Reason.FIELD_INVALID, "service"),
        (line(error_code="timeout"), Reason.FIELD_INVALID, "error_code"),
        (line(error_code=False), Reason.FIELD_INVALID, "error_code"),
        (line(error_code=1.5), Reason.FIELD_INVALID, "error_code"),
        (line(started_at="2023-12-19T00:00:00"), Reason.TIME_INVALID, "started_at"),
        (line(started_at=1702944000), Reason.TIME_INVALID, "started_at"),
        (line(started_at=""), Reason.TIME_INVALID, "started_at"),
        (line(started_at="2023-12-19T00:00:61.5Z"), Reason.TIME_INVALID, "started_at"),
        (line(started_at="9999-12-31T23:00:00Z"), Reason.TIME_INVALID, "started_at"),
        (line(started_at="0001-01-01T00:00:00+10:00"), Reason.TIME_INVALID, "started_at"),
        (line(started_at="2023-12-19T00:00:00+00:99"), Reason.TIME_INVALID, "started_at"),
        (line()[:-2] + b',"service":"chat"}\n', Reason.DUPLICATE_KEY, "service"),
        (line()[:-2] + b',"x":{"y":1,"y":1}}\n', Reason.DUPLICATE_KEY, "y"),
        (line()[:-2] + b',"\\u0073ervice":"chat"}\n', Reason.DUPLICATE_KEY, "service"),
        (line()[:-2] + b',"a":1e5,"q":"\\u0022\\u0022","a":0}\n', Reason.DUPLICATE_KEY, "a"),
        (line(x="@").replace(b'"@"', b"1e999999999"), Reason.FIELD_INVALID, ""),
        (line(x="@").replace(b'"@"', b"1e99999999999999999999"), Reason.FIELD_INVALID, ""),
        (b"[1]\n" + line(), Reason.NOT_AN_OBJECT, ""),
        (b"null\n", Reason.NOT_AN_OBJECT, ""),
        (line(ttft_s=float("nan")), Reason.MALFORMED, ""),
        (line(ttft_s=float("inf")), Reason.MALFORMED, ""),
        (b'{"request_id": "r-2", \n', Reason.MALFORMED, ""),
        (b'{"x":"\xff"}\n', Reason.MALFORMED, ""),
        (b'{"x":"\\ud800"}\n', Reason.MALFORMED, ""),
        (b'{"x":' + b"[" * 100_000 + b"\n", Reason.MALFORMED, ""),
        (b"PK\x03\x04\x00\n", Reason.MALFORMED, ""),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, Reason) else "",
)
def test_a_row_that_cannot_be_used_says_why_and_the_rest_goes_on(data: bytes, reason: Reason, field: str) -> None:
    before, bad, after = read(line() + data.split(b"\n")[0] + b"\n" + line(request_id="r-3"))
    assert isinstance(before, RequestRow)
    assert isinstance(bad, RowRejection)
    assert (bad.line, bad.reason, bad.field) == (2, reason, field)
    assert bad.message
    assert isinstance(after, RequestRow)
    assert after.line == 3


@pytest.mark.parametrize("latencies", [{}, {"ttft_s": 0, "e2e_s": 0}, {"ttft_s": None}, {"e2e_s": ...}])
def test_a_failed_request_needs_no_latency(latencies: dict[str, Any]) -> None:
    assert accepted(line(error_code=-100, **latencies)).error_code == -100


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n \r\n\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"hello\nworld\n", "no line is a JSON object"),
        (b"id,start\n1,2\n", "no line is a JSON object"),
        (b"1\n2\n", "no line is a JSON object"),
        (b'[{"request_id":"r"}]', "JSON list"),
        (b"[\n" + line(), "JSON list"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (line() + line()[:-20], "cut off"),
        (line() + b'{"request_id":NaN}', "cut off"),
        (line() + b"garbage", "cut off"),
        (b"x" * (MAX_LINE_BYTES + 1), "longer than"),
        (line() + b'{"x":"' + b"y" * 3_000_000 + b'"}\n' + line(), "longer than"),
        (line(x="y" * MAX_LINE_BYTES), "longer than"),
    ],
    ids=["nothing", "blank", "only a mark", "prose", "csv", "numbers", "list", "pretty list", "gzip", "utf-16",
         "cut off", "cut off NaN", "cut off prose", "long, no end", "long in the middle", "long, ended"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_whole(data: bytes, says: str) -> None:
    with pytest.raises(RequestLogUnusable, match=says) as caught:
        read(data)
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("f.ndjson:")
    assert caught.value.data["line"] >= 1


def test_the_line_of_a_fault_in_the_file_is_named() -> None:
    with pytest.raises(RequestLogUnusable, match=r"^f\.ndjson:3: ") as caught:
        read(line() * 2 + b'{"x":"' + b"y" * 3_000_000)
    assert caught.value.data["line"] == 3


def test_a_line_of_exactly_the_limit_is_read() -> None:
    padding = MAX_LINE_BYTES - len(line(x=""))
    assert accepted(line(x="y" * padding) + b"").line == 1


def test_an_unfinished_last_line_that_is_json_is_a_row() -> None:
    assert [type(row) for row in read(line() + line(request_id="r-2")[:-1])] == [RequestRow, RequestRow]
    last = read(line() + b"7")[1]
    assert isinstance(last, RowRejection)
    assert last.reason is Reason.NOT_AN_OBJECT


def test_blank_lines_crlf_and_a_byte_order_mark_are_fine() -> None:
    data = b"\xef\xbb\xbf" + line().replace(b"\n", b"\r\n") + b"\r\n\n" + line(request_id="r-2")
    first, second = read(data)
    assert (first.line, second.line) == (1, 4)


@pytest.mark.parametrize("cut", range(0, 400, 37))
def test_rows_survive_any_boundary_between_reads(cut: int) -> None:
    padding = line(x="y" * (READ_BYTES - len(line(x="")) - cut))
    rows = read(padding + line(request_id="r-2") * 3)
    assert [row.line for row in rows if isinstance(row, RequestRow)] == [1, 2, 3, 4]


MEMBERS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8) | st.floats(-1e9, 1e9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=5,
)


def respelled(value: Any, random: Any) -> bytes:
    """The same value with other key order, white space, escapes and spelling of numbers."""

    def shuffle(item: Any) -> Any:
        if isinstance(item, dict):
            keys = list(item)
            random.shuffle(keys)
            return {key: shuffle(item[key]) for key in keys}
        return [shuffle(part) for part in item] if isinstance(item, list) else item

    text = json.dumps(shuffle(value), ensure_ascii=random.random() < 0.5, separators=random.choice([None, (",", ":")]))
    return text.encode()


@given(MEMBERS, st.randoms(use_true_random=False))
def test_key_order_white_space_and_escapes_do_not_make_another_body(members: dict[str, Any], random: Any) -> None:
    body = {**members, **GOOD}
    assert accepted(respelled(body, random)).body_digest == accepted(respelled(body, random)).body_digest


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.8", "0.80"), ("0.8", "8e-1"), ("0.8", "800E-3"), ("3", "3.0"), ("3", "0.3e1"), ("100", "1e2")],
)
def test_the_spelling_of_a_number_does_not_make_another_body(one: str, other: str) -> None:
    bodies = {accepted(line(x="@").replace(b'"@"', text.encode())).body_digest for text in (one, other)}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "change", [{"e2e_s": 2.5}, {"x": 1}, {"error_code": 0}, {"started_at": "2023-12-19T00:00:02Z"}]
)
def test_any_other_value_makes_another_body(change: dict[str, Any]) -> None:
    assert accepted(line(**change)).body_digest != accepted(line()).body_digest


@pytest.mark.parametrize(
    ("one", "other"), [('"1"', "1"), ("null", "0"), ("true", "1"), ("[1]", "1"), ("0.1", "0.10000000000000001")]
)
def test_values_of_other_kinds_or_beyond_a_float_are_other_bodies(one: str, other: str) -> None:
    bodies = {accepted(line(x="@").replace(b'"@"', text.encode())).body_digest for text in (one, other)}
    assert len(bodies) == 2


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_bytes_raise_anything_but_the_one_error(parts: list[bytes]) -> None:
    with contextlib.suppress(RequestLogUnusable):
        for row in RequestLog(io.BytesIO(b"\n".join(parts)), "f.ndjson"):
            assert isinstance(row, RequestRow | RowRejection)


NUMBER_TEXT = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,25})?", fullmatch=True)
VALUE_TEXT = NUMBER_TEXT | st.sampled_from(["null", "true", '""', '"x"', "[]", "{}", '{"a":[1.50]}', "9" * 4300])


@given(st.sampled_from(sorted(GOOD)), VALUE_TEXT)
def test_no_value_of_any_field_raises(field: str, text: str) -> None:
    row = only(line(**{field: "@"}).replace(b'"@"', text.encode()))
    assert isinstance(row, RequestRow) or (row.reason is not Reason.MALFORMED and row.message)


@pytest.mark.parametrize("fraction", ["", ".1", ".123456", ".123456789"])
@pytest.mark.parametrize("zone", ["Z", "+00:00", "-05:00"])
def test_the_cache_of_minutes_reads_times_as_the_plain_parser_does(fraction: str, zone: str) -> None:
    times = [f"2023-12-19T00:00:{second:02}{fraction}{zone}" for second in (1, 2, 59)]
    rows = read(b"".join(line(started_at=text, request_id=text) for text in times))
    assert [row.started_at_ns for row in rows if isinstance(row, RequestRow)] == [parse_instant_ns(t) for t in times]


@pytest.mark.parametrize(
    "text",
    [
        "2023-12-19T00:00:02.1_0Z",
        "2023-12-19T00:00:02.²Z",
        "2023-12-19T00:00:02.٣Z",
        "2023-12-19T00:00:02.1234567891Z",
        "2023-12-19T00:00:99.5Z",
        "2023-12-19T00:00:02.5",
    ],
)
def test_the_cache_of_minutes_accepts_nothing_more(text: str) -> None:
    bad = read(line() + line(started_at=text))[1]
    assert isinstance(bad, RowRejection)
    assert bad.reason is Reason.TIME_INVALID


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_line_that_nests_without_end_is_one_rows_problem_even_where_recursion_is_unlimited(opening: str) -> None:
    limit = sys.getrecursionlimit()
    # A library of the verifier raises the limit this far; the decoder would then run out of stack.
    sys.setrecursionlimit(100_000)
    try:
        rows = read(line() + opening.encode() * 90_000 + b"\n" + line(request_id="r-2"))
    finally:
        sys.setrecursionlimit(limit)
    assert [isinstance(row, RowRejection) for row in rows] == [False, True, False]


def test_brackets_inside_a_text_do_not_nest() -> None:
    assert isinstance(only(line(error_msg="[" * 500 + '"{')), RequestRow)


class _Failing(io.RawIOBase):
    """A file whose disk fails after some whole lines."""

    def __init__(self, data: bytes) -> None:
        self._chunks = [data]

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._chunks:
            raise OSError(errno.EIO, "Input/output error")
        return self._chunks.pop()


def test_a_disk_that_fails_midway_is_named_with_file_and_line() -> None:
    with pytest.raises(RequestLogUnusable, match=r"^log:3: cannot be read any further: Input/output error$"):
        list(RequestLog(_Failing(line() + line(request_id="r-2")), "log"))  # type: ignore[arg-type]


spelled = st.sampled_from(
    ["0.8", "0.80", "8e-1", "1", "0", "0.0", "-0.0", "-1e-12", "1e-7", "0.0000001", "1e8", "10000000.1", "null", '"1"']
)
TIMES = [
    '"2023-12-19T00:00:02.106523644Z"',
    '"2023-12-19T00:00:60.106523644Z"',
    '"2023-13-19T00:00:02.106523644Z"',
    '"2023-12-19T00:00:02.10652364xZ"',
    '"2023-12-19T00:00:02Z"',
    "3",
]
members = st.fixed_dictionaries(
    {
        "request_id": st.sampled_from(['"a"', '"b"', '""', "7", '"' + "x" * 600 + '"', '"a\\u0041"']),
        "started_at": st.sampled_from(TIMES),
        "service": st.sampled_from(['"chat"', '"chat"', "null"]),
        "error_code": st.sampled_from(["null", "500", "-100", "0.5", "true"]),
        "ttft_s": spelled,
        "e2e_s": spelled,
        "extra": st.sampled_from(["1", "1.5", "1.50", "{}", "[1]", '"E+"', '"a.0"', '"{"']),
    }
)
written = st.tuples(members, st.sampled_from([",", ", "]), st.sampled_from(["", '"extra":2,', '"service" :"chat",']))


@given(st.lists(written, min_size=1, max_size=8))
def test_lines_read_together_are_read_as_each_by_itself(drawn: list[tuple[dict[str, str], str, str]]) -> None:
    lines = [
        ("{" + first + comma.join(f'"{key}":{value}' for key, value in row.items()) + "}\n").encode()
        for row, comma, first in drawn
    ]
    # A nested value keeps a line, and those that come with it, from being read with others.
    aside = line(nested=[1])
    together, one_by_one = read(line() + b"".join(lines))[1:], read(aside + b"".join(lines))[1:]
    assert together == one_by_one


def test_plain_lines_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from ledger.ingest import request_log

    def never(_number: int, _line: bytes) -> RequestRow:
        raise AssertionError("a plain line was read by itself")

    monkeypatch.setattr(request_log, "_row_reader", lambda _read_instant: never)
    plain = b"".join(line(request_id=f"r{n}", ttft_s=0.125 + n) for n in range(5))
    assert [each[1] for each in read(plain)] == [f"r{n}" for n in range(5)]
