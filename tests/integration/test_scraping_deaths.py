"""A collector that dies between two rounds, or over one: nothing that it read counts twice, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ledger.app.facts.scraping import record_round
from ledger.domain.time.instant import HOUR_NS
from ledger.errors import TargetUnavailable
from ledger.ingest.facts import read_facts
from ledger.ingest.prometheus import TEXT
from ledger.ingest.scrape import Exposition
from ledger.ingest.scraped_facts import read_mark, read_round
from tests.support.settling_processes import Act, Place, close, require_sound, work
from tests.unit.app.conftest import Desk
from tests.unit.app.feeding import desk_of
from tests.unit.app.test_scraping import A, B, text
from tests.unit.ingest.test_scraped_facts import OBJECTIVES

LAST = 48
"""Every half hour of the day."""
KILLED_AFTER = (1, 2, 5)


def terms() -> dict[str, Any]:
    document = desk_of(OBJECTIVES[:1]).agreement.document
    return {name: document[name] for name in ("objectives", "compensation")}


def collect(rounds: Iterable[int]) -> Act:
    def act(desk: Desk) -> None:
        sla_id = desk.attestor.sla_id(desk.agreement)
        for at in rounds:
            said = {A: Exposition(TEXT, text(70 * at, at).encode()), B: Exposition(TEXT, text(50 * at % 1999).encode())}
            record_round(
                desk.database,
                sla_id,
                read_round(desk.agreement, desk.period.interval.start_ns + at * HOUR_NS // 2, said),
                attestor=desk.attestor,
                clock=desk.clock,
                read_rows=read_facts,
                read_mark=read_mark,
            )

    return act


def counted(place: Place) -> tuple[dict[str, Any], int]:
    """What the statement counts, and in how many windows."""
    place.do(close, work)
    with place.open() as desk:
        found = require_sound(desk)
    return found["objectives"][0], found["observed"]


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("ledger") / "ledger.db", terms())
    place.do(lambda desk: desk.register())
    return place


def copied(place: Place, path: Path) -> Place:
    shutil.copy(place.where, path)
    return Place(path, place.terms, place.clock)


def test_who_goes_on_after_a_death_comes_to_the_same(registered: Place, tmp_path: Path) -> None:
    whole = copied(registered, tmp_path / "whole.db")
    whole.do(collect(range(LAST + 1)))
    expected = counted(whole)
    assert expected[1] == 24
    for killed in KILLED_AFTER:
        place = copied(registered, tmp_path / f"{killed}.db")
        assert place.killed_after(killed, collect(range(LAST + 1)))
        place.do(collect(range(killed, LAST + 1)))
        assert counted(place) == expected


def test_a_round_that_died_unrecorded_is_in_the_next_one(registered: Place, tmp_path: Path) -> None:
    whole, place = (copied(registered, tmp_path / f"{name}.db") for name in ("whole", "lost"))
    whole.do(collect(range(LAST + 1)))
    place.do(collect(range(7)))

    def dies(desk: Desk) -> None:
        with desk.database.begin() as tx:
            desk.database.begin = lambda: _Nested(tx)  # type: ignore[assignment, return-value]
            collect([7])(desk)
            raise TargetUnavailable("the process ends before it commits")

    with pytest.raises(TargetUnavailable):
        place.do(dies)
    place.do(collect(range(8, LAST + 1)))
    assert counted(place) == counted(whole)


class _Nested:
    """A transaction that is open already, as one that begins."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    def __enter__(self) -> Any:
        return self._tx

    def __exit__(self, *_: object) -> None:
        pass
