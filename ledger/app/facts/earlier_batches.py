"""What a source handed in before, found without reading all of it: a source may hand in something every minute.

Beside the identities of its rows a source has one of each batch that it handed in, and for some kinds of facts one of
whatever its rows speak of. They are no facts and follow from the events alone: where they are missing, as after an
import, they are made anew from the events when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from ledger.app.periods.closing import closing_of
from ledger.app.ports.store import Transaction
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import observations_stream
from ledger.domain.rows.observation import identity_scope, request_id_digests
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.terms.log_kinds import REQUESTS
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval, minus, union

_BATCHES = "*/batches"
_ALL = ""
"""No batch and no place has this name: it says that those from before are remembered, too."""
_FROM_THE_START = (_ALL, bytes(16))
_FIRST_LOOK = 16
_WIDER = 8

Place = tuple[str, Interval]
"""Something that rows of a feed speak of, and when one of them says that it was."""


@dataclass(frozen=True, slots=True)
class EarlierBatches:
    """The batches of one source. Who uses it holds the source (``tx.identities.reserve``)."""

    tx: Transaction
    sla_id: str
    source: str

    @property
    def stream(self) -> str:
        return observations_stream(self.sla_id, self.source)

    def events(self) -> Iterator[StoredEvent]:
        """All of them, from the first on."""
        return self.tx.events.stream(self.stream)

    def same(self, digest: str, declared: Interval | None) -> StoredEvent | None:
        """The event of the batch that has this digest and this declaration."""
        name = _name(digest, declared)
        found = self._remembered(_BATCHES, [name, _ALL])
        if _ALL not in found:
            events = ((event.payload["digest"], declared_by(event), event.version) for event in self.events())
            first: dict[str, int] = {}
            for each, span, version in events:
                first.setdefault(_name(each, span), version)
            said = ((each, _number(version)) for each, version in first.items())
            self._remember(_BATCHES, [*said, _FROM_THE_START])
            found = self._remembered(_BATCHES, [name])
        if name not in found:
            return None
        version = min(int.from_bytes(each, "big") for each in found[name])
        return next(iter(self.tx.events.stream(self.stream, start=version)))

    def add(self, digest: str, declared: Interval | None, version: int) -> None:
        """Remember a batch by the version of its event."""
        self._remember(_BATCHES, [(_name(digest, declared), _number(version))])

    def newly_complete(
        self, timeline: Timeline, declared: Interval | None, version: int, batch_format: str
    ) -> set[Period]:
        """The closed periods of which a declaration covers something that none of its format did before the event
        ``version``."""

        @cache
        def is_closed(period: Period) -> bool:
            return closing_of(self.tx, self.sla_id, period) is not None

        def closed(left: Iterable[Interval]) -> set[Period]:
            return {period for span in left for period in timeline.touching(span) if is_closed(period)}

        left: tuple[Interval, ...] = () if declared is None else (declared,)
        for events in self.back_from(version):
            said = (declared_by(event) for event in events if format_by(event) == batch_format)
            left = minus(left, union(span for span in said if span is not None))
            if not closed(left):
                return set()
        return closed(left)

    def back_from(self, version: int) -> Iterator[list[StoredEvent]]:
        """The events before a version, from the last ones back: a few at first, and more at a time the farther one has
        to look."""
        size = _FIRST_LOOK
        while version > 0:
            start = max(version - size, 0)
            yield list(islice(self.tx.events.stream(self.stream, start=start), version - start))
            version, size = start, size * _WIDER

    def when(self, kind: str, names: Collection[str], said_before: Iterable[Place]) -> list[Interval]:
        """When earlier rows of a kind say that these were; ``said_before`` reads it from all of them, for where it is
        not remembered."""
        scope = _places(kind)
        found = self._remembered(scope, [*names, _ALL])
        if _ALL not in found:
            places = ((name, _bytes(span)) for name, span in said_before)
            self._remember(scope, [*places, _FROM_THE_START])
            found = self._remembered(scope, list(names))
        return [_span(each) for name in names for each in sorted(found.get(name, ()))]

    def add_places(self, kind: str, places: Iterable[Place]) -> None:
        """Remember what rows speak of."""
        self._remember(_places(kind), ((name, _bytes(span)) for name, span in places))

    def _remembered(self, scope: str, names: Collection[str]) -> dict[str, frozenset[bytes]]:
        ids = dict(zip(self._ids(scope, names), names, strict=True))
        known = self.tx.identities.known(self.sla_id, self.source, sorted(ids))
        return {ids[each]: said for each, said in known.items()}

    def _remember(self, scope: str, said: Iterable[tuple[str, bytes]]) -> None:
        pairs = list(said)
        ids = self._ids(scope, [name for name, _ in pairs])
        bodies = (body for _, body in pairs)
        self.tx.identities.add(self.sla_id, self.source, sorted(set(zip(ids, bodies, strict=True))))

    def _ids(self, scope: str, names: Collection[str]) -> list[bytes]:
        return request_id_digests(identity_scope(self.sla_id, self.source, scope), names)


def format_by(event: StoredEvent) -> str:
    """The format of the batch that an event recorded."""
    return str(event.payload.get("format", REQUESTS))


def declared_by(event: StoredEvent) -> Interval | None:
    """The span for which the batch that an event recorded was declared complete."""
    span = event.payload["declared_complete"]
    return None if span is None else Interval(int(span["from_ns"]), int(span["to_ns"]))


def _places(kind: str) -> str:
    return f"*/{kind}/places"


def _name(digest: str, declared: Interval | None) -> str:
    return digest if declared is None else f"{digest}/{declared.start_ns}/{declared.end_ns}"


def _number(version: int) -> bytes:
    return version.to_bytes(16, "big")


def _bytes(span: Interval) -> bytes:
    return b"".join(each.to_bytes(8, "big", signed=True) for each in (span.start_ns, span.end_ns))


def _span(said: bytes) -> Interval:
    return Interval(int.from_bytes(said[:8], "big", signed=True), int.from_bytes(said[8:], "big", signed=True))
