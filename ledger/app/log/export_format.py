"""The export file: a whole log as lines of canonical JSON, in log order, from which every hash can be made again.

* first line ``{"format", "origin"}``;
* one line for each event, ``{"header", "payload", "salt", "sequenced_at_ns"}``: ``header`` is the log entry itself,
  ``payload`` and ``salt`` are null where the payload was erased;
* ``{"checkpoint": {"note"}}`` right after the event that completes its size;
* after the events ``{"request": {...}}`` for idempotency keys and ``{"batch": {...}}`` for parts of raw batches;
* last line ``{"end": {...}}`` with the counts, the root, and the SHA-256 of all bytes before it.

Each line has one spelling, so that a file cannot say one thing to one reader and another to the next.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.log.inspection import RawEntry, RawRequest
from ledger.domain.record.canonical import canonical_bytes, require_shallow
from ledger.domain.record.events import COMMITMENT_BYTES, ERASABLE_CLASS, SALT_BYTES, commit_canonical, event_header
from ledger.domain.record.events import header_entry as entry_bytes
from ledger.errors import ExportInvalid, NotCanonical, SlaLedgerError
from ledger.merkle.hasher import leaf_hash

FORMAT = "sla-ledger/export/v1"
MAX_LINE_BYTES = 64 * 1024 * 1024
PART_BYTES = 8 * 1024 * 1024

_MAX_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BatchPart:
    """A piece of a raw batch; ``last`` marks the end of one."""

    tenant: str
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class End:
    """What the last line states about everything before it."""

    size: int
    root: bytes
    checkpoints: int
    requests: int
    batches: int
    sha256: bytes

    def line(self) -> bytes:
        document = {
            "batches": self.batches,
            "checkpoints": self.checkpoints,
            "requests": self.requests,
            "root": self.root.hex(),
            "sha256": self.sha256.hex(),
            "size": self.size,
        }
        return canonical_bytes({"end": document}) + b"\n"


Record = RawEntry | RawRequest | BatchPart | End | bytes
"""A line after the first one; bytes are the note of a checkpoint."""


def first_line(origin: str) -> bytes:
    return canonical_bytes({"format": FORMAT, "origin": origin}) + b"\n"


def entry_line(header: bytes, payload: bytes | None, salt: bytes | None, sequenced_at_ns: int) -> bytes:
    """The line of an event from its log entry and its canonical payload."""
    if payload is None or salt is None:
        return b'{"header":%b,"payload":null,"salt":null,"sequenced_at_ns":"%d"}\n' % (header, sequenced_at_ns)
    salt_hex = salt.hex().encode()
    return b'{"header":%b,"payload":%b,"salt":"%b","sequenced_at_ns":"%d"}\n' % (
        header,
        payload,
        salt_hex,
        sequenced_at_ns,
    )


def checkpoint_line(note: bytes) -> bytes:
    return canonical_bytes({"checkpoint": {"note": note.decode()}}) + b"\n"


def request_line(request: RawRequest) -> bytes:
    document = {
        "digest": request.digest.hex(),
        "events": request.events,
        "first_version": request.first_version,
        "key": request.key,
        "stream": request.stream,
        "tenant": request.tenant,
    }
    return canonical_bytes({"request": document}) + b"\n"


def batch_line(part: BatchPart) -> bytes:
    document = {"data": b64encode(part.data).decode(), "last": part.last, "tenant": part.tenant}
    return canonical_bytes({"batch": document}) + b"\n"


def parse_first_line(line: bytes) -> str:
    """The origin. Raises ``ExportInvalid``."""
    document = _object(line, 1)
    if document.get("format") != FORMAT:
        raise ExportInvalid(f"line 1: not an export of a ledger (no format {FORMAT})", line=1)
    origin = document.get("origin")
    if not isinstance(origin, str) or first_line(origin) != line:
        raise _spelling(1)
    return origin


def parse_line(line: bytes, number: int, seq: int) -> Record:
    """The record of a line; ``seq`` is the place of an event. Raises ``ExportInvalid`` naming the line."""
    document = _object(line, number)
    try:
        record, again = _read(document, seq)
    except (SlaLedgerError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ExportInvalid(f"line {number}: not a line of an export ({error})", line=number) from error
    if again != line:
        raise _spelling(number)
    return record


def _read(document: Mapping[str, Any], seq: int) -> tuple[Record, bytes]:
    """A record and the one spelling of its line."""
    if "header" in document:
        return _entry(document, seq)
    if "checkpoint" in document:
        note = document["checkpoint"]["note"].encode()
        return note, checkpoint_line(note)
    if "request" in document:
        given = document["request"]
        request = RawRequest(
            given["tenant"],
            given["key"],
            bytes.fromhex(given["digest"]),
            given["stream"],
            _count(given["first_version"]),
            _count(given["events"]),
        )
        return request, request_line(request)
    if "batch" in document:
        given = document["batch"]
        part = BatchPart(given["tenant"], b64decode(given["data"], validate=True), given["last"] is True)
        return part, batch_line(part)
    given = document["end"]
    end = End(
        size=_count(given["size"]),
        root=bytes.fromhex(given["root"]),
        checkpoints=_count(given["checkpoints"]),
        requests=_count(given["requests"]),
        batches=_count(given["batches"]),
        sha256=bytes.fromhex(given["sha256"]),
    )
    return end, end.line()


def _entry(document: Mapping[str, Any], seq: int) -> tuple[RawEntry, bytes]:
    header, payload = document["header"], document["payload"]
    erased = payload is None
    stated = bytes.fromhex(header["payload_commitment"])
    standing = None if erased else canonical_bytes(payload)
    salt = None if erased else bytes.fromhex(document["salt"])
    if erased and header["class"] != ERASABLE_CLASS:
        raise ValueError("a payload of a class that is kept for good is missing")
    if len(stated) != COMMITMENT_BYTES or (salt is not None and len(salt) != SALT_BYTES):
        raise ValueError("salt and commitment have 32 bytes")
    if standing is not None and salt is not None and commit_canonical(standing, salt) != stated:
        raise ValueError("the payload is not the one that the header commits to")
    erasable = header["class"] == ERASABLE_CLASS
    entry = RawEntry(
        seq=seq,
        leaf_hash=b"",
        sequenced_at_ns=_count(int(document["sequenced_at_ns"])),
        event_id=header["id"],
        id=header["id"],
        tenant=header["tenant"],
        stream=header["stream"],
        version=_count(header["version"]),
        type=header["type"],
        schema=_count(header["schema"]),
        payload_class=header["class"],
        occurred_at_ns=_count(int(header["occurred_at_ns"])),
        recorded_at_ns=_count(int(header["recorded_at_ns"])),
        salt=bytes(SALT_BYTES) if erasable or salt is None else salt,
        payload=stated if erasable or standing is None else standing,
        kept_salt=salt if erasable else None,
        kept_payload=standing if erasable else None,
    )
    if not all(isinstance(text, str) for text in (entry.id, entry.tenant, entry.stream, entry.type)):
        raise TypeError("id, tenant, stream and type are texts")
    made = entry_bytes(event_header(entry, stated))
    return entry._replace(leaf_hash=leaf_hash(made)), entry_line(made, standing, salt, entry.sequenced_at_ns)


def _object(line: bytes, number: int) -> Mapping[str, Any]:
    try:
        require_shallow(line)
        document = json.loads(line)
    except (NotCanonical, ValueError) as error:
        raise ExportInvalid(f"line {number}: not JSON ({error})", line=number) from error
    if not isinstance(document, dict):
        raise ExportInvalid(f"line {number}: not an object", line=number)
    return document


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    return value


def _spelling(number: int) -> ExportInvalid:
    return ExportInvalid(f"line {number}: not in the one spelling that an export has", line=number)
