"""SLO documents of any known format, read together: OpenSLO v1alpha, v1 and v2alpha, and Sloth specs.

A source is a file: a document, a list of documents, or a stream of either, in YAML or JSON. All sources are read as one
set, in which references are followed. Nothing is taken where anything is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.errors import DocumentInvalid
from ledger.ingest.agreement_yaml import parse_stream
from ledger.ingest.openslo import Entry, ObjectBook, OpenSloObject, check_alert_references, check_rules, read_object
from ledger.ingest.openslo_slo import SloReader
from ledger.ingest.slo_model import Note, NoteKind, Place, Slo
from ledger.ingest.sloth import read_sloth

MAX_OBJECTS = 5_000


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name, for messages, and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Imported:
    """The SLOs of a set of sources, in order, and notes on objects that are no SLO."""

    slos: tuple[Slo, ...]
    notes: tuple[Note, ...]


def read_slos(sources: Iterable[Source], *, keep_references: bool = False) -> Imported:
    """All SLOs; ``keep_references``: alert objects that are not among the documents are noted, not refused.

    Raises ``DocumentInvalid``, ``ReferenceUnresolved`` or ``NoCounterpart`` with file, line and field of the first
    fault.
    """
    entries = [entry for source in sources for entry in _entries(source)]
    if len(entries) > MAX_OBJECTS:
        raise DocumentInvalid(f"{len(entries)} objects; at most {MAX_OBJECTS} are imported at once", field="")
    found: list[Entry | OpenSloObject] = [entry if _is_sloth(entry) else read_object(entry) for entry in entries]
    objects = [item for item in found if isinstance(item, OpenSloObject)]
    for item in objects:
        check_rules(item)
    book = ObjectBook(objects)
    kept = [note for item in objects for note in check_alert_references(item, book, keep=keep_references)]
    slos: list[Slo] = []
    for each in found:
        if isinstance(each, Entry):
            slos.extend(read_sloth(each))
        elif each.kind == "SLO":
            slos.append(SloReader(each, book).read())
    return Imported(tuple(slos), (*kept, *_without_slo(objects, slos)))


def _entries(source: Source) -> Iterator[Entry]:
    seen = False
    for number, (document, lines) in enumerate(parse_stream(source.data, source.name), 1):
        if document is None:
            continue
        seen = True
        place = Place(source.name, number, "")
        if isinstance(document, list):
            for index, item in enumerate(document):
                yield Entry(place.at(f"[{index}]"), _without_nulls(item), lines)
        else:
            yield Entry(place, _without_nulls(document), lines)
    if not seen:
        raise DocumentInvalid(f"{source.name}:1: the document is empty", file=source.name, line=1, field="")


def _is_sloth(entry: Entry) -> bool:
    return isinstance(entry.value, Mapping) and "version" in entry.value and "apiVersion" not in entry.value


def _without_nulls(value: Any) -> Any:
    """A member that is null is one that is not there."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_slo(objects: Sequence[OpenSloObject], slos: Sequence[Slo]) -> Iterator[Note]:
    used = {indicator for slo in slos for indicator in slo.indicators}
    for item in objects:
        if item.kind == "SLO":
            continue
        if item.kind == "SLI":
            if item.place not in used:
                yield Note(NoteKind.NO_COUNTERPART, item.place, item.name, "no SLO among the documents uses this SLI")
        elif item.kind == "Service":
            yield Note(NoteKind.NO_COUNTERPART, item.place, item.name, "a service is a name in an agreement, no object")
        else:
            yield Note(NoteKind.NO_COUNTERPART, item.place, item.name, f"an agreement has no {item.kind}")
