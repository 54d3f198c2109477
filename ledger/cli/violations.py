"""``sla-ledger violations``: where a promise was broken, listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.paging import Row, page_of, place_of
from ledger.cli.objectives import counts_text
from ledger.cli.opening import read_by
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import print_json, print_table
from ledger.cli.pages import LISTED, PageAsked, amount_document, amount_text, instant_text, paged, tell_of_more
from ledger.domain.terms.indicators import REQUESTS

STATES = ("open", "closed", "withdrawn")
_SAME = (
    *("id", "sla_id", "service", "period", "objective", "indicator", "state", "revision", "clause", "unit"),
    *("first_window", "windows", "good", "valid", "bad", "worst", "ended_by", "reason"),
)


@click.group()
def violations() -> None:
    """List violations: runs of windows that broke a promise."""


@violations.command("list", epilog=LISTED)
@DATA
@click.option("--state", type=click.Choice(STATES), help="Only of this state.")
@click.option("--objective", metavar="ID", help="Only of this objective.")
@paged
@TENANT
@DATABASE
@AS_JSON
def list_violations(
    asked: PageAsked,
    data_dir: Path,
    state: str | None,
    objective: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """List violations by their start, with the clause each breaks, its evidence and its credit."""
    with read_by(data_dir, database_url, tenant) as tx:
        place = place_of(asked.after, tx.views.violation)
        rows = tx.views.violations(
            sla_ids=asked.only(tx), state=state, objective=objective, after=place, limit=asked.limit + 1
        )
    page = page_of(rows, asked.limit, "id")
    if as_json:
        print_json({"items": [_document(row) for row in page.rows], "next": page.last_id})
        return
    print_table(
        ("violation", "state", "from", "to", "windows", "good/valid", "clause", "credit"),
        [
            (
                row["id"],
                row["state"],
                str(instant_text(row["start_ns"])),
                str(instant_text(row["end_ns"])),
                str(row["windows"]),
                counts_text(row["good"], row["valid"], 0, row["unit"] or REQUESTS),
                row["clause"] or "-",
                amount_text(row["credit"]),
            )
            for row in page.rows
        ],
    )
    tell_of_more(page)


def _document(row: Row) -> dict[str, Any]:
    evidence = row["evidence"]
    return {
        **{name: row[name] for name in _SAME},
        "start": instant_text(row["start_ns"]),
        "end": instant_text(row["end_ns"]),
        "target_percent": row["target"],
        "evidence": {**evidence, **{kind: [_dated(each) for each in evidence.get(kind, ())] for kind in _DATED}},
        "credit": amount_document(row["credit"]),
    }


_DATED = ("requests", "signals")
"""What of the evidence happened at an instant, each with its own."""


def _dated(each: Row) -> dict[str, Any]:
    return {**{name: each[name] for name in each if name != "at_ns"}, "at": instant_text(each["at_ns"])}
