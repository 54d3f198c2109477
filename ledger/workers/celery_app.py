"""The Celery application: one queue for each stage, no results, nothing that carries more than a name.

A queue of each stage lets the stages scale apart. Messages go to the default exchange, which needs no bindings in
Redis, so that a FLUSHALL costs the messages at hand and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from celery import Celery
from kombu.exceptions import OperationalError

from ledger.app.ports.outbox import Lease
from ledger.app.work.outbox import Stage
from ledger.errors import BrokerUnavailable

TASK_PREFIX = "sla_ledger."
TIME_LIMIT_S = 900
"""After this a stage's process is killed; what it had leased is due again when its lease runs out."""

VISIBILITY_TIMEOUT_S = 4 * TIME_LIMIT_S
"""After this Redis hands a message out again that no worker acknowledged: longer than the longest task."""

_CONNECT_TIMEOUT_S = 2
_SOCKET_TIMEOUT_S = 10


def make_app(broker_url: str) -> Celery:
    """An application over a broker, without tasks: ``ledger.workers.tasks`` adds them where they are worked."""
    app = Celery("sla-ledger", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=True,
        task_reject_on_worker_lost=False,
        task_time_limit=TIME_LIMIT_S,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": _SOCKET_TIMEOUT_S,
            "socket_keepalive": True,
        },
    )
    return app


def task_name(stage: str) -> str:
    """The name of a stage's task, the same in every release."""
    return TASK_PREFIX + stage


def sender(app: Celery) -> Callable[[Lease], None]:
    """Sends one message for work that was rung; raises ``BrokerUnavailable``."""

    def send(lease: Lease) -> None:
        arguments = (lease.event_id, lease.stage, lease.tenant, lease.token)
        try:
            app.send_task(task_name(lease.stage), arguments, queue=Stage(lease.stage).value, retry=False)
        except (OperationalError, OSError) as error:
            raise BrokerUnavailable(
                "the broker does not answer; check SLA_LEDGER_BROKER and that Redis runs. Nothing is lost: the work is "
                "told again",
                reason=str(error)[:200],
            ) from error

    return send
