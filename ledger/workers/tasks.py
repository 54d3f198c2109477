"""The tasks: one for each stage, all the same function. A task knows which work it was told of, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

from celery import Celery
from celery.signals import worker_process_shutdown

from ledger.app.outbox import OutboxRunner, Stage
from ledger.app.ports import Database
from ledger.domain.instant import SECOND_NS, Clock
from ledger.errors import Unavailable
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

    def close(self) -> None: ...


class Bench:
    """What a worker process works with, opened when its first message comes.

    Not before: Celery forks its processes, and neither a database connection nor a thread outlives a fork.
    """

    def __init__(self, open_services: Callable[[], WorkerServices], app: Celery) -> None:
        self._open_services = open_services
        self._app = app
        self._services: WorkerServices | None = None
        self._relay: Relay | None = None

    def work(self, event_id: str, stage: str, token: int) -> None:
        """Work what a message names, if it is still to be had, and ring what follows from it."""
        services, relay = self._open()
        if services.runner.run_claimed(event_id, stage, token):
            # The relay would find it at its next look; what it cannot be told of now it finds as well.
            with contextlib.suppress(Unavailable):
                relay.ring_due()

    def close(self) -> None:
        if self._services is not None:
            self._services.close()
            self._services = None

    def _open(self) -> tuple[WorkerServices, Relay]:
        if self._services is None or self._relay is None:
            self._services = services = self._open_services()
            again_ns = services.workers.ring_again_s * SECOND_NS
            self._relay = Relay(services.database, sender(self._app), services.clock, again_ns=again_ns)
        return self._services, self._relay


def add_tasks(app: Celery, open_services: Callable[[], WorkerServices]) -> Bench:
    """Give an application the tasks of all stages, worked with what ``open_services`` opens in each process."""
    bench = Bench(open_services, app)

    def work(event_id: str, stage: str, tenant: str, token: int) -> None:
        bench.work(event_id, stage, token)

    for stage in Stage:
        app.task(name=task_name(stage))(work)

    def close(**_: object) -> None:
        bench.close()

    worker_process_shutdown.connect(close, weak=False)
    return bench
