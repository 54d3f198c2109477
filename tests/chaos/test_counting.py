"""The run's verdict is only worth what its counting notices: it is told lies here."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from ledger.domain.events.event_types import EVENT_TYPES
from tests.chaos.counts import Expected, Found, count_events, count_logs, expected, find_unfinished, last_line
from tests.chaos.faults import FULL, KILLS, REDIS_AWAY, SHORT, planned
from tests.support.anvil import RECORDED
from tests.support.deployment import ROLES

A, B, C = ("0x" + letter * 64 for letter in "abc")


def log(agreement: str, ctx: str = "0x01") -> dict[str, list[str]]:
    return {"topics": [RECORDED, agreement, ctx]}


@pytest.mark.parametrize(
    ("found", "lost", "duplicated"),
    [
        (Found("it", 10, 10, 10), 0, 0),
        (Found("one is missing", 10, 9, 9), 1, 0),
        (Found("one came twice", 10, 11, 10), 0, 1),
        (Found("one came twice and one is missing", 10, 10, 9), 1, 1),
        (Found("more than there can be", 10, 12, 12), 0, 2),
        (Found("nothing", 10, 0, 0), 10, 0),
    ],
)
def test_lost_and_duplicated(found: Found, lost: int, duplicated: int) -> None:
    assert (found.lost, found.duplicated) == (lost, duplicated)
    line, status = last_line([Found("fine", 3, 3, 3), found], unfinished=0)
    assert line == f"lost={lost} duplicated={duplicated} unfinished=0"
    assert status == (1 if lost or duplicated else 0)


def test_what_is_unfinished_fails_a_run_in_which_nothing_is_lost() -> None:
    assert last_line([Found("fine", 3, 3, 3)], unfinished=2) == ("lost=0 duplicated=0 unfinished=2", 1)


@pytest.mark.parametrize(
    ("logs", "lost", "duplicated"),
    [
        ([log(A), log(B), log(B, "0x02")], 0, 0),
        ([log(A), log(B)], 1, 0),
        ([log(A), log(B), log(B)], 1, 1),
        ([log(A), log(A, "0x02"), log(B)], 1, 1),
        ([log(A), log(B), log(B, "0x02"), log(B, "0x03")], 0, 1),
        ([log(A), log(B), log(C)], 1, 1),
    ],
)
def test_each_statement_of_an_agreement_is_on_chain_once_and_nobody_else_s(
    logs: list[dict[str, list[str]]], lost: int, duplicated: int
) -> None:
    found = count_logs(logs, {A: 1, B: 2})
    assert (found.lost, found.duplicated) == (lost, duplicated)


def test_every_kind_that_is_counted_is_an_event_that_there_is() -> None:
    assert {kind.event_type for kind in expected([])} <= set(EVENT_TYPES)


@pytest.mark.slow
def test_events_in_the_log_are_counted_with_their_repeats(postgres_url: str) -> None:
    """Written past the product, which refuses repeats; one event waits for its place and is not counted."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET session_replication_role = replica")
        for number, line in enumerate(("one", "two", "two", "waits")):
            _write(connection, number, line, placed=line != "waits")
    (found,) = count_events(postgres_url, [Expected("lines", "credit_line_issued", ("line_id",), 3)])
    assert found == Found("lines", 3, 3, 2)
    assert find_unfinished(postgres_url) == []


def _write(connection: psycopg.Connection, number: int, line: str, *, placed: bool) -> None:
    payload, nothing = b'{"line_id":"' + line.encode() + b'"}', b"\0" * 32
    connection.execute(
        "INSERT INTO event (id, tenant, stream, version, type, schema_version, payload_class, occurred_at_ns, "
        "recorded_at_ns, salt, payload) VALUES (%s, 'default', 'credits/x', %s, %s, 1, 'x', 0, 0, %s, %s)",
        (str(number), number, "credit_line_issued", nothing, payload),
    )
    if placed:
        connection.execute(
            "INSERT INTO leaf (seq, event_id, leaf_hash, sequenced_at_ns) VALUES (%s, %s, %s, 0)",
            (number, str(number), nothing),
        )


def test_a_plan_follows_from_its_seed_and_does_all_it_names() -> None:
    for plan in (FULL, SHORT):
        assert planned(plan, 7) == planned(plan, 7)
        assert Counter(name for name, _, _ in planned(plan, 7)) == plan
        assert set(plan) <= {*KILLS, "FLUSHALL", "deliver again", REDIS_AWAY}
    assert planned(FULL, 7) != planned(FULL, 8)


def test_a_full_run_kills_every_process_of_a_deployment() -> None:
    assert {KILLS[name] for name in FULL if name in KILLS} == set(ROLES)
