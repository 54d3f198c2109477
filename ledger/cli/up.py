"""``sla-ledger up``: serve a data directory over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, Protocol

import click
import uvicorn

from api.app import create_app
from ledger.app.ports import Database
from ledger.app.queries import BundleSource, ChainStatus, Health, Queries, Readiness, SchemaState
from ledger.cli.output import note
from ledger.errors import AddressTaken, DataDirectoryInvalid, Unavailable
from ledger.settings import ServerSettings, read_settings

SHUTDOWN_GRACE_S = 5
_BACKLOG = 128


class Dispatcher(Protocol):
    """Works the outbox beside the server."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Returns when the stage at hand is done."""
        ...


class Services(Protocol):
    """What is served; ``ledger.wiring.open_data`` makes it from a data directory."""

    @property
    def database(self) -> Database: ...
    @property
    def queries_bundles(self) -> BundleSource: ...
    @property
    def dispatcher(self) -> Dispatcher: ...

    def chain_status(self) -> ChainStatus: ...

    def schema_state(self) -> SchemaState: ...

    def close(self) -> None: ...


@click.command()
@click.option("--data", "data_dir", metavar="DIR", help="Data directory, as `demo` writes it.  [env: SLA_LEDGER_DATA]")
@click.option("--port", type=int, help="Port; 0 takes a free one.  [env: SLA_LEDGER_PORT; default: 8000]")
@click.option("--host", help="Loopback address to listen on.  [env: SLA_LEDGER_HOST; default: 127.0.0.1]")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text once it serves.")
def up(data_dir: str | None, port: int | None, host: str | None, as_json: bool) -> None:
    """Serve a data directory, read-only, on this machine. Stops cleanly on Ctrl-C or SIGTERM."""
    settings = read_settings(os.environ, data_dir=data_dir, host=host, port=port)
    if not settings.data_dir.is_dir():
        raise DataDirectoryInvalid(
            f"{settings.data_dir} is not a directory; make one with: sla-ledger demo --out {settings.data_dir}",
            path=str(settings.data_dir),
        )
    from ledger.wiring import open_data  # takes seconds, which a mistyped option need not wait for

    serve(settings, lambda: open_data(settings.data_dir, notify=note), as_json=as_json)


def serve(settings: ServerSettings, open_services: Callable[[], Services], *, as_json: bool) -> None:
    """Listen, open the data, serve until SIGINT or SIGTERM, and leave everything closed.

    The address is taken first, so that a second server on one address fails before it opens anything.
    Raises ``AddressTaken``, and what ``open_services`` raises.
    """
    with closing(_listen(settings)) as listener, _stop_signals() as stop, closing(open_services()) as services:
        queries = Queries(services.database, bundles=services.queries_bundles, chain_status=services.chain_status)
        health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
        server = _Server(
            uvicorn.Config(
                create_app(queries, health=health),
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
            )
        )
        stop.server = server
        # The chain is replayed here, before a worker or a request can ask for it.
        readiness, chain = health.check(), services.chain_status()
        services.dispatcher.start()
        try:
            if not stop.asked:
                _announce(settings, f"http://{_authority(listener)}", readiness, chain, as_json=as_json)
                asyncio.run(server.serve(sockets=[listener]))
                if not server.started:
                    raise Unavailable("the server did not start; the lines above say why")
        finally:
            services.dispatcher.stop()


class _Server(uvicorn.Server):
    """uvicorn raises a caught signal again when it is done, which would end this process before it has closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Stop:
    """Remembers that the process was told to stop, and tells the server. A second signal does not wait."""

    def __init__(self) -> None:
        self.asked = False
        self.server: uvicorn.Server | None = None

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        if self.server is not None:
            self.server.force_exit = self.asked
            self.server.should_exit = True
        self.asked = True


@contextmanager
def _stop_signals() -> Iterator[_Stop]:
    stop = _Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(settings: ServerSettings) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressTaken(
            f"cannot listen on {settings.authority} ({error.strerror}): stop what listens there, or choose another "
            "port with --port",
            host=settings.host,
            port=settings.port,
        ) from error
    return listener


def _authority(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _announce(settings: ServerSettings, url: str, readiness: Readiness, chain: ChainStatus, *, as_json: bool) -> None:
    lost = [transaction for transaction in chain["transactions"] if transaction["reason"] is not None]
    if as_json:
        document: dict[str, Any] = {
            "url": url,
            "data": str(settings.data_dir),
            "log_size": readiness.log_size,
            "outbox": {"pending": readiness.outbox_pending, "parked": readiness.outbox_parked},
            "chain": {
                "chain_id": str(chain["chain_id"]),
                "replayed": len(chain["transactions"]) - len(lost),
                "not_replayed": [{"tx_hash": item["tx_hash"], "reason": item["reason"]} for item in lost],
            },
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    total = len(chain["transactions"])
    click.echo(f"Serving {settings.data_dir} at {url} (read-only; Ctrl-C stops it)")
    click.echo(f"  log      {readiness.log_size} events")
    click.echo(f"  outbox   {readiness.outbox_pending} pending, {readiness.outbox_parked} parked")
    click.echo(f"  chain    {total - len(lost)} of {total} stored transactions replayed on the embedded chain")
    for item in lost:
        click.echo(f"           not replayed: {item['purpose']} {item['tx_hash']}: {item['reason']}")
    click.echo(f"  routes   {url}/schema/openapi.json")
