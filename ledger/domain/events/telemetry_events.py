"""Events about what was measured of a service beside its requests: samples, and the steps of circuit breakers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledger.domain.record.event_values import INSTANT_NS, REASON, SHA256, SPAN
from ledger.domain.rows.telemetry import MAX_POINTS, MAX_SHOWN, BreakerState, SampleVerdict
from ledger.domain.schema import Integer, ListOf, MapOf, Nullable, Object, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import NAME

_COUNT: Final = Integer()
_NUMBER = Text(r"-?\d{1,40}(?:\.\d{1,40})?(?:E[+-]?\d{1,3})?", "a number in decimal digits", 60)
_SERVICE = Text(max_length=120, what="a service that an agreement names", visible=True)
_REFUSED = Object(
    {
        "field": Text(max_length=300, what="where it stands"),
        "reason": Text(REASON, "a reason", 80),
        "raw": Text(max_length=80, min_length=0, what="the value as it came"),
        "message": Text(max_length=300, what="what is wrong, for people"),
    }
)
_POINT = Object(
    {
        "kind": OneOf(("gpu_sample", "server_metric")),
        "subject": Text(max_length=200, what="what was measured: a GPU, an engine, a cluster"),
        "metric": Text(max_length=200, what="the metric"),
        "min": _NUMBER,
        "max": _NUMBER,
        "last": _NUMBER,
        "from_ns": INSTANT_NS,
        "to_ns": INSTANT_NS,
        "samples": _COUNT,
        "severity": Integer(0, 100),
    }
)
_BREAKER_STATES = tuple(str(state) for state in BreakerState)

TELEMETRY_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "telemetry_recorded": {
        "service": _SERVICE,
        "source": NAME,
        "format": Text(r"[a-z0-9_]{1,40}", "a format of the registry", 40),
        "media_type": Text(max_length=120, what="the media type the batch came as"),
        "digest": SHA256,
        "bytes": _COUNT,
        "scraped_at_ns": Nullable(INSTANT_NS),
        "samples": Object({str(verdict): _COUNT for verdict in SampleVerdict}),
        "reasons": MapOf(REASON, _COUNT),
        "refused": ListOf(_REFUSED, 0, MAX_SHOWN),
        "resets": _COUNT,
        "transitions": _COUNT,
        "span": SPAN,
        "points": ListOf(_POINT, 0, MAX_POINTS),
    },
    "breaker_event_recorded": {
        "service": _SERVICE,
        "source": NAME,
        "digest": SHA256,
        "breaker": Text(max_length=200, what="name of the breaker"),
        "kind": Text(REASON, "what the sender calls the event, in lowercase", 80),
        "from_state": Nullable(OneOf(_BREAKER_STATES)),
        "to_state": OneOf(_BREAKER_STATES),
        "at_ns": INSTANT_NS,
        "failure_rate": Nullable(_NUMBER),
    },
}
