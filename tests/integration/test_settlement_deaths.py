"""A process that judges, settles or restates is killed at every transaction: the next one ends with the same."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.settling_processes import (
    LEASE_NS,
    Act,
    Place,
    close,
    entries,
    exclude,
    observe,
    require_sound,
    work,
)
from tests.unit.app.conftest import row

TERMS = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}
OF_ITS_RUN = {"closing_event", "restates", "telemetry_root"}
"""Event ids and salts."""


def failed(name: str, hour: int) -> dict[str, Any]:
    return row(name, at=f"2023-06-14T{hour:02}:00:00Z", error_code=500)


FACTS = observe(row("a", at="2023-06-14T12:00:00Z"), failed("b", 3), failed("c", 10))
LATE = (observe(failed("late", 4)), exclude("d1", "10:00", "11:00"))
PREPARED: dict[str, tuple[Act, ...]] = {
    "a period that was closed": (FACTS, close),
    "a period that is restated": (FACTS, close, work, *LATE),
}


def outcome(place: Place) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """What the newest statement says once all that is due was done, and the entries of all versions."""
    with place.open() as desk:
        work(desk)
        newest = require_sound(desk)
        lines = [(each["line_id"], each["violation_id"], each["minor_units"]) for each in entries(desk)]
    return {name: value for name, value in newest.items() if name not in OF_ITS_RUN}, lines


@pytest.mark.parametrize("name", PREPARED)
def test_a_process_that_is_killed_leaves_nothing_half_done_and_nothing_to_do_twice(name: str, tmp_path: Path) -> None:
    prepared = Place(tmp_path / "prepared.db", TERMS)
    prepared.do(*PREPARED[name])
    found = []
    for transaction in itertools.count(1):
        place = Place(tmp_path / f"{transaction}.db", TERMS, prepared.clock)
        shutil.copy(tmp_path / "prepared.db", tmp_path / f"{transaction}.db")
        died = place.killed_after(transaction, work)
        # What it held is due again.
        place.clock.ahead_ns += 2 * LEASE_NS
        found.append(outcome(place))
        if not died:
            break
    assert all(each == found[-1] for each in found)
    # Lease, judge, done; lease, settle, done.
    assert len(found) > 6
