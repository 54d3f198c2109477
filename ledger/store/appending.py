"""What an append decides before anything is written: pure, shared by every storage adapter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import msgspec

from ledger.app.ports.store import Randomness
from ledger.domain.events.event_types import all_plain, check_event
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import (
    ERASABLE_CLASS,
    SALT_BYTES,
    NewEvent,
    StoredEvent,
    commit_canonical,
    log_entries,
)
from ledger.errors import EventInvalid, IdempotencyConflict, NotCanonical, NotFound, VersionConflict
from ledger.merkle.hasher import leaf_hash

MAX_STREAM_CHARS = 300
MAX_KEY_CHARS = 200
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
_ID_RANDOM_BYTES = 10
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
_MS_NS = 1_000_000
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The hex digit that starts with the bits 10, by one that ends alike."""

_encode_plain = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Drafts:
    """The events of an append with their places in a stream and their leaf hashes, not yet with places in the log.

    By columns, each with one value an event: so databases and drivers take many rows, and so a thousand events are
    made in a fraction of the time of a thousand objects. ``commitments`` are in hex.
    """

    tenant: str
    stream: str
    first_version: int
    recorded_at_ns: int
    events: Sequence[NewEvent]
    ids: Sequence[str]
    salts: Sequence[bytes]
    payloads: Sequence[bytes]
    commitments: Sequence[str]
    leaf_hashes: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.events)

    @property
    def versions(self) -> range:
        return range(self.first_version, self.first_version + len(self.events))

    @property
    def erasable(self) -> list[int]:
        """Which of the events can lose their payloads, by their places among these."""
        return [at for at, event in enumerate(self.events) if event.payload_class == ERASABLE_CLASS]

    def lasting(self) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """Salts and payloads in the rows that stay for good: of an event whose payload can be erased no salt, and
        the commitment for a payload."""
        erasable = self.erasable
        if not erasable:
            return self.salts, self.payloads
        salts, payloads = list(self.salts), list(self.payloads)
        for at in erasable:
            salts[at], payloads[at] = bytes(SALT_BYTES), bytes.fromhex(self.commitments[at])
        return salts, payloads

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the table of events, in the order of its columns."""
        events = self.events
        return zip(
            self.ids,
            repeat(self.tenant),
            repeat(self.stream),
            self.versions,
            [event.type for event in events],
            [event.schema for event in events],
            [event.payload_class for event in events],
            [event.occurred_at_ns for event in events],
            repeat(self.recorded_at_ns),
            *self.lasting(),
        )

    def stored(self, at: int, seq: int) -> StoredEvent:
        """The event at a place among these once it has its leaf index ``seq``."""
        event = self.events[at]
        return StoredEvent(
            seq=seq,
            id=self.ids[at],
            tenant=self.tenant,
            stream=self.stream,
            version=self.first_version + at,
            type=event.type,
            schema=event.schema,
            payload_class=event.payload_class,
            occurred_at_ns=event.occurred_at_ns,
            recorded_at_ns=self.recorded_at_ns,
            payload=event.payload,
            salt=self.salts[at],
        )


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """What an idempotency key is bound to, and what it gave."""

    key: str
    digest: bytes
    stream: str
    first_version: int
    events: int


def checked_payloads(stream: str, events: Sequence[NewEvent], idempotency_key: str | None) -> Sequence[bytes]:
    """The canonical payload of each event, after refusing what no log should hold.

    Raises ``EventInvalid``: no event at all, an unusable stream name or key, an unknown type, a payload that is
    not of its type's shape, has no canonical form or is over 16 MiB.
    """
    if not events:
        raise EventInvalid("an append needs at least one event", stream=stream)
    _require_name("stream name", stream, MAX_STREAM_CHARS)
    if idempotency_key is not None:
        _require_name("idempotency key", idempotency_key, MAX_KEY_CHARS)
    payloads = _canonical_payloads(events)
    for event, payload in zip(events, payloads, strict=True):
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise EventInvalid(
                f"{event.type}: the payload has {len(payload)} bytes; at most {MAX_PAYLOAD_BYTES} are stored",
                type=event.type,
                size=len(payload),
            )
    return payloads


@dataclass(frozen=True, slots=True)
class RequestedEvent:
    """One event of an append as its idempotency key is bound to it. ``salt`` is that of the stored event."""

    type: str
    schema: int
    payload_class: str
    payload: bytes
    salt: bytes

    def bound(self) -> bytes:
        """What the digest covers of the payload.

        That of an erasable class is its salted commitment: a bare digest would outlive the payload and let anyone
        who guesses it see that the guess is right.
        """
        return commit_canonical(self.payload, self.salt) if self.payload_class == ERASABLE_CLASS else self.payload


def requested(events: Sequence[NewEvent], payloads: Sequence[bytes], salts: Sequence[bytes]) -> list[RequestedEvent]:
    """The events of an append with the salts of the stored ones. Salts may be fewer: those are other events."""
    return [
        RequestedEvent(event.type, event.schema, event.payload_class, payload, salt)
        for event, payload, salt in zip(events, payloads, [*salts, *[b""] * len(events)], strict=False)
    ]


def request_digest(stream: str, events: Sequence[RequestedEvent]) -> bytes:
    """SHA-256 over what a retry must repeat: stream, and type, schema, class and payload of every event.

    Instants stay out: a client that tries again later means the same request.
    """
    digest = hashlib.sha256(canonical_bytes([stream, len(events)]))
    for event in events:
        bound = event.bound()
        digest.update(canonical_bytes([event.type, event.schema, event.payload_class, len(bound)]))
        digest.update(bound)
    return digest.digest()


def require_same_request(known: AppendRequest, digest: bytes) -> None:
    """Refuse a key that comes back with another stream or payload. Raises ``IdempotencyConflict``.

    A payload that was erased cannot be compared any more, so its key stays refused.
    """
    if known.digest != digest:
        raise IdempotencyConflict(
            f"the idempotency key {known.key!r} was used before for another append to {known.stream!r}, or what it "
            "appended was erased since; use a new key for a new append",
            idempotency_key=known.key,
            stream=known.stream,
        )


def first_version(stream: str, expected: int | None, head: int | None) -> int:
    """The version the first new event gets after ``head``, the stream's last version (None: no such stream).

    Raises ``VersionConflict`` where the caller expected another one.
    """
    following = 0 if head is None else head + 1
    if expected is not None and expected != following:
        raise VersionConflict(
            f"stream {stream!r} goes on with version {following}, not {expected}: "
            "somebody else appended; read the stream again and decide anew",
            stream=stream,
            expected_version=expected,
            next_version=following,
        )
    return following


def draft(
    events: Sequence[NewEvent],
    payloads: Sequence[bytes],
    *,
    tenant: str,
    stream: str,
    version: int,
    now_ns: int,
    randomness: Randomness,
) -> Drafts:
    """Give events their ids, salts, versions (from ``version`` on) and leaf hashes."""
    count = len(events)
    each = _ID_RANDOM_BYTES + SALT_BYTES
    pool = randomness.bytes(each * count)
    ids = _event_ids(now_ns // _MS_NS, [pool[at : at + _ID_RANDOM_BYTES].hex() for at in range(0, len(pool), each)])
    salts = [pool[at : at + SALT_BYTES] for at in range(_ID_RANDOM_BYTES, len(pool), each)]
    commitments = [commit_canonical(payload, salt).hex() for payload, salt in zip(payloads, salts, strict=True)]
    entries = log_entries(
        tenant,
        stream,
        now_ns,
        [(event.payload_class, event.schema, event.type) for event in events],
        range(version, version + count),
        ids,
        [event.occurred_at_ns for event in events],
        commitments,
    )
    leaf_hashes = [leaf_hash(entry) for entry in entries]
    return Drafts(tenant, stream, version, now_ns, events, ids, salts, payloads, commitments, leaf_hashes)


def no_event_at(seq: int) -> NotFound:
    """The error for a place in the log where there is nothing."""
    return NotFound(f"the log has no event at seq {seq}", seq=seq)


def no_event(event_id: str) -> NotFound:
    """The error for an event id nobody was given."""
    return NotFound(f"there is no event {event_id[:40]}", event_id=event_id[:40])


def _canonical_payloads(events: Sequence[NewEvent]) -> list[bytes]:
    if all_plain(events):
        try:
            return [_encode_plain(event.payload) for event in events]
        except UnicodeEncodeError:
            # A lone surrogate, whose place canonical_bytes names.
            return [_canonical_payload(event) for event in events]
    if len(events) > 1:
        return [payload for event in events for payload in _canonical_payloads([event])]
    check_event(events[0])
    return [_canonical_payload(events[0])]


def _canonical_payload(event: NewEvent) -> bytes:
    try:
        return canonical_bytes(event.payload)
    except NotCanonical as error:
        raise EventInvalid(f"{event.type}: {error.message}", type=event.type, **error.data) from error


def _require_name(what: str, text: str, max_chars: int) -> None:
    if len(text) > max_chars or not _PLAIN.fullmatch(text):
        raise EventInvalid(
            f"the {what} {text[:40]!r} must have 1 to {max_chars} characters and no control characters", name=text[:40]
        )


def _event_ids(time_ms: int, draws: Sequence[str]) -> list[str]:
    """UUIDs of version 7 (RFC 9562, section 5.7): ids made later sort later, so that indexes grow at their end.

    Each draw is 20 random hex digits, of which version and variant replace six bits. The ids ascend, so that they sort
    by age within a millisecond, too (section 6.2).
    """
    moment = f"{time_ms & (2**48 - 1):012x}"
    start = f"{moment[:8]}-{moment[8:]}-7"
    return sorted([f"{start}{draw[1:4]}-{_VARIANT[draw[4]]}{draw[5:8]}-{draw[8:]}" for draw in draws])
