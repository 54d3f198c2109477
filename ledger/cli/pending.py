"""``sla-ledger pending``: which periods are not closed yet, and what each waits for."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.app.paging import Row
from ledger.app.periods.pending import read_pending
from ledger.cli.opening import chosen_sla, read_by
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import print_json, print_table
from ledger.cli.pages import instant_text
from ledger.wiring.clock import SystemClock

_INSTANTS = {"start_ns": "start", "end_ns": "end", "watermark_ns": "watermark", "until_ns": "until"}
_SAID = {
    "end": "its end",
    "grace": "the end of its grace",
    "watermark": "its source",
    "schedule": "the schedule, it is due",
    "request": "somebody who asks",
}


@click.command(epilog="Exit codes: 0 shown, also where nothing waits; 1 no such agreement; 2 no such data directory.")
@click.argument("sla_id", required=False)
@DATA
@TENANT
@DATABASE
@AS_JSON
def pending(sla_id: str | None, data_dir: Path, tenant: str, database_url: str | None, as_json: bool) -> None:
    """Show the newest periods of agreement SLA_ID (default: the only one) that began and are not closed.

    The watermark is how far the source has declared its facts complete; `sla-ledger close` waits for nothing.
    """
    with read_by(data_dir, database_url, tenant) as tx:
        chosen = chosen_sla(tx.views.agreements(), sla_id, named="as the argument SLA_ID")
        found = read_pending(tx, chosen, now_ns=SystemClock().now_ns())
    if as_json:
        print_json({"sla_id": chosen, "periods": [_document(row) for row in found]})
        return
    if not found:
        click.echo(f"no period of {chosen} that began is open")
        return
    print_table(
        ("period", "source has got to", "waits for", "at the latest"),
        [
            (
                row["period"],
                instant_text(row["watermark_ns"]) or "nothing declared",
                _SAID[row["waits_for"]],
                instant_text(row["until_ns"]) or "-",
            )
            for row in found
        ],
    )


def _document(row: Row) -> dict[str, object]:
    return {_INSTANTS.get(name, name): instant_text(row[name]) if name in _INSTANTS else row[name] for name in row}
