"""The three processes of a deployment with workers of its own, as the command line starts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from celery.signals import setup_logging

from ledger.app.webhooks.delivery import queue_deliveries
from ledger.app.work.repeating import Notify, Repeating, repeat
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import SettingInvalid
from ledger.settings import WorkerSettings
from ledger.wiring.chain_watching import watchers
from ledger.wiring.services import Services
from ledger.workers.celery_app import make_app, sender
from ledger.workers.loop import stop_signals
from ledger.workers.relay import Relay
from ledger.workers.schedule import Beat
from ledger.workers.tasks import add_tasks

RELAY_REST_S = 0.1
"""How soon the relay sees what is new; the sequencer gives places as often."""

OpenServices = Callable[[], Services]


def run_worker(settings: WorkerSettings, open_services: OpenServices, *, stages: Sequence[str], processes: int) -> None:
    """Work stages in ``processes`` child processes until SIGTERM, which lets the work at hand end."""
    app = make_app(_broker(settings))
    # Somebody who listens keeps Celery from setting up logs: this process's are set up already.
    setup_logging.connect(_keep_logs, weak=False)
    add_tasks(app, open_services, stages)
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={','.join(stages)}",
            f"--concurrency={processes}",
            "--pool=prefork",
            f"--hostname={stages[0]}-{os.getpid()}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=WARNING",
        ]
    )


def run_relay(settings: WorkerSettings, open_services: OpenServices, *, notify: Notify) -> None:
    """Ring due work until SIGINT or SIGTERM."""
    send = sender(make_app(_broker(settings)))

    def prepare(services: Services) -> Callable[[], bool]:
        relay = Relay(services.database, send, services.clock, again_ns=settings.ring_again_s * SECOND_NS)
        return lambda: queue_deliveries(services.database) + relay.ring_due() > 0

    _loop(prepare, open_services, name="the relay", rest_s=RELAY_REST_S, notify=notify)


def run_beat(settings: WorkerSettings, open_services: OpenServices, *, notify: Notify) -> None:
    """Close periods, sign the log and look at the chain by the clock until SIGINT or SIGTERM."""
    _broker(settings)
    _loop(
        lambda services: Beat(services).tick,
        open_services,
        name="the beat",
        rest_s=settings.schedule_s,
        notify=notify,
        # A node that is slow to answer holds up no closing.
        beside=lambda services: watchers(services, notify),
    )


def _loop(
    prepare: Callable[[Services], Callable[[], bool]],
    open_services: OpenServices,
    *,
    name: str,
    rest_s: float,
    notify: Notify,
    beside: Callable[[Services], Sequence[Repeating]] = lambda _: (),
) -> None:
    with stop_signals() as stopping:
        services = open_services()
        others = beside(services)
        try:
            notify(f"{name} is at work")
            for other in others:
                other.start()
            repeat(prepare(services), name=name, rest_s=rest_s, stopping=stopping, notify=notify)
        finally:
            for other in others:
                other.stop()
            services.close()


def _keep_logs(**_: object) -> None:
    """Leave the logs as they are."""


def _broker(settings: WorkerSettings) -> str:
    if settings.broker_url is None:
        raise SettingInvalid(
            "no broker: set SLA_LEDGER_BROKER=redis://HOST:PORT/NUMBER for this process and for the server, which does "
            "the work itself otherwise",
            setting="broker",
        )
    return settings.broker_url
