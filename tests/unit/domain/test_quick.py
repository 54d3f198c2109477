"""The quick tests of shapes: whatever they let pass, the thorough check and the canonical form say the same of."""

from __future__ import annotations

import json
from collections import UserDict, UserList
from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.events.event_types import EVENT_TYPES, PAYLOAD_ERASED, check_event
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent
from ledger.domain.schema import Either, Integer, ListOf, MapOf, Object, Shape, Text
from ledger.errors import DocumentInvalid, EventInvalid, NotCanonical
from ledger.store.appending import checked_payloads
from tests.bench.append_clients import event_of_500_bytes
from tests.conformance.samples import agreement, anchor, attestation, statement, window

SAMPLES = [agreement(), window(), statement(), attestation("s"), anchor("s"), event_of_500_bytes(1)]


class Word(StrEnum):
    STATE = "observed"
    KEY = "sla_id"


class Number(IntEnum):
    ONE = 1


class Name(str):
    """Equal to its text, but free to say something else when it is written."""


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**53, -(2**53), 2**63, 1.0, float("nan"), b"1", (), [], {}, {"x": 1}),
    *("", "0", "1", "01", "1\n", "\u0661", "\ud800", "\u200b", "a" * 501, "ab" * 32, "0x" + "5a" * 32, "met"),
    *(Word.STATE, Number.ONE, Name("1"), UserDict(), UserList(), {1: 1}, {None: 1}, {"é": 1}, {Word.KEY: 1}),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a document."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in members:
        yield from places(item, (*at, key))


def put(value: Any, at: tuple[Any, ...], item: Any) -> Any:
    if not at:
        return item
    key, *rest = at
    inside = put(value[key], tuple(rest), item)
    if isinstance(value, dict):
        return {**value, key: inside}
    return [*value[:key], inside, *value[key + 1 :]]


def renamed(value: Any, at: tuple[Any, ...], name: Any) -> Any:
    """The document with another key (or one more) at a place."""
    *way, last = at
    inside = value
    for key in way:
        inside = inside[key]
    if not isinstance(inside, dict):
        return value
    return put(value, tuple(way), {name if key == last else key: item for key, item in inside.items()})


def passes_check(shape: Shape, value: Any) -> bool:
    try:
        shape.check(value, "")
    except DocumentInvalid:
        return False
    return True


@given(data=st.data())
@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_the_quick_test_lets_nothing_pass_that_the_check_refuses(event: NewEvent, data: st.DataObject) -> None:
    shape = EVENT_TYPES[event.type].payload
    payload: Any = event.payload
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.sampled_from(list(places(payload))))
        if at and data.draw(st.booleans()):
            payload = renamed(payload, at, data.draw(st.sampled_from([Word.KEY, Name("sla_id"), "x", "é", 1, None])))
        else:
            payload = put(payload, at, data.draw(st.sampled_from(ODD) | st.text() | st.integers()))
    if shape.quick()([payload]):
        assert passes_check(shape, payload)
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            with pytest.raises(NotCanonical, match="surrogate"):
                canonical_bytes(payload)
        else:
            assert encoded == canonical_bytes(payload) == msgspec.json.encode(payload, order="deterministic")


@pytest.mark.parametrize("event", [agreement(), window(), attestation("s"), anchor("s"), event_of_500_bytes(1)])
def test_plain_events_take_the_quick_way(event: NewEvent) -> None:
    assert check_event(event)


def test_an_object_that_another_specification_fixes_takes_the_thorough_way() -> None:
    assert not check_event(statement())


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (Object({"a": Integer()}, {"b": Text()}), [{"a": 1}, {"a": 1, "b": "x"}], [{"b": "x"}, {"a": 1, "c": 1}, {}]),
        (Either("k", {"x": Object({"k": Text()})}), [{"k": "x"}], [{"k": "y"}, {"k": 1}, {}, [], {"k": ["x"]}]),
        (ListOf(Integer(), 1, 2), [[1], (1, 2)], [[], [1, 2, 3], "1", [True], None]),
        (MapOf("[a-z]+", Integer(), 1), [{}, {"a": 1}], [{"a": 1, "b": 1}, {"A": 1}, {"a": "1"}, {1: 1}]),
        (Text(visible=True), ["ab", "é"], ["a\u200bb", "", Name("ab")]),
        (Text("[ab]+", visible=True, max_length=2), ["ab"], ["abc", "aba"]),
        (Integer(-5, 2**60), [-5, 2**53 - 1], [2**53, -6, True, 1.0]),
    ],
)
def test_the_quick_test_of_each_part(shape: Shape, good: list[Any], bad: list[Any]) -> None:
    test = shape.quick()
    assert test([])
    assert test(good)
    assert [test([value]) for value in good] == [True] * len(good)
    for value in bad:
        assert not test([value])
        assert not test([*good, value])
        assert not test([value, *good])


def test_the_encoder_of_plain_payloads_writes_every_character_like_the_canonical_form() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)
    assert msgspec.json.encode(every) == canonical_bytes(every)


def test_a_lone_surrogate_in_a_plain_payload_is_refused() -> None:
    payload = {"event_id": "018c8013-2b00-7000-8000-000000000001", "seq": 0, "reason": "\ud800", "requested_by": None}
    with pytest.raises(EventInvalid, match="reason: a lone surrogate"):
        checked_payloads("s", [NewEvent(PAYLOAD_ERASED, payload, 0)], None)
