"""The tasks: one for each stage, all the same function. A task knows which work it was told of, and nothing else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection
from typing import Protocol

from celery import Celery
from celery.signals import worker_process_init, worker_process_shutdown

from ledger.app.ports.store import Database
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import SlaLedgerError, Unavailable
from ledger.settings import WorkerSettings
from ledger.workers.celery_app import sender, task_name
from ledger.workers.relay import Relay


class WorkerServices(Protocol):
    """What a worker needs of a data directory; ``ledger.wiring.Services`` has it."""

    @property
    def database(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def runner(self) -> OutboxRunner: ...
    @property
    def workers(self) -> WorkerSettings: ...

    def warm_provers(self) -> None: ...

    def close(self) -> None: ...


class Bench:
    """What a worker process works with, opened in each process of its own.

    Not before the fork: neither a database connection nor a thread outlives it.
    """

    def __init__(self, open_services: Callable[[], WorkerServices], app: Celery, stages: Collection[str]) -> None:
        self._open_services = open_services
        self._app = app
        self._stages = stages
        self._opening = threading.Lock()
        self._opened: tuple[WorkerServices, Relay] | None = None

    def work(self, event_id: str, stage: str, token: int) -> None:
        """Work what a message names, if it is still to be had, and ring what follows from it."""
        services, relay = self._open()
        if services.runner.run_claimed(event_id, stage, token):
            # The relay would find it at its next look; what it cannot be told of now it finds as well.
            with contextlib.suppress(Unavailable):
                relay.ring_due()

    def warm(self) -> None:
        """Open everything before the first message needs it, beside the process's start, which must not take long."""
        threading.Thread(target=self._warm, name="warm up", daemon=True).start()

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened[0].close()
                self._opened = None

    def _warm(self) -> None:
        # What is not to be had yet is said by the first work that needs it.
        with contextlib.suppress(SlaLedgerError):
            services, _ = self._open()
            _ = services.runner
            if Stage.PROVE in self._stages:
                services.warm_provers()

    def _open(self) -> tuple[WorkerServices, Relay]:
        with self._opening:
            if self._opened is None:
                services = self._open_services()
                again_ns = services.workers.ring_again_s * SECOND_NS
                relay = Relay(services.database, sender(self._app), services.clock, again_ns=again_ns)
                self._opened = services, relay
            return self._opened


def add_tasks(app: Celery, open_services: Callable[[], WorkerServices], stages: Collection[str]) -> Bench:
    """Give an application the tasks of ``stages``, worked with what ``open_services`` opens in each process."""
    bench = Bench(open_services, app, stages)

    def work(event_id: str, stage: str, tenant: str, token: int) -> None:
        bench.work(event_id, stage, token)

    for stage in stages:
        app.task(name=task_name(stage))(work)

    def opened(**_: object) -> None:
        bench.warm()

    def closed(**_: object) -> None:
        bench.close()

    worker_process_init.connect(opened, weak=False)
    worker_process_shutdown.connect(closed, weak=False)
    return bench
