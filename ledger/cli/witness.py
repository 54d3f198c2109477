"""``sla-ledger witness``: watch logs and cosign what extends what was seen (C2SP tlog-witness)."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import click

from ledger.settings import DEFAULT_HOST, ServerSettings

SERVER = "api.server"
"""Found by its name, as subcommands are: command line and API are strangers to each other."""
DEFAULT_PORT = 8001


@click.command(
    epilog="Exit codes: 0 stopped by Ctrl-C or SIGTERM; 2 a key, a name or the directory cannot be used, or the port "
    "is taken."
)
@click.option("--data", "data_dir", type=click.Path(path_type=Path), required=True, help="The witness's own directory.")
@click.option("--log-vkey", "log_vkeys", multiple=True, required=True, help="Key of a log to watch; repeatable.")
@click.option("--name", help="The witness's name, such as witness.example/w1; kept at first use.")
@click.option("--port", type=int, default=DEFAULT_PORT, show_default=True, help="Port; 0 takes a free one.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Loopback address to listen on.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text once it serves.")
def witness(data_dir: Path, log_vkeys: tuple[str, ...], name: str | None, port: int, host: str, as_json: bool) -> None:
    """Run a witness. A rotated log needs the keys of all its sizes that may still be submitted."""
    settings = ServerSettings(data_dir, host, port)
    from ledger.wiring.witness import open_witness

    opened = open_witness(data_dir, log_vkeys, name)

    def announce(url: str) -> None:
        if as_json:
            click.echo(json.dumps({"url": url, "vkey": opened.key.vkey(), "origins": list(opened.origins)}))
            return
        click.echo(f"Witness {opened.key.name} at {url} (Ctrl-C stops it)")
        click.echo(f"  vkey     {opened.key.vkey()}")
        for origin in opened.origins:
            click.echo(f"  watches  {origin}")

    importlib.import_module(SERVER).serve_witness(settings, opened.witness, announce)
