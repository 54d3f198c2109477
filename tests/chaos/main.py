"""Close periods while everything that can be killed is killed: ``python -m tests.chaos.main [--seed N]``.

Ten agreements with one period each, twenty violations a period, are registered, observed and closed over REST, then
settled, proved and recorded on the chain of a real node by a deployment of local processes. Meanwhile workers, relay,
beat, API and Redis are killed, Redis is emptied and messages are delivered again. In the end everything must be there
exactly once. The last line says so; exit 1 otherwise.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from ledger.wiring.services import default_key_cache
from tests.chaos.counts import Found, count_events, count_on_chain, count_unfinished, expected, last_line
from tests.chaos.faults import FULL, SHORT, Faults
from tests.support.anvil import Anvil, running_anvil
from tests.support.deployment import ROLES, Deployment, deployment
from tests.support.postgres import running_server
from tests.support.redis import running_redis
from tests.support.rest_client import RestClient

VIOLATIONS_A_PERIOD = 20
ROWS_A_PERIOD = 480
DAY = date(2023, 6, 14)
FINISH_WITHIN_S = 150.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """What is tried: so many periods, and what goes wrong meanwhile. The same seed gives the same faults."""

    seed: int
    periods: int = 10
    plan: Mapping[str, int] = field(default_factory=lambda: FULL)


class Settling:
    """Settles periods, and asks for everything twice."""

    def __init__(self, made: Deployment) -> None:
        self._client = RestClient(made)
        self.sla_ids: list[str] = []
        self.without_redis = 0
        self.failure: Exception | None = None

    def start(self, periods: int, faults: Faults) -> threading.Thread:
        """Settle ``periods`` periods in a thread, spread over the faults."""
        thread = threading.Thread(target=self._run, args=(periods, faults))
        thread.start()
        return thread

    def settle(self, service: str) -> None:
        sla_id = self._client.register(service, DAY, times=2)
        accepted = self._client.observe(sla_id, service, DAY, times=2)
        if accepted != ROWS_A_PERIOD:
            raise AssertionError(f"{accepted} of {ROWS_A_PERIOD} rows were accepted")
        self._client.close(sla_id, DAY, times=2)
        self.sla_ids.append(sla_id)

    def settle_without_redis(self) -> None:
        """One period whose writes are all answered while nobody carries messages."""
        before = self._client.writes
        self.settle("chat-without-redis")
        self.without_redis = self._client.writes - before

    def _run(self, periods: int, faults: Faults) -> None:
        try:
            for number in range(periods):
                faults.wait_for(number / periods)
                self.settle(f"chat-{number}")
        except Exception as error:  # told by the main thread
            self.failure = error


def run(trial: Trial) -> int:
    """Print the seed, what happens, the table and the last line; the exit code."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    print(f"seed {trial.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="sla-ledger-chaos-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server = stack.enter_context(running_server(durable=True))
        redis, node = stack.enter_context(running_redis()), stack.enter_context(running_anvil())
        url = server.empty_database()
        stack.callback(server.drop, url)
        chain = {"SLA_LEDGER_CHAIN_RPC": node.url}
        made = stack.enter_context(deployment(folder, url, redis, default_key_cache(), **chain))
        made.command("chain", "deploy", "--fund", "--data", str(made.data))
        made.start(*ROLES)
        made.wait_for_api()
        say("everything runs")
        settling = Settling(made)
        faults = Faults(made, trial.plan, trial.seed, settling.settle_without_redis, say)
        _try(trial, faults, settling, say)
        _finish(made, say)
        made.stop_all()
        found = _count(trial, url, node, settling)
        unfinished = count_unfinished(url)
        line, status = last_line(found, unfinished)
        if status:
            print(made.logs())
    _print(trial, faults, settling, found)
    print(line)
    return status


def _try(trial: Trial, faults: Faults, settling: Settling, say: Say) -> None:
    """Settle while everything goes wrong; raises what kept it from being tried."""
    faults.start()
    # One more is settled while Redis is away.
    settling.start(trial.periods - 1, faults).join()
    faults.join()
    for failure in (settling.failure, faults.failure):
        if failure is not None:
            raise failure
    say("no more faults")


def _finish(made: Deployment, say: Say) -> None:
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


def _count(trial: Trial, database_url: str, node: Anvil, settling: Settling) -> list[Found]:
    kinds = expected(trial.periods, trial.periods * VIOLATIONS_A_PERIOD)
    return [*count_events(database_url, kinds), count_on_chain(node, settling.sla_ids)]


def _print(trial: Trial, faults: Faults, settling: Settling, found: list[Found]) -> None:
    print(f"\nseed {trial.seed}")
    for name in trial.plan:
        print(f"  {name:32}{faults.done.get(name, 0):>6}")
    print(f"  {'messages delivered again':32}{faults.again:>6}")
    print(f"  {'writes answered without Redis':32}{settling.without_redis:>6}")
    print(f"\n{'':24}{'expected':>10}{'found':>10}{'different':>10}")
    for row in found:
        print(f"{row.what:24}{row.expected:>10}{row.found:>10}{row.distinct:>10}")
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--short", action="store_true", help="two periods and a fault of most kinds")
    asked = parser.parse_args()
    return run(Trial(asked.seed, 2, SHORT) if asked.short else Trial(asked.seed))


if __name__ == "__main__":
    sys.exit(main())
