"""Credit lines as a CSV file (RFC 4180) with control totals, and the reader that holds a file to them.

One record a line, then for each currency a ``total`` record, then one ``control`` record: how many lines there are, and
the SHA-256 of every byte before it. Amounts stand in minor units and in the currency's own, below zero where a line
takes another one back; the sum of a currency's lines is what is owed.

No cell is taken for a formula by a spreadsheet: a text that begins with ``=``, ``+``, ``-``, ``@``, a tab, a line end
or an apostrophe gets an apostrophe before it, which ``read_credit_export`` takes off again. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from ledger.app.ports.store import Transaction
from ledger.domain.money import format_minor_units
from ledger.errors import ExportInvalid

COLUMNS: Final = (
    "record",
    "line_id",
    "statement_id",
    "violation_id",
    "agreement",
    "customer",
    "period",
    "objective",
    "currency",
    "minor_units",
    "amount",
    "status",
    "reverses",
    "billing_reference",
    "proof_hash",
    "anchor_tx",
    "log_seq",
    "records",
    "sha256",
)
MEDIA_TYPE: Final = "text/csv; header=present"
MAX_RECORD_BYTES: Final = 65_536

_PAGE = 500
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, slots=True)
class ControlTotals:
    """What a file comes to: lines, minor units by currency and status, digest of everything before the control
    record."""

    lines: int
    by_status: Mapping[tuple[str, str], int]
    sha256: str

    @property
    def minor_units(self) -> Mapping[str, int]:
        """The sum of each currency, as its ``total`` record states it."""
        return _by_currency(self.by_status)


def credit_rows(
    tx: Transaction,
    *,
    sla_ids: frozenset[str] | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Every credit line of the periods that start in [from, to), by start and id, page by page."""
    # Ids are not empty, so this place lies before every line that starts then.
    after = None if from_ns is None else (from_ns, "")
    while page := tx.views.credit_lines(sla_ids=sla_ids, after=after, before_ns=to_ns, limit=_PAGE):
        yield from page
        after = page[-1]["start_ns"], page[-1]["id"]


def write_credit_export(rows: Iterable[Mapping[str, Any]], out: IO[bytes]) -> ControlTotals:
    """Write a file, record by record; its control totals."""
    digest = hashlib.sha256()
    sums: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()

    def write(**cells: Any) -> None:
        record = _record(["" if (cell := cells.get(name)) is None else _safe(str(cell)) for name in COLUMNS])
        digest.update(record)
        out.write(record)

    header = _record(list(COLUMNS))
    digest.update(header)
    out.write(header)
    for row in rows:
        currency, units = row["currency"], row["minor_units"]
        sums[currency, str(row["status"])] += units
        counts[currency] += 1
        write(
            record="line",
            line_id=row["id"],
            statement_id=row["statement_id"],
            violation_id=row["violation_id"],
            agreement=row["sla_id"],
            customer=row["customer"],
            period=row["period"],
            objective=row["objective"],
            currency=currency,
            minor_units=units,
            amount=format_minor_units(units, currency),
            status=row["status"],
            reverses=row["reverses"],
            billing_reference=row["billing"] and row["billing"]["reference"],
            proof_hash=row["proof_ref"],
            anchor_tx=row["anchor_tx"],
            log_seq=row["line_seq"],
        )
    for currency, units in sorted(_by_currency(sums).items()):
        amount = format_minor_units(units, currency)
        write(record="total", currency=currency, minor_units=units, amount=amount, records=counts[currency])
    totals = ControlTotals(counts.total(), dict(sums), digest.hexdigest())
    write(record="control", records=totals.lines, sha256=totals.sha256)
    return totals


class CreditExportReader:
    """Reads a file and holds it to its control totals.

    Use nothing of the lines before ``totals`` is there: only then is it known that the file is whole and unchanged.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self.totals: ControlTotals | None = None
        self._source = source
        self._digest = hashlib.sha256()
        self._sums: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[str] = Counter()
        self._stated: dict[str, tuple[int, int]] = {}

    def lines(self) -> Iterator[Mapping[str, str]]:
        """The lines as texts by column. Raises ``ExportInvalid`` where the file is cut off, changed, or contradicts
        its control totals."""
        number = 0
        for number, raw in enumerate(_records(self._source), 1):
            if self.totals is not None:
                raise _invalid(number, "something follows the control record")
            cells = _cells(raw, number)
            if number == 1:
                if tuple(cells) != COLUMNS:
                    raise _invalid(1, "the header is not that of an export of credit lines")
            else:
                record = dict(zip(COLUMNS, map(_plain, cells), strict=True))
                if record["record"] == "line" and not self._stated:
                    self._add(record, number)
                    yield record
                elif record["record"] == "total":
                    self._take_total(record, number)
                elif record["record"] == "control":
                    self._close(record, number)
                else:
                    raise _invalid(number, f"a record {record['record'][:20]!r} has no place here")
            self._digest.update(raw)
        if self.totals is None:
            raise _invalid(number + 1, "the control record is missing: the file is cut off")

    def _add(self, record: Mapping[str, str], number: int) -> None:
        units, currency = _whole(record["minor_units"], number), record["currency"]
        if record["amount"] != format_minor_units(units, currency):
            raise _invalid(number, f"{record['amount'][:40]} is not {units} minor units of {currency}")
        self._sums[currency, record["status"]] += units
        self._counts[currency] += 1

    def _take_total(self, record: Mapping[str, str], number: int) -> None:
        if record["currency"] in self._stated:
            raise _invalid(number, f"a second total of {record['currency'][:10]}")
        self._stated[record["currency"]] = _whole(record["records"], number), _whole(record["minor_units"], number)

    def _close(self, record: Mapping[str, str], number: int) -> None:
        sums = _by_currency(self._sums)
        found = {currency: (count, sums[currency]) for currency, count in self._counts.items()}
        if self._stated != found:
            raise _invalid(number, f"the totals are stated as {self._stated}, and the lines sum to {found}")
        lines, digest = self._counts.total(), self._digest.hexdigest()
        if _whole(record["records"], number) != lines or record["sha256"] != digest:
            raise _invalid(number, f"the control record does not fit the {lines} lines of SHA-256 {digest}")
        self.totals = ControlTotals(lines, dict(self._sums), digest)


def verify_credit_export(source: IO[bytes]) -> ControlTotals:
    """The control totals of a file that was read whole, and hold. Raises ``ExportInvalid``."""
    reader = CreditExportReader(source)
    for _ in reader.lines():
        pass
    if reader.totals is None:
        raise _invalid(0, "the file has no control record")
    return reader.totals


def _by_currency(sums: Mapping[tuple[str, str], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (currency, _), units in sums.items():
        found[currency] = found.get(currency, 0) + units
    return found


def _record(cells: Iterable[str]) -> bytes:
    return (",".join(map(_quoted, cells)) + "\r\n").encode()


def _quoted(cell: str) -> str:
    if cell.startswith("'") or any(character in cell for character in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell


def _plain(cell: str) -> str:
    return cell.removeprefix("'")


def _records(source: IO[bytes]) -> Iterator[bytes]:
    """Records as bytes with their line end; one goes on after a line end within quotes."""
    record = b""
    while line := source.readline(MAX_RECORD_BYTES):
        record += line
        if len(record) > MAX_RECORD_BYTES or not line.endswith(b"\n"):
            raise ExportInvalid(f"a record is cut off or longer than {MAX_RECORD_BYTES} bytes", line=record[:40])
        if record.count(b'"') % 2 == 0:
            yield record
            record = b""
    if record:
        raise ExportInvalid("the file ends within quotes: it is cut off", line=record[:40])


def _cells(raw: bytes, number: int) -> list[str]:
    try:
        cells = next(csv.reader(io.StringIO(raw.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise _invalid(number, f"it is no CSV in UTF-8 ({error})") from error
    if len(cells) != len(COLUMNS):
        raise _invalid(number, f"{len(cells)} cells instead of {len(COLUMNS)}")
    return cells


def _whole(text: str, number: int) -> int:
    if len(text) > 40 or not re.fullmatch(r"-?[0-9]+", text, re.ASCII):
        raise _invalid(number, f"{text[:40]!r} is not a whole number")
    return int(text)


def _invalid(number: int, why: str) -> ExportInvalid:
    return ExportInvalid(f"record {number}: {why}; take the file from its source again", line=number)
