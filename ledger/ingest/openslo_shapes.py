"""The closed shapes of OpenSLO objects, version by version (openslo/v1alpha, openslo/v1, openslo.com/v2alpha).

Every scalar is text here, because the reader guesses no types. Shapes say which members there are; ``openslo`` has the
rules between them. Source: the specification (OpenSLO/OpenSLO README.md, enhancements/v2alpha.md) and its Go SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema import JsonSchema, ListOf, MapOf, Object, OneOf, Shape, Test, Text, fail

V1ALPHA, V1, V2ALPHA = "openslo/v1alpha", "openslo/v1", "openslo.com/v2alpha"
MAX_DESCRIPTION = 1050


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value: connection details and queries are their owner's affair."""

    def check(self, value: Any, at: str) -> None:
        return

    def quick(self) -> Test:
        return lambda values: False

    def json_schema(self) -> JsonSchema:
        return {}


@dataclass(frozen=True, slots=True)
class Label:
    """A text or a list of texts."""

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, str) and not (
            isinstance(value, Sequence) and all(isinstance(item, str) for item in value)
        ):
            raise fail(at, "must be a text or a list of texts")

    def quick(self) -> Test:
        return lambda values: False

    def json_schema(self) -> JsonSchema:
        return {"type": ["string", "array"], "items": {"type": "string"}}


TEXT = Text(max_length=10_000, what="text")
NUMBER = Text(r"-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?", "a number", 48)
FLAG = Text("true|false", "true or false", 5)
OPERATOR = OneOf(("lte", "gte", "lt", "gt"))
_DESCRIPTION = Text(max_length=MAX_DESCRIPTION, what="a description", min_length=0)
_ANY = Anything()
_LABELS = MapOf(r"[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?", Label())
_ANNOTATIONS = MapOf(r"([a-z0-9.-]{1,253}/)?[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?", TEXT)
_CALENDAR = Object({"startTime": TEXT, "timeZone": TEXT})

_METADATA: Mapping[str, Object] = {
    V1ALPHA: Object({"name": TEXT}, {"displayName": TEXT}),
    V1: Object({"name": TEXT}, {"displayName": TEXT, "labels": _LABELS, "annotations": _ANNOTATIONS}),
    V2ALPHA: Object({"name": TEXT}, {"labels": _LABELS, "annotations": _ANNOTATIONS}),
}

_V1ALPHA_QUERY = Object({"source": TEXT, "queryType": TEXT, "query": TEXT})
_V1ALPHA_SLO = Object(
    {
        "service": TEXT,
        "budgetingMethod": OneOf(("Occurrences", "Timeslices")),
        "timeWindows": ListOf(
            Object(
                {"unit": OneOf(("Second", "Day", "Week", "Month", "Quarter")), "count": NUMBER},
                {"isRolling": FLAG, "calendar": _CALENDAR},
            )
        ),
        "objectives": ListOf(
            Object(
                {"target": NUMBER},
                {
                    "displayName": TEXT,
                    "value": NUMBER,
                    "op": OPERATOR,
                    "timeSliceTarget": NUMBER,
                    "ratioMetrics": Object({"good": _V1ALPHA_QUERY, "total": _V1ALPHA_QUERY}, {"incremental": FLAG}),
                },
            ),
            1,
        ),
    },
    {"description": _DESCRIPTION, "indicator": Object({"thresholdMetric": _V1ALPHA_QUERY})},
)

_DATA_SOURCE = Object({"type": TEXT}, {"description": _DESCRIPTION, "connectionDetails": _ANY})
_SOURCES: Mapping[str, Object] = {
    V1: Object({"metricSource": Object({"spec": _ANY}, {"metricSourceRef": TEXT, "type": TEXT})}),
    V2ALPHA: Object({}, {"dataSourceRef": TEXT, "dataSourceSpec": _DATA_SOURCE, "spec": _ANY}),
}


def _indicator(source: Object) -> Object:
    ratio = Object(
        {},
        {
            "counter": FLAG,
            "good": source,
            "bad": source,
            "total": source,
            "raw": source,
            "rawType": OneOf(("success", "failure")),
        },
    )
    return Object({}, {"description": _DESCRIPTION, "thresholdMetric": source, "ratioMetric": ratio})


def _inlined(version: str, spec: Object, reference: str) -> Object:
    """An object written out where it is used, or a reference to one: ``openslo`` says which of both is complete."""
    return Object({}, {reference: TEXT, "kind": TEXT, "metadata": _METADATA[version], "spec": spec})


_CONDITION = Object(
    {
        "severity": TEXT,
        "condition": Object(
            {"kind": OneOf(("burnrate",)), "op": OPERATOR, "threshold": NUMBER, "lookbackWindow": TEXT},
            {"alertAfter": TEXT},
        ),
    },
    {"description": _DESCRIPTION},
)
_TARGET = Object({"target": TEXT}, {"description": _DESCRIPTION})


def _alert_policy(version: str) -> Object:
    return Object(
        {
            "conditions": ListOf(_inlined(version, _CONDITION, "conditionRef"), 1),
            "notificationTargets": ListOf(_inlined(version, _TARGET, "targetRef"), 1),
        },
        {
            "description": _DESCRIPTION,
            "alertWhenNoData": FLAG,
            "alertWhenResolved": FLAG,
            "alertWhenBreaching": FLAG,
        },
    )


def _slo(version: str) -> Object:
    inline, reference = ("indicator", "indicatorRef") if version == V1 else ("sli", "sliRef")
    indicator: Mapping[str, Shape] = {
        inline: Object({"metadata": _METADATA[version], "spec": _indicator(_SOURCES[version])}),
        reference: TEXT,
    }
    objective = Object(
        {},
        {
            "displayName": TEXT,
            "op": OPERATOR,
            "value": NUMBER,
            "target": NUMBER,
            "targetPercent": NUMBER,
            "timeSliceTarget": NUMBER,
            "timeSliceWindow": TEXT,
            "compositeWeight": NUMBER,
            **({"labels": _LABELS} if version == V2ALPHA else {}),
            **indicator,
        },
    )
    service: Mapping[str, Shape] = {"service": TEXT}
    return Object(
        {
            **(service if version == V1 else {}),
            "budgetingMethod": OneOf(("Occurrences", "Timeslices", "RatioTimeslices")),
            "objectives": ListOf(objective, 1),
        },
        {
            # The enhancement text says service, the SDK serviceRef.
            **({} if version == V1 else {**service, "serviceRef": TEXT}),
            "description": _DESCRIPTION,
            "timeWindow": ListOf(Object({"duration": TEXT}, {"isRolling": FLAG, "calendar": _CALENDAR})),
            "alertPolicies": ListOf(_inlined(version, _alert_policy(version), "alertPolicyRef")),
            **indicator,
        },
    )


def _specs(version: str) -> Mapping[str, Object]:
    if version == V1ALPHA:
        return {"SLO": _V1ALPHA_SLO}
    return {
        "SLO": _slo(version),
        "SLI": _indicator(_SOURCES[version]),
        "DataSource": _DATA_SOURCE,
        "AlertPolicy": _alert_policy(version),
        "AlertCondition": _CONDITION,
        "AlertNotificationTarget": _TARGET,
    }


def _objects(version: str) -> Mapping[str, Object]:
    def object_of(kind: str, spec: Object) -> Object:
        return Object(
            {"apiVersion": OneOf((version,)), "kind": OneOf((kind,)), "metadata": _METADATA[version], "spec": spec}
        )

    service = Object(
        {"apiVersion": OneOf((version,)), "kind": OneOf(("Service",)), "metadata": _METADATA[version]},
        {"spec": Object({}, {"description": _DESCRIPTION})},
    )
    return {"Service": service, **{kind: object_of(kind, spec) for kind, spec in _specs(version).items()}}


OBJECTS: Mapping[str, Mapping[str, Object]] = {version: _objects(version) for version in (V1ALPHA, V1, V2ALPHA)}
"""The shape of each kind of each version."""
