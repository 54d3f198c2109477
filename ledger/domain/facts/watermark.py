"""The watermark: the instant up to which the source of an agreement has declared its facts complete, and from when on a
period may be closed by it.

A period is settled after its end and the grace. Where the terms wait for the watermark (``closing: {when: watermark}``)
the source must also have got past the period's end; one that stays silent is waited for until ``at_latest``, so that a
provider cannot hold a statement back by sending nothing. What is missing then has no data, and coverage decides.

The watermark is the furthest instant declared, and not the first gap: a gap in coverage is a matter of the floor, and
waiting for it would hold up every later statement. A declaration vouches for no time after it was made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.domain.facts.heartbeats import AHEAD_NS
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import HEARTBEATS, OWN_VIOLATIONS
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import RequestLogUnusable


def vouched(declared: Interval | None, handed_in_ns: int) -> Interval | None:
    """What of a declaration was there to be seen when it was handed in, by a clock that may be ``AHEAD_NS`` ahead.

    Raises ``RequestLogUnusable`` where nothing of it was.
    """
    latest_ns = handed_in_ns + AHEAD_NS
    if declared is None:
        return None
    if declared.start_ns >= latest_ns:
        raise RequestLogUnusable(
            f"from: the log is declared complete from {format_instant_ns(declared.start_ns)}, and now it is "
            f"{format_instant_ns(handed_in_ns)}; declare time once it is over",
            field="from",
        )
    return Interval(declared.start_ns, min(declared.end_ns, latest_ns))


@dataclass(slots=True)
class Declared:
    """The furthest instant that each kind of log was declared complete up to."""

    until_ns: dict[str, int] = field(default_factory=dict)

    def take(self, kind: str, end_ns: int, handed_in_ns: int) -> None:
        """A declaration that reaches to ``end_ns``, or a heartbeat of that instant."""
        until_ns = min(end_ns, handed_in_ns + AHEAD_NS)
        self.until_ns[kind] = max(self.until_ns.get(kind, 0), until_ns)

    def watermark_ns(self, agreement: Agreement) -> int | None:
        """Up to where all logs that the agreement counts are declared; None where one of them never was."""
        alive_ns = 0 if agreement.heartbeat_longest_s is None else self.until_ns.get(HEARTBEATS, 0)
        least_ns = min(max(self.until_ns.get(kind, 0), alive_ns) for kind in _kinds(agreement))
        return least_ns or None


def _kinds(agreement: Agreement) -> Iterable[str]:
    return {objective.source.kind for objective in agreement.objectives} - {OWN_VIOLATIONS}


def grace_over_ns(agreement: Agreement, period: Period) -> int:
    """The end of the grace of a period."""
    return period.interval.end_ns + agreement.grace_seconds * SECOND_NS


def closes_by_ns(agreement: Agreement, period: Period) -> int:
    """The instant at which a period is closed at the latest, whatever the source says."""
    waits_s = agreement.closes_at_latest_s
    return grace_over_ns(agreement, period) if waits_s is None else period.interval.end_ns + waits_s * SECOND_NS


def closes_from_ns(agreement: Agreement, period: Period, watermark_ns: int | None) -> int:
    """The instant from which the schedule closes a period, as the watermark stands now."""
    if watermark_ns is not None and watermark_ns >= period.interval.end_ns:
        return grace_over_ns(agreement, period)
    return closes_by_ns(agreement, period)
