"""The facts that settle: a reader for each kind of log (``ledger.domain.terms.log_kinds``), each in its own module."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import BinaryIO

from ledger.domain.facts.feeds import Facts
from ledger.domain.terms.log_kinds import COUNTERS, HEARTBEATS, HISTOGRAMS, OUTAGES, REQUESTS, SAMPLES, format_of
from ledger.ingest.counter_log import CounterLog
from ledger.ingest.heartbeat_log import HeartbeatLog
from ledger.ingest.histogram_log import HistogramLog
from ledger.ingest.outage_list import OutageList
from ledger.ingest.request_log import RequestLog
from ledger.ingest.sample_log import SampleLog

READERS: Mapping[str, Callable[[BinaryIO, str], Facts]] = {
    REQUESTS: lambda stream, name: RequestLog(stream, name).in_bulk(),
    SAMPLES: SampleLog,
    HEARTBEATS: HeartbeatLog,
    OUTAGES: OutageList,
    COUNTERS: CounterLog,
    HISTOGRAMS: HistogramLog,
}


def read_facts(data: bytes, name: str = "batch") -> Facts:
    """The rows of a log, of the kind that its first object tells. Raises ``RequestLogUnusable``."""
    return READERS[format_of(data)](io.BytesIO(data), name)
