"""Heartbeats: how the source of an agreement with ``coverage: heartbeat`` shows that it was alive and recording.

A heartbeat says of the ``covers_s`` seconds that end at its instant that every request and every sample of them is in
the source's logs. It looks back, because nobody knows what he will have recorded. Time that no heartbeat and no
declared span of a batch covers has no data, with or without rows: a row proves that one request came, and not that no
other one was lost while the collector was down. Covered time without rows is idle.

An id that comes with several bodies covers what all of them cover, in the period that is judged: so the order in which
heartbeats come, and how they are cut into batches, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.instant import SECOND_NS, format_instant_ns
from ledger.domain.interval import Interval, clip, union
from ledger.domain.observation import HeartbeatRow, HeartbeatRows, Reason, RowRejection
from ledger.domain.window_inputs import Batch

AHEAD_NS = 60 * SECOND_NS
"""How far the clock of a collector may be ahead of the ledger's."""


def refused(agreement: Agreement, row: HeartbeatRow, handed_in_ns: int) -> RowRejection | None:
    """Why a heartbeat says nothing to an agreement: of another service, where coverage is shown otherwise, longer than
    agreed, or of a time that had not come when it was handed in."""
    longest_s = agreement.heartbeat_longest_s
    if row.service != agreement.service:
        message = f"{row.service[:80]!r} is not the service {agreement.service!r}"
        return RowRejection(row.line, Reason.OTHER_SERVICE, "service", message)
    if longest_s is None:
        message = "the agreement shows coverage by complete_log: declare the span of the log instead"
        return RowRejection(row.line, Reason.NO_HEARTBEATS, "heartbeat_id", message)
    if row.covers_s > longest_s:
        message = f"covers {row.covers_s} s, and the agreement takes at most {longest_s} s (source.heartbeat)"
        return RowRejection(row.line, Reason.HEARTBEAT_TOO_LONG, "covers_s", message)
    if row.at_ns > handed_in_ns + AHEAD_NS:
        message = f"is later than its handing in at {format_instant_ns(handed_in_ns)}; send it when it has come"
        return RowRejection(row.line, Reason.IN_THE_FUTURE, "at", message)
    return None


class HeartbeatBook:
    """Takes heartbeats in any order; says which time of one period they cover."""

    def __init__(self, agreement: Agreement, period: Period) -> None:
        self._agreement = agreement
        self._period = period.interval
        self._found: dict[str, Interval | None] = {}
        self._ids: dict[str, set[str]] = {}

    def add_all(self, rows: HeartbeatRows, *, handed_in_ns: int, batch: str = "") -> Iterator[RowRejection]:
        """Take the heartbeats of one batch; those that cannot be used come back. One that does not reach into the
        period is passed over."""
        ids = self._ids.setdefault(batch, set())
        for row in rows:
            if isinstance(row, RowRejection):
                yield row
            elif (why := refused(self._agreement, row, handed_in_ns)) is not None:
                yield why
            elif clip(row.interval, self._period) is not None:
                self._take(row)
                ids.add(row.heartbeat_id)

    def __len__(self) -> int:
        """How many ids it holds."""
        return len(self._found)

    @property
    def spans(self) -> list[Interval]:
        """What is covered, one interval for each id; some of them may reach out of the period."""
        return [interval for interval in self._found.values() if interval is not None]

    def batches(self) -> list[Batch]:
        """The batches that show the time to be covered; no count of a window stands on them."""
        return [
            Batch(digest, (), union(span for each in ids if (span := self._found[each]) is not None))
            for digest, ids in self._ids.items()
        ]

    def _take(self, row: HeartbeatRow) -> None:
        # With one body again this is the interval it was; with another, what both say.
        known = self._found.get(row.heartbeat_id, row.interval)
        self._found[row.heartbeat_id] = None if known is None else clip(known, row.interval)
