"""A day of a feed, handed in batch by batch and judged, in the time of a processor: what ``settle_run`` has of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.app.judgement.windows import evaluate_windows
from ledger.domain.time.instant import DAY_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.ingest.facts import read_facts
from ledger.store.database import SqliteDatabase
from tests.unit.app.feeding import desk_of, hand

FEW, MANY = 50, 800
Rows = Callable[[int, str, str], list[dict[str, Any]]]


def _counters(at: int, _start: str, end: str) -> list[dict[str, Any]]:
    row = {"series": {"pod": "a"}, "at": end, "service": "example-chat"}
    return [{"counter": "total", **row, "value": 100 * at}, {"counter": "bad", **row, "value": at}]


def _outages(at: int, start: str, end: str) -> list[dict[str, Any]]:
    return [{"outage_id": f"outage {at}", "from": start, "to": end, "service": "example-chat"}]


_COUNTED = {"indicator": "error_rate", "source": "counters", "counters": {"total": "total", "bad": "bad"}}
_FEEDS: dict[str, tuple[dict[str, Any], Rows]] = {
    "errors": (_COUNTED, _counters),
    "uptime": ({"indicator": "availability", "source": "outages"}, _outages),
}


def feed_ms(count: int) -> float:
    """A counter log and an outage list, each in so many batches of a day. Ends the run where a day comes to anything
    but its rows."""
    return sum(_feed_ms(name, *feed, count) for name, feed in _FEEDS.items())


def _feed_ms(name: str, promised: dict[str, Any], rows: Rows, count: int) -> float:
    of = desk_of([{"id": name, "method": "total_ratio", "target": "99", **promised}], coverage_floor="1")
    start_ns, step_ns = of.period.interval.start_ns, DAY_NS // count
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "ledger.db", of.clock, of.randomness)
        of.database = database  # type: ignore[assignment]
        registered, started_s = of.register(), time.process_time()
        for at in range(count):
            span = Interval(start_ns + at * step_ns, start_ns + (at + 1) * step_ns)
            hand(of, *rows(at, format_instant_ns(span.start_ns), format_instant_ns(span.end_ns)), complete=span)
        with database.begin() as tx:
            judged = evaluate_windows(tx, registered, of.period, read_rows=read_facts)
        took_s = time.process_time() - started_s
        database.close()
    cells = [window.cells[0] for window in judged.windows]
    found = {"errors": sum(cell.valid for cell in cells) == 100 * (count - 1), "uptime": not sum(c.good for c in cells)}
    if len(judged.inputs) != count or not found[name]:
        raise SystemExit(f"{name}: not every batch counts; the figure would mean nothing")
    return took_s * 1000
