"""Old events in their type's current shape: one function for each step from a schema version to the next.

What is stored never changes, and neither does what the log entry commits to. Only readers see the new shape, so
a use case or projection knows one version of each type and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ledger.domain.events.event_types import EVENT_TYPES, EventType
from ledger.domain.record.events import LATER_SCHEMAS, StoredEvent
from ledger.errors import EventInvalid, StorageUnavailable

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A payload of one schema version as the next version says it; pure, and leaves its argument as it is."""

Upcasters = Mapping[tuple[str, int], Upcaster]
"""By (type, version the step starts from)."""


def _as_it_is(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The step to a version that only allows more."""
    return payload


UPCASTERS: Upcasters = {(name, 1): _as_it_is for name in LATER_SCHEMAS}
"""Every step there is. A type at schema version n has the steps from 1 to n - 1."""


def current(
    event: StoredEvent, types: Mapping[str, EventType] = EVENT_TYPES, upcasters: Upcasters = UPCASTERS
) -> StoredEvent:
    """The event with its payload in the current shape of its type.

    An erased payload and a type nobody knows stay as they are. Raises ``StorageUnavailable`` for an event that a
    newer version of the product wrote, ``EventInvalid`` where a step is missing.
    """
    known = types.get(event.type)
    if known is None or event.schema == known.schema or event.erased:
        return event
    if event.schema > known.schema:
        raise StorageUnavailable(
            f"the event at seq {event.seq} is {event.type} in schema version {event.schema}, and this version of "
            f"sla-ledger knows {known.schema}; use the version that wrote it, or a newer one",
            seq=event.seq,
            type=event.type,
            schema=event.schema,
        )
    payload = event.payload
    for version in range(event.schema, known.schema):
        step = upcasters.get((event.type, version))
        if step is None:
            raise EventInvalid(
                f"no upcaster leads from {event.type} version {version} to the next; add it to UPCASTERS",
                type=event.type,
                schema=version,
            )
        payload = step(payload)
    return replace(event, payload=payload, original=event.payload)
