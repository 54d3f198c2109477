"""Settle while everything that can be killed is killed: ``python -m tests.chaos.main [--seed N]``.

Eight agreements with one period each are registered, observed and closed over REST, then settled, proved and recorded
on the chain of a real node by a deployment of local processes. Facts come late, an hour is excluded, credits are
claimed and a period is cut by an amendment (``courses``). Meanwhile workers, relay, beat, API and Redis are killed,
Redis is emptied and messages are delivered again. In the end everything must be there exactly once, and say the same
as in a ledger that nobody disturbed. The last line says so; exit 1 otherwise.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ledger.wiring.provers import default_key_cache
from tests.chaos.counts import (
    Found,
    count_events,
    count_on_chain,
    count_told,
    expected,
    find_unfinished,
    last_line,
)
from tests.chaos.courses import Course
from tests.chaos.faults import FULL, SHORT, Faults
from tests.chaos.settling import Settling
from tests.chaos.undisturbed import Undisturbed, read_from, told
from tests.support.anvil import Anvil, running_anvil
from tests.support.deployment import ROLES, Deployment, deployment
from tests.support.postgres import running_server
from tests.support.redis import running_redis

COURSES = (Course.AMENDED, *(Course.LATE, Course.EXCLUDED, Course.CLAIMED) * 2)
SHORT_COURSES = (Course.CLAIMED,)
FINISH_WITHIN_S = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """What is tried: what becomes of periods, and what goes wrong meanwhile. The same seed gives the same faults."""

    seed: int
    courses: Sequence[Course] = COURSES
    plan: Mapping[str, int] = field(default_factory=lambda: FULL)


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
        settling = Settling(made, say)
        faults = Faults(made, trial.plan, trial.seed, settling.settle_without_redis, say)
        _try(trial, faults, settling, say)
        _finish(made, say)
        made.stop_all()
        found = _count(url, node, settling)
        unfinished = find_unfinished(url)
        line, status = last_line(found, len(unfinished))
        if status:
            print(made.logs(), *unfinished, sep="\n")
    _print(trial, faults, settling, found)
    print(line)
    return status


def _try(trial: Trial, faults: Faults, settling: Settling, say: Say) -> None:
    """Settle while everything goes wrong; raises what kept it from being tried."""
    faults.start()
    settling.start(trial.courses, faults).join()
    faults.join()
    for failure in (settling.failure, faults.failure):
        if failure is not None:
            raise failure
    say("no more faults")


def _finish(made: Deployment, say: Say) -> None:
    """Wait until nothing is left to do, or it takes too long: what is unfinished then is counted."""
    try:
        made.wait_until(
            lambda: not find_unfinished(made.database_url) and made.scalar("SELECT count(*) FROM inbox") == 0,
            timeout_s=FINISH_WITHIN_S,
            what="the end",
        )
        say("everything is done")
    except TimeoutError:
        say("not everything was done in time")


def _count(database_url: str, node: Anvil, settling: Settling) -> list[Found]:
    contracts = settling.contracts
    undisturbed = Undisturbed(list(contracts.values()))
    said = told(undisturbed.database, contracts)
    with read_from(database_url) as database:
        same = count_told(told(database, contracts), said)
    kinds = expected(undisturbed.events())
    return [*count_events(database_url, kinds), same, count_on_chain(node, undisturbed.proved())]


def _print(trial: Trial, faults: Faults, settling: Settling, found: list[Found]) -> None:
    print(f"\nseed {trial.seed}")
    for name in trial.plan:
        print(f"  {name:32}{faults.done.get(name, 0):>6}")
    print(f"  {'messages delivered again':32}{faults.again:>6}")
    print(f"  {'writes answered without Redis':32}{settling.without_redis:>6}")
    print(f"\n{'':28}{'expected':>10}{'found':>10}{'different':>10}")
    for row in found:
        print(f"{row.what:28}{row.expected:>10}{row.found:>10}{row.distinct:>10}")
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--short", action="store_true", help="two periods and a fault of most kinds")
    asked = parser.parse_args()
    return run(Trial(asked.seed, SHORT_COURSES, SHORT) if asked.short else Trial(asked.seed))


if __name__ == "__main__":
    sys.exit(main())
