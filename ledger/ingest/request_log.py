"""Request logs: NDJSON, one JSON object a line, read as a stream in bounded memory.

A row needs ``request_id`` (text), ``started_at`` (RFC 3339 with a zone), ``service`` (text) and ``error_code``
(null: succeeded; an integer: failed). ``ttft_s`` and ``e2e_s`` are seconds until the first token and until the
end; a succeeded row needs both above 0, because logs write 0 where nothing was measured and a request that
took no time would count as fast. In a failed row they may be null, missing or 0. A latency that is there must
be a number from 0 to 10^7 in any row. Other keys are free (formats grow) and part of the row's body; three of them,
``input_tokens``, ``model`` and ``region``, are read by agreements that ask for them (``ledger.domain.terms.where``).

Blank lines, CRLF and one UTF-8 byte order mark are fine. What makes the file unusable as a whole raises
``RequestLogUnusable``: nothing in it, no line a JSON object, a line over 1 MB, a last line that is neither
ended nor JSON (the file was cut off). Anything else is one row's ``RowRejection``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from ledger.domain.rows.observation import DIGEST_BYTES, Reason, RequestColumns, RequestRow, RowRejection, one_by_one
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import RequestLogUnusable
from ledger.ingest.bulk_rows import MAX_ID_CHARS, MAX_LATENCY_NS, bulk_reader
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, shown

_NS_PER_SECOND = Decimal(SECOND_NS)

Row = RequestRow | RowRejection

# What RequestRow(...) calls, without its keyword handling: a tenth of the time of a row.
_new_row = tuple.__new__


class RequestLog(NdjsonLog[RequestRow, RequestColumns]):
    """The rows of one request log (``NdjsonLog``)."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        read_instant = instant_reader("started_at")
        super().__init__(stream, name, _row_reader(read_instant), bulk_reader(read_instant, RowUnusable))

    def __iter__(self) -> Iterator[Row]:
        return one_by_one(self.in_bulk())


def open_request_log(path: Path) -> BinaryIO:
    """Open a log for reading; raises ``RequestLogUnusable`` naming the file."""
    try:
        return path.open("rb")
    except OSError as error:
        raise RequestLogUnusable(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error


def _row_reader(read_instant: Callable[[Any], int]) -> Callable[[int, bytes], RequestRow]:
    """Reads one line; raises ``RowUnusable``. A closure, because a log has millions of lines."""
    decode = object_reader()

    def read(number: int, line: bytes) -> RequestRow:
        body, canonical = decode(line)
        try:
            request_id, service, error_code = body["request_id"], body["service"], body["error_code"]
            started_at_ns = read_instant(body["started_at"])
        except KeyError as error:
            raise RowUnusable(Reason.FIELD_MISSING, error.args[0], "is missing") from None
        if type(request_id) is not str or not 0 < len(request_id) <= MAX_ID_CHARS:
            raise RowUnusable(Reason.FIELD_INVALID, "request_id", f"must be text of 1 to {MAX_ID_CHARS} characters")
        if type(service) is not str:
            raise RowUnusable(Reason.FIELD_INVALID, "service", f"must be text, not {shown(service)}")
        if error_code is not None and type(error_code) is not int:
            raise RowUnusable(
                Reason.FIELD_INVALID, "error_code", f"must be null or a whole number, not {shown(error_code)}"
            )
        first_token_ns = _latency_ns("ttft_s", body.get("ttft_s"))
        response_ns = _latency_ns("e2e_s", body.get("e2e_s"))
        if error_code is None and not (first_token_ns and response_ns):
            field = "e2e_s" if first_token_ns else "ttft_s"
            raise RowUnusable(Reason.LATENCY_MISSING, field, "a succeeded request needs a latency above 0")
        digest = blake2b(canonical, digest_size=DIGEST_BYTES).digest()
        said = (number, request_id, digest, service, started_at_ns, error_code, first_token_ns, response_ns, canonical)
        return _new_row(RequestRow, said)

    return read


def _latency_ns(field: str, seconds: object) -> int | None:
    """Whole nanoseconds, rounded up; exact under the context the rows are read in."""
    if seconds is None:
        return None
    if type(seconds) is not Decimal and type(seconds) is not int:
        raise RowUnusable(Reason.FIELD_INVALID, field, f"must be a number of seconds or null, not {shown(seconds)}")
    latency_ns: int = math.ceil(seconds * _NS_PER_SECOND)
    if latency_ns <= 0 and seconds < 0:
        raise RowUnusable(Reason.LATENCY_NEGATIVE, field, f"{shown(seconds)} is negative")
    if latency_ns > MAX_LATENCY_NS:
        raise RowUnusable(
            Reason.LATENCY_OUT_OF_RANGE, field, f"{shown(seconds)} is more than {MAX_LATENCY_NS // SECOND_NS} seconds"
        )
    return latency_ns
