from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.record.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, canonical_bytes, parse_canonical, parse_json
from ledger.errors import NotCanonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
LIMIT = 1_000_000


@given(VALUES)
def test_canonical_bytes_read_back_as_the_same_value(value: Any) -> None:
    assert parse_canonical(canonical_bytes(value), max_bytes=LIMIT) == value


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    pairs = list(value.items())
    random.shuffle(pairs)
    assert canonical_bytes(dict(pairs)) == canonical_bytes(value)


@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_white_space_and_escapes_do_not_matter(value: Any, indent: Any) -> None:
    spelled = json.dumps(value, indent=indent, ensure_ascii=True).encode()
    assert canonical_bytes(parse_json(spelled, max_bytes=LIMIT)) == canonical_bytes(value)


@given(VALUES, VALUES)
def test_different_values_have_different_bytes(left: Any, right: Any) -> None:
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (canonical_bytes(left) == canonical_bytes(right)) == same


def test_keys_are_ordered_by_utf16_code_units_as_rfc_8785_shows() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = list(json.loads(canonical_bytes(dict.fromkeys(keys, 0))))
    assert ordered == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_strings_are_escaped_as_rfc_8785_shows() -> None:
    value = '\u20ac$\u000f\nA\'B"\\\\"/'
    assert canonical_bytes(value) == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()


@pytest.mark.parametrize(
    "value",
    [1.0, float("nan"), 2**53, -(2**53), b"bytes", {1: 2}, "\ud800", {"\udfff": 1}, {"a": [0.5]}, {1, 2}],
    ids=repr,
)
def test_values_without_a_canonical_form_are_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_bytes(value)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b"-0",
        b"[1.0]",
        b"1e2",
        b"NaN",
        b"Infinity",
        b"9007199254740992",
        b'"\\ud800"',
        b'"\xff"',
        b"",
        b"{",
        b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2),
        b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_json_that_is_refused(data: bytes) -> None:
    with pytest.raises(NotCanonical):
        parse_json(data, max_bytes=LIMIT)


@pytest.mark.parametrize("data", [b'{"b":1,"a":2}', b'{ "a":1}', b'"\\u0041"', b"[1,2]\n", b'\xef\xbb\xbf"a"'])
def test_other_spellings_are_not_canonical(data: bytes) -> None:
    with pytest.raises(NotCanonical):
        parse_canonical(data, max_bytes=LIMIT)


def test_size_is_bounded_before_anything_is_parsed() -> None:
    with pytest.raises(NotCanonical, match="at most 10"):
        parse_json(b"[1,2,3,4,5,6]", max_bytes=10)


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 200_000, b'["\\"]' * 200_000, b'{"[":[' * 100_000])
def test_deep_json_is_refused_whatever_the_recursion_limit(deep: bytes) -> None:
    """Libraries raise the limit so far that the parser's own guard comes after the end of the stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**9)
    try:
        with pytest.raises(NotCanonical):
            parse_json(deep, max_bytes=10**7)
    finally:
        sys.setrecursionlimit(limit)


def test_brackets_inside_strings_are_no_depth() -> None:
    text = "[{" * 1000 + '"\\'
    assert parse_canonical(canonical_bytes([text] * 3 + [[]] * 100), max_bytes=10**6) == [text] * 3 + [[]] * 100
