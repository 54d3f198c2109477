"""``event_to_credit_ms_p50`` and ``event_to_anchor_s_p50``: from closing a period to its credit and to its anchor.

A whole deployment as local processes: PostgreSQL that waits for its disk, Redis, API, relay, workers, and a node of its
own chain. Periods of one agreement (25 windows at most, 4 objectives at most a proof) are closed one after the other,
each when the one before is done. The clock runs from just before the request that closes, so the request itself is
counted, until a connection of its own sees the event committed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from statistics import median

import psycopg

from ledger.wiring.provers import default_key_cache
from tests.support.anvil import running_anvil
from tests.support.deployment import ROLES, Deployment, deployment
from tests.support.postgres import running_server
from tests.support.redis import running_redis
from tests.support.rest_client import RestClient

PERIODS = 9
FIRST = date(2023, 6, 14)
SERVICE = "example-chat"
PATIENCE_S = 120.0
LOOK_S = 0.005
EVENTS = {"credit": "credit_line_issued", "anchor": "anchor_recorded"}


def latency() -> dict[str, float]:
    """Medians over ``PERIODS`` periods, after one that warms the workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server, redis = stack.enter_context(running_server(durable=True)), stack.enter_context(running_redis())
        node = stack.enter_context(running_anvil())
        url = server.empty_database()
        stack.callback(server.drop, url)
        settings = {"SLA_LEDGER_CHAIN_RPC": node.url}
        made = stack.enter_context(deployment(folder, url, redis, default_key_cache(), **settings))
        made.command("chain", "deploy", "--fund", "--data", str(made.data))
        made.start(*ROLES)
        made.wait_for_api()
        runs = _measure(made, url)
    for what, times in runs.items():
        print(f"  closing to {what}: {', '.join(f'{each:.3f}' for each in times)} s", file=sys.stderr)
    return {
        "event_to_credit_ms_p50": 1000 * median(runs["credit"]),
        "event_to_anchor_s_p50": median(runs["anchor"]),
    }


def _measure(made: Deployment, database_url: str) -> dict[str, list[float]]:
    client = RestClient(made)
    sla_id = client.register(SERVICE, FIRST)
    days = [FIRST + timedelta(days=number) for number in range(PERIODS + 1)]
    for day in days:
        client.observe(sla_id, SERVICE, day)
    runs: dict[str, list[float]] = {what: [] for what in EVENTS}
    with psycopg.connect(database_url, autocommit=True) as connection:
        for number, day in enumerate(days, 1):
            started = time.perf_counter()
            client.close(sla_id, day)
            for what, event_type in EVENTS.items():
                _wait_for(connection, event_type, number)
                runs[what].append(time.perf_counter() - started)
            _wait_for(connection, "anchor_confirmed", number)
    # The first one waits for the workers to load what they need.
    return {what: times[1:] for what, times in runs.items()}


def _wait_for(connection: psycopg.Connection, event_type: str, statements: int) -> None:
    """Until so many statements have an event of the type: each has a stream of its own for it."""
    question = "SELECT count(DISTINCT stream) FROM event WHERE type = %s"
    deadline = time.monotonic() + PATIENCE_S
    while (connection.execute(question, (event_type,)).fetchone() or (0,))[0] < statements:
        if time.monotonic() > deadline:
            raise SystemExit(f"{event_type} did not come within {PATIENCE_S:g} s; the figure would mean nothing")
        time.sleep(LOOK_S)
