"""A deployment of local processes settles a period: real PostgreSQL, real Redis, which is away at first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
import yaml

from tests.support.deployment import ROLES, Deployment, deployment, example_terms, post, request_log
from tests.support.postgres import Server
from tests.support.redis import RedisServer

DAY, NEXT = date(2023, 6, 14), date(2023, 6, 15)
STATEMENTS = "SELECT count(*) FROM view_statement"
UNDONE = "SELECT count(*) FROM outbox WHERE state <> 'done'"


@pytest.fixture
def made(
    tmp_path: Path,
    postgres_server: Server,
    redis_server: RedisServer,
    key_cache: Path,
    absent: Callable[[str], NoReturn],
) -> Iterator[Deployment]:
    url = postgres_server.empty_database()
    with deployment(tmp_path, url, redis_server, key_cache) as found:
        yield found
    postgres_server.drop(url)


def register(made: Deployment) -> str:
    """An agreement of this directory's own keys, with the facts of its first day; its sla_id."""
    terms, facts = made.folder / "agreement.yaml", made.folder / "requests.ndjson"
    terms.write_text(yaml.safe_dump(example_terms()))
    facts.write_bytes(request_log("example-chat", DAY))
    sla_id = made.command("agreements", "add", str(terms), "--own-keys", "--first-period", f"{DAY}/P1D")["sla_id"]
    recorded = made.command("observe", str(facts), "--period", f"{DAY}/P1D")
    assert recorded["rows"]["accepted"] == 480
    return str(sla_id)


@pytest.mark.slow
def test_writes_are_accepted_without_redis_and_everything_follows_when_it_is_back(made: Deployment) -> None:
    made.redis.kill()
    sla_id = register(made)
    made.start(*ROLES)
    made.wait_for_api()
    closed = post(made.url, f"/v1/agreements/{sla_id}/periods/{DAY}/close")
    assert (
        post(made.url, f"/v1/agreements/{sla_id}/periods/{DAY}/close")["receipt"]["event_id"]
        == (closed["receipt"]["event_id"])
    )
    made.wait_until(
        lambda: "the broker does not answer" in (made.folder / "relay.log").read_text(),
        timeout_s=60,
        what="the relay's complaint",
    )
    assert made.scalar(STATEMENTS) == 0
    made.redis.start()
    made.wait_until(lambda: made.scalar("SELECT count(*) FROM view_anchor") == 1, timeout_s=120, what="the anchor")
    (statement,) = httpx.get(f"{made.url}/v1/statements", timeout=60).json()["items"]
    assert statement["state"] == "settled"
    assert statement["attestation"] is not None
    made.wait_until(lambda: made.scalar(UNDONE) == 0, timeout_s=60, what="an outbox with nothing to do")
    assert made.command("outbox", "list")["items"] == []
    assert "Traceback" not in made.logs()

    # A period without facts is withheld.
    post(made.url, f"/v1/agreements/{sla_id}/periods/{NEXT}/close")
    made.wait_until(lambda: made.scalar(STATEMENTS) == 2, timeout_s=60, what="the second statement")


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_no_child_and_no_work_behind(made: Deployment) -> None:
    sla_id = register(made)
    made.start("relay", "worker", "prove worker", "api")
    made.wait_for_api()
    post(made.url, f"/v1/agreements/{sla_id}/periods/{DAY}/close")
    proving = "SELECT count(*) FROM outbox WHERE stage = 'prove' AND holder IS NOT NULL"
    made.wait_until(lambda: made.scalar(proving) == 1, timeout_s=60, what="the proving")
    made.kill("prove worker")
    process = made.processes["prove worker"].process
    assert process is not None
    made.wait_until(lambda: not members(process.pid), timeout_s=60, what="the end of the killed worker's children")
    made.start("prove worker")
    made.wait_until(
        lambda: made.scalar("SELECT count(*) FROM view_attestation") == 1, timeout_s=120, what="the attestation"
    )
    # A machine that stands still for longer than the lease makes it one more.
    assert made.scalar("SELECT attempts FROM outbox WHERE stage = 'prove'") >= 2


@pytest.mark.slow
def test_two_beats_side_by_side_have_nothing_to_say_and_stop_when_told(made: Deployment) -> None:
    made.start("beat")
    beat = made.processes["beat"]
    first = beat.process
    del made.processes["beat"]
    made.start("beat")
    made.wait_until(
        lambda: (made.folder / "beat.log").read_text().count("is at work") == 2, timeout_s=60, what="two beats"
    )
    time.sleep(2)
    assert "goes on after an error" not in (made.folder / "beat.log").read_text()
    assert first is not None
    first.terminate()
    assert first.wait(60) == 0


def members(group: int) -> list[str]:
    """The processes of a process group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found
