"""What an append decides before anything is written: pure, shared by every storage adapter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from ledger.app.ports import Randomness
from ledger.domain.canonical import canonical_bytes
from ledger.domain.event_types import check_event
from ledger.domain.events import (
    ERASABLE_CLASS,
    SALT_BYTES,
    NewEvent,
    StoredEvent,
    commit_canonical,
    event_entry,
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


class Draft(NamedTuple):
    """An event with its place in a stream, its leaf hash, and not yet a place in the log.

    A tuple, because it is made a thousand times in an append, in a third of a frozen dataclass's time. Up to
    ``payload_bytes`` it is the event's row.
    """

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
    payload_bytes: bytes
    payload: Mapping[str, Any]

    @property
    def erasable(self) -> bool:
        return self.payload_class == ERASABLE_CLASS

    def commitment(self) -> bytes:
        return commit_canonical(self.payload_bytes, self.salt)

    def leaf_hash(self) -> bytes:
        """The hash of the log leaf this event becomes."""
        return leaf_hash(event_entry(self, self.commitment()))

    def stored(self, seq: int) -> StoredEvent:
        """The event once it has its leaf index ``seq``."""
        return StoredEvent(
            seq=seq,
            id=self.id,
            tenant=self.tenant,
            stream=self.stream,
            version=self.version,
            type=self.type,
            schema=self.schema,
            payload_class=self.payload_class,
            occurred_at_ns=self.occurred_at_ns,
            recorded_at_ns=self.recorded_at_ns,
            payload=self.payload,
            salt=self.salt,
        )


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """What an idempotency key is bound to, and what it gave."""

    key: str
    digest: bytes
    stream: str
    first_version: int
    events: int


def checked_payloads(stream: str, events: Sequence[NewEvent], idempotency_key: str | None) -> tuple[bytes, ...]:
    """The canonical payload of each event, after refusing what no log should hold.

    Raises ``EventInvalid``: no event at all, an unusable stream name or key, an unknown type, a payload that is
    not of its type's shape, has no canonical form or is over 16 MiB.
    """
    if not events:
        raise EventInvalid("an append needs at least one event", stream=stream)
    _require_name("stream name", stream, MAX_STREAM_CHARS)
    if idempotency_key is not None:
        _require_name("idempotency key", idempotency_key, MAX_KEY_CHARS)
    return tuple(_checked(event) for event in events)


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
) -> list[Draft]:
    """Give events their ids, salts and versions, from ``version`` on."""
    each = _ID_RANDOM_BYTES + SALT_BYTES
    pool = randomness.bytes(each * len(events))
    moment = f"{now_ns // _MS_NS & (2**48 - 1):012x}"
    starts = range(0, len(pool), each)
    return [
        Draft(
            _event_id(moment, pool[start : start + _ID_RANDOM_BYTES].hex()),
            tenant,
            stream,
            version + index,
            event.type,
            event.schema,
            event.payload_class,
            event.occurred_at_ns,
            now_ns,
            pool[start + _ID_RANDOM_BYTES : start + each],
            payload,
            event.payload,
        )
        for index, (start, event, payload) in enumerate(zip(starts, events, payloads, strict=True))
    ]


def no_event_at(seq: int) -> NotFound:
    """The error for a place in the log where there is nothing."""
    return NotFound(f"the log has no event at seq {seq}", seq=seq)


def no_event(event_id: str) -> NotFound:
    """The error for an event id nobody was given."""
    return NotFound(f"there is no event {event_id[:40]}", event_id=event_id[:40])


def _checked(event: NewEvent) -> bytes:
    try:
        payload = _payload_bytes(event)
    except NotCanonical as error:
        raise EventInvalid(f"{event.type}: {error.message}", type=event.type, **error.data) from error
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise EventInvalid(
            f"{event.type}: the payload has {len(payload)} bytes; at most {MAX_PAYLOAD_BYTES} are stored",
            type=event.type,
            size=len(payload),
        )
    return payload


def _payload_bytes(event: NewEvent) -> bytes:
    """The canonical payload of an event that passes the registry's check."""
    if check_event(event):
        try:
            return _encode_plain(event.payload)
        except UnicodeEncodeError:
            # A lone surrogate, whose place canonical_bytes names.
            pass
    return canonical_bytes(event.payload)


def _require_name(what: str, text: str, max_chars: int) -> None:
    if len(text) > max_chars or not _PLAIN.fullmatch(text):
        raise EventInvalid(
            f"the {what} {text[:40]!r} must have 1 to {max_chars} characters and no control characters", name=text[:40]
        )


def _event_id(moment: str, random: str) -> str:
    """A UUID version 7 (RFC 9562, section 5.7): ids made later sort later, so the index grows at its end.

    ``moment`` is the Unix time in ms as 12 hex digits, ``random`` are 20 of which version and variant replace six bits.
    """
    return f"{moment[:8]}-{moment[8:]}-7{random[1:4]}-{_VARIANT[random[4]]}{random[5:8]}-{random[8:]}"
