"""CloudEvents 1.0 over HTTP (structured, binary and batch mode) that carry events of circuit breakers.

The attributes are read here and not by the library of that name: it cuts nanoseconds and takes times without a zone.
The service an event is about is its extension attribute ``service``, or the member ``service`` of its data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.telemetry import Doubt, Reading, ServiceReadings
from ledger.ingest.breaker import MAX_EVENTS, read_event, service_of
from ledger.ingest.reading import ReadingProblem, clean, instant_ns, read_json, unusable

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
SPECVERSION = "1.0"
_PREFIX = "ce-"


def read_cloudevents(raw: RawTelemetry) -> list[ServiceReadings]:
    """The events of one body. Raises ``TelemetryUnusable``."""
    document = read_json(raw.data)
    events = document if raw.media_type == BATCH else [document]
    if not isinstance(events, list):
        raise unusable("body", f"must be a list of events, as {BATCH} says")
    if len(events) > MAX_EVENTS:
        raise unusable("body", f"has more than {MAX_EVENTS} events; send them in parts")
    groups: dict[str | None, ServiceReadings] = {}
    for at, event in enumerate(events):
        place = f"[{at}]." if raw.media_type == BATCH else ""
        service = raw.service if raw.service is not None else _service(event)
        group = groups.setdefault(service, ServiceReadings(service, f"{place}service"))
        group.readings.append(_read(event, place))
    return list(groups.values())


def structured(headers: Mapping[str, str], body: bytes) -> bytes:
    """A binary-mode message (``ce-`` headers and a JSON body) as the structured event it stands for.

    ``headers`` are those of the request with lowercase names. Raises ``TelemetryUnusable``.
    """
    attributes = {
        name.removeprefix(_PREFIX): unquote(value) for name, value in headers.items() if name.startswith(_PREFIX)
    }
    read_json(body)
    head = json.dumps({**attributes, "datacontenttype": "application/json"}, ensure_ascii=False)
    # The data goes in as it came: written anew, its numbers could change.
    return head[:-1].encode("utf-8", "replace") + b', "data": ' + body + b"}"


def is_binary(headers: Mapping[str, str]) -> bool:
    return _PREFIX + "specversion" in headers or _PREFIX + "id" in headers


def _service(event: Any) -> str | None:
    if not isinstance(event, dict):
        return None
    named = event.get("service")
    return named if isinstance(named, str) else service_of(event.get("data"))


def _read(event: Any, place: str) -> Reading:
    try:
        if not isinstance(event, dict):
            raise ReadingProblem(Doubt.MALFORMED, place or "body", "must be a JSON object", event)
        version = event.get("specversion")
        if version != SPECVERSION:
            message = f"only CloudEvents {SPECVERSION} is read"
            raise ReadingProblem(Doubt.SPECVERSION_UNKNOWN, f"{place}specversion", message, version)
        for name in ("id", "source", "type"):
            if not isinstance(event.get(name), str) or not event[name]:
                reason = Doubt.FIELD_MISSING if name not in event else Doubt.FIELD_INVALID
                raise ReadingProblem(reason, place + name, "must be a text that is not empty", event.get(name))
        if "time" in event:
            instant_ns(event["time"], f"{place}time")
        if "data" not in event:
            raise ReadingProblem(Doubt.FIELD_MISSING, f"{place}data", "there is no data, or not in JSON")
    except ReadingProblem as problem:
        return problem.refusal
    # CloudEvents 1.0, section 3.1: source and id together name one event.
    return read_event(event["data"], f"{place}data", identity=clean(f"{event['source']} {event['id']}", 2000))
