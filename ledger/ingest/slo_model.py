"""Service level objectives of other formats, read but not yet turned into an agreement.

OpenSLO and Sloth documents are both read into these values. What a document says and an agreement cannot, and what had
to be assumed, is kept as notes: nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from ledger.domain.time.calendar import PeriodLength


class NoteKind(StrEnum):
    """``no_counterpart``: the agreement does not say it; ``assumed``: it was not said and a rule filled it in;
    ``confirm``: what a query counts cannot be known, so a person has to agree with the indicator chosen;
    ``placeholder``: a term that the document has no place for and that must be replaced."""

    NO_COUNTERPART = "no_counterpart"
    ASSUMED = "assumed"
    CONFIRM = "confirm"
    PLACEHOLDER = "placeholder"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file, the number of the document in it from 1, and a field path."""

    file: str
    document: int
    field: str

    def at(self, member: str) -> Place:
        """A member, or (``[0]``) an entry, of what stands here."""
        separator = "." if self.field and member and not member.startswith("[") else ""
        return Place(self.file, self.document, f"{self.field}{separator}{member}")


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a person should know about an import."""

    kind: NoteKind
    place: Place
    value: str
    message: str

    def as_document(self) -> dict[str, str | int]:
        """Plain JSON."""
        return {
            "kind": str(self.kind),
            "file": self.place.file,
            "document": self.place.document,
            "field": self.place.field,
            "value": self.value,
            "message": self.message,
        }


class MetricKind(StrEnum):
    """``ratio``: good (or bad) and total are counted; ``raw``: the ratio is a metric itself; ``threshold``: values are
    compared with a bound."""

    RATIO = "ratio"
    RAW = "raw"
    THRESHOLD = "threshold"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured. ``name`` is the indicator's, or the SLO's where it has none of its own.

    ``queries`` has the text of each part (good, bad, total, raw, value) as it was written. ``within`` says when a value
    is good: ``at_most`` or ``at_least``, and the bound as a plain decimal text; ``failures`` that a raw ratio is one of
    failures.
    """

    kind: MetricKind
    place: Place
    name: str
    queries: Mapping[str, str]
    within: tuple[str, str] | None = None
    failures: bool = False


@dataclass(frozen=True, slots=True)
class SliceSpan:
    """A time slice: its length, and the share of it that must be good in percent (None: the mean of slices counts)."""

    seconds: int
    target: str | None


@dataclass(frozen=True, slots=True)
class Promise:
    """One target of an SLO: a percentage of what is valid, or of slices, that must be good."""

    place: Place
    name: str
    target: str
    metric: Metric
    slices: SliceSpan | None


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """What a target is for. A calendar window starts on ``start`` at ``start_second`` of the local day in ``zone``;
    a rolling one starts anywhere and has none of the three."""

    length: PeriodLength
    start: date | None = None
    start_second: int = 0
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Slo:
    """One SLO; ``window`` is None where it names none, and ``window_at`` is where it would stand.

    ``indicators``: where the SLIs stand that it refers to.
    """

    place: Place
    name: str
    service: str
    window: TimeWindow | None
    promises: tuple[Promise, ...]
    notes: tuple[Note, ...]
    window_at: Place
    indicators: tuple[Place, ...] = ()
