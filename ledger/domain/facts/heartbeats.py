"""Heartbeats: how the source of an agreement with ``coverage: heartbeat`` shows that it was alive and recording.

A heartbeat says of the ``covers_s`` seconds that end at its instant that every request and every sample of them is in
the source's logs. It looks back, because nobody knows what he will have recorded. Time that no heartbeat and no
declared span of a batch covers has no data, with or without rows: a row proves that one request came, and not that no
other one was lost while the collector was down. Covered time without rows is idle.

An id that comes with several bodies covers what any of them covers: a source that could take back what it said would
have bad windows without data, or a whole period withheld, by contradicting itself once it knows how they went. And
whoever wants to cover more needs no old id for it. So the order in which heartbeats come, and how they are cut into
batches, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.domain.rows.observation import HeartbeatRow, HeartbeatRows, Reason, RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval, clip, union
from ledger.domain.windows.window_inputs import Batch

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
        self._of_batch: dict[str, set[Interval]] = {}

    def add_all(self, rows: HeartbeatRows, *, handed_in_ns: int, batch: str = "") -> Iterator[RowRejection]:
        """Take the heartbeats of one batch; those that cannot be used come back. One that does not reach into the
        period is passed over."""
        covered = self._of_batch.setdefault(batch, set())
        for row in rows:
            if isinstance(row, RowRejection):
                yield row
            elif (why := refused(self._agreement, row, handed_in_ns)) is not None:
                yield why
            elif clip(row.interval, self._period) is not None:
                covered.add(row.interval)

    def __len__(self) -> int:
        """How many heartbeats it holds."""
        return sum(map(len, self._of_batch.values()))

    @property
    def spans(self) -> list[Interval]:
        """What is covered, heartbeat by heartbeat; some of them may reach out of the period."""
        return sorted(set[Interval]().union(*self._of_batch.values()), key=lambda each: (each.start_ns, each.end_ns))

    def batches(self) -> list[Batch]:
        """The batches that show the time to be covered; no count of a window stands on them."""
        return [Batch(digest, (), union(spans)) for digest, spans in self._of_batch.items()]
