"""The server process: one address, one data directory, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any, Protocol, TypeAlias

import uvicorn

from api.app import create_app
from api.auth.guests import GuestTokens
from api.auth.rate import RateLimit
from api.auth.setup import make_authentication
from api.desks import Desks
from api.receiving import Intake
from api.witness import WitnessApp
from ledger.app.access import DEFAULT_TENANT
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.bundles.tlog import PublicLog
from ledger.app.chain.status import ChainStatus
from ledger.app.commands import Commands
from ledger.app.log.witness import Witness
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Randomness
from ledger.app.reading.queries import BundleSource, Queries
from ledger.app.reading.readiness import Health, Readiness, SchemaState
from ledger.app.webhooks.desk import WebhookDesk
from ledger.domain.time.instant import Clock
from ledger.errors import AddressTaken, Unavailable
from ledger.settings import ServerSettings

SHUTDOWN_GRACE_S = 5
_BACKLOG = 128

Announce: TypeAlias = Callable[[str, Readiness, ChainStatus], None]
"""Tells people (URL, readiness, chain after its replay)."""


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
    def bundles(self) -> BundleSource: ...
    @property
    def public_log(self) -> PublicLog: ...
    @property
    def dispatcher(self) -> Dispatcher: ...
    @property
    def attestor(self) -> Attestor: ...
    @property
    def commands(self) -> Commands: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def randomness(self) -> Randomness: ...
    @property
    def webhooks_private(self) -> bool: ...

    def guest_seed(self) -> bytes:
        """The secret that guest tokens are signed with."""
        ...

    def chain_status(self) -> ChainStatus: ...

    def schema_state(self) -> SchemaState: ...

    def close(self) -> None: ...


def serve(settings: ServerSettings, open_services: Callable[[], Services], announce: Announce) -> None:
    """Listen, open the data, serve until SIGINT or SIGTERM, and leave everything closed.

    ``announce`` is told once, when requests are about to be answered. The address is taken first, so that a
    second server on one address fails before it opens anything.
    Raises ``AddressTaken``, and what ``open_services`` raises.
    """
    with closing(_listen(settings)) as listener, _stop_signals() as stop, closing(open_services()) as services:
        own = services.database.of_tenant(DEFAULT_TENANT)
        queries = Queries(own, bundles=services.bundles, chain_status=services.chain_status)
        health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
        now_ns = services.clock.now_ns
        guests = GuestTokens(services.guest_seed(), services.database, now_ns, services.randomness)
        desks = Desks(
            queries=queries,
            public_log=services.public_log,
            credit_desk=CreditDesk(own, services.clock),
            webhooks=WebhookDesk(own, services.clock, services.randomness, plain=services.webhooks_private),
            commands=services.commands,
            intake=Intake(services.database, services.attestor, services.clock, settings.ingest),
        )
        app = create_app(
            desks,
            health=health,
            hosts=settings.auth.hosts,
            authentication=make_authentication(settings.auth, services.database, guests, now_ns),
            rate_limit=RateLimit(settings.auth.rate_per_minute, now_ns),
            guests=guests,
            embed=settings.embed,
        )
        server = _Server(_config(app))
        stop.server = server
        # The chain is replayed here, before a worker or a request can ask for it.
        readiness, chain = health.check(), services.chain_status()
        services.dispatcher.start()
        # All that is loaded stays. The collector would look through it again and again while rows are read.
        gc.freeze()
        try:
            if not stop.asked:
                announce(f"http://{_authority(listener)}", readiness, chain)
                asyncio.run(server.serve(sockets=[listener]))
                if not server.started:
                    raise Unavailable("the server did not start; the lines above say why")
        finally:
            services.dispatcher.stop()


def serve_witness(settings: ServerSettings, witness: Witness, announce: Callable[[str], None]) -> None:
    """Serve a witness until SIGINT or SIGTERM. ``announce`` is told the URL once. Raises ``AddressTaken``."""
    with closing(_listen(settings)) as listener, _stop_signals() as stop:
        server = _Server(_config(WitnessApp(witness)))
        stop.server = server
        announce(f"http://{_authority(listener)}")
        asyncio.run(server.serve(sockets=[listener]))
        if not server.started:
            raise Unavailable("the witness did not start; the lines above say why")


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # The process says where its log goes (ledger.wiring.logs); the edge tells of requests.
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        # Nothing here starts or stops with the application, and a second signal would end its wait with a traceback.
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
    )


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
