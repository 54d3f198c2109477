"""Events: the facts and judgements the ledger stores, their header and their log entry.

The log leaf commits to the header, and the header to the payload through a salt, so that a payload can be
erased without breaking the tree (docs/attestation-format.md, "Ledger entry").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import NotSequencedYet, PayloadErased

PAYLOAD_PREFIX = b"sla-ledger/payload/v1\n"
SALT_BYTES = 32
COMMITMENT_BYTES = 32
STANDARD_CLASS = "standard"
"""Payloads that are kept for good."""
ERASABLE_CLASS = "erasable"
"""Payloads that can be forgotten: salt and payload go, the commitment and with it the log entry stay."""
MAX_INSTANT_NS = 2**63 - 1
"""The last instant an event may carry: what a signed 64-bit column holds (in the year 2262)."""


LATER_SCHEMAS: Mapping[str, int] = dict.fromkeys(
    (
        "agreement_registered",
        "observations_recorded",
        "window_evaluated",
        "statement_issued",
        "violation_opened",
        "violation_updated",
        "violation_closed",
        "violation_withdrawn",
        "credit_line_issued",
        "credit_line_reversed",
        "credit_applied",
        "block_resealed",
        "attestation_recorded",
        "anchor_recorded",
        "anchor_confirmed",
    ),
    2,
)
"""The current schema version of each type that had more than one (``ledger.domain.events.event_types``)."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append: ``type`` and ``schema`` name its payload's shape; ``payload_class`` its retention.

    Without ``schema`` it is of its type's current version.
    """

    type: str
    payload: Mapping[str, Any]
    occurred_at_ns: int
    schema: int = 0
    payload_class: str = STANDARD_CLASS

    def __post_init__(self) -> None:
        if self.schema == 0:
            object.__setattr__(self, "schema", LATER_SCHEMAS.get(self.type, 1))


class Recorded(Protocol):
    """What the header is made of: an event that has its place in a stream, sequenced or not yet."""

    @property
    def id(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def schema(self) -> int: ...
    @property
    def payload_class(self) -> str: ...
    @property
    def occurred_at_ns(self) -> int: ...
    @property
    def recorded_at_ns(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ErasedPayload(Mapping[str, Any]):
    """What stands in the place of an erased payload: its commitment, and an error for whoever looks inside.

    Looking is an error instead of an empty mapping, so that nothing is computed from a payload that is gone.
    """

    event_id: str
    commitment: bytes

    def __getitem__(self, key: str) -> NoReturn:
        raise self._error()

    def __iter__(self) -> Iterator[str]:
        raise self._error()

    def __len__(self) -> int:
        raise self._error()

    def _error(self) -> PayloadErased:
        return PayloadErased(
            f"the payload of event {self.event_id} was erased; the event erasure/{self.event_id} says why",
            event_id=self.event_id,
        )


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event that is stored. ``seq`` is its leaf index, ``version`` its place in its stream, both from 0.

    ``seq`` is None between the append and the sequencer's next batch.
    ``payload`` has the current shape of its type, whatever version it was written in, or is an ``ErasedPayload``;
    ``schema`` is the version it was written in. ``original`` is the payload as written, where that differs.
    """

    seq: int | None
    id: str
    tenant: str
    stream: str
    version: int
    type: str
    schema: int
    payload_class: str
    occurred_at_ns: int
    recorded_at_ns: int
    payload: Mapping[str, Any]
    salt: bytes
    original: Mapping[str, Any] | None = None

    @property
    def erased(self) -> bool:
        """Whether the payload is gone; salt and payload then say nothing any more."""
        return isinstance(self.payload, ErasedPayload)

    @property
    def committed_payload(self) -> Mapping[str, Any]:
        """The payload that the log entry commits to: as it was written."""
        return self.payload if self.original is None else self.original

    @property
    def place(self) -> int:
        """``seq`` where there is no way on without it; raises ``NotSequencedYet``."""
        if self.seq is None:
            raise NotSequencedYet(
                f"event {self.id} is stored, but has no place in the log yet; ask again in a moment", event_id=self.id
            )
        return self.seq

    @property
    def header(self) -> dict[str, Any]:
        """The header that the log entry is made of."""
        return event_header(self, self._commitment())

    @property
    def entry(self) -> bytes:
        """The RFC 6962 leaf input: RFC 8785 bytes of the header."""
        return header_entry(self.header)

    def _commitment(self) -> bytes:
        if isinstance(self.payload, ErasedPayload):
            return self.payload.commitment
        return payload_commitment(self.committed_payload, self.salt)


def event_header(event: Recorded, commitment: bytes) -> dict[str, Any]:
    """The header of an event whose payload commitment is at hand."""
    return {
        "class": event.payload_class,
        "id": event.id,
        "occurred_at_ns": str(event.occurred_at_ns),
        "payload_commitment": commitment.hex(),
        "recorded_at_ns": str(event.recorded_at_ns),
        "schema": event.schema,
        "stream": event.stream,
        "tenant": event.tenant,
        "type": event.type,
        "version": event.version,
    }


def header_entry(header: Mapping[str, Any]) -> bytes:
    """The RFC 6962 leaf input of a header made by ``event_header``: its RFC 8785 bytes."""
    return log_entries(
        header["tenant"],
        header["stream"],
        header["recorded_at_ns"],
        [(header["class"], header["schema"], header["type"])],
        [header["version"]],
        [header["id"]],
        [header["occurred_at_ns"]],
        [header["payload_commitment"]],
    )[0]


# A header is flat, has ASCII keys, short texts and small integers: written down member by member it takes a third of
# the library's encoder, and a tenth of what arbitrary values need. Every append pays for this.
_text: Callable[[str], str] = json.encoder.encode_basestring


def log_entries(
    tenant: str,
    stream: str,
    recorded_at_ns: int | str,
    kinds: Sequence[tuple[str, int, str]],
    versions: Iterable[int],
    ids: Iterable[str],
    occurred_at_ns: Iterable[int | str],
    commitments: Iterable[str],
) -> list[bytes]:
    """The leaf inputs of events that were appended together: the RFC 8785 bytes of their headers.

    ``kinds`` are payload class, schema version and type of each event, ``commitments`` are in hex. What the events
    have in common is written once.
    """
    recorded = f'","recorded_at_ns":"{recorded_at_ns}","schema":'
    place = f',"stream":{_text(stream)},"tenant":{_text(tenant)},"type":'
    starts, ends = {}, {}
    for kind in set(kinds):
        payload_class, schema, name = kind
        starts[kind] = f'{{"class":{_text(payload_class)},"id":'
        ends[kind] = f'{recorded}{schema}{place}{_text(name)},"version":'
    return [
        f'{starts[kind]}{_text(event_id)},"occurred_at_ns":"{occurred}","payload_commitment":"{commitment}{ends[kind]}'
        f"{version}}}".encode()
        for kind, version, event_id, occurred, commitment in zip(
            kinds, versions, ids, occurred_at_ns, commitments, strict=True
        )
    ]


def payload_commitment(payload: Mapping[str, Any], salt: bytes) -> bytes:
    """SHA-256 over prefix, 32-byte salt and canonical payload; hides the payload once the salt is erased."""
    return commit_canonical(canonical_bytes(payload), salt)


def commit_canonical(payload: bytes, salt: bytes) -> bytes:
    """``payload_commitment`` of a payload that is in its canonical bytes already."""
    return hashlib.sha256(PAYLOAD_PREFIX + salt + payload).digest()
