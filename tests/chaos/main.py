"""Close periods while everything that can be killed is killed: ``python -m tests.chaos.main [--seed N]``.

Ten agreements with one period each, twenty violations a period, are registered, closed, settled, proved and recorded
on chain by a deployment of local processes. Meanwhile workers, relay, beat, API and Redis are killed, Redis is
emptied and messages are delivered again. In the end everything must be there exactly once. The last line says so;
exit 1 otherwise.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import httpx

from ledger.app.commands import Commands
from ledger.domain.agreement import Agreement
from ledger.domain.window import period_named
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, default_key_cache, open_data
from ledger.wiring.stages import read_request_log
from tests.chaos.counts import Found, count_events, count_on_chain, count_unfinished, expected
from tests.chaos.faults import PLAN, Faults
from tests.support.deployment import ROLES, Deployment, deployment, example_terms, post, request_log
from tests.support.postgres import running_server
from tests.support.redis import running_redis

PERIODS = 10
VIOLATIONS = 200
DAY = date(2023, 6, 14)
FINISH_WITHIN_S = 150
PATIENCE_S = 60


class Client:
    """A client of the API that asks until it has its answer, and asks everything twice."""

    def __init__(self, made: Deployment, services: Services) -> None:
        self._made = made
        self._parties = DemoParties(services.keyring)
        self._commands: Commands = services.commands
        self._randomness = services.randomness
        self.sla_ids: list[str] = []
        self.failure: Exception | None = None

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            for number in range(PERIODS):
                self._settle(f"chat-{number}")
        except Exception as error:  # told by the main thread
            self.failure = error

    def _settle(self, service: str) -> None:
        terms = example_terms()
        terms = {**self._parties.with_keys(terms), "nonce": "0x" + self._randomness.bytes(32).hex()}
        document = self._parties.signed({**terms, "service": {**terms["service"], "name": service}})
        named = f"{DAY}/P1D"
        request = self._commands.registration_request(document, first_period=named)
        assert request is not None
        signature = "0x" + self._parties.sign_registration(request.digest).hex()
        body = {"document": document, "first_period": named, "registration_signature": signature}
        sla_id = self._ask("/v1/agreements", body)["sla_id"]
        period = period_named(Agreement.from_document(document), named)
        for _ in range(2):
            self._commands.observe(
                sla_id, request_log(service, DAY), read_rows=read_request_log, declared_complete=period.interval
            )
        self._ask(f"/v1/agreements/{sla_id}/periods/{DAY}/close")
        self.sla_ids.append(sla_id)

    def _ask(self, path: str, body: Any = None) -> Any:
        receipts = [self._until_answered(path, body) for _ in range(2)]
        first, again = ({**receipt["receipt"], "seq": None} for receipt in receipts)
        if first != again:
            raise AssertionError(f"{path} asked twice gave {first} and {again}")
        return receipts[0]

    def _until_answered(self, path: str, body: Any) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return post(self._made.url, path, body)
            except httpx.HTTPStatusError as error:
                if error.response.status_code < 500:
                    raise AssertionError(f"{path}: {error.response.text}") from error
                failure: Exception = error
            except httpx.HTTPError as error:
                failure = error
            if time.monotonic() > deadline:
                raise failure
            time.sleep(0.2)


def run(seed: int) -> int:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="sla-ledger-chaos-"))
    with running_server(durable=True) as postgres, running_redis() as redis:
        url = postgres.empty_database()
        with deployment(folder, url, redis, default_key_cache()) as made:
            services = open_data(made.data, database_url=url)
            try:
                made.start(*ROLES)
                made.wait_for_api()
                say("everything runs")
                faults, client = Faults(made, seed, say), Client(made, services)
                faults.start()
                asking = client.start()
                asking.join()
                if client.failure is not None:
                    raise client.failure
                say(f"{PERIODS} periods are closed")
                faults.join()
                say("no more faults")
                _finish(made, say)
                made.stop_all()
                found = [
                    *count_events(url, expected(PERIODS, VIOLATIONS)),
                    count_on_chain(services, client.sla_ids, PERIODS),
                ]
            finally:
                services.close()
            unfinished = count_unfinished(url)
            if unfinished:
                print(made.logs())
    return report(seed, faults, found, unfinished)


def _finish(made: Deployment, say: Any) -> None:
    """Wait until nothing is left to do, or it takes too long: what is unfinished then is counted."""
    try:
        made.wait_until(
            lambda: count_unfinished(made.database_url) == 0 and made.scalar("SELECT count(*) FROM inbox") == 0,
            timeout_s=FINISH_WITHIN_S,
            what="the end",
        )
        say("everything is done")
    except TimeoutError:
        say("not everything was done in time")


def report(seed: int, faults: Faults, found: list[Found], unfinished: int) -> int:
    """Print the table and the last line; the exit code."""
    print(f"\nseed {seed}")
    for name in PLAN:
        print(f"  {name:24} {faults.done.get(name, 0)}")
    print(f"\n{'':24}{'expected':>10}{'found':>10}{'different':>10}")
    for row in found:
        print(f"{row.what:24}{row.expected:>10}{row.found:>10}{row.distinct:>10}")
    lost, duplicated = sum(row.lost for row in found), sum(row.duplicated for row in found)
    print(f"\nlost={lost} duplicated={duplicated} unfinished={unfinished}")
    return 1 if lost or duplicated or unfinished else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    return run(parser.parse_args().seed)


if __name__ == "__main__":
    sys.exit(main())
