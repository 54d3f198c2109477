"""``sla-ledger export-credits``: the credit lines as a file for finance, and the check of such a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ledger.app.billing.exports import ControlTotals, credit_rows, verify_credit_export, write_credit_export
from ledger.app.paging import Starts
from ledger.cli.opening import read_by
from ledger.cli.options import AS_JSON, DATABASE, data_option, is_given
from ledger.cli.output import note, print_json, print_table
from ledger.cli.pages import starting
from ledger.cli.transfer import reading, writing
from ledger.domain.credits.credit_lines import LineStatus
from ledger.domain.money import format_minor_units
from ledger.errors import BadInput

_OWED = (str(LineStatus.DRAFT), str(LineStatus.ISSUED), str(LineStatus.APPLIED))
"""What is owed, by how far billing has got; lines that are void come to nothing together."""


@click.command(
    "export-credits", epilog="Exit codes: 0 written, or FILE is complete; 2 FILE or another input cannot be used."
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@data_option("Data directory to export.", required=False)
@starting
@click.option("--tenant", default="default", show_default=True, help="Whose credit lines.")
@click.option("--verify", is_flag=True, help="Do not write FILE: read it, and hold it to its control totals.")
@DATABASE
@AS_JSON
def export_credits(
    file: Path,
    data_dir: Path | None,
    starts: Starts,
    tenant: str,
    verify: bool,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Write every credit line to FILE as CSV with control totals; `-` is the standard output.

    Reversals stand beside what they take back, so a currency's lines sum to what is owed. docs/credits.md says what
    each column is.
    """
    if verify:
        if is_given("data_dir"):
            raise BadInput("--verify reads FILE alone; leave --data out")
        with reading(file) as source:
            _print("complete", verify_credit_export(source), as_json=as_json)
        return
    if data_dir is None:
        raise BadInput("name the data directory to export with --data, or check a file with --verify")
    with read_by(data_dir, database_url, tenant) as tx:
        rows = credit_rows(tx, from_ns=starts.from_ns, to_ns=starts.to_ns)
        if str(file) == "-":
            totals = write_credit_export(rows, sys.stdout.buffer)
            note(f"{totals.lines} lines, SHA-256 {totals.sha256}")
            return
        with writing(file) as out:
            totals = write_credit_export(rows, out)
    _print(f"wrote {file}", totals, as_json=as_json)


def _print(done: str, totals: ControlTotals, *, as_json: bool) -> None:
    sums = sorted(totals.minor_units.items())
    if as_json:
        found = [
            {"currency": currency, **_amount(units, currency), "by_status": _by_status(totals, currency)}
            for currency, units in sums
        ]
        print_json({"lines": totals.lines, "totals": found, "sha256": totals.sha256})
        return
    click.echo(f"{done}: {totals.lines} lines, SHA-256 {totals.sha256}")
    if sums:
        print_table(
            ("currency", "owed", *_OWED),
            [
                (
                    currency,
                    format_minor_units(units, currency),
                    *(format_minor_units(totals.by_status.get((currency, status), 0), currency) for status in _OWED),
                )
                for currency, units in sums
            ],
        )


def _by_status(totals: ControlTotals, currency: str) -> dict[str, dict[str, str]]:
    return {status: _amount(units, of) for (of, status), units in sorted(totals.by_status.items()) if of == currency}


def _amount(units: int, currency: str) -> dict[str, str]:
    return {"minor_units": str(units), "amount": format_minor_units(units, currency)}
