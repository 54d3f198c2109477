"""How long service took to come back: violations as samples of the indicator ``recovery_time``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ledger.domain.time.instant import SECOND_NS
from ledger.domain.violations.violation import Violation


class RecoverySample(NamedTuple):
    """One recovery: the seconds it took, at the instant service was back. The id is the same whoever works it out."""

    sample_id: str
    at_ns: int
    seconds: Fraction


def recovery_samples(violations: Sequence[Violation]) -> tuple[RecoverySample, ...]:
    """From violation opened to closed, of all that are closed: one that is open has not been recovered from."""
    return tuple(
        RecoverySample(
            sample_id=f"recovery-{each.objective.id}-{each.interval.start_ns}",
            at_ns=each.interval.end_ns,
            seconds=Fraction(each.interval.duration_ns, SECOND_NS),
        )
        for each in violations
        if not each.open
    )
