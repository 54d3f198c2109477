"""Blocks of windows: when each is over, and from when on it is sealed (docs/attestation-format.md, section 5)."""

from __future__ import annotations

from ledger.domain.attested import BLOCK_WINDOWS
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS


def block_ends_ns(agreement: Agreement, period: Period, blocks: int) -> tuple[int, ...]:
    """The end of the last window of each block; of a block past the last window, the end of the period."""
    windows = agreement.windows(period)
    ends = []
    for block in range(blocks):
        of_block = windows[block * BLOCK_WINDOWS : (block + 1) * BLOCK_WINDOWS]
        ends.append(of_block[-1].end_ns if of_block else period.interval.end_ns)
    return tuple(ends)


def sealed_from_ns(agreement: Agreement, ends_ns: int, registered_ns: int = 0) -> int:
    """The instant from which a block that ended is sealed: its end and the grace.

    Where it ended before its agreement was registered the grace counts from there, because nobody could hand in facts.
    """
    return max(ends_ns, registered_ns) + agreement.grace_seconds * SECOND_NS
