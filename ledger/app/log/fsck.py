"""``fsck``: everything stored, hashed and counted again, without trusting any of it.

One pass over the leaves in log order re-hashes payloads, headers and leaves, rebuilds the tree and its tiles, and
holds the roots against every checkpoint, stored or brought along. Then streams, idempotency keys and views are
compared with the events. Nothing is repaired: findings name what is wrong, and ``docs/operations.md`` says what
to do about each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ledger.app.log.fsck_tree import LogTrust, RootCheck, TileCheck, leaf_tiles
from ledger.app.log.inspection import Inspection, RawEntry, StreamPlace, ViewDifference
from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.domain.events.event_types import PAYLOAD_ERASED
from ledger.domain.record.canonical import parse_json
from ledger.domain.record.events import ERASABLE_CLASS, commit_canonical, event_header, header_entry
from ledger.errors import SlaLedgerError
from ledger.merkle.hasher import HASH_SIZE, leaf_hash
from ledger.merkle.tile import TILE_WIDTH

MAX_FINDINGS = 100
"""How many findings are kept in full; all are counted."""

MAX_RECORD_BYTES = 65_536
"""No record of an erasure is larger."""

_PAGE = 16 * TILE_WIDTH
_UNREADABLE = bytes(HASH_SIZE)

Progress = Callable[[str, int, int], None]
"""``progress(what, done, of)``; ``of`` is 0 where the end is not known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``what`` is a stable word for machines; ``seq`` is where, if it has one place."""

    what: str
    message: str
    seq: int | None = None
    expected: str | None = None
    found: str | None = None


@dataclass(slots=True)
class FsckReport:
    """What was checked, and what was found: the first ``MAX_FINDINGS`` in full, all of them by count."""

    size: int = 0
    root: bytes = b""
    checkpoints: int = 0
    outside: int = 0
    erased: int = 0
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        return not self.counts

    def add(
        self, what: str, message: str, *, seq: int | None = None, expected: str | None = None, found: str | None = None
    ) -> None:
        self.counts[what] += 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(what, message, seq, expected, found))


def fsck(
    inspection: Inspection,
    trust: LogTrust,
    known: Sequence[KnownCheckpoint] = (),
    *,
    progress: Progress = lambda *_: None,
) -> FsckReport:
    """Check everything in one snapshot. ``known`` are sizes and roots from outside the database: without one, a
    forger who rewrote every row and holds the log's key cannot be told from the log."""
    report = FsckReport(outside=len(known))
    _Pass(inspection, trust, known, report, progress).run()
    _check_streams(inspection, report, progress)
    _check_requests(inspection, report, progress)
    for event_id in inspection.unsequenced(MAX_FINDINGS):
        report.add("unsequenced", f"event {event_id} has no leaf: it was put in or taken out past the log")
    for event_id in inspection.stray_payloads(MAX_FINDINGS):
        report.add("stray_payload", f"a payload is kept for {event_id}, which is no event of an erasable class")
    return report


class _Pass:
    """The one pass over the leaves."""

    def __init__(
        self,
        inspection: Inspection,
        trust: LogTrust,
        known: Sequence[KnownCheckpoint],
        report: FsckReport,
        progress: Progress,
    ) -> None:
        self._inspection = inspection
        self._report = report
        self._progress = progress
        self._tiles = TileCheck(inspection, report.add)
        self._roots = RootCheck(inspection, trust, known, report.add)
        self._views = inspection.view_check()
        self._absent: dict[str, int] = {}
        self._sequenced_at_ns = 0
        self._entries = 0

    def run(self) -> None:
        report, state = self._report, self._inspection.state()
        size = 0 if state is None else state.size
        first, leaves = 0, bytearray()
        while page := self._page(first):
            self._report_views(self._views.add([entry for entry in page if entry is not None]))
            leaves += self._check_page(first, page)
            whole = len(leaves) - len(leaves) % (TILE_WIDTH * HASH_SIZE)
            for at in range(0, whole, TILE_WIDTH * HASH_SIZE):
                self._tiles.add_full(bytes(leaves[at : at + TILE_WIDTH * HASH_SIZE]))
            del leaves[:whole]
            first += len(page)
            self._progress("checking leaves", first, size)
        self._tiles.finish(bytes(leaves))
        self._roots.finish()
        report.size, report.root, report.checkpoints = first, self._roots.root, self._roots.checkpoints
        if size != self._entries:
            report.add(
                "size", "the log's stated size is not its number of leaves", expected=str(first), found=str(size)
            )
        elif state is not None and first and state.sequenced_at_ns != self._sequenced_at_ns:
            report.add("sequenced_at", "the log's last instant is not that of its last leaf", seq=first - 1)
        for event_id, seq in self._absent.items():
            report.add(
                "payload_missing", f"the payload of event {event_id} is gone, and no event says it was erased", seq=seq
            )
        self._report_views(self._views.rest())

    def _report_views(self, differences: Iterable[ViewDifference]) -> None:
        for row in differences:
            self._report.add(
                "view",
                f"a row of {row.view} is not what the events give; run: sla-ledger rebuild",
                # The event that set the row last, in one of the two accounts of it.
                seq=max(seq for seq in (row.stored, row.rebuilt) if seq is not None),
                expected="no row" if row.rebuilt is None else f"the row of seq {row.rebuilt}",
                found="no row" if row.stored is None else f"a row that names seq {row.stored}",
            )

    def _page(self, first: int) -> list[RawEntry | None]:
        """The next leaves by seq, without holes: None stands for a leaf that is missing."""
        found = self._inspection.entries(first, _PAGE)
        page: list[RawEntry | None] = []
        for entry in found:
            missing = min(entry.seq - first, _PAGE) - len(page)
            if missing > 0:
                self._report.add(
                    "leaf_missing",
                    f"{missing} leaves are missing from seq {first + len(page)} on",
                    seq=first + len(page),
                )
                page += [None] * missing
            if len(page) == _PAGE:
                break
            page.append(entry)
            self._entries += 1
        return page

    def _check_page(self, first: int, page: Sequence[RawEntry | None]) -> bytes:
        """The leaf hashes of a page as the tree should have them."""
        tiles = self._inspection.tiles(0, first // TILE_WIDTH, len(page) // TILE_WIDTH + 1)
        for index in range(first // TILE_WIDTH, (first + len(page) - 1) // TILE_WIDTH + 1):
            row = tiles.get(index)
            width = min(TILE_WIDTH, first + len(page) - index * TILE_WIDTH)
            if row is None or len(row.data) != row.width * HASH_SIZE or row.width < width:
                self._report.add(
                    "tile_missing", f"tile {index} of level 0 is missing or cut off", seq=index * TILE_WIDTH
                )
        leaves = [
            self._check_entry(first + at, entry, in_tile)
            for at, (entry, in_tile) in enumerate(zip(page, leaf_tiles(tiles, first, len(page)), strict=True))
        ]
        self._roots.add(leaves)
        return b"".join(leaves)

    def _check_entry(self, seq: int, entry: RawEntry | None, in_tile: bytes | None) -> bytes:
        if entry is None:
            return in_tile or _UNREADABLE
        try:
            return self._check_readable(entry, in_tile)
        except (TypeError, ValueError, AttributeError, LookupError):
            self._report.add("unreadable", "leaf or event hold values of the wrong type", seq=seq)
            return in_tile or _UNREADABLE

    def _check_readable(self, entry: RawEntry, in_tile: bytes | None) -> bytes:
        seq = entry.seq
        if len(entry.leaf_hash + b"") != HASH_SIZE:
            raise ValueError("a leaf hash has 32 bytes")
        if entry.sequenced_at_ns < self._sequenced_at_ns:
            self._report.add(
                "sequenced_at",
                "sequenced_at goes back",
                seq=seq,
                expected=f"at least {self._sequenced_at_ns}",
                found=str(entry.sequenced_at_ns),
            )
        self._sequenced_at_ns = max(self._sequenced_at_ns, entry.sequenced_at_ns)
        if not entry.has_event:
            self._report.add("event_missing", f"the event {entry.event_id} is missing", seq=seq)
            return entry.leaf_hash
        hashed = leaf_hash(header_entry(event_header(entry, self._commitment(entry))))
        if entry.type == PAYLOAD_ERASED:
            self._check_erasure(entry)
        if hashed == entry.leaf_hash and in_tile in (hashed, None):
            return hashed
        return self._judge(entry, hashed, entry.leaf_hash if in_tile is None else in_tile)

    def _judge(self, entry: RawEntry, hashed: bytes, in_tile: bytes) -> bytes:
        """Event, leaf and tile do not agree. Two against one say which was changed, if only one was."""
        seq, leaf = entry.seq, entry.leaf_hash
        if hashed == in_tile:
            self._report.add(
                "leaf",
                "the leaf row was changed: event and tile agree",
                seq=seq,
                expected=hashed.hex(),
                found=leaf.hex(),
            )
            return hashed
        if hashed != leaf:
            self._report.add(
                "event",
                f"payload, salt or header of event {entry.id} is not what was logged",
                seq=seq,
                expected=leaf.hex(),
                found=hashed.hex(),
            )
        if leaf != in_tile:
            self._report.add(
                "tile", "the tile has another leaf hash", seq=seq, expected=leaf.hex(), found=in_tile.hex()
            )
        return leaf

    def _commitment(self, entry: RawEntry) -> bytes:
        if entry.payload_class != ERASABLE_CLASS:
            return commit_canonical(entry.payload, entry.salt)
        if entry.kept_payload is None:
            self._absent[entry.id] = entry.seq
        elif (found := commit_canonical(entry.kept_payload, entry.kept_salt or b"")) != entry.payload:
            self._report.add(
                "payload",
                f"the erasable payload of event {entry.id} is not what was logged",
                seq=entry.seq,
                expected=entry.payload.hex(),
                found=found.hex(),
            )
        return entry.payload

    def _check_erasure(self, record: RawEntry) -> None:
        """A record of an erasure stands for one payload that is absent, and only that."""
        try:
            event_id = str(parse_json(record.payload, max_bytes=MAX_RECORD_BYTES)["event_id"])
        except (SlaLedgerError, LookupError, TypeError):
            return
        if self._absent.pop(event_id, None) is None:
            self._report.add(
                "not_erased", f"the payload of event {event_id} is said to be erased and is still there", seq=record.seq
            )
        else:
            self._report.erased += 1


def _check_streams(inspection: Inspection, report: FsckReport, progress: Progress) -> None:
    """Versions count from 0 in each stream, in the order of the log; heads are the last of them."""
    before: StreamPlace | None = None
    progress("checking streams", 0, 0)
    for place in inspection.places():
        same = before is not None and (before.tenant, before.stream) == (place.tenant, place.stream)
        version = before.version + 1 if before is not None and same else 0
        if place.version != version:
            report.add(
                "stream_version",
                f"stream {place.stream!r} of {place.tenant!r} skips or repeats a version",
                seq=place.seq,
                expected=str(version),
                found=str(place.version),
            )
        seq_before = before.seq if before is not None and same else None
        if place.seq is not None and seq_before is not None and place.seq <= seq_before:
            report.add(
                "stream_order",
                f"version {place.version} of stream {place.stream!r} is in the log before the version it follows",
                seq=place.seq,
                expected=f"after {seq_before}",
                found=str(place.seq),
            )
        before = place
    for head in islice(inspection.head_differences(), MAX_FINDINGS):
        report.add(
            "stream_head",
            f"the head of stream {head.stream!r} of {head.tenant!r} is not its last version",
            expected=str(head.last),
            found=str(head.head),
        )


def _check_requests(inspection: Inspection, report: FsckReport, progress: Progress) -> None:
    progress("checking idempotency keys", 0, 0)
    for check in islice(inspection.bad_requests(), MAX_FINDINGS):
        report.add("idempotency_key", f"the idempotency key {check.request.key!r} {check.problem}")
