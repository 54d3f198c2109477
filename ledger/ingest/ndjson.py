"""NDJSON logs: one JSON object a line, read as a stream in bounded memory, every row by itself.

Blank lines, CRLF and one UTF-8 byte order mark are fine. What makes the file unusable as a whole raises
``RequestLogUnusable``: nothing in it, no line a JSON object, a line over 1 MB, a last line that is neither
ended nor JSON (the file was cut off). Anything else is one row's ``RowRejection``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.terms.nesting import MAX_DEPTH, too_deep
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.errors import InstantInvalid, RequestLogUnusable

MAX_LINE_BYTES = 1_000_000
# Every IEEE 754 double is within it; beyond, a number could not be written out in bounded memory.
MAX_EXPONENT = 400
READ_BYTES = 256 * 1024

# Rows are read in this context. It has more digits than a line has, so nothing is ever rounded.
EXACT = Context(prec=2 * MAX_LINE_BYTES, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SECONDS_NS = {f"{second:02}.": second * SECOND_NS for second in range(60)}
_FRACTION_NS: tuple[int, ...] = tuple(10 ** (9 - digits) for digits in range(10))
_CACHED_MINUTES = 10_000
_BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"

R = TypeVar("R")
C = TypeVar("C")


class RowUnusable(Exception):
    """What is wrong with one row; becomes its ``RowRejection``."""

    def __init__(self, reason: Reason, field: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.field, self.message = reason, field, message


class NdjsonLog(Generic[R, C]):
    """The rows of one NDJSON stream, in order. Iterate once, over it or ``in_bulk``; ``name`` stands in messages.

    ``read_row`` reads a line and raises ``RowUnusable``; ``read_many`` reads many at once, or gives None where they
    have to be read one by one. Both are called in the exact decimal context.
    ``bytes_read`` tells how far the stream is, for progress.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        read_row: Callable[[int, bytes], R],
        read_many: Callable[[int, Sequence[bytes]], C | None],
    ) -> None:
        self.name = name
        self.bytes_read = 0
        self._stream = stream
        self._line = 0
        self._objects = 0
        self._first_problem = ""
        self._read_row = read_row
        self._read_many = read_many

    def in_bulk(self) -> Iterator[R | RowRejection | C]:
        """The rows, plain ones many at a time."""
        for lines, ended in self._chunks():
            with localcontext(EXACT):
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
        if chunk.lstrip(BLANK).startswith(b"["):
            raise self._unusable(1, "the file starts with a JSON list; write one object a line (NDJSON)")
        return chunk

    def _rows(self, lines: list[bytes], ended: bool) -> list[R | RowRejection]:
        rows: list[R | RowRejection] = []
        read_row = self._read_row
        with localcontext(EXACT):
            for number, line in enumerate(lines, self._line + 1):
                try:
                    rows.append(read_row(number, line))
                    self._objects += 1
                except RowUnusable as problem:
                    if not line.strip(BLANK):
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


def object_reader() -> Callable[[bytes], tuple[dict[str, Any], bytes]]:
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
        if too_deep(line):
            raise RowUnusable(Reason.MALFORMED, "", f"nests deeper than {MAX_DEPTH} levels")
        try:
            body = decode(line)
        except msgspec.ValidationError as error:
            # Not a syntax error: a number that the hook or the decoder refuses.
            raise RowUnusable(Reason.FIELD_INVALID, "", str(error).partition(" - at ")[0]) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise RowUnusable(Reason.MALFORMED, "", str(error)) from None
        if type(body) is not dict:
            raise RowUnusable(Reason.NOT_AN_OBJECT, "", f"must be a JSON object, not {shown(body)}")
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
        raise ValueError(f"the number {shown(text)} is out of range") from None
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"the number {shown(text)} is out of range")
    return int(value) if value == value.to_integral_value() else value


def _refuse_lost_keys(line: bytes, canonical: bytes) -> None:
    # Every quote of a line comes back in the canonical bytes, except those of lost keys and values;
    # only an escape (quote as backslash, u, 0022) brings one that was not there.
    if line.count(b'"') != canonical.count(b'"') or b"\\u" in line:
        try:
            json.loads(line, object_pairs_hook=_refuse_repeated_keys)
        except (ValueError, RecursionError) as error:
            raise RowUnusable(Reason.MALFORMED, "", str(error)) from None


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise RowUnusable(Reason.DUPLICATE_KEY, key, "stands twice in one object")
        seen.add(key)


def instant_reader(field: str) -> Callable[[Any], int]:
    """Reads the time of a row, which stands in ``field``. A log names few minutes many times, so they are kept."""
    minutes_ns: dict[str, int] = {}

    def read(text: Any) -> int:
        if type(text) is not str:
            raise RowUnusable(Reason.TIME_INVALID, field, f"must be an RFC 3339 time, not {shown(text)}")
        minute_ns, second_ns = minutes_ns.get(text[:17]), _SECONDS_NS.get(text[17:20])
        if minute_ns is not None and second_ns is not None and text[-1] == "Z":
            fraction = text[20:-1]
            if len(fraction) <= 9 and fraction.isdigit() and fraction.isascii():
                return minute_ns + second_ns + int(fraction) * _FRACTION_NS[len(fraction)]
        try:
            instant_ns = parse_instant_ns(text)
        except InstantInvalid as error:
            raise RowUnusable(Reason.TIME_INVALID, field, error.message) from None
        if text[-1] == "Z" and text[10] == "T":
            if len(minutes_ns) >= _CACHED_MINUTES:
                minutes_ns.clear()
            minutes_ns[text[:17]] = instant_ns - instant_ns % (60 * SECOND_NS)
        return instant_ns

    return read


def text_of(body: Mapping[str, Any], field: str, most: int) -> str:
    """The text that stands in ``field``, of 1 to ``most`` characters; raises ``RowUnusable``."""
    text = body[field]
    if type(text) is not str or not 0 < len(text) <= most:
        raise RowUnusable(Reason.FIELD_INVALID, field, f"must be text of 1 to {most} characters")
    return text


def shown(value: Any) -> str:
    shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    return shown if len(shown) <= 40 else shown[:37] + "..."
