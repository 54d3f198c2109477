"""Histogram logs: NDJSON (``ledger.ingest.ndjson``), one reading of one series of a latency histogram a line.

A row is that of a counter log (``ledger.ingest.counter_log``) with ``histogram`` for ``counter``, and ``buckets`` for
``value``: an object of cumulative counts by their bounds, decimal texts in seconds, and ``+Inf`` for all. Bounds are
numbers: ``1`` and ``1.0`` are one. Or it has a ``sketch`` of what came since the one before it: ``alpha`` as decimal
text, and ``values``, an object of counts by the seconds that the sketch shows, as decimal texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import Any, BinaryIO

from ledger.domain.facts.histogram import Histogram
from ledger.domain.facts.histogram_log import HistogramRow, Sketch
from ledger.domain.rows.observation import DIGEST_BYTES, Reason, RowRejection
from ledger.errors import ImplausibleCounts
from ledger.ingest.bulk_rows import MAX_ID_CHARS
from ledger.ingest.counter_log import series_of
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, shown, text_of
from ledger.ingest.row_members import MAX_TEXT_CHARS, exact_value, required

MAX_BUCKETS = 500
MAX_SHOWN_VALUES = 5_000


class HistogramLog(NdjsonLog[HistogramRow, HistogramRow]):
    """The rows of one histogram log."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name, _row_reader(), lambda _first, _lines: None)

    def __iter__(self) -> Iterator[HistogramRow | RowRejection]:
        return self.in_bulk()


def _row_reader() -> Callable[[int, bytes], HistogramRow]:
    """Reads one line; raises ``RowUnusable``."""
    decode, read_at, read_start = object_reader(), instant_reader("at"), instant_reader("start")

    def read(number: int, line: bytes) -> HistogramRow:
        body, _ = decode(line)
        required(body, "histogram", "series", "at", "service")
        if ("buckets" in body) == ("sketch" in body):
            raise RowUnusable(Reason.FIELD_INVALID, "buckets", "say buckets or sketch, one of the two")
        buckets, sketch = (_buckets(body), None) if "buckets" in body else ((), _sketch(body["sketch"]))
        start_ns = None if body.get("start") is None else read_start(body["start"])
        said = f"{sketch or _as_numbers(buckets)} {start_ns}"
        return HistogramRow(
            line=number,
            histogram=text_of(body, "histogram", MAX_TEXT_CHARS),
            series=series_of(body),
            body_digest=blake2b(said.encode(), digest_size=DIGEST_BYTES).digest(),
            service=text_of(body, "service", MAX_ID_CHARS),
            at_ns=read_at(body["at"]),
            buckets=buckets,
            start_ns=start_ns,
            sketch=sketch,
        )

    return read


def _buckets(body: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    said = body["buckets"]
    if type(said) is not dict or not 0 < len(said) <= MAX_BUCKETS:
        raise RowUnusable(Reason.FIELD_INVALID, "buckets", f"must be an object of 1 to {MAX_BUCKETS} counts")
    for bound, count in said.items():
        if type(count) is not int:
            message = f"must be a whole number, not {shown(count)}"
            raise RowUnusable(Reason.FIELD_INVALID, f"buckets.{bound[:40]}", message)
    return tuple(sorted(said.items()))


def _sketch(said: Any) -> Sketch:
    if type(said) is not dict or set(said) != {"alpha", "values"}:
        raise RowUnusable(Reason.FIELD_INVALID, "sketch", "must be an object of alpha and values")
    values = said["values"]
    if type(values) is not dict or len(values) > MAX_SHOWN_VALUES:
        message = f"must be an object of at most {MAX_SHOWN_VALUES} counts"
        raise RowUnusable(Reason.FIELD_INVALID, "sketch.values", message)
    shown_values: dict[Fraction, int] = {}
    for value, count in values.items():
        if type(count) is not int:
            message = f"must be a whole number, not {shown(count)}"
            raise RowUnusable(Reason.FIELD_INVALID, f"sketch.values.{value[:40]}", message)
        exact = exact_value({"sketch.values": value}, "sketch.values")
        shown_values[exact] = shown_values.get(exact, 0) + count
    return Sketch(exact_value(said, "alpha"), tuple(sorted(shown_values.items())))


def _as_numbers(buckets: tuple[tuple[str, int], ...]) -> str:
    """One spelling for what the buckets say; as they were written where they cannot be read."""
    try:
        found = Histogram.of(buckets)
    except ImplausibleCounts:
        return str(buckets)
    return f"{[str(bound) for bound in found.bounds]} {found.counts} {found.total}"
