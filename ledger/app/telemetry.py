"""What was measured beside the requests, as evidence on violations: GPU samples, breaker events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.app.ports import Transaction
from ledger.domain.interval import Interval


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sample or event that fits a violation by service and time.

    ``kind`` is a lowercase word such as ``gpu_sample`` or ``breaker_event``; ``source`` who reported it; ``digest``
    the SHA-256 of the raw batch it stands in, if it is kept; ``facts`` what it shows, as texts.
    """

    kind: str
    source: str
    at_ns: int
    digest: str | None
    facts: Mapping[str, str]


class FindEvidence(Protocol):
    """Looks for evidence of a service within an interval, by time."""

    def __call__(self, tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]: ...


def no_evidence(tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]:
    """Where nothing is collected."""
    return ()
