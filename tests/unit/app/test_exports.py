"""The CSV for finance: it reconciles to the cent, is whole or refused, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.app.billing.exports import (
    COLUMNS,
    CreditExportReader,
    credit_rows,
    verify_credit_export,
    write_credit_export,
)
from ledger.errors import ExportInvalid
from tests.unit.app.conftest import Desk, log, row
from tests.unit.app.test_credit_lines import failed, finance
from tests.unit.app.test_settling import issue, record


def line(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"s.l{number:04}",
        "statement_id": "s",
        "violation_id": None,
        "sla_id": "0x" + "5a" * 32,
        "customer": "Example Customer",
        "period": "2023-12-19/P1D",
        "objective": None,
        "currency": "USD",
        "minor_units": 1,
        "status": "issued",
        "reverses": None,
        "billing": None,
        "proof_ref": None,
        "anchor_tx": None,
        "line_seq": number,
        **changes,
    }


def written(*rows: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    write_credit_export(rows, out)
    return out.getvalue()


def lines_of(data: bytes) -> list[Mapping[str, str]]:
    return list(CreditExportReader(io.BytesIO(data)).lines())


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20) | st.sampled_from(
    ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''", "a,b", 'a"b', "a\r\nb", "-", "-5"]
)
rows = st.lists(
    st.builds(
        lambda number, customer, reference, currency, units: line(
            number,
            customer=customer,
            billing=reference and {"reference": reference},
            currency=currency,
            minor_units=units,
        ),
        st.integers(1, 9999),
        texts,
        st.none() | texts,
        st.sampled_from(["JPY", "USD", "KWD"]),
        st.integers(-(10**19), 10**19),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(rows)
def test_what_is_read_is_what_was_written(given_rows: list[dict[str, Any]]) -> None:
    data = written(*given_rows)
    found = lines_of(data)
    assert [(each["customer"], each["billing_reference"]) for each in found] == [
        (each["customer"], (each["billing"] or {"reference": ""})["reference"]) for each in given_rows
    ]
    totals = verify_credit_export(io.BytesIO(data))
    assert totals.lines == len(given_rows)
    for currency in {each["currency"] for each in given_rows}:
        mine = [each["minor_units"] for each in given_rows if each["currency"] == currency]
        assert totals.minor_units[currency] == sum(mine)


@settings(max_examples=60)
@given(rows)
def test_a_spreadsheet_finds_no_formula(given_rows: list[dict[str, Any]]) -> None:
    for cells in csv.reader(io.StringIO(written(*given_rows).decode(), newline="")):
        assert len(cells) == len(COLUMNS)
        for cell in cells:
            number = cell.removeprefix("-").replace(".", "", 1)
            assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n") or (number.isascii() and number.isdigit())


def test_the_file_itself() -> None:
    *before, control = written(line(minor_units=-1250, customer="=cmd", status="void")).splitlines(keepends=True)
    assert [each.decode() for each in before] == [
        ",".join(COLUMNS) + "\r\n",
        f'line,s.l0001,s,,0x{"5a" * 32},"\'=cmd",2023-12-19/P1D,,USD,-1250,-12.50,void,,,,,1,,\r\n',
        "total,,,,,,,,USD,-1250,-12.50,,,,,,,1,\r\n",
    ]
    digest = hashlib.sha256(b"".join(before)).hexdigest()
    assert control.decode() == f"control{',' * 17}1,{digest}\r\n"


@pytest.mark.parametrize("cut", [1, 10, 80, 150, 300])
def test_a_file_that_is_cut_off_is_refused(cut: int) -> None:
    data = written(line(1), line(2, currency="JPY"))
    with pytest.raises(ExportInvalid):
        verify_credit_export(io.BytesIO(data[:-cut]))


def test_a_whole_record_that_is_missing_is_noticed() -> None:
    records = written(*(line(number) for number in range(1, 6))).splitlines(keepends=True)
    for gone in range(len(records)):
        with pytest.raises(ExportInvalid):
            verify_credit_export(io.BytesIO(b"".join(records[:gone] + records[gone + 1 :])))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b",USD,100,1.00,", b",USD,101,1.01,"),
        (b",USD,100,1.00,", b",USD,100,9.00,"),
        (b",USD,100,1.00,", b",JPY,100,100,"),
        (b"issued", b"void"),
        (b"Example", b"Sample"),
        (b"total,", b"line,"),
        (b"record,", b"rec,"),
        (b"control,", b"end,"),
        (b"line,s.l0001", b"line,s.l0001,"),
        (b",100,1.00", b",1e2,1.00"),
        (b"issued", b"\xff"),
    ],
)
def test_a_changed_file_is_refused(before: bytes, after: bytes) -> None:
    data = written(line(1, minor_units=100), line(2, minor_units=50))
    assert before in data
    with pytest.raises(ExportInvalid):
        verify_credit_export(io.BytesIO(data.replace(before, after, 1)))


def test_something_after_the_control_record_is_refused() -> None:
    data = written(line())
    with pytest.raises(ExportInvalid, match="follows"):
        verify_credit_export(io.BytesIO(data + data.splitlines(keepends=True)[1]))
    with pytest.raises(ExportInvalid):
        verify_credit_export(io.BytesIO(b""))
    with pytest.raises(ExportInvalid, match="longer"):
        verify_credit_export(io.BytesIO(b"a" * 100_000))


def test_finance_reconciles_to_the_cent(desk: Desk) -> None:
    record(desk, log(failed("a", 3), failed("b", 10), failed("c", 10), row("d", at="2023-06-14T10:00:00Z")))
    statement = issue(desk)
    finance(desk).reverse(f"{statement.id}.l0001", reason="=1+1", request="k1")
    out = io.BytesIO()
    with desk.database.read() as tx:
        totals = write_credit_export(credit_rows(tx), out)
        owed = sum(each["minor_units"] for each in tx.views.credit_lines(limit=100))
    assert verify_credit_export(io.BytesIO(out.getvalue())) == totals
    assert totals.minor_units == {"USD": owed} == {"USD": 266_667}
    assert [each["status"] for each in lines_of(out.getvalue())] == ["void", "void", "draft"]


def test_a_range_takes_the_periods_that_start_in_it(desk: Desk) -> None:
    record(desk, log(failed("a", 3)))
    issue(desk)
    start_ns = desk.period.interval.start_ns
    with desk.database.read() as tx:
        for from_ns, to_ns, count in (
            (start_ns, start_ns + 1, 1),
            (None, start_ns + 1, 1),
            (start_ns, None, 1),
            (start_ns + 1, None, 0),
            (None, start_ns, 0),
        ):
            assert len(list(credit_rows(tx, from_ns=from_ns, to_ns=to_ns))) == count
        assert list(credit_rows(tx, sla_ids=frozenset({"0x" + "00" * 32}))) == []


def test_the_file_in_the_documentation_holds() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "credits.md").read_text()
    (block,) = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    totals = verify_credit_export(io.BytesIO(block.replace("\n", "\r\n").encode()))
    assert (totals.lines, totals.minor_units) == (3, {"USD": 266_667})
