"""An OpenSLO SLO, of any version, as promises on a metric.

Every member of the object is either used or ends up in a note, because the notes are made from what was not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.schema import fail
from ledger.ingest.openslo import ObjectBook, OpenSloObject, exactly_one, indicator_keys
from ledger.ingest.openslo_shapes import V1ALPHA
from ledger.ingest.slo_model import (
    Metric,
    MetricKind,
    Note,
    NoteKind,
    Place,
    Promise,
    SliceSpan,
    Slo,
    TimeWindow,
)
from ledger.ingest.slo_values import bound, period_length, share, slice_seconds, unit_length, wall_clock, zone_name

_ASSUMED_SLICE_S = 60
_WHY: tuple[tuple[str, str], ...] = (
    ("alertPolicies", "an agreement has no alerts; subscribe to webhooks or use the example alert rules"),
    ("labels", "an agreement has no labels"),
    ("annotations", "an agreement has no annotations"),
    ("displayName", "names shown to people have no place; objective ids come from metadata.name"),
    ("description", "an agreement has no free text"),
    ("metricSourceRef", "the agreement names its own source of facts"),
    ("dataSource", "the agreement names its own source of facts"),
    ("type", "the agreement names its own source of facts"),
    ("counter", "counters are taken as increases by the collectors"),
    ("incremental", "counters are taken as increases by the collectors"),
    ("compositeWeight", "objectives are judged and paid one by one, without weights"),
    ("op", "a ratio is compared with its target only"),
    ("value", "a ratio is compared with its target only"),
    ("timeSlice", "the budgeting method does not use it"),
)


class SloReader:
    """Reads one SLO, whose rules were checked."""

    def __init__(self, found: OpenSloObject, book: ObjectBook) -> None:
        self._found = found
        self._book = book
        self._notes: list[Note] = []
        self._taken: set[tuple[str, int, str]] = set()
        self._indicators: list[OpenSloObject] = []

    def read(self) -> Slo:
        """The SLO; raises ``DocumentInvalid`` or one of its kinds with file, line and field."""
        found, spec, place = self._found, self._found.spec, self._found.place.at("spec")
        with found.entry.located():
            service_key = "service" if "service" in spec else "serviceRef"
            if found.version != V1ALPHA and "serviceRef" in spec:
                exactly_one(spec, place, ("service", "serviceRef"))
            if service_key not in spec:
                raise fail(place.at("service").field, "is missing")
            for used in ("apiVersion", "kind", "metadata.name"):
                self._take(found.place.at(used))
            self._take(place.at(service_key))
            self._take(place.at("budgetingMethod"))
            promises = tuple(self._promises(place))
            window = self._window(place)
            self._note_what_is_left(found)
            for indicator in self._indicators:
                self._note_what_is_left(indicator)
        indicators = tuple(indicator.place for indicator in self._indicators)
        window_at = place.at("timeWindows" if found.version == V1ALPHA else "timeWindow")
        notes = tuple(self._notes)
        return Slo(found.place, found.name, spec[service_key], window, promises, notes, window_at, indicators)

    # --- what is promised ---

    def _promises(self, place: Place) -> Iterator[Promise]:
        spec, version = self._found.spec, self._found.version
        method = spec["budgetingMethod"]
        for index, objective in enumerate(spec["objectives"]):
            at = place.at(f"objectives[{index}]")
            name = self._found.name if len(spec["objectives"]) == 1 else f"{self._found.name}-{index + 1}"
            slices: SliceSpan | None = None
            if method != "Occurrences":
                slices = self._slices(objective, at, method)
            if version == V1ALPHA:
                metric = self._metric_v1alpha(objective, at, place)
            else:
                metric = self._metric(objective, at, place)
            yield Promise(at, name, self._target(objective, at), metric, slices)

    def _target(self, objective: Mapping[str, Any], at: Place) -> str:
        key = exactly_one(objective, at, ("target", "targetPercent"))
        self._take(at.at(key))
        whole = 1 if key == "target" else 100
        return share(
            at.at(key),
            objective[key],
            whole=whole,
            inside=lambda x: 0 <= x < whole,
            said=f"[0, {whole}): at least 0, below {whole}",
        )

    def _slices(self, objective: Mapping[str, Any], at: Place, method: str) -> SliceSpan:
        target: str | None = None
        if method == "Timeslices":
            if "timeSliceTarget" not in objective:
                raise fail(at.at("timeSliceTarget").field, "is missing: the budgeting method is Timeslices")
            self._take(at.at("timeSliceTarget"))
            target = share(
                at.at("timeSliceTarget"),
                objective["timeSliceTarget"],
                whole=1,
                inside=lambda x: 0 < x <= 1,
                said="(0, 1]: above 0, at most 1",
            )
        if "timeSliceWindow" in objective:
            self._take(at.at("timeSliceWindow"))
            return SliceSpan(slice_seconds(at.at("timeSliceWindow"), objective["timeSliceWindow"]), target)
        if self._found.version != V1ALPHA:
            raise fail(at.at("timeSliceWindow").field, f"is missing: the budgeting method is {method}")
        self._note(NoteKind.ASSUMED, at.at("timeSliceWindow"), "1m", "v1alpha has no length of slices: one minute")
        return SliceSpan(_ASSUMED_SLICE_S, target)

    # --- what is measured ---

    def _metric(self, objective: Mapping[str, Any], at: Place, place: Place) -> Metric:
        inline, reference = indicator_keys(self._found.version)
        own = [key for key in (inline, reference) if key in objective]
        shared = [key for key in (inline, reference) if key in self._found.spec]
        if own and shared:
            raise fail(at.at(own[0]).field, f"cannot stand beside spec.{shared[0]}: one indicator or one each")
        holder, holder_at = (objective, at) if own else (self._found.spec, place)
        key = exactly_one(holder, holder_at, (inline, reference))
        if key == inline:
            self._take(holder_at.at(f"{inline}.metadata.name"))
            said = holder[inline]
            return self._indicator(
                said["metadata"]["name"], said["spec"], holder_at.at(f"{inline}.spec"), objective, at
            )
        self._take(holder_at.at(reference))
        found = self._book.resolve(self._found.version, "SLI", holder[reference], holder_at.at(reference))
        self._indicators.append(found)
        for used in ("apiVersion", "kind", "metadata.name"):
            self._take(found.place.at(used))
        return self._indicator(found.name, found.spec, found.place.at("spec"), objective, at)

    def _indicator(
        self, name: str, spec: Mapping[str, Any], place: Place, objective: Mapping[str, Any], at: Place
    ) -> Metric:
        if "thresholdMetric" in spec:
            place = place.at("thresholdMetric")
            return self._threshold(name, self._query(spec["thresholdMetric"], place), place, objective, at)
        place, ratio = place.at("ratioMetric"), spec["ratioMetric"]
        queries = {
            key: self._query(ratio[key], place.at(key)) for key in ("good", "bad", "total", "raw") if key in ratio
        }
        if "raw" not in ratio:
            return Metric(MetricKind.RATIO, place, name, queries)
        self._take(place.at("rawType"))
        return Metric(MetricKind.RAW, place, name, queries, failures=ratio["rawType"] == "failure")

    def _metric_v1alpha(self, objective: Mapping[str, Any], at: Place, place: Place) -> Metric:
        shared = self._found.spec.get("indicator")
        if (shared is None) == ("ratioMetrics" not in objective):
            said = "is missing; so is spec.indicator" if shared is None else "cannot stand beside spec.indicator"
            raise fail(at.at("ratioMetrics").field, said)
        if shared is not None:
            where = place.at("indicator.thresholdMetric")
            self._take(where)
            return self._threshold(self._found.name, shared["thresholdMetric"]["query"], where, objective, at)
        where, ratio = at.at("ratioMetrics"), objective["ratioMetrics"]
        self._take(where.at("good"))
        self._take(where.at("total"))
        queries = {key: ratio[key]["query"] for key in ("good", "total")}
        return Metric(MetricKind.RATIO, where, self._found.name, queries)

    def _threshold(self, name: str, query: str, place: Place, objective: Mapping[str, Any], at: Place) -> Metric:
        for key in ("op", "value"):
            if key not in objective:
                raise fail(at.at(key).field, "is missing: values of a thresholdMetric are compared with it")
            self._take(at.at(key))
        within = bound(at.at("value"), objective["op"], objective["value"])
        return Metric(MetricKind.THRESHOLD, place, name, {"value": query}, within=within)

    def _query(self, source: Mapping[str, Any], place: Place) -> str:
        if "metricSource" in source:
            source, place = source["metricSource"], place.at("metricSource")
        said = source.get("spec")
        self._take(place.at("spec"))
        if isinstance(said, Mapping) and set(said) == {"query"} and isinstance(said["query"], str):
            return said["query"]
        return "" if said is None else canonical_bytes(said).decode()

    # --- what it is for ---

    def _window(self, place: Place) -> TimeWindow | None:
        key = "timeWindows" if self._found.version == V1ALPHA else "timeWindow"
        windows = self._found.spec.get(key)
        if windows is None:
            return None
        if len(windows) != 1:
            raise fail(place.at(key).field, f"has {len(windows)} entries; a time window is a list of exactly one")
        at, said = place.at(f"{key}[0]"), windows[0]
        self._take(at)
        if key == "timeWindows":
            length = unit_length(at, said["count"], said["unit"])
        else:
            length = period_length(at.at("duration"), said["duration"])
        calendar, rolling = said.get("calendar"), said.get("isRolling")
        if calendar is not None:
            if rolling == "true":
                raise fail(at.at("calendar").field, "cannot stand beside isRolling: true")
            start, second = wall_clock(at.at("calendar.startTime"), calendar["startTime"])
            return TimeWindow(length, start, second, zone_name(at.at("calendar.timeZone"), calendar["timeZone"]))
        if rolling == "false":
            raise fail(at.at("calendar").field, "is missing: a window that does not roll starts somewhere")
        if rolling is None:
            self._note(
                NoteKind.ASSUMED, at.at("isRolling"), "true", "neither isRolling nor calendar is said: the window rolls"
            )
        return TimeWindow(length)

    # --- what has no counterpart ---

    def _note_what_is_left(self, found: OpenSloObject) -> None:
        for place, value in leaves(found.entry.value, found.place):
            parts = place.field.replace("]", "").replace("[", ".").split(".")
            prefixes = _prefixes(place)
            if any((place.file, place.document, prefix) in self._taken for prefix in prefixes):
                continue
            why = next((said for word, said in _WHY if any(part.startswith(word) for part in parts)), None)
            self._note(NoteKind.NO_COUNTERPART, place, value, why or "an agreement has no place for it")

    def _take(self, place: Place) -> None:
        self._taken.add((place.file, place.document, place.field))

    def _note(self, kind: NoteKind, place: Place, value: str, message: str) -> None:
        self._notes.append(Note(kind, place, value, message))


def leaves(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Every text below a value; a list of texts is one, and so is an alert policy, by its name."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        metadata = value.get("metadata")
        if isinstance(value.get("alertPolicyRef"), str):
            yield place, value["alertPolicyRef"]
        elif value.get("kind") == "AlertPolicy" and isinstance(metadata, Mapping):
            yield place, str(metadata.get("name"))
        else:
            for key, item in value.items():
                yield from leaves(item, place.at(key))
    elif value is not None:
        if all(isinstance(item, str) for item in value):
            yield place, ", ".join(value)
        else:
            for index, item in enumerate(value):
                yield from leaves(item, place.at(f"[{index}]"))


def _prefixes(place: Place) -> Iterator[str]:
    field = place.field
    while field:
        yield field
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
