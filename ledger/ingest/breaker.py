"""Events of circuit breakers in the shapes their senders have: resilience4j, Envoy's outlier detection, and our own.

resilience4j (``/actuator/circuitbreakerevents``): ``circuitBreakerName``, ``type``, ``creationTime``, and for a
transition ``stateTransition`` such as CLOSED_TO_OPEN. A failure rate of NaN or -1 means that too few calls were made
to know it.

Envoy (``OutlierDetectionEvent``): ``cluster_name``, ``upstream_url``, ``action``, ``enforced``, ``timestamp``. An EJECT
that was not enforced changed nothing; it is counted and is no transition.

Our own, for breakers that speak neither: ``breaker``, ``from_state`` (may be null), ``to_state``, ``at``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from ledger.app.facts.telemetry import RawTelemetry
from ledger.domain.rows.telemetry import BreakerReport, BreakerState, Doubt, Reading, ServiceReadings, Transition
from ledger.ingest.reading import ReadingProblem, clean, instant_ns, read_json, unusable

JSON = "application/json"
MAX_EVENTS = 10_000

_STATES = "CLOSED|OPEN|HALF_OPEN|FORCED_OPEN|DISABLED|METRICS_ONLY"
_TRANSITION = re.compile(f"({_STATES})_TO_({_STATES})")
_REPORTS = frozenset(
    {
        "SUCCESS",
        "ERROR",
        "IGNORED_ERROR",
        "NOT_PERMITTED",
        "RESET",
        "FORCED_OPEN",
        "DISABLED",
        "FAILURE_RATE_EXCEEDED",
        "SLOW_CALL_RATE_EXCEEDED",
    }
)

Event = Mapping[str, Any]


def read_breaker_events(raw: RawTelemetry) -> list[ServiceReadings]:
    """A JSON body without an envelope: one event, a list of them, or what resilience4j's actuator answers."""
    document = read_json(raw.data)
    events = document.get("circuitBreakerEvents", [document]) if isinstance(document, dict) else document
    if not isinstance(events, list) or not events:
        raise unusable("body", "must be an event or a list of events")
    if len(events) > MAX_EVENTS:
        raise unusable("body", f"has more than {MAX_EVENTS} events; send them in parts")
    groups: dict[str | None, ServiceReadings] = {}
    for at, event in enumerate(events):
        place = (
            f"[{at}]" if isinstance(document, list) else "body" if len(events) == 1 else f"circuitBreakerEvents[{at}]"
        )
        service = raw.service if raw.service is not None else service_of(event)
        group = groups.setdefault(service, ServiceReadings(service, f"{place}.service"))
        group.readings.append(read_event(event, place, identity=None))
    return list(groups.values())


def service_of(event: Any) -> str | None:
    """The service an event's data names, if any."""
    named = event.get("service") if isinstance(event, dict) else None
    return named if isinstance(named, str) else None


def read_event(event: Any, place: str, *, identity: str | None) -> Reading:
    """One event, whatever its shape. ``identity`` is the sender's name for it; None: what it says identifies it."""
    try:
        if not isinstance(event, dict):
            raise ReadingProblem(Doubt.MALFORMED, place, "must be a JSON object", event)
        for member, read in _SHAPES.items():
            if member in event:
                return read(event, place, identity)
        raise ReadingProblem(
            Doubt.FIELD_MISSING,
            place,
            f"none of {', '.join(_SHAPES)} is there: no shape of a breaker event that is read",
        )
    except ReadingProblem as problem:
        return problem.refusal


def _resilience4j(event: Event, place: str, identity: str | None) -> Reading:
    breaker = _text(event, "circuitBreakerName", place)
    kind = _text(event, "type", place)
    at_ns = instant_ns(event.get("creationTime"), f"{place}.creationTime")
    if kind != "STATE_TRANSITION":
        if kind not in _REPORTS:
            raise ReadingProblem(Doubt.FIELD_INVALID, f"{place}.type", "is no event type of resilience4j", kind)
        return BreakerReport(identity or f"{breaker} {kind} {at_ns}", breaker, kind.lower(), at_ns)
    named = _text(event, "stateTransition", place)
    match = _TRANSITION.fullmatch(named)
    if match is None:
        message = "must be two states, such as CLOSED_TO_OPEN"
        raise ReadingProblem(Doubt.FIELD_INVALID, f"{place}.stateTransition", message, named)
    return Transition(
        identity or f"{breaker} {named} {at_ns}",
        breaker,
        "state_transition",
        BreakerState(match[1].lower()),
        BreakerState(match[2].lower()),
        at_ns,
        _rate(event.get("failureRate"), f"{place}.failureRate"),
    )


def _envoy(event: Event, place: str, identity: str | None) -> Reading:
    breaker = clean(f"{_text(event, 'cluster_name', place)} {_text(event, 'upstream_url', place)}")
    action = _text(event, "action", place)
    at_ns = instant_ns(event.get("timestamp"), f"{place}.timestamp")
    if action not in ("EJECT", "UNEJECT"):
        raise ReadingProblem(Doubt.FIELD_INVALID, f"{place}.action", "must be EJECT or UNEJECT", action)
    name = identity or f"{breaker} {action} {at_ns}"
    if action == "UNEJECT":
        return Transition(name, breaker, "outlier_uneject", BreakerState.EJECTED, BreakerState.UNEJECTED, at_ns, None)
    enforced = event.get("enforced", False)
    if not isinstance(enforced, bool):
        raise ReadingProblem(Doubt.FIELD_INVALID, f"{place}.enforced", "must be true or false", enforced)
    if not enforced:
        return BreakerReport(name, breaker, "outlier_eject_not_enforced", at_ns)
    return Transition(name, breaker, "outlier_eject", None, BreakerState.EJECTED, at_ns, None)


def _own(event: Event, place: str, identity: str | None) -> Reading:
    breaker, to_state = _text(event, "breaker", place), _state(event.get("to_state"), f"{place}.to_state")
    before = event.get("from_state")
    at_ns = instant_ns(event.get("at"), f"{place}.at")
    return Transition(
        identity or f"{breaker} {to_state} {at_ns}",
        breaker,
        "state_transition",
        None if before is None else _state(before, f"{place}.from_state"),
        to_state,
        at_ns,
        _rate(event.get("failure_rate"), f"{place}.failure_rate"),
    )


_SHAPES: Mapping[str, Callable[[Event, str, str | None], Reading]] = {
    "circuitBreakerName": _resilience4j,
    "cluster_name": _envoy,
    "breaker": _own,
}


def _text(event: Event, member: str, place: str) -> str:
    value = event.get(member)
    if not isinstance(value, str) or not value:
        reason = Doubt.FIELD_MISSING if member not in event else Doubt.FIELD_INVALID
        raise ReadingProblem(reason, f"{place}.{member}", "must be a text that is not empty", value)
    return clean(value)


def _state(value: object, field: str) -> BreakerState:
    try:
        return BreakerState(str(value).lower())
    except ValueError:
        message = f"must be one of {', '.join(BreakerState)}"
        raise ReadingProblem(Doubt.FIELD_INVALID, field, message, value) from None


def _rate(value: object, field: str) -> Decimal | None:
    """A failure rate in percent; None for null, NaN and -1, which mean that it is not known."""
    if value is None:
        return None
    try:
        rate = Decimal(str(value).removesuffix("%")) if not isinstance(value, bool) else Decimal("-2")
    except InvalidOperation:
        rate = Decimal(-2)
    if rate.is_nan() or rate == -1:
        return None
    if not 0 <= rate <= 100 or len(str(rate)) > 60:
        raise ReadingProblem(Doubt.FIELD_INVALID, field, "must be a percentage from 0 to 100, or -1 or null", value)
    return rate
