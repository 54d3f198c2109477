"""What was measured beside the requests, as evidence on violations: GPU samples, breaker events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.app.ports import Transaction
from ledger.domain.interval import Interval


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was recorded about a service at the time of a violation.

    ``kind`` is a lowercase word such as ``gpu_sample`` or ``breaker_event``; ``event_id`` names the event that
    recorded it; ``summary`` is for people.
    """

    kind: str
    event_id: str
    at_ns: int
    summary: str


class FindEvidence(Protocol):
    """Looks for what was recorded about a service in an interval, the most telling first."""

    def __call__(self, tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]: ...


def no_evidence(tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]:
    """Where nothing is collected."""
    return ()
