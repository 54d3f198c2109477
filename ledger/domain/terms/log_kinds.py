"""The kinds of logs that facts come in, and how one is told from another by what its rows say."""

from __future__ import annotations

import io
import json

from ledger.domain.terms.nesting import too_deep

REQUESTS, SAMPLES, HEARTBEATS = "requests", "samples", "heartbeats"
OUTAGES, COUNTERS, HISTOGRAMS = "outages", "counters", "histograms"
FORMATS = (REQUESTS, SAMPLES, HEARTBEATS, OUTAGES, COUNTERS, HISTOGRAMS)
OWN_VIOLATIONS = "own_violations"
"""No log: what the ledger itself found."""

_LOOKED_AT_LINES = 100
_LOOKED_AT_BYTES = 1_000_000
_TOLD_BY = (
    (HEARTBEATS, ("heartbeat_id",)),
    (SAMPLES, ("sample_id", "indicator")),
    (OUTAGES, ("outage_id",)),
    (COUNTERS, ("counter", "series")),
    (HISTOGRAMS, ("histogram", "series")),
)


def format_of(data: bytes) -> str:
    """Which log this is, by the keys of the first object among its first lines; a request log where none tells."""
    lines = io.BytesIO(data)
    for line in (lines.readline(_LOOKED_AT_BYTES) for _ in range(_LOOKED_AT_LINES)):
        if too_deep(line):
            continue
        try:
            body = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except ValueError:
            continue
        if isinstance(body, dict) and "request_id" in body and "sample_id" not in body:
            return REQUESTS
        if isinstance(body, dict):
            return next((name for name, keys in _TOLD_BY if all(key in body for key in keys)), REQUESTS)
    return REQUESTS
