"""The compose file, checked and lived through: ``python -m tests.compose.check``.

First the file is held to its rules (and shown to ``docker compose config`` where that is installed). Then its command
lines run as local processes on a real PostgreSQL, Redis and anvil, until one period is settled and its statement is
confirmed on the chain. Prints what was done and how long it took; exit code 1 where something does not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import httpx
import psycopg
import yaml
from sqlalchemy.engine import make_url

from ledger.wiring.clock import SystemRandomness
from ledger.wiring.keyring import Keyring
from ledger.wiring.parties import DemoParties
from tests.compose.local import VARIABLES, LocalServices
from tests.compose.rules import ONE_SHOT, dockerfile_faults, faults_of
from tests.support.deployment import ROOT, example_terms, request_log
from tests.support.ports import own_port
from tests.support.postgres import Server, running_server

COMPOSE = ROOT / "docker-compose.yml"
DAY = date(2023, 6, 14)
START_S, SETTLE_S, HEALTH_S = 90, 180, 60
LONG_RUNNING = ("api", "settle-worker", "prove-worker", "anchor-worker", "courier", "relay", "beat")


class CheckFailed(Exception):
    """Something does not hold; the text says what."""


@dataclass
class Report:
    """The steps and their times, printed as they end."""

    steps: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except Exception:
            print(f"{what:<60} FAILED", flush=True)
            raise
        self.steps.append((what, time.monotonic() - started))
        print(f"{what:<60} {self.steps[-1][1]:6.1f} s", flush=True)


def check(server: Server, folder: Path, key_cache: Path) -> Report:
    """All of it. Raises ``CheckFailed``, or what went wrong on the way."""
    report = Report()
    document = yaml.safe_load(COMPOSE.read_text())
    with report.step("the files keep the rules"):
        _hold(faults_of(document) + dockerfile_faults((ROOT / "Dockerfile").read_text()))
    if _has_compose():
        with report.step("docker compose config"):
            _compose_config()
    else:
        print("docker compose is not installed: its own check is left out", flush=True)
    with ExitStack() as kept:
        ports = {name: kept.enter_context(own_port()) for name in ("api", "redis", "anvil")}
        local = LocalServices(document["services"], folder, server, key_cache, ports)
        try:
            _live(local, report)
        except Exception as error:
            raise CheckFailed(f"{error}\n{local.logs()}") from error
        finally:
            local.stop_all()
            local.drop_database()
    with report.step("every line of the logs is JSON, and none has a secret"):
        _hold(log_faults(local))
    return report


def _live(local: LocalServices, report: Report) -> None:
    with report.step("postgres, redis and anvil are healthy"):
        local.make_database()
        local.start("redis", "anvil")
        for name in ("postgres", "redis", "anvil"):
            _until(lambda name=name: local.is_healthy(name), START_S, f"{name} is healthy")
    with report.step("init: keys, schema, proving keys"):
        local.run("init")
    proving_keys = _contents(local.key_cache)
    with report.step("registry: deployed"):
        local.run("registry")
    keys = _contents(local.data)
    with report.step("api, workers, courier, relay and beat are healthy"):
        local.start(*LONG_RUNNING)
        _until(lambda: local.is_healthy("api"), START_S, "the API is ready")
    key = json.loads(local.run("api", *"sla-ledger keys api create --role operator --json".split()))["key"]
    with httpx.Client(base_url=local.url, headers={"authorization": f"Bearer {key}"}, timeout=30) as client:
        with report.step("without a key nothing is told"):
            _refuses_strangers(local.url)
        with report.step("an agreement is registered, a day is observed and closed"):
            sla_id = _register(client, local)
            _observe(client, sla_id)
            _answer(client.post(f"/v1/agreements/{sla_id}/periods/{DAY}/close"))
        with report.step("its statement is issued, proved, anchored and confirmed"):
            _until(lambda: _unsettled(client), SETTLE_S, "the statement is confirmed")
        with report.step("nothing is left to do, and the log is signed"):
            _until(lambda: _unfinished(client), HEALTH_S, "the outbox is empty and the log is signed")
        with report.step("/health/ready and /metrics"):
            _check_metrics(_answer(client.get("/metrics")).content)
    with report.step("the health check of every service passes"):
        for name, service in local.services.items():
            if name not in ONE_SHOT and (said := local.is_healthy(name)):
                raise CheckFailed(f"{name} is not healthy: {said} {service['healthcheck']['test']}")
        _hold([f"{name} has ended" for name in local.ended()])
    with report.step("services have no more rights than they need"):
        _hold([*_written(local, keys, proving_keys), *_rights(local)])
    with report.step("a relay and a worker that stop are seen"):
        _sees_standstill(local)


def _register(client: httpx.Client, local: LocalServices) -> str:
    """Register the example's terms, signed by parties whose keys are made here; its sla_id."""
    folder = local.folder / "parties"
    shutil.copytree(local.data / "keys", folder)
    parties = DemoParties(Keyring(folder, SystemRandomness()))
    document = parties.signed(parties.with_keys({**example_terms(), "nonce": "0x" + os.urandom(32).hex()}))
    asked = {"document": document, "first_period": f"{DAY}/P1D"}
    digest = _answer(client.post("/v1/agreements/registration-digest", json=asked)).json()["digest"]
    signature = "0x" + parties.sign_registration(bytes.fromhex(digest[2:])).hex()
    done = _answer(client.post("/v1/agreements", json={**asked, "registration_signature": signature})).json()
    if not done["on_chain"]:
        raise CheckFailed("the agreement is not registered on chain")
    return str(done["sla_id"])


def _observe(client: httpx.Client, sla_id: str) -> None:
    span = {"from": f"{DAY}T00:00:00Z", "to": f"{DAY + timedelta(days=1)}T00:00:00Z"}
    rows = request_log("example-chat", DAY)
    answer = client.post(
        "/v1/observations",
        params={"sla_id": sla_id, **span},
        content=rows,
        headers={"content-type": "application/x-ndjson"},
    )
    if _answer(answer).json()["rows"]["accepted"] != rows.count(b"\n"):
        raise CheckFailed(f"not every row was taken: {answer.text}")


def _unsettled(client: httpx.Client) -> str | None:
    items = _answer(client.get("/v1/statements")).json()["items"]
    if len(items) != 1 or items[0]["attestation"] is None or items[0]["anchor"] is None:
        return "it is not anchored"
    return None if items[0]["anchor"]["confirmed"] else "its anchor is not confirmed"


def _unfinished(client: httpx.Client) -> str | None:
    ready = _answer(client.get("/health/ready")).json()
    if ready["outbox_parked"]:
        raise CheckFailed(f"work was given up: {ready}")
    if ready["outbox_pending"]:
        return f"{ready['outbox_pending']} stages are pending"
    signed = int(_answer(client.get("/v1/log")).json()["size"] or 0)
    return None if signed == ready["log_size"] else f"signed are {signed} of {ready['log_size']} events"


def _check_metrics(text: bytes) -> None:
    for name in (b"sla_ledger_ready 1", b"sla_ledger_log_leaves", b'sla_ledger_outbox_stages{state="pending"} 0'):
        if name not in text:
            raise CheckFailed(f"/metrics has no {name.decode()}")
    promtool = shutil.which("promtool")
    if promtool is None:
        print("promtool is not installed: what it would find is left out", flush=True)
        return
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False, timeout=30)
    if done.returncode or done.stderr:
        raise CheckFailed(f"promtool: {done.stderr.decode()}")


def _refuses_strangers(url: str) -> None:
    for method, path in (
        ("GET", "/v1/statements"),
        ("GET", "/metrics"),
        ("POST", "/graphql"),
        ("POST", "/v1/agreements"),
    ):
        status = httpx.request(method, url + path, json={} if method == "POST" else None, timeout=10).status_code
        if status != 401:
            raise CheckFailed(f"{method} {path} answers {status} without a key")


def _written(local: LocalServices, keys: Mapping[str, bytes], proving_keys: Mapping[str, bytes]) -> list[str]:
    """What was written that the compose file mounts read-only. The beat alone moves the pin on."""
    now = _contents(local.data)
    changed = {name for name in keys.keys() | now.keys() if keys.get(name) != now.get(name)} - {"keys/log/log.pin"}
    found = [f"the data directory changed: {name}" for name in sorted(changed)]
    if _contents(local.key_cache) != proving_keys:
        found.append("the proving keys changed")
    homes = [path for path in (local.folder / "home").rglob("*") if path.is_file()]
    return found + [f"written outside of the volumes: {path}" for path in homes]


def _rights(local: LocalServices) -> list[str]:
    """The users of the services must not change what is logged, nor the schema; the worker gives events no place."""
    statements = ["DELETE FROM event", "UPDATE leaf SET seq = seq", "CREATE TABLE x (y int)", "DROP TABLE outbox"]
    sequencer = f"{make_url(local.admin_url).database}_sequencer"
    more = [f'SET ROLE "{sequencer}"', "UPDATE log_state SET size = size"]
    found = []
    for name, refused in {"api": statements, "prove-worker": [*statements, *more]}.items():
        for statement in refused:
            with psycopg.connect(local.environ(name)["DATABASE_URL"]) as connection:
                try:
                    connection.execute(statement)  # type: ignore[arg-type]
                except psycopg.Error:
                    continue
                found.append(f"{name} may {statement}")
                connection.rollback()
    return found


def _sees_standstill(local: LocalServices) -> None:
    """Work that nobody hands out, then work that nobody takes, is a fault of the relay, then of the worker."""
    for name in ("relay", "settle-worker"):
        local.processes[name].stop()
    with psycopg.connect(local.admin_url) as connection:
        connection.execute("UPDATE outbox SET state = 'pending', attempts = 0, due_at_ns = 0 WHERE stage = 'evaluate'")
    for name in ("relay", "settle-worker"):
        line = [*local.services[name]["healthcheck"]["test"][1:], "--max-wait", "1"]
        try:
            local.run(name, *line)
        except RuntimeError as error:
            if "evaluate: " in str(error):
                continue
        raise CheckFailed(f"the health check of {name} does not see that it stopped")


def log_faults(local: LocalServices) -> list[str]:
    """Lines that are no JSON object, and secrets in any line."""
    secrets = {*VARIABLES.values(), *(path.read_text().strip() for path in (local.data / "keys").rglob("*.key"))}
    found = []
    for name in LONG_RUNNING:
        for line in local.log(name).read_text().splitlines():
            if any(secret in line for secret in secrets) or "slk_" in line:
                found.append(f"{name} logs a secret")
            try:
                is_object = isinstance(json.loads(line), dict)
            except ValueError:
                is_object = False
            if not is_object:
                found.append(f"{name} logs what is no JSON object: {line[:200]}")
    return found


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def _until(fault: Callable[[], str | None], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while said := fault():
        if time.monotonic() > deadline:
            raise CheckFailed(f"not within {timeout_s:g} s: {what} ({said})")
        time.sleep(0.2)


def _answer(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise CheckFailed(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer


def _hold(faults: list[str]) -> None:
    if faults:
        raise CheckFailed("\n".join(faults))


def _has_compose() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None
        and not subprocess.run([docker, "compose", "version"], capture_output=True, check=False, timeout=30).returncode
    )


def _compose_config() -> None:
    """It needs no engine."""
    command = ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"]
    environ = {**os.environ, **VARIABLES}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise CheckFailed(done.stderr)


def main() -> int:
    cache = Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or ROOT / "var/keys")
    started = time.monotonic()
    with running_server() as server, tempfile.TemporaryDirectory(prefix="sla-ledger-compose-") as folder:
        try:
            report = check(server, Path(folder), cache)
        except CheckFailed as error:
            print(f"compose-check: {error}", file=sys.stderr)
            return 1
    print(f"{len(report.steps)} steps hold, in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
