"""What the Celery application promises: late acknowledgement, nothing kept in Redis, a queue for each stage."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from ledger.app.ports.outbox import Lease
from ledger.app.work.outbox import Stage
from ledger.errors import BrokerUnavailable, SettingInvalid
from ledger.settings import WorkerSettings
from ledger.workers.celery_app import TIME_LIMIT_S, make_app, sender, task_name
from ledger.workers.run import run_beat, run_relay, run_worker
from ledger.workers.tasks import add_tasks
from tests.support.ports import own_port
from tests.support.redis import RedisServer

pytestmark = pytest.mark.slow


def test_a_message_is_handed_out_again_only_after_its_task_must_be_over() -> None:
    conf = make_app("redis://127.0.0.1:1/0").conf
    assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit == TIME_LIMIT_S
    assert conf.task_acks_late
    assert conf.worker_prefetch_multiplier == 1
    assert conf.task_ignore_result
    assert conf.result_backend is None


def test_every_stage_has_its_task() -> None:
    app = make_app("redis://127.0.0.1:1/0")
    add_tasks(app, lambda: pytest.fail("nothing is opened before it is needed"), [str(stage) for stage in Stage])
    assert {task_name(stage) for stage in Stage} <= set(app.tasks)


def test_a_message_names_the_work_and_nothing_else(redis_server: RedisServer) -> None:
    send = sender(make_app(redis_server.url))
    for _ in range(2):
        send(Lease("an-event", "acme", "prove", 1, 7))
        # Bindings and queues are gone with it; the next message finds its way all the same.
        (message,) = redis_server.client().lrange("prove", 0, -1)
        redis_server.client().flushall()
    envelope = json.loads(message)
    assert envelope["headers"]["task"] == "sla_ledger.prove"
    assert json.loads(base64.b64decode(envelope["body"]))[:2] == [["an-event", "prove", "acme", 7], {}]
    assert redis_server.client().dbsize() == 0


def test_a_broker_that_is_away_is_said_at_once_and_found_again(redis_server: RedisServer) -> None:
    send = sender(make_app(redis_server.url))
    lease = Lease("an-event", "acme", "prove", 1, 7)
    send(lease)
    redis_server.kill()
    with pytest.raises(BrokerUnavailable):
        send(lease)
    redis_server.start()
    send(lease)
    assert redis_server.client().llen("prove") == 1


def test_an_address_without_a_broker_is_no_error_of_the_program() -> None:
    with own_port() as port, pytest.raises(BrokerUnavailable):
        sender(make_app(f"redis://127.0.0.1:{port}/0"))(Lease("e", "t", "prove", 1, 1))


def test_without_a_broker_there_is_nothing_to_run() -> None:
    def opens() -> Any:
        pytest.fail("nothing is opened without a broker")

    settings = WorkerSettings()
    for start in (
        lambda: run_worker(settings, opens, stages=["prove"], processes=1),
        lambda: run_relay(settings, opens, notify=print),
        lambda: run_beat(settings, opens, notify=print),
    ):
        with pytest.raises(SettingInvalid, match="SLA_LEDGER_BROKER"):
            start()
