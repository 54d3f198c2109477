"""``sla-ledger outbox``: what is still to be done, and what was given up."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.app.ports.outbox import OutboxEntry
from ledger.app.work.outbox import Stage
from ledger.cli.options import AS_JSON, DATA, DATABASE
from ledger.cli.output import print_json, print_table
from ledger.domain.time.instant import format_instant_ns
from ledger.wiring.data_directory import open_data_directory

STATES = ("parked", "pending", "done")
MAX_SHOWN = 1000


@click.group()
def outbox() -> None:
    """Look at the work that follows events, and retry what was parked."""


@outbox.command("list", epilog="Exit codes: 0 listed; 2 no such data directory.")
@DATA
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Default: parked and pending.")
@click.option("--limit", type=click.IntRange(1, MAX_SHOWN), default=100, show_default=True, help="How many.")
@DATABASE
@AS_JSON
def list_command(data_dir: Path, states: tuple[str, ...], limit: int, database_url: str | None, as_json: bool) -> None:
    """List stages of events with their attempts and last error, in the order in which they were queued."""
    with (
        open_data_directory(data_dir, database_url=database_url) as data,
        data.database.read() as tx,
    ):
        entries = tx.outbox.entries(states=states or STATES[:2], limit=limit)
    if as_json:
        print_json({"items": [_document(entry) for entry in entries]})
        return
    rows = [
        (
            entry.event_id,
            entry.stage,
            entry.state,
            str(entry.attempts),
            entry.tenant,
            entry.holder or "",
            entry.error or "",
        )
        for entry in entries
    ]
    print_table(("event", "stage", "state", "attempts", "tenant", "worked by", "last error"), rows)


@outbox.command(epilog="Exit codes: 0 due again; 1 not parked, or never queued.")
@click.argument("event_id", metavar="EVENT")
@click.argument("stage", type=click.Choice([str(stage) for stage in Stage]))
@DATA
@DATABASE
@AS_JSON
def retry(event_id: str, stage: str, data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Make a parked stage due again, with all its attempts. Mend first what its error says."""
    with (
        open_data_directory(data_dir, database_url=database_url) as data,
        data.database.begin() as tx,
    ):
        tx.outbox.retry(event_id, stage)
    if as_json:
        print_json({"event_id": event_id, "stage": stage, "state": "pending"})
        return
    click.echo(f"{stage} of {event_id} is due again")


def _document(entry: OutboxEntry) -> dict[str, object]:
    return {
        "event_id": entry.event_id,
        "tenant": entry.tenant,
        "stage": entry.stage,
        "state": entry.state,
        "attempts": entry.attempts,
        # Work that was never handed out is due since the beginning.
        "due_at": format_instant_ns(entry.due_at_ns) if entry.due_at_ns else None,
        "holder": entry.holder,
        "error": entry.error,
    }
