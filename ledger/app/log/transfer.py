"""Export, proof of completeness, and import of a whole log (``ledger.app.log.export_format``).

What is not in an export: private keys, the secrets that openings and proofs are made from (block and base salts),
stored chain transactions and the memory of which request ids were reported. A copy of the data directory is the
backup that has all of it; an export is what can be handed to others and checked by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from ledger.app.log.export_format import (
    MAX_LINE_BYTES,
    PART_BYTES,
    BatchPart,
    End,
    batch_line,
    checkpoint_line,
    entry_line,
    first_line,
    parse_first_line,
    parse_line,
    request_line,
)
from ledger.app.log.fsck_tree import LogTrust, all_checkpoints
from ledger.app.log.inspection import Inspection, RawEntry, RawRequest
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.canonical import parse_json
from ledger.domain.record.events import ERASABLE_CLASS, commit_canonical, event_header, header_entry
from ledger.errors import EvidenceInvalid, ExportInvalid, LogInconsistent
from ledger.merkle.checkpoint import open_checkpoint, parse_checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import parse_note
from ledger.merkle.tree import Frontier

_PAGE = 4096

Progress = Callable[[str, int, int], None]


class Restoration(Protocol):
    """Fills an empty database; everything counts only once ``finish`` was called and the transaction ended."""

    def add_entries(self, entries: Sequence[RawEntry]) -> None:
        """The next events in log order."""
        ...

    def add_request(self, request: RawRequest) -> None: ...

    def add_checkpoint(self, size: int, root: bytes, note: bytes) -> None: ...

    def add_batch(self, tenant: str, data: bytes) -> None: ...

    def finish(self) -> None:
        """Stream heads and views. Raises ``LogInconsistent`` where a stream's versions do not count from 0."""
        ...


@dataclass(frozen=True, slots=True)
class Summary:
    """What a file was found to hold. ``proved`` is the size of the outside checkpoint it was held against."""

    origin: str
    size: int
    root: bytes
    erased: int
    checkpoints: int
    requests: int
    batches: int
    proved: int | None = None


def export_log(
    inspection: Inspection, origin: str, out: BinaryIO, *, batches: bool, progress: Progress = lambda *_: None
) -> Summary:
    """Write the whole log. Raises ``LogInconsistent`` at the first event that does not hash to its leaf."""
    return _Writing(inspection, out, progress).run(origin, batches=batches)


def verify_export(
    source: BinaryIO,
    *,
    known: Sequence[KnownCheckpoint] = (),
    trust: LogTrust | None = None,
    progress: Progress = lambda *_: None,
) -> Summary:
    """Read a whole export and hash everything again; what it holds.

    Raises ``ExportInvalid`` for a file that is malformed, cut off or of another root than it states, and
    ``EvidenceInvalid`` where it does not hold everything that a checkpoint in ``known`` was signed over, or a
    checkpoint in it does not hold under ``trust``.
    """
    return _Reading(source, known, trust, progress).run(None)


def import_log(
    source: BinaryIO,
    restoration: Restoration,
    *,
    known: Sequence[KnownCheckpoint] = (),
    trust: LogTrust | None = None,
    progress: Progress = lambda *_: None,
) -> Summary:
    """Fill an empty database from an export, inside one transaction that the caller ends; refuses as ``verify_export``.

    Checkpoints are taken over where they hold under ``trust``, the keys of the new database; without it they are
    those of another log and stay behind.
    """
    return _Reading(source, known, trust, progress).run(restoration)


class _Writing:
    """One pass over the database."""

    def __init__(self, inspection: Inspection, out: BinaryIO, progress: Progress) -> None:
        self._inspection = inspection
        self._out = out
        self._progress = progress
        self._digest = hashlib.sha256()

    def run(self, origin: str, *, batches: bool) -> Summary:
        self._write(first_line(origin))
        size, root, erased, checkpoints = self._entries()
        requests = 0
        for request in self._inspection.requests():
            self._write(request_line(request))
            requests += 1
        kept = self._raw_batches() if batches else 0
        self._out.write(End(size, root, checkpoints, requests, kept, self._digest.digest()).line())
        return Summary(origin, size, root, erased, checkpoints, requests, kept)

    def _entries(self) -> tuple[int, bytes, int, int]:
        """Size, root, number of erased payloads and of checkpoints."""
        state = self._inspection.state()
        size = 0 if state is None else state.size
        checkpoints = all_checkpoints(self._inspection)
        following = next(checkpoints, None)
        frontier, erased, signed = Frontier(), 0, 0
        while page := self._inspection.entries(frontier.size, _PAGE):
            for seq, entry in enumerate(page, frontier.size):
                self._write(_checked_line(entry, seq))
                erased += entry.standing_payload is None
                while following is not None and following.size == seq + 1:
                    self._write(checkpoint_line(following.note))
                    signed += 1
                    following = next(checkpoints, None)
            frontier = frontier.extend([entry.leaf_hash for entry in page])
            self._progress("writing events", frontier.size, size)
        if frontier.size != size or following is not None:
            raise LogInconsistent(
                f"the log has {frontier.size} leaves, but says that it has {size} or has a checkpoint of another "
                "size; run fsck",
                size=size,
                leaves=frontier.size,
            )
        return size, frontier.root(), erased, signed

    def _raw_batches(self) -> int:
        count = 0
        for batch in self._inspection.batches():
            if batch.data is None or hashlib.sha256(batch.data).digest() != batch.digest:
                raise LogInconsistent(
                    f"the raw batch {batch.digest.hex()} no longer has this digest; put it back from a backup, or "
                    "export without raw batches",
                    digest=batch.digest.hex(),
                )
            for at in range(0, max(len(batch.data), 1), PART_BYTES):
                last = at + PART_BYTES >= len(batch.data)
                self._write(batch_line(BatchPart(batch.tenant, batch.data[at : at + PART_BYTES], last)))
            count += 1
        return count

    def _write(self, line: bytes) -> None:
        self._digest.update(line)
        self._out.write(line)


def _checked_line(entry: RawEntry, seq: int) -> bytes:
    """The line of an entry that is what its leaf says. Raises ``LogInconsistent``."""
    wrong = LogInconsistent(
        f"the event at seq {seq} is missing or is not what was logged; run fsck, and restore a backup", seq=seq
    )
    if entry.seq != seq or not entry.has_event:
        raise wrong
    payload, salt = entry.standing_payload, entry.standing_salt
    erasable = entry.payload_class == ERASABLE_CLASS
    commitment = entry.payload if erasable else commit_canonical(entry.payload, entry.salt)
    header = header_entry(event_header(entry, commitment))
    if leaf_hash(header) != entry.leaf_hash:
        raise wrong
    if payload is not None and commit_canonical(payload, salt or b"") != commitment:
        raise wrong
    return entry_line(header, payload, salt, entry.sequenced_at_ns)


class _Reading:
    """One pass over an export."""

    def __init__(
        self, source: BinaryIO, known: Sequence[KnownCheckpoint], trust: LogTrust | None, progress: Progress
    ) -> None:
        self._source = source
        self._outside = sorted(known, key=lambda each: each.size)
        self._trust = trust
        self._progress = progress
        self._digest = hashlib.sha256()
        self._frontier = Frontier()
        self._absent: dict[str, int] = {}
        self._counts = {"checkpoints": 0, "requests": 0, "batches": 0}
        self._erased = 0
        self._sequenced_at_ns = 0
        self._proved: int | None = None
        self._lines = 0
        self._batch = bytearray()

    def run(self, restoration: Restoration | None) -> Summary:
        origin = parse_first_line(self._line())
        entries: list[RawEntry] = []
        while True:
            before = self._digest.copy()
            line = self._line()
            record = parse_line(line, self._lines, self._frontier.size + len(entries))
            if isinstance(record, RawEntry):
                entries.append(record)
                if len(entries) < _PAGE:
                    continue
            self._take(entries, restoration)
            entries = []
            if isinstance(record, End):
                self._require_end(record, before.digest())
                break
            if not isinstance(record, RawEntry):
                self._take_other(record, restoration)
        if restoration is not None:
            restoration.finish()
        size, root = self._frontier.size, self._frontier.root()
        return Summary(origin, size, root, self._erased, **self._counts, proved=self._proved)

    def _line(self) -> bytes:
        line = self._source.readline(MAX_LINE_BYTES + 1)
        self._lines += 1
        if not line.endswith(b"\n"):
            raise ExportInvalid(
                f"line {self._lines}: the export is cut off here, or the line is over {MAX_LINE_BYTES} bytes",
                line=self._lines,
            )
        self._digest.update(line)
        return line

    def _take(self, entries: Sequence[RawEntry], restoration: Restoration | None) -> None:
        for entry in entries:
            if entry.sequenced_at_ns < self._sequenced_at_ns:
                raise ExportInvalid(f"sequenced_at goes back at seq {entry.seq}", seq=entry.seq)
            self._sequenced_at_ns = entry.sequenced_at_ns
            self._note_erasure(entry)
        hashes = [entry.leaf_hash for entry in entries]
        at = 0
        while self._outside and self._outside[0].size <= self._frontier.size + len(hashes) - at:
            known = self._outside.pop(0)
            count = known.size - self._frontier.size
            self._frontier = self._frontier.extend(hashes[at : at + count])
            at += count
            if self._frontier.root() != known.root:
                raise EvidenceInvalid(
                    f"{known.source} has another root at size {known.size}: it was signed over another log",
                    size=known.size,
                    expected=known.root.hex(),
                    found=self._frontier.root().hex(),
                )
            self._proved = known.size
        self._frontier = self._frontier.extend(hashes[at:])
        if restoration is not None and entries:
            restoration.add_entries(entries)
        self._progress("reading events", self._frontier.size, 0)

    def _take_other(self, record: RawRequest | BatchPart | bytes, restoration: Restoration | None) -> None:
        if isinstance(record, bytes):
            self._counts["checkpoints"] += 1
            self._take_checkpoint(record, restoration)
        elif isinstance(record, RawRequest):
            self._counts["requests"] += 1
            if restoration is not None:
                restoration.add_request(record)
        else:
            self._batch += record.data
            if record.last:
                self._counts["batches"] += 1
                if restoration is not None:
                    restoration.add_batch(record.tenant, bytes(self._batch))
                self._batch.clear()

    def _take_checkpoint(self, note: bytes, restoration: Restoration | None) -> None:
        stated = parse_checkpoint(parse_note(note).text)
        if (stated.size, stated.root) != (self._frontier.size, self._frontier.root()):
            raise EvidenceInvalid(
                f"line {self._lines}: the checkpoint of size {stated.size} is not over the events before it",
                line=self._lines,
                size=stated.size,
            )
        if self._trust is None:
            return
        open_checkpoint(note, self._trust.origin, self._trust.keys_at(stated.size), self._trust.verify)
        if restoration is not None:
            restoration.add_checkpoint(stated.size, stated.root, note)

    def _note_erasure(self, entry: RawEntry) -> None:
        """Every payload that is absent is said to be erased later on, and every one said to be erased is absent."""
        if entry.standing_payload is None:
            self._absent[entry.id] = entry.seq
            self._erased += 1
        if entry.type == PAYLOAD_ERASED:
            try:
                event_id = str(parse_json(entry.payload, max_bytes=MAX_LINE_BYTES)["event_id"])
            except (LookupError, TypeError) as error:
                raise ExportInvalid(f"seq {entry.seq} records an erasure of nothing", seq=entry.seq) from error
            if self._absent.pop(event_id, None) is None:
                raise ExportInvalid(
                    f"seq {entry.seq} records an erasure of {event_id}, whose payload is there or is no event's",
                    seq=entry.seq,
                )

    def _require_end(self, end: End, digest: bytes) -> None:
        stated = (end.size, end.root, end.sha256, end.checkpoints, end.requests, end.batches)
        found = (self._frontier.size, self._frontier.root(), digest, *self._counts.values())
        if stated != found or self._batch:
            raise ExportInvalid("the last line states another size, root, digest or count than the file has")
        if self._source.read(1):
            raise ExportInvalid("there is more after the last line of the export")
        for event_id, seq in self._absent.items():
            raise ExportInvalid(
                f"the payload of event {event_id} at seq {seq} is missing, and no event says it was erased", seq=seq
            )
        for known in self._outside:
            raise EvidenceInvalid(
                f"{known.source} knows {known.size} events and the export has {end.size}: it is not complete",
                size=end.size,
                known_size=known.size,
            )
