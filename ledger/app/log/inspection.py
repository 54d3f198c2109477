"""Reading a stored log as it lies in the database, for those who trust none of it: ``fsck`` and ``export``.

Nothing here is decoded, raised to a newer version or left out because it is damaged. Everything is read in pages
or streams, so that a log of any length takes the same memory, and all of it in one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ledger.domain.record.events import ERASABLE_CLASS


class LogState(NamedTuple):
    """What the log says about itself."""

    size: int
    sequenced_at_ns: int


class RawEntry(NamedTuple):
    """One leaf with the rows of its event; where ``has_event`` is false, ``id`` and what follows are None.

    A value is whatever the database holds, of the wrong type if somebody put it there. ``payload`` and ``salt`` are
    those of the event's row, which for an erasable class are the commitment and zero bytes; ``kept_salt`` and
    ``kept_payload`` are then what can be forgotten, or None where it was.
    """

    seq: int
    leaf_hash: bytes
    sequenced_at_ns: int
    event_id: str
    id: str
    tenant: str
    stream: str
    version: int
    type: str
    schema: int
    payload_class: str
    occurred_at_ns: int
    recorded_at_ns: int
    salt: bytes
    payload: bytes
    kept_salt: bytes | None
    kept_payload: bytes | None

    @property
    def has_event(self) -> bool:
        return self.id is not None

    @property
    def standing_payload(self) -> bytes | None:
        """The canonical payload; None where it was erased."""
        return self.kept_payload if self.payload_class == ERASABLE_CLASS else self.payload

    @property
    def standing_salt(self) -> bytes | None:
        """The salt that goes with it."""
        return self.kept_salt if self.payload_class == ERASABLE_CLASS else self.salt


class RawCheckpoint(NamedTuple):
    """A stored checkpoint; ``note`` is the whole signed note."""

    size: int
    root: bytes
    note: bytes


class RawRequest(NamedTuple):
    """What an idempotency key is bound to."""

    tenant: str
    key: str
    digest: bytes
    stream: str
    first_version: int
    events: int


class RawBatch(NamedTuple):
    """A raw batch of facts, unpacked; None where it cannot be unpacked."""

    tenant: str
    digest: bytes
    data: bytes | None


class StreamPlace(NamedTuple):
    """Where an event stands in its stream and in the log; ``seq`` is None where it has no leaf."""

    tenant: str
    stream: str
    version: int
    seq: int | None


class HeadDifference(NamedTuple):
    """A stream whose head is not its last event; None: there is no such row."""

    tenant: str
    stream: str
    head: int | None
    last: int | None


class ViewDifference(NamedTuple):
    """A view row that a rebuild would make otherwise (``stored`` and ``rebuilt`` name the seq of the row; None:
    there is none)."""

    view: str
    rebuilt: int | None
    stored: int | None


class RequestCheck(NamedTuple):
    """An idempotency key whose row does not fit the events it names."""

    request: RawRequest
    problem: str


class ViewCheck(Protocol):
    """Compares the stored views with what the events give."""

    def add(self, entries: Sequence[RawEntry]) -> Iterable[ViewDifference]:
        """What the next entries in log order find."""
        ...

    def rest(self) -> Iterable[ViewDifference]:
        """What is left after the last entry."""
        ...


@dataclass(frozen=True, slots=True)
class TileRow:
    """A stored tile."""

    level: int
    index: int
    width: int
    data: bytes


class Inspection(Protocol):
    """One snapshot of everything stored."""

    def state(self) -> LogState | None:
        """None where the row is missing."""
        ...

    def entries(self, first: int, limit: int) -> Sequence[RawEntry]:
        """Up to ``limit`` leaves from ``first`` on, by seq."""
        ...

    def tiles(self, level: int, first: int, count: int) -> Mapping[int, TileRow]:
        """The tiles of a level from index ``first`` on, up to ``count`` indices, by index."""
        ...

    def tile_counts(self) -> Mapping[int, int]:
        """How many tiles each level has."""
        ...

    def checkpoints(self, above: int, limit: int) -> Sequence[RawCheckpoint]:
        """Up to ``limit`` checkpoints of sizes over ``above``, by size."""
        ...

    def requests(self) -> Iterable[RawRequest]: ...

    def bad_requests(self) -> Iterable[RequestCheck]: ...

    def places(self) -> Iterable[StreamPlace]:
        """Every event, stream by stream, each by version."""
        ...

    def head_differences(self) -> Iterable[HeadDifference]: ...

    def unsequenced(self, limit: int) -> Sequence[str]:
        """Ids of events that have no leaf and are not waiting for one."""
        ...

    def stray_payloads(self, limit: int) -> Sequence[str]:
        """Ids under which an erasable payload is kept although no event of an erasable class has that id."""
        ...

    def batches(self) -> Iterable[RawBatch]: ...

    def view_check(self) -> ViewCheck: ...
