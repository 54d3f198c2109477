"""Sample logs: NDJSON (``ledger.ingest.ndjson``), one measurement a line, or the counts of many.

A row needs ``sample_id``, ``service`` and ``indicator`` (text) and ``at`` (RFC 3339 with a zone), and says what was
found in one of three ways: ``good`` and ``bad`` (and ``undecided``), ``good`` and ``total``, or a ``value``: a number,
or its decimal text, exact to the last digit. ``evaluator``, ``tokenizer``, ``resource`` and ``trace_id`` are
texts that may be missing. Other keys are free and part of the row's body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import Any, BinaryIO

from ledger.domain.rows.observation import DIGEST_BYTES, Reason, RowRejection, SampleRow
from ledger.domain.terms.indicators import INDICATORS, SAMPLE_INDICATORS
from ledger.ingest.bulk_rows import MAX_ID_CHARS
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, shown, text_of
from ledger.ingest.row_members import MAX_TEXT_CHARS, exact_value, optional_text, required

_SAID = "say good and bad, good and total, or value"


class SampleLog(NdjsonLog[SampleRow, SampleRow]):
    """The rows of one sample log."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name, _row_reader(), lambda _first, _lines: None)

    def __iter__(self) -> Iterator[SampleRow | RowRejection]:
        return self.in_bulk()


def _row_reader() -> Callable[[int, bytes], SampleRow]:
    """Reads one line; raises ``RowUnusable``."""
    decode, read_instant = object_reader(), instant_reader("at")

    def read(number: int, line: bytes) -> SampleRow:
        body, canonical = decode(line)
        required(body, "sample_id", "at", "service", "indicator")
        indicator = text_of(body, "indicator", MAX_TEXT_CHARS)
        if indicator not in SAMPLE_INDICATORS:
            told = "is counted in the request log" if indicator in INDICATORS else "is not known"
            raise RowUnusable(Reason.FIELD_INVALID, "indicator", f"{shown(indicator)} {told}")
        counts, value = _said(body)
        return SampleRow(
            line=number,
            sample_id=text_of(body, "sample_id", MAX_ID_CHARS),
            body_digest=blake2b(canonical, digest_size=DIGEST_BYTES).digest(),
            service=text_of(body, "service", MAX_ID_CHARS),
            at_ns=read_instant(body["at"]),
            indicator=indicator,
            counts=counts,
            value=value,
            evaluator=optional_text(body, "evaluator", MAX_TEXT_CHARS),
            resource=optional_text(body, "resource", MAX_TEXT_CHARS),
            trace_id=optional_text(body, "trace_id", MAX_TEXT_CHARS),
            tokenizer=optional_text(body, "tokenizer", MAX_TEXT_CHARS),
        )

    return read


def _said(body: Mapping[str, Any]) -> tuple[tuple[int, int, int] | None, Fraction | None]:
    """Counts or value. More good than all gives a negative bad, which is refused where counts are judged."""
    fields = {field for field in ("good", "bad", "undecided", "total", "value") if body.get(field) is not None}
    if fields == {"value"}:
        return None, exact_value(body, "value")
    if fields - {"undecided"} == {"good", "bad"}:
        return (_count(body, "good"), _count(body, "bad"), _count(body, "undecided")), None
    if fields - {"undecided"} == {"good", "total"}:
        good, undecided = _count(body, "good"), _count(body, "undecided")
        return (good, _count(body, "total") - good - undecided, undecided), None
    field = next(iter(sorted(fields)), "value")
    raise RowUnusable(Reason.FIELD_INVALID if fields else Reason.FIELD_MISSING, field, _SAID)


def _count(body: Mapping[str, Any], field: str) -> int:
    count = body.get(field)
    if count is None:
        return 0
    if type(count) is not int:
        raise RowUnusable(Reason.FIELD_INVALID, field, f"must be a whole number, not {shown(count)}")
    return count
