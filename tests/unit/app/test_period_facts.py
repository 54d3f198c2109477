"""A period that is looked at while it runs: each look reads what came in since, of every kind of facts."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.judgement.period_facts import PeriodFacts
from ledger.app.periods.exclusions import load_excluded
from ledger.domain.facts.feeds import Facts
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk, row
from tests.unit.app.feeding import desk_of, hand

SOURCE = {"name": "gateway", "coverage": "heartbeat", "heartbeat": "PT1H"}
UPTIME = {"id": "uptime", "method": "total_ratio", "indicator": "availability", "target": "99", "source": "outages"}
ERRORS = {
    "id": "errors",
    "method": "total_ratio",
    "indicator": "error_rate",
    "target": "99",
    "source": "counters",
    "counters": {"total": "all", "bad": "failed"},
}
FACTS = {
    "id": "facts",
    "method": "total_ratio",
    "indicator": "fact_consistency",
    "evaluator": "factbench 2.1",
    "minimum_valid": 1,
    "target": "90",
}
AVAILABILITY = {"id": "availability", "method": "total_ratio", "indicator": "availability", "target": "99"}


def beat(hour: int) -> dict[str, Any]:
    return {**_at(hour), "heartbeat_id": f"h{hour}", "covers_s": 3600}


def outage(hour: int) -> dict[str, Any]:
    day = "2023-06-14T"
    return {
        "outage_id": "o",
        "revision": hour,
        "service": "example-chat",
        "from": f"{day}00:00:00Z",
        "to": f"{day}0{hour}:00:00Z",
    }


def reading(hour: int) -> dict[str, Any]:
    return {**_at(hour), "counter": "all", "series": {"pod": "a"}, "value": 10 * hour}


def sample(hour: int) -> dict[str, Any]:
    evaluated = {"indicator": "fact_consistency", "evaluator": "factbench 2.1"}
    return {**_at(hour), **evaluated, "sample_id": f"s{hour}", "good": 9, "bad": 1}


def request(hour: int) -> dict[str, Any]:
    return row(f"r{hour}", f"2023-06-14T0{hour}:30:00Z")


def _at(hour: int) -> dict[str, Any]:
    return {"at": f"2023-06-14T0{hour}:00:00Z", "service": "example-chat"}


class Looks:
    """Looks at one period, each with what the one before left; counts the batches that they read."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.batches = desk, 0
        self.kept: PeriodFacts | None = None

    def look(self) -> int:
        """Batches read; what is seen is what a look without a memory sees."""
        before, registered, period = self.batches, self.desk.register(), self.desk.period
        with self.desk.database.begin() as tx:
            excluded = load_excluded(tx, registered.sla_id, registered.agreement, period)
            self.kept = PeriodFacts.read(tx, registered, period, excluded, self.kept)
            seen = self.kept.judge(tx, self._counted)
            assert seen == PeriodFacts.read(tx, registered, period, excluded).judge(tx, read_facts)
        return self.batches - before

    def _counted(self, data: bytes) -> Facts:
        self.batches += 1
        return read_facts(data)


@pytest.mark.parametrize("fact", [beat, outage, reading, sample, request])
def test_a_look_reads_no_batch_twice(fact: Any) -> None:
    desk = desk_of([AVAILABILITY, UPTIME, ERRORS, FACTS], source=SOURCE, coverage_floor="1")
    looks = Looks(desk)
    found = []
    for hour in range(1, 6):
        hand(desk, fact(hour), period=None)
        found.append(looks.look())
    assert found == [1] * 5
    assert looks.look() == 0
