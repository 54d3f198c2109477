"""Old events are raised to their type's current shape when they are read, and what is stored stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ledger.domain.events.event_types import EVENT_TYPES, EventType
from ledger.domain.events.upcast import UPCASTERS, Upcasters, current
from ledger.domain.record.events import ErasedPayload, StoredEvent
from ledger.domain.schema import Integer, Object, Text
from ledger.errors import EventInvalid, StorageUnavailable

TYPES = {"weighed": EventType("weighed", 3, Object({"mg": Integer(), "scale": Text()}))}


def grams_to_mg(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"mg": payload["grams"] * 1000}


def name_the_scale(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**payload, "scale": "unknown"}


STEPS: Upcasters = {("weighed", 1): grams_to_mg, ("weighed", 2): name_the_scale}


def event(schema: int, payload: Mapping[str, Any]) -> StoredEvent:
    return StoredEvent(7, "id", "default", "s", 0, "weighed", schema, "standard", 1, 2, payload, b"\x05" * 32)


@pytest.mark.parametrize(
    ("schema", "payload", "raised"),
    [
        (1, {"grams": 3}, {"mg": 3000, "scale": "unknown"}),
        (2, {"mg": 5}, {"mg": 5, "scale": "unknown"}),
        (3, {"mg": 5, "scale": "b"}, {"mg": 5, "scale": "b"}),
    ],
)
def test_every_version_is_read_in_the_current_shape(schema: int, payload: Any, raised: Any) -> None:
    stored = event(schema, payload)
    found = current(stored, TYPES, STEPS)
    assert found.payload == raised
    TYPES["weighed"].payload.check(found.payload, "")
    assert (found.committed_payload, found.schema, found.entry) == (payload, schema, stored.entry)
    assert stored.payload == payload


def test_a_newer_version_than_this_program_knows_is_not_guessed_at() -> None:
    with pytest.raises(StorageUnavailable, match="seq 7"):
        current(event(4, {}), TYPES, STEPS)


def test_a_missing_step_is_named() -> None:
    with pytest.raises(EventInvalid, match="version 2"):
        current(event(1, {"grams": 3}), TYPES, {("weighed", 1): grams_to_mg})


def test_every_older_version_of_the_ledgers_own_types_leads_on() -> None:
    needed = {(name, version) for name, kind in EVENT_TYPES.items() for version in range(1, kind.schema)}
    assert needed == UPCASTERS.keys()


def test_an_erased_payload_and_an_unknown_type_stay_as_they_are() -> None:
    erased = replace(event(1, {}), payload=ErasedPayload("id", b"\x01" * 32))
    assert current(erased, TYPES, STEPS) is erased
    unknown = replace(event(9, {}), type="of another product")
    assert current(unknown, TYPES, STEPS) is unknown
