"""``sla-ledger up``: serve a data directory over HTTP until it is told to stop."""

from __future__ import annotations

import importlib
import json
import os
from contextlib import ExitStack
from functools import partial
from typing import Any

import click

from ledger.app.chain.status import ChainStatus
from ledger.app.reading.readiness import Readiness
from ledger.cli.output import going_on, note
from ledger.errors import DataDirectoryInvalid
from ledger.settings import AuthMode, LogFormat, ServerSettings, WorkerSettings, read_settings

_MODES = {
    AuthMode.LOCAL: "local: whoever reaches this port is the operator; keys narrow that",
    AuthMode.REQUIRED: "required: every route that is not public needs credentials",
}
SERVER = "api.server"
"""Found by its name, as subcommands are: command line and API are strangers to each other."""
DASHBOARD = "/dashboard"


@click.command(
    epilog="Exit codes: 0 stopped by Ctrl-C or SIGTERM; 1 the database cannot be reached; 2 a setting or the data "
    "directory cannot be used, or the port is taken."
)
@click.option("--data", "data_dir", metavar="DIR", help="Data directory, as `demo` writes it.  [env: SLA_LEDGER_DATA]")
@click.option(
    "--database",
    metavar="URL",
    help="PostgreSQL (postgresql://...) instead of a SQLite file in the data directory.  [env: DATABASE_URL]",
)
@click.option("--port", type=int, help="Port; 0 takes a free one.  [env: SLA_LEDGER_PORT; default: 8000]")
@click.option(
    "--host",
    help="Address to listen on; loopback only unless --auth required.  [env: SLA_LEDGER_HOST; default: 127.0.0.1]",
)
@click.option(
    "--auth",
    type=click.Choice(["local", "required"]),
    help="Whether requests need credentials.  [env: SLA_LEDGER_AUTH; default: local]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text once it serves.")
def up(
    data_dir: str | None, database: str | None, port: int | None, host: str | None, auth: str | None, as_json: bool
) -> None:
    """Serve a data directory, and do the work that is due, unless SLA_LEDGER_BROKER leaves it to workers.

    Stops cleanly on Ctrl-C or SIGTERM.
    """
    settings = read_settings(os.environ, data_dir=data_dir, host=host, port=port, database=database, auth=auth)
    if not settings.data_dir.is_dir():
        raise DataDirectoryInvalid(
            f"{settings.data_dir} is not a directory; make one with: sla-ledger init --data {settings.data_dir}",
            path=str(settings.data_dir),
        )
    from ledger.wiring import open_data  # takes seconds, which a mistyped option need not wait for
    from ledger.wiring.logs import configure_logs, log_notice
    from ledger.wiring.needs import EVERYTHING, SERVER_NEEDS

    configure_logs(settings.log)
    in_text = settings.log.format is not LogFormat.JSON
    notify = note if in_text else log_notice
    serve = importlib.import_module(SERVER).serve
    workers = WorkerSettings.read(os.environ)
    needs = EVERYTHING if workers.broker_url is None else SERVER_NEEDS
    open_services = partial(
        open_data, settings.data_dir, notify=notify, database_url=settings.database_url, workers=workers, needs=needs
    )
    with ExitStack() as opening:
        if in_text:
            # An embedded chain is replayed, which grows with what was recorded on it.
            opening.enter_context(going_on(f"opening {settings.data_dir}"))

        def announce(url: str, readiness: Readiness, chain: ChainStatus) -> None:
            opening.close()
            _announce(settings, url, readiness, chain, as_json=as_json)

        serve(settings, open_services, announce)


def _announce(settings: ServerSettings, url: str, readiness: Readiness, chain: ChainStatus, *, as_json: bool) -> None:
    lost = [transaction for transaction in chain["transactions"] if transaction["reason"] is not None]
    if as_json:
        document: dict[str, Any] = {
            "url": url,
            "dashboard": f"{url}{DASHBOARD}",
            "data": str(settings.data_dir),
            "auth": str(settings.auth.mode),
            "log_size": readiness.log_size,
            "outbox": {"pending": readiness.outbox_pending, "parked": readiness.outbox_parked},
            "chain": {
                "kind": chain["kind"],
                "chain_id": None if chain["chain_id"] is None else str(chain["chain_id"]),
                "replayed": chain["total"] - len(lost),
                "not_replayed": [{"tx_hash": item["tx_hash"], "reason": item["reason"]} for item in lost],
            },
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    click.echo(f"Serving {settings.data_dir} at {url} (Ctrl-C stops it)")
    click.echo(f"  access   {_MODES[settings.auth.mode]}")
    click.echo(f"  log      {readiness.log_size} events")
    click.echo(f"  outbox   {readiness.outbox_pending} pending, {readiness.outbox_parked} parked")
    click.echo(f"  chain    {_chain(chain, len(lost))}")
    for item in lost:
        click.echo(f"           not replayed: {item['purpose']} {item['tx_hash']}: {item['reason']}")
    click.echo(f"  routes   {url}/schema/openapi.json")
    click.echo(f"Dashboard: {url}{DASHBOARD}")


def _chain(chain: ChainStatus, lost: int) -> str:
    total = chain["total"]
    if chain["kind"] == "embedded":
        return f"{total - lost} of {total} stored transactions replayed on the embedded chain"
    if chain["error"] is not None:
        return chain["error"]
    return f"{total} stored transactions on chain {chain['chain_id']}"
