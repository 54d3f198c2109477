"""Sloth specs (``version: prometheus/v1``): a service and its SLOs, each with an objective in percent and an SLI.

Sloth judges over 30 days that roll. Source: slok/sloth, pkg/prometheus/api/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.domain.schema import ListOf, MapOf, Object, OneOf, Text, fail
from ledger.domain.time.calendar import PeriodLength
from ledger.errors import NoCounterpart
from ledger.ingest.openslo import Entry, exactly_one
from ledger.ingest.openslo_shapes import NUMBER, TEXT, Anything
from ledger.ingest.openslo_slo import leaves
from ledger.ingest.slo_model import Metric, MetricKind, Note, NoteKind, Place, Promise, Slo, TimeWindow
from ledger.ingest.slo_values import share

VERSION = "prometheus/v1"
WINDOW = TimeWindow(PeriodLength(30, "D"))

_ANY = Anything()
_LABELS = MapOf(r"[a-zA-Z_][a-zA-Z0-9_]*", TEXT)
SPEC = Object(
    {
        "version": OneOf((VERSION,)),
        "service": TEXT,
        "slos": ListOf(
            Object(
                {
                    "name": Text(r"[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,126}[a-zA-Z0-9])?", "a name", 128),
                    "objective": NUMBER,
                    "sli": Object(
                        {},
                        {
                            "events": Object({"error_query": TEXT, "total_query": TEXT}),
                            "raw": Object({"error_ratio_query": TEXT}),
                            "plugin": _ANY,
                        },
                    ),
                },
                {"description": TEXT, "labels": _LABELS, "alerting": _ANY, "plugins": _ANY},
            ),
            1,
        ),
    },
    {"labels": _LABELS, "slo_plugins": _ANY},
)


def read_sloth(entry: Entry) -> Iterator[Slo]:
    """Each SLO of a spec; raises ``DocumentInvalid`` or one of its kinds with file, line and field."""
    with entry.located():
        place, document = entry.place, entry.value
        SPEC.check(document, place.field)
        common = tuple(_left(document, place, {"version", "service", "slos"}))
        for index, said in enumerate(document["slos"]):
            at = place.at(f"slos[{index}]")
            metric = _metric(said["name"], said["sli"], at.at("sli"))
            target = share(
                at.at("objective"),
                said["objective"],
                whole=100,
                inside=lambda x: 0 < x <= 100,
                said="(0, 100]: above 0, at most 100",
            )
            window = Note(NoteKind.ASSUMED, at, "30d", "Sloth judges over 30 rolling days; its specs name no window")
            notes = (window, *common, *_left(said, at, {"name", "objective", "sli"}))
            promise = Promise(at, said["name"], target, metric, None)
            yield Slo(at, said["name"], document["service"], WINDOW, (promise,), notes, at)


def _metric(name: str, sli: Mapping[str, Any], place: Place) -> Metric:
    if "plugin" in sli:
        raise NoCounterpart(
            f"{place.at('plugin').field}: the queries are made by a plugin of Sloth; write them out as events or raw",
            field=place.at("plugin").field,
        )
    if exactly_one(sli, place, ("events", "raw")) == "raw":
        return Metric(MetricKind.RAW, place.at("raw"), name, {"raw": sli["raw"]["error_ratio_query"]}, failures=True)
    events = sli["events"]
    for key in ("error_query", "total_query"):
        if "{{.window}}" not in events[key].replace(" ", ""):
            raise fail(place.at(f"events.{key}").field, "must hold {{.window}}, which Sloth puts the window in for")
    return Metric(
        MetricKind.RATIO, place.at("events"), name, {"bad": events["error_query"], "total": events["total_query"]}
    )


def _left(value: Mapping[str, Any], place: Place, used: set[str]) -> Iterator[Note]:
    for key, item in value.items():
        if key not in used:
            for at, text in leaves(item, place.at(key)):
                why = (
                    "an agreement has no alerts; subscribe to webhooks or use the example alert rules"
                    if key == "alerting"
                    else f"an agreement has no {key}"
                )
                yield Note(NoteKind.NO_COUNTERPART, at, text, why)
