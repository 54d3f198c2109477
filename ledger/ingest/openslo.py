"""OpenSLO objects out of streams: each checked against its version's shape and rules, and found again by name.

Shapes of all documents are checked first, then the rules between members, then references, so that a fault is named
where it stands and not where it is first felt. References (``indicatorRef`` and the alerts') lead to objects of the
same version in any of the files read together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema import fail
from ledger.errors import DocumentInvalid, ReferenceUnresolved
from ledger.ingest.agreement_yaml import line_of
from ledger.ingest.openslo_shapes import OBJECTS, V1ALPHA, V2ALPHA
from ledger.ingest.slo_model import Note, NoteKind, Place

# RFC 1123 labels, which every implementation takes, and the characters the specification also encourages.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.|/\\]{0,253}[a-z0-9])?", re.ASCII)

_ALERT_PARTS = (
    ("conditions", "AlertCondition", "conditionRef"),
    ("notificationTargets", "AlertNotificationTarget", "targetRef"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a stream: where it stands, and the lines of its fields."""

    place: Place
    value: Any
    lines: Mapping[str, int]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give errors about fields of this entry the file and the line."""
        try:
            yield
        except DocumentInvalid as error:
            if "line" in error.data:
                raise
            field = str(error.data.get("field", ""))
            line = line_of(field, self.lines)
            raise type(error)(
                f"{self.place.file}:{line}: {error.message}",
                file=self.place.file,
                line=line,
                document=self.place.document,
                field=field,
            ) from error


@dataclass(frozen=True, slots=True)
class OpenSloObject:
    """One object. ``spec`` is empty where a Service leaves it out."""

    version: str
    kind: str
    name: str
    entry: Entry
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def place(self) -> Place:
        return self.entry.place


def read_object(entry: Entry) -> OpenSloObject:
    """Check an entry's shape; raises ``DocumentInvalid`` with file, line and field."""
    with entry.located():
        value, place = entry.value, entry.place
        if not isinstance(value, Mapping):
            raise fail(place.field, "is no OpenSLO object: it must be a mapping")
        version, kind = (_member(value, place, key) for key in ("apiVersion", "kind"))
        if version not in OBJECTS:
            raise fail(
                place.at("apiVersion").field, f"{version[:60]!r} is not one of {', '.join(OBJECTS)} (nor a Sloth spec)"
            )
        if kind not in OBJECTS[version]:
            raise fail(place.at("kind").field, f"{kind[:60]!r} is not one of {', '.join(OBJECTS[version])}")
        OBJECTS[version][kind].check(value, place.field)
        return OpenSloObject(version, kind, value["metadata"]["name"], entry, value["metadata"], value.get("spec", {}))


def check_rules(found: OpenSloObject) -> None:
    """What a shape cannot say: names, and members that exclude or need each other. Raises ``DocumentInvalid``."""
    with found.entry.located():
        _check_name(found.metadata, found.place.at("metadata"))
        spec = found.place.at("spec")
        if found.kind == "SLI":
            check_indicator(found.version, found.spec, spec)
        elif found.kind == "AlertPolicy":
            _check_alert_policy(found.spec, spec)
        elif found.kind == "SLO":
            for at, holder in _indicator_holders(found):
                inline = holder.get(indicator_keys(found.version)[0])
                if inline is not None and found.version != V1ALPHA:
                    place = at.at(indicator_keys(found.version)[0])
                    _check_name(inline["metadata"], place.at("metadata"))
                    check_indicator(found.version, inline["spec"], place.at("spec"))
            for index, policy in enumerate(found.spec.get("alertPolicies", ())):
                place = spec.at(f"alertPolicies[{index}]")
                if _check_inlined(policy, place, "AlertPolicy", "alertPolicyRef"):
                    _check_alert_policy(policy["spec"], place.at("spec"))


def indicator_keys(version: str) -> tuple[str, str]:
    """The member that holds an indicator and the one that refers to it."""
    return ("sli", "sliRef") if version == V2ALPHA else ("indicator", "indicatorRef")


class ObjectBook:
    """Objects by version, kind and name."""

    def __init__(self, objects: Sequence[OpenSloObject]) -> None:
        self._found: dict[tuple[str, str, str], list[OpenSloObject]] = {}
        for found in objects:
            self._found.setdefault((found.version, found.kind, found.name), []).append(found)

    def resolve(self, version: str, kind: str, name: str, place: Place) -> OpenSloObject:
        """The object of that name; raises ``ReferenceUnresolved`` where there is none, or another one as well."""
        found = self._found.get((version, kind, name), [])
        if not found:
            raise ReferenceUnresolved(
                f"{place.field}: no {kind} named {name!r} is among the documents read; add the file that has it",
                field=place.field,
            )
        if any(other.spec != found[0].spec for other in found[1:]):
            raise ReferenceUnresolved(
                f"{place.field}: {len(found)} different {kind} objects are named {name!r}", field=place.field
            )
        return found[0]


def check_alert_references(found: OpenSloObject, book: ObjectBook, *, keep: bool) -> list[Note]:
    """Follow the references of an SLO or an alert policy to alert objects.

    ``keep``: one that leads nowhere becomes a note. Else raises ``ReferenceUnresolved`` with file, line and field.
    """
    notes: list[Note] = []
    with found.entry.located():
        for kind, name, place in _alert_references(found):
            try:
                book.resolve(found.version, kind, name, place)
            except ReferenceUnresolved:
                if not keep:
                    raise
                message = f"no {kind} of this name is among the documents read"
                notes.append(Note(NoteKind.NO_COUNTERPART, place, name, message))
    return notes


def _alert_references(found: OpenSloObject) -> Iterator[tuple[str, str, Place]]:
    spec = found.place.at("spec")
    if found.kind == "AlertPolicy":
        yield from _policy_references(found.spec, spec)
    elif found.kind == "SLO":
        for index, policy in enumerate(found.spec.get("alertPolicies", ())):
            place = spec.at(f"alertPolicies[{index}]")
            if "alertPolicyRef" in policy:
                yield "AlertPolicy", policy["alertPolicyRef"], place.at("alertPolicyRef")
            else:
                yield from _policy_references(policy["spec"], place.at("spec"))


def _policy_references(spec: Mapping[str, Any], place: Place) -> Iterator[tuple[str, str, Place]]:
    for member, kind, key in _ALERT_PARTS:
        for index, item in enumerate(spec[member]):
            if key in item:
                yield kind, item[key], place.at(f"{member}[{index}].{key}")


def check_indicator(version: str, spec: Mapping[str, Any], place: Place) -> None:
    """A threshold or a ratio, and of a ratio either counts or the ratio itself. Raises ``DocumentInvalid``."""
    exactly_one(spec, place, ("thresholdMetric", "ratioMetric"))
    parts = {"thresholdMetric": spec["thresholdMetric"]} if "thresholdMetric" in spec else dict(spec["ratioMetric"])
    if "ratioMetric" in spec:
        place = place.at("ratioMetric")
        exactly_one(parts, place, ("total", "raw"))
        if "total" in parts:
            exactly_one(parts, place, ("good", "bad"))
        elif "rawType" not in parts:
            raise fail(place.at("rawType").field, "is missing: say whether raw is the ratio of success or of failure")
        elif extra := [key for key in ("good", "bad") if key in parts]:
            raise fail(place.at(extra[0]).field, "cannot stand beside raw")
    if version == V2ALPHA:
        for key in ("thresholdMetric", "good", "bad", "total", "raw"):
            if key in parts:
                exactly_one(parts[key], place.at(key), ("dataSourceRef", "dataSourceSpec"))


def exactly_one(value: Mapping[str, Any], place: Place, keys: tuple[str, str]) -> str:
    """The key that is there; raises ``DocumentInvalid`` for neither or both."""
    present = [key for key in keys if key in value]
    if len(present) == 1:
        return present[0]
    if present:
        raise fail(place.at(keys[1]).field, f"cannot stand beside {keys[0]}")
    raise fail(place.at(keys[0]).field, f"is missing; so is {keys[1]}, and one of both is needed")


def _indicator_holders(found: OpenSloObject) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    spec = found.place.at("spec")
    yield spec, found.spec
    for index, objective in enumerate(found.spec["objectives"]):
        yield spec.at(f"objectives[{index}]"), objective


def _check_alert_policy(spec: Mapping[str, Any], place: Place) -> None:
    for member, kind, key in _ALERT_PARTS:
        for index, item in enumerate(spec[member]):
            _check_inlined(item, place.at(f"{member}[{index}]"), kind, key)


def _check_inlined(item: Mapping[str, Any], place: Place, kind: str, reference: str) -> bool:
    """Whether an object is written out here, and whole; False for a reference."""
    if exactly_one(item, place, (reference, "spec")) == reference:
        return False
    if item.get("kind") != kind:
        raise fail(place.at("kind").field, f"{item.get('kind')!r} must be {kind} here")
    if "metadata" not in item:
        raise fail(place.at("metadata").field, "is missing")
    _check_name(item["metadata"], place.at("metadata"))
    return True


def _check_name(metadata: Mapping[str, Any], place: Place) -> None:
    name = metadata["name"]
    if not _NAME.fullmatch(name):
        raise fail(
            place.at("name").field,
            f"{name[:80]!r} is not a name: lowercase letters, digits and - (RFC 1123), a letter or digit at both ends",
        )


def _member(value: Mapping[str, Any], place: Place, key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise fail(place.at(key).field, "is missing" if found is None else "must be text")
    return found
