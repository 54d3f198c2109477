"""Event types and the log entry of an event."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.events.event_types import EVENT_TYPES, check_event, event_schemas
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.event_values import DecimalInteger
from ledger.domain.record.events import MAX_INSTANT_NS, NewEvent, StoredEvent, header_entry, payload_commitment
from ledger.errors import DocumentInvalid, EventInvalid
from tests.conformance.samples import agreement, anchor, attestation, statement, statement_id, window

SAMPLES = [agreement(), window(), statement(), attestation(statement_id()), anchor(statement_id())]

STORED = StoredEvent(
    seq=5,
    id="018c8013-2b00-7000-8000-000000000001",
    tenant="default",
    stream="windows/a",
    version=2,
    type="window_evaluated",
    schema=1,
    payload_class="standard",
    occurred_at_ns=1_702_944_000_000_000_001,
    recorded_at_ns=1_702_944_000_000_000_002,
    payload={"b": 1, "a": "é"},
    salt=bytes(range(32)),
)


def changed(event: NewEvent, **members: Any) -> NewEvent:
    return replace(event, payload={**event.payload, **members})


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_a_valid_event_passes(event: NewEvent) -> None:
    check_event(event)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_every_member_is_required_and_no_other_is_allowed(event: NewEvent) -> None:
    for name in event.payload:
        rest = {key: value for key, value in event.payload.items() if key != name}
        with pytest.raises(EventInvalid, match=f"{event.type}: {name}: is missing"):
            check_event(replace(event, payload=rest))
    with pytest.raises(EventInvalid, match="unknown key"):
        check_event(changed(event, remark="hello"))


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (replace(window(), type="window_guessed"), "not an event type"),
        (replace(window(), schema=3), "schema version 2, not 3"),
        (replace(window(), payload_class="personal"), "payload class"),
        (replace(window(), occurred_at_ns=-1), "occurred_at_ns"),
        (replace(window(), occurred_at_ns=MAX_INSTANT_NS + 1), "occurred_at_ns"),
        (changed(window(), start_ns=1_702_944_000_000_000_000), "start_ns"),
        (changed(window(), start_ns="01"), "start_ns"),
        (changed(window(), start_ns=str(2**63)), "start_ns"),
        (changed(window(), start_ns="-1"), "start_ns"),
        (changed(window(), start_ns="\u0661"), "start_ns"),
        (changed(window(), sla_id="5a" * 32), "sla_id"),
        (changed(window(), sla_id="0x" + "5A" * 32), "sla_id"),
        (changed(window(), doc_sha256="0x" + "cd" * 32), "doc_sha256"),
        (changed(window(), cells={"availability": {"good": 1.0, "bad": 0}}), "cells.availability.good"),
        (changed(window(), cells={"availability": {"good": -1, "bad": 0}}), "cells.availability.good"),
        (changed(statement(), credit={"currency": "USD", "minor_units": 12}), "credit.minor_units"),
        (changed(statement(), credit={"currency": "USD", "minor_units": "1.5"}), "credit.minor_units"),
        (changed(statement(), credit={"currency": "USD", "minor_units": str(2**64)}), "credit.minor_units"),
        (changed(statement(), trace=[]), "trace"),
        (changed(attestation("s"), signals=["1"] * 5), "signals"),
        (changed(attestation("s"), proof="0f" * 255), "proof"),
    ],
)
def test_a_wrong_event_is_refused_by_field(event: NewEvent, says: str) -> None:
    with pytest.raises(EventInvalid, match=says):
        check_event(event)


@given(st.integers(-10, 2**64 + 10))
def test_a_decimal_integer_has_one_spelling_and_keeps_its_bounds(value: int) -> None:
    shape = DecimalInteger("a number", 2**64 - 1, minimum=3)
    if 3 <= value < 2**64:
        shape.check(str(value), "n")
        for other in (f"0{value}", f"+{value}", f" {value}", f"{value}.0"):
            with pytest.raises(DocumentInvalid):
                shape.check(other, "n")
    else:
        with pytest.raises(DocumentInvalid):
            shape.check(str(value), "n")


def test_the_entry_is_the_canonical_header() -> None:
    header = {
        "class": "standard",
        "id": "018c8013-2b00-7000-8000-000000000001",
        "occurred_at_ns": "1702944000000000001",
        "payload_commitment": payload_commitment({"a": "é", "b": 1}, bytes(range(32))).hex(),
        "recorded_at_ns": "1702944000000000002",
        "schema": 1,
        "stream": "windows/a",
        "tenant": "default",
        "type": "window_evaluated",
        "version": 2,
    }
    assert STORED.header == header
    assert STORED.entry == canonical_bytes(header)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_the_quick_way_to_an_entry_gives_the_canonical_bytes(stream: str, tenant: str) -> None:
    event = replace(STORED, stream=stream, tenant=tenant)
    assert event.entry == header_entry(event.header) == canonical_bytes(event.header)


@pytest.mark.parametrize(
    "other",
    [
        replace(STORED, id="other"),
        replace(STORED, tenant="other"),
        replace(STORED, stream="windows/b"),
        replace(STORED, version=3),
        replace(STORED, type="block_sealed"),
        replace(STORED, schema=2),
        replace(STORED, payload_class="other"),
        replace(STORED, occurred_at_ns=0),
        replace(STORED, recorded_at_ns=0),
        replace(STORED, payload={"b": 2, "a": "é"}),
        replace(STORED, salt=bytes(32)),
    ],
)
def test_an_entry_commits_to_everything_but_its_place_in_the_log(other: StoredEvent) -> None:
    assert other.entry != STORED.entry
    assert replace(STORED, seq=6).entry == STORED.entry


def test_published_schemas_are_those_of_the_registry() -> None:
    folder = Path(__file__).resolve().parents[3] / "docs" / "events"
    published = {path.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    current = event_schemas()
    assert {name: published[name] for name in current} == current
    assert set(published) == {
        f"{kind.name}.v{n}.json" for kind in EVENT_TYPES.values() for n in range(1, kind.schema + 1)
    }
