"""``sla-ledger chain roots`` and ``record``: the batches of each chain, and recording what was left at its root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.chain.batch_trail import since_formed
from ledger.app.chain.recording import demand_recording
from ledger.cli.opening import opened
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.domain.events.batch_events import BATCH_FINALIZED, BATCH_FORMED, BATCH_PUBLISHED
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import batches_stream
from ledger.wiring.data_directory import open_data_directory

SHOWN = 20
_STATES = {
    "formed": "to be published",
    "published": "published",
    "undone": "undone, to be published again",
    "finalized": "final",
}


@click.command(
    short_help="Show the last batches of each chain.",
    epilog="Exit codes: 0 shown; 1 the database cannot be reached; 2 a setting or the data directory cannot be used.",
)
@DATA
@DATABASE
@click.option("--now", is_flag=True, help="First form a batch of what waits under the newest signed checkpoint.")
@AS_JSON
def roots(data_dir: Path, database_url: str | None, now: bool, as_json: bool) -> None:
    """Show the last 20 batches of the home chain and of each further chain, newest last.

    With --now what waits is put into a batch for each chain whose last one is published. Whoever works the outbox, `up`
    or the workers, publishes it.
    """
    with opened(data_dir, database_url) as services:
        formed = services.batches.form_due(at_once=True) if now else 0
        found = {}
        with services.database.read() as tx:
            for target in services.batches.targets:
                found[target] = _documents(since_formed(tx, batches_stream(target), batches=SHOWN))
    if as_json:
        print_json({"formed": formed, "batches": found})
        return
    if now:
        note(f"formed: {formed}")
    print_table(
        ("chain", "batch", "statements", "log size", "state", "transaction"),
        [
            (
                target,
                str(each["number"]),
                str(each["statements"]),
                str(each["size"]),
                _STATES[each["state"]],
                each["published"]["tx_hash"] if each["published"] else "-",
            )
            for target, batches in found.items()
            for each in batches
        ],
    )


def _documents(events: list[StoredEvent]) -> list[dict[str, Any]]:
    """A document for each batch that was formed in a stretch of a target's stream."""
    names = ("chain_id", "registry", "issuer", "tx_hash", "block_number", "block_hash", "confirmations")
    newest = {event.payload["number"]: event for event in events}
    placed = {
        number: event.payload for number, event in newest.items() if event.type in (BATCH_PUBLISHED, BATCH_FINALIZED)
    }
    return [
        {
            **{name: event.payload[name] for name in ("number", "from_seq", "until_seq", "size", "root")},
            **{name: event.payload[name] for name in ("batch_root", "node")},
            "statements": len(event.payload["leaves"]),
            "state": newest[event.payload["number"]].type.removeprefix("batch_"),
            "published": {name: where[name] for name in names}
            if (where := placed.get(event.payload["number"])) is not None
            else None,
        }
        for event in events
        if event.type == BATCH_FORMED
    ]


@click.command(
    short_help="Have a statement checked and recorded.",
    epilog="Exit codes: 0 queued, or recorded before; 1 it has no proof, or is not proved yet; 2 a setting or the data "
    "directory cannot be used.",
)
@click.argument("statement_id", metavar="STATEMENT")
@DATA
@TENANT
@DATABASE
@AS_JSON
def record(statement_id: str, data_dir: Path, tenant: str, database_url: str | None, as_json: bool) -> None:
    """Have the registry check and record STATEMENT, where SLA_LEDGER_RECORD=on-demand left it at its batch root.

    So are the statements before it that the registry takes first: of earlier periods, and versions that it replaces.
    Whoever works the outbox, `up` or the workers, sends them.
    """
    with open_data_directory(data_dir, database_url=database_url) as data:
        queued = demand_recording(data.database.of_tenant(tenant), statement_id)
    if as_json:
        print_json({"statement_id": statement_id, "queued": list(queued)})
    elif queued:
        click.echo("\n".join(queued))
        note(f"{len(queued)} statement(s) are recorded as soon as the chain is worked")
    else:
        note(f"{statement_id} is recorded already")
