"""Standing still, told from being busy and from having nothing to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.app.ports.outbox import StageWait
from ledger.app.reading.progress import Progress, Watched, read_progress
from ledger.app.reading.readiness import SchemaState
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import StorageUnavailable
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SeededRandomness, StepClock, windows

NOW_NS = 10_000 * SECOND_NS
SCHEMA = SchemaState("0001", "0001")
LONG_AGO_NS, JUST_NOW_NS = NOW_NS - 121 * SECOND_NS, NOW_NS - 119 * SECOND_NS
IDLE = Progress(NOW_NS, None, SCHEMA)
ALL = list(Watched)


def faults(*stages: StageWait, watched: list[Watched] = ALL, only: tuple[str, ...] | None = None) -> list[str]:
    return replace(IDLE, stages=stages).faults(watched, only, 120)


def test_nothing_to_do_is_no_fault() -> None:
    assert faults() == []


@pytest.mark.parametrize("watched", [[Watched.RELAY], ALL])
def test_work_that_nobody_is_told_of(watched: list[Watched]) -> None:
    assert faults(StageWait("prove", LONG_AGO_NS, None, 0), watched=watched) == [
        "prove: nobody is told of work that is due since 121 s"
    ]
    assert faults(StageWait("prove", JUST_NOW_NS, None, 0), watched=watched) == []


def test_a_relay_hands_out_while_others_work_and_an_embedded_dispatcher_does_not() -> None:
    stages = (StageWait("prove", LONG_AGO_NS, None, 0), StageWait("anchor", None, None, 1))
    assert len(faults(*stages, watched=[Watched.RELAY])) == 1
    assert faults(*stages) == []


def test_work_that_no_worker_takes() -> None:
    wait = StageWait("prove", None, LONG_AGO_NS, 0)
    assert faults(wait, watched=[Watched.WORKER]) == ["prove: no worker takes work that waits since 121 s"]
    assert faults(wait, watched=[Watched.WORKER], only=("anchor",)) == []
    assert faults(wait, watched=[Watched.RELAY, Watched.BEAT]) == []


def test_a_queue_behind_work_at_hand_is_no_standstill() -> None:
    assert faults(StageWait("prove", None, LONG_AGO_NS, 1)) == []


def test_a_log_that_is_not_signed() -> None:
    progress = replace(IDLE, unsigned_since_ns=LONG_AGO_NS)
    assert progress.faults([Watched.BEAT], None, 120) == ["the log is not signed since 121 s"]
    assert progress.faults([Watched.BEAT], None, 121) == []
    assert progress.faults([Watched.WORKER], None, 120) == []


def test_a_database_of_another_version_or_none_is_a_fault_of_everybody() -> None:
    for watched in Watched:
        assert Progress(NOW_NS, "gone", None).faults([watched], None, 120) == ["gone"]
        assert Progress(NOW_NS, None, SchemaState("0001", "0002")).faults([watched], None, 120) == [
            "the database is at schema 0001, this version works with 0002"
        ]


def test_reads_since_when_the_log_is_unsigned() -> None:
    database = MemoryDatabase(StepClock(), SeededRandomness(1))
    assert read_progress(database, SCHEMA, NOW_NS).unsigned_since_ns is None
    with database.begin() as tx:
        tx.events.append("windows/a", windows(2), expected_version=None)
        first = tx.events.at(0)
        tx.outbox.add(first.id, "prove")
    found = read_progress(database, SCHEMA, NOW_NS)
    assert found.unsigned_since_ns == first.recorded_at_ns
    assert [wait.stage for wait in found.stages] == ["prove"]


def test_a_database_that_does_not_answer_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise StorageUnavailable("the disk is gone")

    database = MemoryDatabase(StepClock(), SeededRandomness(1))
    monkeypatch.setattr(database, "read", broken)
    assert read_progress(database, SCHEMA, NOW_NS).error == "the disk is gone"
