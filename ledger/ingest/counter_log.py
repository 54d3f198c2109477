"""Counter logs: NDJSON (``ledger.ingest.ndjson``), one reading of one series of a counter a line.

A row needs ``counter`` and ``service`` (text), ``series`` (an object of labels, each a text; none: ``{}``), ``at``
(RFC 3339 with a zone) and ``value``: a number, or its decimal text, exact. ``start`` is when the process began to
count, RFC 3339 with a zone, where that is known. Other keys are free; what a reading says is value and start alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, BinaryIO

from ledger.domain.facts.counter_log import CounterRow
from ledger.domain.rows.observation import DIGEST_BYTES, Reason, RowRejection
from ledger.ingest.bulk_rows import MAX_ID_CHARS
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, text_of
from ledger.ingest.row_members import MAX_TEXT_CHARS, exact_value, required

MAX_LABELS = 50


class CounterLog(NdjsonLog[CounterRow, CounterRow]):
    """The rows of one counter log."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name, _row_reader(), lambda _first, _lines: None)

    def __iter__(self) -> Iterator[CounterRow | RowRejection]:
        return self.in_bulk()


def _row_reader() -> Callable[[int, bytes], CounterRow]:
    """Reads one line; raises ``RowUnusable``."""
    decode, read_at, read_start = object_reader(), instant_reader("at"), instant_reader("start")

    def read(number: int, line: bytes) -> CounterRow:
        body, _ = decode(line)
        required(body, "counter", "series", "at", "service", "value")
        value = exact_value(body, "value")
        start_ns = None if body.get("start") is None else read_start(body["start"])
        return CounterRow(
            line=number,
            counter=text_of(body, "counter", MAX_TEXT_CHARS),
            series=series_of(body),
            body_digest=blake2b(f"{value} {start_ns}".encode(), digest_size=DIGEST_BYTES).digest(),
            service=text_of(body, "service", MAX_ID_CHARS),
            at_ns=read_at(body["at"]),
            value=value,
            start_ns=start_ns,
        )

    return read


def series_of(body: Mapping[str, Any]) -> str:
    """The labels of a series in one spelling; raises ``RowUnusable``."""
    labels = body["series"]
    if type(labels) is not dict or len(labels) > MAX_LABELS:
        raise RowUnusable(Reason.FIELD_INVALID, "series", f"must be an object of at most {MAX_LABELS} labels")
    for name, value in labels.items():
        if type(value) is not str or len(value) > MAX_ID_CHARS:
            raise RowUnusable(
                Reason.FIELD_INVALID, f"series.{name[:40]}", f"must be text of at most {MAX_ID_CHARS} characters"
            )
    return json.dumps(labels, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
