"""Facts: rows of a request log, their verdicts, and the rule that tells one request from another.

A request is identified by (tenant, source, settlement period, request id). Its body is everything its row says;
rows whose canonical bodies are equal say the same, whatever the order of keys or white space. The period belongs to
the identity because a period is judged by its own rows: were an id one request across periods, a failure could be
moved out of the period by sending its id again with an earlier start, and judging one period would need the ids of
all. Rows that were rejected (another service, outside the periods or the span declared for their batch) identify
nothing. Over all batches of a source, in any order and split:

* the first body seen under an id is ``accepted``;
* a body seen before under that id is a ``duplicate``;
* any further body under that id is a ``conflict``. A conflicting id counts once, as failed, in the window of
  its earliest start, and no exclusion clause applies to it: nobody can say which body is true, and leaving
  it out would let a provider drop its own failures by sending them twice.

With n rows and k different bodies an id gives 1 accepted, k - 1 conflicts and n - k duplicates, so the counts
depend neither on the order of rows nor on how they are cut into batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from hashlib import blake2b
from typing import NamedTuple

from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval

DIGEST_BYTES = 16
DIGEST_ABOVE_CHARS = 64

_new_row = tuple.__new__


class Verdict(StrEnum):
    """What became of one row."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why a row was rejected."""

    MALFORMED = "malformed"
    NOT_AN_OBJECT = "not_an_object"
    DUPLICATE_KEY = "duplicate_key"
    FIELD_MISSING = "field_missing"
    FIELD_INVALID = "field_invalid"
    TIME_INVALID = "time_invalid"
    LATENCY_MISSING = "latency_missing"
    LATENCY_NEGATIVE = "latency_negative"
    LATENCY_OUT_OF_RANGE = "latency_out_of_range"
    OTHER_SERVICE = "other_service"
    OUTSIDE_PERIOD = "outside_period"
    OUTSIDE_SPAN = "outside_span"
    NOT_PROMISED = "not_promised"
    OTHER_EVALUATOR = "other_evaluator"
    OTHER_TOKENIZER = "other_tokenizer"
    MEASURE_MISSING = "measure_missing"
    IMPLAUSIBLE = "implausible"
    NO_HEARTBEATS = "no_heartbeats"
    HEARTBEAT_TOO_LONG = "heartbeat_too_long"
    IN_THE_FUTURE = "in_the_future"


class RequestRow(NamedTuple):
    """One usable row of a request log (a tuple, not a dataclass: a log has millions).

    ``line`` counts from 1. ``body_digest`` is BLAKE2b with 16 bytes over the canonical body. ``error_code`` None
    means that the request succeeded, and then both latencies are there. Latencies are whole nanoseconds rounded
    up from the exact decimal text: for a threshold T in whole nanoseconds x <= T holds exactly when
    ceil(x) <= T, so no comparison changes. ``body`` is the canonical body, for what only some agreements ask of a row
    (``where``).
    """

    line: int
    request_id: str
    body_digest: bytes
    service: str
    started_at_ns: int
    error_code: int | None
    first_token_ns: int | None
    response_ns: int | None
    body: bytes = b"{}"


class SampleRow(NamedTuple):
    """One usable row of a sample log: what one measurement, or a batch of them, says of one indicator.

    It has ``counts`` (good, bad, undecided) of its own, or a ``value`` that an objective's measure turns into one.
    ``body_digest`` is that of ``RequestRow``. ``resource`` is what was measured (a deployment, a card, a context
    length class). What no honest source says (more good than all, below 0) is judged by
    ``ledger.domain.facts.samples``."""

    line: int
    sample_id: str
    body_digest: bytes
    service: str
    at_ns: int
    indicator: str
    counts: tuple[int, int, int] | None
    value: Fraction | None
    evaluator: str | None
    resource: str | None
    trace_id: str | None
    tokenizer: str | None = None


class HeartbeatRow(NamedTuple):
    """One usable row of a heartbeat log: up to ``at_ns`` the source was alive and recording for ``covers_s`` seconds.

    ``body_digest`` is that of ``RequestRow``. What an agreement takes of it, ``ledger.domain.facts.heartbeats`` says.
    """

    line: int
    heartbeat_id: str
    body_digest: bytes
    service: str
    at_ns: int
    covers_s: int

    @property
    def interval(self) -> Interval:
        """The time that it covers."""
        return Interval(self.at_ns - self.covers_s * SECOND_NS, self.at_ns)


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Usable rows that follow one another, column by column: the rows of a log are millions, its columns a handful.

    Row n is what stands at n in every column, and line ``first_line + n``; the columns mean what those of
    ``RequestRow`` mean. ``canonical_bodies`` holds the rows' bodies, each ended by a line feed.
    """

    first_line: int
    request_ids: list[str]
    services: list[str]
    starts_ns: list[int]
    error_codes: list[int | None]
    first_tokens_ns: list[int | None]
    responses_ns: list[int | None]
    canonical_bodies: bytes

    def __len__(self) -> int:
        return len(self.request_ids)

    def bodies(self) -> list[bytes]:
        """The canonical body of each row."""
        bodies = self.canonical_bodies.split(b"\n")
        bodies.pop()
        return bodies

    def body_digests(self) -> list[bytes]:
        """Worked out when asked for: who knows that no id comes twice needs none."""
        return _digests(self.bodies())

    def rows(self) -> Iterator[RequestRow]:
        bodies = self.bodies()
        columns = zip(
            range(self.first_line, self.first_line + len(self)),
            self.request_ids,
            _digests(bodies),
            self.services,
            self.starts_ns,
            self.error_codes,
            self.first_tokens_ns,
            self.responses_ns,
            bodies,
            strict=True,
        )
        # What RequestRow(...) calls, without its keyword handling: a tenth of the time of a row.
        return (_new_row(RequestRow, values) for values in columns)

    def all_of(self, service: str, start_ns: int, end_ns: int) -> bool:
        """Whether every row is of this service and starts in [start_ns, end_ns)."""
        of_service = self.services.count(service) == len(self)
        return of_service and start_ns <= min(self.starts_ns) and max(self.starts_ns) < end_ns


def _digests(bodies: Iterable[bytes]) -> list[bytes]:
    return [blake2b(body, digest_size=DIGEST_BYTES).digest() for body in bodies]


class RowRejection(NamedTuple):
    """A row that cannot be used: where, why, which field, and a sentence for people."""

    line: int
    reason: Reason
    field: str
    message: str


Rows = Iterable[RequestRow | RowRejection | RequestColumns]
"""The rows of a request log in order, as they were read."""

SampleRows = Iterable[SampleRow | RowRejection]
"""The rows of a sample log in order, as they were read."""

HeartbeatRows = Iterable[HeartbeatRow | RowRejection]
"""The rows of a heartbeat log in order, as they were read."""

AnyRows = Rows | SampleRows | HeartbeatRows
"""The rows of a log, of whichever kind it is."""


def one_by_one(rows: Rows) -> Iterator[RequestRow | RowRejection]:
    """The same rows, each by itself."""
    for each in rows:
        if type(each) is RequestColumns:
            yield from each.rows()
        else:
            yield each  # type: ignore[misc]


class IdRepeated(Exception):
    """An id came twice where each was taken to come once."""


class IdentityBook:
    """Tells new rows, duplicates and conflicts of one period apart, in about 170 bytes of memory per request.

    Short ids are kept as they are, because digesting each would take longer than all else here; only ids of
    more than 64 characters and those that go to a store are digested.
    """

    def __init__(self, tenant: str, source: str, period: str) -> None:
        self._scope = identity_scope(tenant, source, period)
        self._slots: dict[str | bytes, int] = {}
        self._bodies = bytearray()
        self._further: dict[int, set[bytes]] = {}

    def classify(self, row: RequestRow) -> tuple[Verdict, int]:
        """The verdict of a row, and the slot of its id: ids are numbered from 0 as they first appear."""
        slots = self._slots
        key: str | bytes = row.request_id
        if len(key) > DIGEST_ABOVE_CHARS:
            key = self._digest(row.request_id)
        following = len(slots)
        slot = slots.setdefault(key, following)
        body = row.body_digest
        if slot == following:
            self._bodies += body
            return Verdict.ACCEPTED, slot
        at = slot * DIGEST_BYTES
        if self._bodies[at : at + DIGEST_BYTES] == body:
            return Verdict.DUPLICATE, slot
        further = self._further.setdefault(slot, set())
        if body in further:
            return Verdict.DUPLICATE, slot
        further.add(body)
        return Verdict.CONFLICT, slot

    def _digest(self, request_id: str) -> bytes:
        return _id_digest(self._scope, request_id)


class DistinctIds:
    """Stands in for ``IdentityBook`` where no id is expected to come twice: then every row is accepted and no body is
    ever looked at. Raises ``IdRepeated`` where one does, and all must be read again with an ``IdentityBook``.
    """

    def __init__(self, tenant: str, source: str, period: str) -> None:
        self._scope = identity_scope(tenant, source, period)
        self._seen: set[str | bytes] = set()

    def classify(self, row: RequestRow) -> tuple[Verdict, int]:
        self.take([row.request_id])
        return Verdict.ACCEPTED, len(self._seen) - 1

    def take(self, request_ids: Sequence[str]) -> None:
        keys: Sequence[str | bytes] = request_ids
        if max(map(len, request_ids)) > DIGEST_ABOVE_CHARS:
            keys = [each if len(each) <= DIGEST_ABOVE_CHARS else _id_digest(self._scope, each) for each in request_ids]
        expected = len(self._seen) + len(keys)
        self._seen.update(keys)
        if len(self._seen) != expected:
            raise IdRepeated


class BodyBook:
    """``IdentityBook``'s rule where every id is digested anyhow and ``known`` has all that was said before of them.

    ``new`` gathers the pairs (id digest, body digest) that a store has to add.
    """

    def __init__(self, known: Mapping[bytes, Collection[bytes]]) -> None:
        self._bodies: dict[bytes, Collection[bytes]] = dict(known)
        self.new: list[tuple[bytes, bytes]] = []

    def classify(self, id_digest: bytes, body: bytes) -> Verdict:
        seen = self._bodies.get(id_digest)
        if seen is None:
            self._bodies[id_digest] = (body,)
            self.new.append((id_digest, body))
            return Verdict.ACCEPTED
        if body in seen:
            return Verdict.DUPLICATE
        self._bodies[id_digest] = (*seen, body)
        self.new.append((id_digest, body))
        return Verdict.CONFLICT


def identity_scope(tenant: str, source: str, period: str) -> bytes:
    """The hash key under which request ids are digested: ids of two sources, or of two periods, never meet.

    ``period`` is the period's name, such as ``2023-12-19/P1D``.
    """
    parts = (tenant.encode(), source.encode(), period.encode())
    return hashlib.blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts), digest_size=32).digest()


def request_id_digests(scope: bytes, request_ids: Iterable[str]) -> list[bytes]:
    """``request_id_digest`` of many ids of one ``identity_scope``."""
    return [blake2b(each.encode(), digest_size=DIGEST_BYTES, key=scope).digest() for each in request_ids]


def request_id_digest(tenant: str, source: str, period: str, request_id: str) -> bytes:
    """The 16 bytes that stand for a request id in a store."""
    return _id_digest(identity_scope(tenant, source, period), request_id)


def _id_digest(scope: bytes, request_id: str) -> bytes:
    return hashlib.blake2b(request_id.encode(), digest_size=DIGEST_BYTES, key=scope).digest()


@dataclass(slots=True)
class VerdictCounts:
    """How many rows got which verdict; the four add up to the rows read."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: dict[Reason, int] = field(default_factory=dict)

    def reject(self, reason: Reason) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    @property
    def rejected_total(self) -> int:
        return sum(self.rejected.values())

    @property
    def requests(self) -> int:
        return self.accepted + self.duplicates + self.conflicts + self.rejected_total
