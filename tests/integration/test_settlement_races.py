"""Processes that do something about one period at the same time: each effect is there once, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.settling_processes import (
    Act,
    Place,
    claim,
    close,
    entries,
    exclude,
    observe,
    require_sound,
    work,
)
from tests.unit.app.conftest import row

DISPUTE = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}
BY_CLAIM = {"settlement": {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}}}
LOST_RACE = {"done", "version_conflict"}
"""What a writer may be told: it was done, or somebody else was first and it is to ask again."""


def failed(name: str, hour: int) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:00:00Z", error_code=500)


def good(name: str, hour: int) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:00:00Z")


TWO_HOURS_FAILED = observe(good("a", 12), failed("b", 3), failed("c", 10), failed("d", 10))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A ledger with the facts of a day in which two hours failed."""
    where = tmp_path / "ledger.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    made = Place(where, DISPUTE | BY_CLAIM if "claim" in request.node.name else DISPUTE)
    made.do(TWO_HOURS_FAILED)
    return made


def again_where_lost(place: Place, *acts: Act) -> None:
    """All at once, and those once more that were told to ask again; nobody is told anything else."""
    told = place.at_once(*acts)
    assert set(told) <= LOST_RACE
    place.do(*(act for act, answer in zip(acts, told, strict=True) if answer != "done"), work)


def test_the_same_claim_is_filed_once(place: Place) -> None:
    place.do(close, work)
    told = place.at_once(*[claim("k1")] * 3, claim("k2"))
    assert set(told) <= LOST_RACE | {"claim_refused"}
    assert "done" in told
    place.do(work)
    with place.open() as desk:
        require_sound(desk)
        assert sorted(int(line["minor_units"]) for line in entries(desk)) == [133_333, 266_667]
        with desk.database.read() as tx:
            assert len(list(tx.views.credit_lines(limit=99))) == 2


def test_a_claim_beside_the_withdrawal_of_its_violation_owes_what_the_newest_version_credits(place: Place) -> None:
    place.do(close, work)
    told = place.at_once(claim("k1", 10), exclude("d1", "10:00", "11:00"), work)
    assert set(told) <= LOST_RACE | {"claim_refused"}
    assert told[1] == "done"
    place.do(work)
    with place.open() as desk:
        newest = require_sound(desk)
        assert newest["statement_version"] == 2
        availability = newest["objectives"][0]
        assert (availability["good"], availability["valid"]) == (1, 2)
        # Claimed in time of version 1 and taken back by version 2, or never entered.
        assert sum(int(line["minor_units"]) for line in entries(desk)) == 0
        assert len(entries(desk)) == (2 if told[0] == "done" else 0)


def test_facts_that_come_while_two_close_the_period_are_all_in_it(place: Place) -> None:
    again_where_lost(
        place,
        close,
        close,
        observe(failed("late", 4), good("e", 13)),
        exclude("d1", "10:00", "11:00"),
        exclude("d2", "03:00", "03:30"),
        work,
    )
    with place.open() as desk:
        newest = require_sound(desk)
        assert [(each["good"], each["valid"]) for each in newest["objectives"]] == [(2, 3), (2, 2), (2, 2)]
        assert [each["exclusion_id"] for each in newest["exclusions"]] == ["d2", "d1"]
        assert newest["excluded"] == 1


def test_what_is_restated_by_several_at_once_is_restated_once(place: Place) -> None:
    place.do(close, work, observe(failed("late", 4)), exclude("d1", "10:00", "11:00"))
    assert place.at_once(*[work] * 3) == ["done"] * 3
    with place.open() as desk:
        newest = require_sound(desk)
        assert newest["statement_version"] == 2
        assert len(newest["restates"]["facts"]) == 2
