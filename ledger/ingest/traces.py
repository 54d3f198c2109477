"""Trace ids of single rows of a log that is kept: looked up when a violation needs them, not while rows are counted.

A row may carry ``trace_id`` (text), or ``traceparent`` as W3C Trace Context has it
(``00-{trace id}-{span id}-{flags}``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from ledger.errors import TelemetryUnusable
from ledger.ingest.reading import require_shallow

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?", re.ASCII)
_TRACE_ID = re.compile(r"[!-~]{1,128}", re.ASCII)
_NO_TRACE = "0" * 32


def trace_ids(data: bytes, lines: Collection[int]) -> dict[int, str]:
    """Trace ids by line, of those lines (from 1) of an NDJSON log that have one. What is none is left out."""
    if not lines:
        return {}
    last = max(lines)
    text = data.split(b"\n", last)
    found = {}
    for line in lines:
        trace_id = _trace_id(text[line - 1]) if 0 < line <= len(text) else None
        if trace_id is not None:
            found[line] = trace_id
    return found


def _trace_id(line: bytes) -> str | None:
    try:
        require_shallow(line)
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError, TelemetryUnusable):
        return None
    if not isinstance(row, dict):
        return None
    named, parent = row.get("trace_id"), row.get("traceparent")
    if isinstance(named, str) and _TRACE_ID.fullmatch(named):
        return named
    match = _TRACEPARENT.fullmatch(parent) if isinstance(parent, str) else None
    return match[1] if match and match[1] != _NO_TRACE else None
