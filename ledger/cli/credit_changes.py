"""``sla-ledger credits``: the lines of what is owed, taking one back, and saying that billing has booked it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.paging import Row, Starts, page_of, place_of
from ledger.cli.opening import read_by, who
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import print_json, print_table
from ledger.cli.pages import (
    LISTED,
    PageAsked,
    amount_document,
    amount_text,
    instant_text,
    paged,
    starting,
    tell_of_more,
)
from ledger.domain.credits.credit_lines import LineStatus
from ledger.errors import BadInput
from ledger.wiring.clock import SystemClock
from ledger.wiring.data_directory import open_data_directory

MAX_REASON = 500
MAX_REFERENCE = 200
_SAME = (
    *("statement_id", "sla_id", "customer", "period", "objective", "violation_id", "status", "reverses"),
    *("reversed_by", "reason"),
)
_CHANGED = "Exit codes: 0 done, now or before; 1 refused as the line stands, or there is none; 2 bad usage."
LINE = click.argument("line_id", metavar="LINE")
REQUEST = click.option("--request", metavar="KEY", help="Names the request: again under the same key it is done once.")


@click.group("credits")
def credit_lines() -> None:
    """List credit lines, take one back, mark one booked. `export-credits` writes them to a file."""


@credit_lines.command("list", epilog=LISTED)
@DATA
@click.option("--statement", metavar="ID", help="Only of this statement.")
@click.option("--status", type=click.Choice([str(status) for status in LineStatus]), help="Only of this status.")
@starting
@paged
@TENANT
@DATABASE
@AS_JSON
def list_lines(
    asked: PageAsked,
    starts: Starts,
    data_dir: Path,
    statement: str | None,
    status: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """List credit lines and reversal entries by the start of their period; their sum is what is owed."""
    with read_by(data_dir, database_url, tenant) as tx:
        rows = tx.views.credit_lines(
            sla_ids=asked.only(tx),
            statement_id=statement,
            status=status,
            after=starts.place(place_of(asked.after, tx.views.credit_line)),
            before_ns=starts.to_ns,
            limit=asked.limit + 1,
        )
    page = page_of(rows, asked.limit, "id")
    if as_json:
        print_json({"items": [line_document(row) for row in page.rows], "next": page.last_id})
        return
    lines_table(page.rows)
    tell_of_more(page)


@credit_lines.command(epilog=_CHANGED)
@LINE
@DATA
@click.option("--reason", required=True, metavar="TEXT", help="Why; it stays in the log for good.")
@REQUEST
@TENANT
@DATABASE
@AS_JSON
def reverse(
    line_id: str,
    data_dir: Path,
    reason: str,
    request: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Take LINE back whole, by an entry of its negative amount. A reversal is not taken back."""
    _require_text("--reason", reason, MAX_REASON)
    key = _key(request)
    with open_data_directory(data_dir, database_url=database_url) as data:
        desk = CreditDesk(data.database, SystemClock()).of_tenant(tenant)
        made = desk.reverse(line_id, reason=reason, request=key, by=who())
    if as_json:
        print_json({"request": key, "entry": line_document(made)})
        return
    click.echo(f"{line_id} is taken back by {made['line_id']}: {amount_text(made)}, {made['status']}")


@credit_lines.command(epilog=_CHANGED)
@LINE
@DATA
@click.option("--reference", required=True, metavar="TEXT", help="Under which billing booked it.")
@REQUEST
@TENANT
@DATABASE
@AS_JSON
def apply(
    line_id: str,
    data_dir: Path,
    reference: str,
    request: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Say that billing has booked LINE, or a reversal entry. A draft waits for its statement's proof."""
    _require_text("--reference", reference, MAX_REFERENCE)
    key = _key(request)
    with open_data_directory(data_dir, database_url=database_url) as data:
        desk = CreditDesk(data.database, SystemClock()).of_tenant(tenant)
        made = desk.apply(line_id, reference=reference, request=key, by=who())
    if as_json:
        print_json({"request": key, "line": line_document(made)})
        return
    click.echo(f"{line_id} is {made['status']} under {reference}: {amount_text(made)}")


def lines_table(rows: Sequence[Row]) -> None:
    """Credit lines for people."""
    print_table(
        ("line", "objective", "violation", "amount", "status", "takes back", "booked under"),
        [
            (
                row["id"],
                row["objective"] or "-",
                row["violation_id"] or "-",
                amount_text(row),
                row["status"],
                row["reverses"] or "",
                row["billing"]["reference"] if row["billing"] else "",
            )
            for row in rows
        ],
    )


def line_document(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line as JSON shows it: a row of a list, or what a change made of it."""
    billing = line["billing"]
    return {
        "id": line["id"] if "id" in line else line["line_id"],
        **{name: line[name] for name in _SAME},
        "restates": line.get("restates"),
        "credit": amount_document(line),
        "billing": billing
        and {"reference": billing["reference"], "at": instant_text(billing["at_ns"]), "by": billing["by"]},
        **{name: line[name] for name in ("proof_ref", "anchor_tx") if name in line},
    }


def _key(request: str | None) -> str:
    if request is None:
        return os.urandom(16).hex()
    if not (0 < len(request) <= 100 and request.isascii() and request.isprintable() and " " not in request):
        raise BadInput("--request is 1 to 100 printable ASCII characters without spaces", option="--request")
    return request


def _require_text(option: str, text: str, most: int) -> None:
    if not 1 <= len(text) <= most:
        raise BadInput(f"{option} has 1 to {most} characters, this one has {len(text)}", option=option)
