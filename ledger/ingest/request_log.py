"""Request logs: NDJSON, one JSON object a line, read as a stream in bounded memory.

A row needs ``request_id`` (text), ``started_at`` (RFC 3339 with a zone), ``service`` (text) and ``error_code``
(null: succeeded; an integer: failed). ``ttft_s`` and ``e2e_s`` are seconds until the first token and until the
end; a succeeded row needs both above 0, because logs write 0 where nothing was measured and a request that
took no time would count as fast. In a failed row they may be null, missing or 0. A latency that is there must
be a number from 0 to 10^7 in any row. Other keys are free (formats grow) and part of the row's body.

Blank lines, CRLF and one UTF-8 byte order mark are fine. What makes the file unusable as a whole raises
``RequestLogUnusable``: nothing in it, no line a JSON object, a line over 1 MB, a last line that is neither
ended nor JSON (the file was cut off). Anything else is one row's ``RowRejection``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ledger.domain.instant import SECOND_NS, parse_instant_ns
from ledger.domain.observation import DIGEST_BYTES, Reason, RequestColumns, RequestRow, RowRejection, one_by_one
from ledger.errors import InstantInvalid, RequestLogUnusable
from ledger.ingest.bulk_rows import MAX_ID_CHARS, MAX_LATENCY_NS, bulk_reader
from ledger.ingest.reading import MAX_DEPTH, depth

MAX_LINE_BYTES = 1_000_000
# Every IEEE 754 double is within it; beyond, a number could not be written out in bounded memory.
MAX_EXPONENT = 400
READ_BYTES = 256 * 1024

# Rows are read in this context. It has more digits than a line has, so nothing is ever rounded.
_EXACT = Context(prec=2 * MAX_LINE_BYTES, Emin=MIN_EMIN, Emax=MAX_EMAX)
_NS_PER_SECOND = Decimal(SECOND_NS)
_SECONDS_NS = {f"{second:02}.": second * SECOND_NS for second in range(60)}
_FRACTION_NS: tuple[int, ...] = tuple(10 ** (9 - digits) for digits in range(10))
_CACHED_MINUTES = 10_000
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"

Row = RequestRow | RowRejection

# What RequestRow(...) calls, without its keyword handling: a tenth of the time of a row.
_new_row = tuple.__new__


class _Unusable(Exception):
    """What is wrong with one row; becomes its ``RowRejection``."""

    def __init__(self, reason: Reason, field: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.field, self.message = reason, field, message


class RequestLog:
    """The rows of one NDJSON stream, in order. Iterate once, over it or ``in_bulk``; ``name`` stands in messages.

    ``bytes_read`` tells how far the stream is, for progress.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self.bytes_read = 0
        self._stream = stream
        self._line = 0
        self._objects = 0
        self._first_problem = ""
        read_instant = _instant_reader()
        self._read_row = _row_reader(read_instant)
        self._read_many = bulk_reader(read_instant, _Unusable)

    def __iter__(self) -> Iterator[Row]:
        return one_by_one(self.in_bulk())

    def in_bulk(self) -> Iterator[Row | RequestColumns]:
        """The same rows, plain ones many at a time."""
        for lines, ended in self._chunks():
            with localcontext(_EXACT):
                plain = self._read_many(self._line + 1, lines)
            if plain is None:
                yield from self._rows(lines, ended)
            else:
                self._line += len(lines)
                self._objects += len(lines)
                yield plain
        if self._objects == 0:
            found = f"no line is a JSON object ({self._first_problem})" if self._first_problem else "the file is empty"
            raise self._unusable(1, f"{found}; write one JSON object a line (NDJSON)")

    def _chunks(self) -> Iterator[tuple[list[bytes], bool]]:
        """Lists of whole lines; the flag is False for a last line without a line end."""
        rest = b""
        while chunk := self._read_chunk():
            if self.bytes_read == 0:
                chunk = self._without_mark(chunk)
            self.bytes_read += len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            # Only the first line can hold more than one chunk, and only the rest can grow.
            for at, line in ((self._line + 1, lines[0] if lines else b""), (self._line + len(lines) + 1, rest)):
                if len(line) > MAX_LINE_BYTES:
                    raise self._unusable(at, f"the line is longer than {MAX_LINE_BYTES} bytes; is this NDJSON?")
            yield lines, True
        if rest:
            yield [rest], False

    def _read_chunk(self) -> bytes:
        try:
            return self._stream.read(READ_BYTES)
        except OSError as error:
            raise self._unusable(self._line + 1, f"cannot be read any further: {error.strerror}") from error

    def _without_mark(self, chunk: bytes) -> bytes:
        chunk = chunk.removeprefix(_BOM)
        if chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self._unusable(1, "the file is UTF-16; write it as UTF-8")
        if chunk.startswith(b"\x1f\x8b"):
            raise self._unusable(1, "the file is compressed with gzip; unpack it first")
        if chunk.lstrip(_BLANK).startswith(b"["):
            raise self._unusable(1, "the file starts with a JSON list; write one object a line (NDJSON)")
        return chunk

    def _rows(self, lines: list[bytes], ended: bool) -> list[Row]:
        rows: list[Row] = []
        read_row = self._read_row
        with localcontext(_EXACT):
            for number, line in enumerate(lines, self._line + 1):
                try:
                    rows.append(read_row(number, line))
                    self._objects += 1
                except _Unusable as problem:
                    if not line.strip(_BLANK):
                        continue
                    if problem.reason is Reason.MALFORMED and not ended:
                        raise self._unusable(
                            number, f"the last line is cut off ({problem.message}); copy the file again"
                        ) from None
                    self._objects += problem.reason not in (Reason.MALFORMED, Reason.NOT_AN_OBJECT)
                    self._first_problem = self._first_problem or f"line {number}: {problem.message}"
                    rows.append(RowRejection(number, problem.reason, problem.field, problem.message))
        self._line += len(lines)
        return rows

    def _unusable(self, line: int, message: str) -> RequestLogUnusable:
        return RequestLogUnusable(f"{self.name}:{line}: {message}", file=self.name, line=line)


def open_request_log(path: Path) -> BinaryIO:
    """Open a log for reading; raises ``RequestLogUnusable`` naming the file."""
    try:
        return path.open("rb")
    except OSError as error:
        raise RequestLogUnusable(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error


def _row_reader(read_instant: Callable[[Any], int]) -> Callable[[int, bytes], RequestRow]:
    """Reads one line; raises ``_Unusable``. A closure, because a log has millions of lines."""
    decode = _decoder()

    def read(number: int, line: bytes) -> RequestRow:
        body, canonical = decode(line)
        try:
            request_id, service, error_code = body["request_id"], body["service"], body["error_code"]
            started_at_ns = read_instant(body["started_at"])
        except KeyError as error:
            raise _Unusable(Reason.FIELD_MISSING, error.args[0], "is missing") from None
        if type(request_id) is not str or not 0 < len(request_id) <= MAX_ID_CHARS:
            raise _Unusable(Reason.FIELD_INVALID, "request_id", f"must be text of 1 to {MAX_ID_CHARS} characters")
        if type(service) is not str:
            raise _Unusable(Reason.FIELD_INVALID, "service", f"must be text, not {_shown(service)}")
        if error_code is not None and type(error_code) is not int:
            raise _Unusable(
                Reason.FIELD_INVALID, "error_code", f"must be null or a whole number, not {_shown(error_code)}"
            )
        first_token_ns = _latency_ns("ttft_s", body.get("ttft_s"))
        response_ns = _latency_ns("e2e_s", body.get("e2e_s"))
        if error_code is None and not (first_token_ns and response_ns):
            field = "e2e_s" if first_token_ns else "ttft_s"
            raise _Unusable(Reason.LATENCY_MISSING, field, "a succeeded request needs a latency above 0")
        digest = blake2b(canonical, digest_size=DIGEST_BYTES).digest()
        values = (number, request_id, digest, service, started_at_ns, error_code, first_token_ns, response_ns)
        return _new_row(RequestRow, values)

    return read


def _decoder() -> Callable[[bytes], tuple[dict[str, Any], bytes]]:
    """Reads a line's object and its canonical bytes: sorted keys, and one spelling per number (0.80 is 0.8)."""
    respelled = False

    def number(text: str) -> Decimal | int:
        """A JSON number with a fraction or exponent in the one form its value has."""
        if text[-1] != "0" and "e" not in text and "E" not in text:
            return Decimal(text)
        nonlocal respelled
        respelled = True
        return _normal_number(text)

    decode = msgspec.json.Decoder(float_hook=number).decode
    encode = msgspec.json.Encoder(order="sorted", decimal_format="number").encode

    def read(line: bytes) -> tuple[dict[str, Any], bytes]:
        nonlocal respelled
        respelled = False
        # The decoder recurses in C as deep as a document nests, which ends the process where the stack ends.
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH and depth(line) > MAX_DEPTH:
            raise _Unusable(Reason.MALFORMED, "", f"nests deeper than {MAX_DEPTH} levels")
        try:
            body = decode(line)
        except msgspec.ValidationError as error:
            # Not a syntax error: a number that the hook or the decoder refuses.
            raise _Unusable(Reason.FIELD_INVALID, "", str(error).partition(" - at ")[0]) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _Unusable(Reason.MALFORMED, "", str(error)) from None
        if type(body) is not dict:
            raise _Unusable(Reason.NOT_AN_OBJECT, "", f"must be a JSON object, not {_shown(body)}")
        canonical = encode(body)
        # The decoder keeps the last of two equal keys without a word. Encoding never makes text longer, except
        # numbers that were respelled; so a line that kept its length lost no key.
        if len(canonical) != len(line) or respelled:
            _refuse_lost_keys(line, canonical)
        return body, canonical

    return read


def _normal_number(text: str) -> Decimal | int:
    try:
        value = Decimal(text).normalize()
    except InvalidOperation:
        raise ValueError(f"the number {_shown(text)} is out of range") from None
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"the number {_shown(text)} is out of range")
    return int(value) if value == value.to_integral_value() else value


def _refuse_lost_keys(line: bytes, canonical: bytes) -> None:
    # Every quote of a line comes back in the canonical bytes, except those of lost keys and values;
    # only an escape (quote as backslash, u, 0022) brings one that was not there.
    if line.count(b'"') != canonical.count(b'"') or b"\\u" in line:
        try:
            json.loads(line, object_pairs_hook=_refuse_repeated_keys)
        except (ValueError, RecursionError) as error:
            raise _Unusable(Reason.MALFORMED, "", str(error)) from None


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Unusable(Reason.DUPLICATE_KEY, key, "stands twice in one object")
        seen.add(key)


def _latency_ns(field: str, seconds: object) -> int | None:
    """Whole nanoseconds, rounded up; exact under the context the rows are read in."""
    if seconds is None:
        return None
    if type(seconds) is not Decimal and type(seconds) is not int:
        raise _Unusable(Reason.FIELD_INVALID, field, f"must be a number of seconds or null, not {_shown(seconds)}")
    latency_ns: int = math.ceil(seconds * _NS_PER_SECOND)
    if latency_ns <= 0 and seconds < 0:
        raise _Unusable(Reason.LATENCY_NEGATIVE, field, f"{_shown(seconds)} is negative")
    if latency_ns > MAX_LATENCY_NS:
        raise _Unusable(
            Reason.LATENCY_OUT_OF_RANGE, field, f"{_shown(seconds)} is more than {MAX_LATENCY_NS // SECOND_NS} seconds"
        )
    return latency_ns


def _instant_reader() -> Callable[[Any], int]:
    """Reads ``started_at``. A log names few minutes many times, so their values are kept."""
    minutes_ns: dict[str, int] = {}

    def read(text: Any) -> int:
        if type(text) is not str:
            raise _Unusable(Reason.TIME_INVALID, "started_at", f"must be an RFC 3339 time, not {_shown(text)}")
        minute_ns, second_ns = minutes_ns.get(text[:17]), _SECONDS_NS.get(text[17:20])
        if minute_ns is not None and second_ns is not None and text[-1] == "Z":
            fraction = text[20:-1]
            if len(fraction) <= 9 and fraction.isdigit() and fraction.isascii():
                return minute_ns + second_ns + int(fraction) * _FRACTION_NS[len(fraction)]
        try:
            instant_ns = parse_instant_ns(text)
        except InstantInvalid as error:
            raise _Unusable(Reason.TIME_INVALID, "started_at", error.message) from None
        if text[-1] == "Z" and text[10] == "T":
            if len(minutes_ns) >= _CACHED_MINUTES:
                minutes_ns.clear()
            minutes_ns[text[:17]] = instant_ns - instant_ns % (60 * SECOND_NS)
        return instant_ns

    return read


def _shown(value: Any) -> str:
    shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    return shown if len(shown) <= 40 else shown[:37] + "..."
