"""The same facts in any order, before the closing and after it, give statements of the same bytes: on SQLite, with an
amendment in the middle of a period, exclusions, conflicts and samples.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from ledger.app.facts.observations import record_observations
from ledger.app.facts.telemetry import find_evidence
from ledger.app.judgement.violations import record_violations
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.periods.closing import Cause, close_period
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.store.database import SqliteDatabase
from tests.support.said import said
from tests.unit.app.conftest import Desk, find_requests, log, make_desk, read_rows, row, signed_agreement
from tests.unit.app.test_agreement_lifecycle import amend, found
from tests.unit.app.test_sampled_windows import sample
from tests.unit.app.test_stages import runner

PARTS = ("2023-06-01/P14D", "2023-06-15/P16D")
JUNE = ("2023-06-01", "2023-07-01")


def terms(*, evaluator: str, longest: str, base: str, first: str) -> dict[str, Any]:
    compensation = signed_agreement()["compensation"]
    tiers = {
        "uptime": [{"below": "99", "credit_percent": "10"}, {"below": "50", "credit_percent": "25"}],
        "facts": [{"below": "98.2", "credit_percent": "20"}],
    }
    facts = {"id": "facts", "method": "total_ratio", "indicator": "fact_consistency", "target": "98.2"}
    return {
        "period": "P30D",
        "window": "PT48H",
        "effective": {"from": first, "until": "2023-07-31"},
        "anchor": "2023-06-01",
        "partial_periods": "prorate",
        "objectives": [
            {"id": "uptime", "method": "total_ratio", "indicator": "availability", "target": "99"},
            {**facts, "evaluator": evaluator, "minimum_valid": 2},
        ],
        "compensation": {
            **compensation,
            "base": base,
            "rules": [{"kind": "tiered", "method": "tiered-v1", "tiers": tiers}],
            "tiers_combine": "sum",
        },
        "maintenance": {
            "classes": [{"id": "release", "reason": "r", "longest": longest, "at_most": {"count": 1, "per": "month"}}],
        },
        "carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}],
    }


FIRST = terms(evaluator="factbench 2.1", longest="PT48H", base="8000.00", first="2023-06-01")
SECOND = terms(evaluator="factbench 3.0", longest="PT96H", base="9000.00", first="2023-06-15")

Act = Callable[[Desk], None]


def batch(*rows: dict[str, Any], within: tuple[str, str] = JUNE) -> Act:
    def hand_in(desk: Desk) -> None:
        with desk.database.begin() as tx:
            record_observations(
                tx,
                found(desk).versions[-1],
                log(*rows),
                read_rows=read_rows,
                declared_complete=Interval(*(parse_instant_ns(f"{day}T00:00:00Z") for day in within)),
                # What is declared complete has come by then, whenever the amendment was signed.
                now_ns=max(desk.clock.now_ns(), parse_instant_ns(f"{within[1]}T00:00:00Z")),
            )

    return hand_in


def exclude(name: str, clause: str, start: str, end: str, **said: Any) -> Act:
    def record(desk: Desk) -> None:
        asked = {
            "reason": "r",
            "ticket": name,
            "approved_by": "board",
            "from_ns": parse_instant_ns(start),
            "to_ns": parse_instant_ns(end),
            **said,
        }
        ExclusionDesk(desk.database, desk.attestor, desk.clock).record(
            desk.attestor.sla_id(desk.agreement), AskedExclusion(id=name, clause=clause, **asked)
        )

    return record


def withdrawn(name: str, clause: str, start: str, end: str) -> Act:
    """Recorded by mistake and taken back."""

    def both(desk: Desk) -> None:
        exclude(name, clause, start, end)(desk)
        ExclusionDesk(desk.database, desk.attestor, desk.clock).withdraw(
            desk.attestor.sla_id(desk.agreement), name, reason="r"
        )

    return both


def failed(name: str, day: str, hour: int = 12) -> dict[str, Any]:
    return row(name, at=f"2023-06-{day}T{hour:02}:00:00Z", error_code=500)


def good(name: str, day: str) -> dict[str, Any]:
    return row(name, at=f"2023-06-{day}T12:00:00Z")


def facts(name: str, day: str, version: str, **counts: int) -> dict[str, Any]:
    return sample(name, f"2023-06-{day}T12:00:00Z", evaluator=f"factbench {version}", **counts)


FACTS: dict[str, Act] = {
    "requests of the whole month": batch(good("a", "02"), failed("b", "08"), good("c", "16"), failed("d", "26")),
    "ids that say something else, here and in the other part": batch(
        failed("a", "04"), good("d", "02"), failed("e", "20"), failed("e", "14"), good("b", "08")
    ),
    "a part of the log again": batch(good("c", "16"), failed("d", "26"), within=("2023-06-15", "2023-07-01")),
    "samples of the whole month": batch(
        facts("s", "02", "2.1", good=90, bad=10), facts("t", "20", "3.0", good=99, bad=1, undecided=2)
    ),
    "samples that contradict": batch(
        facts("s", "04", "2.1", good=50, bad=1),
        facts("u", "06", "2.1", good=7, bad=3),
        facts("t", "02", "2.1", good=1, bad=0),
    ),
    "more samples": batch(facts("v", "10", "2.1", good=1000, bad=0), facts("w", "22", "3.0", good=0, bad=4)),
    "a dispute over days of both parts": exclude("d1", "dispute", "2023-06-13T00:00:00Z", "2023-06-17T00:00:00Z"),
    "a release": exclude("r1", "release", "2023-06-25T00:00:00Z", "2023-06-29T00:00:00Z"),
    "a release that starts before it": withdrawn("r0", "release", "2023-06-09T00:00:00Z", "2023-06-10T00:00:00Z"),
    "what nobody approved": exclude("n1", "dispute", "2023-06-03T00:00:00Z", "2023-06-05T00:00:00Z", approved_by=None),
    "a second dispute over the same time": exclude("d2", "dispute", "2023-06-15T00:00:00Z", "2023-06-17T00:00:00Z"),
}


@contextmanager
def ledger() -> Iterator[Desk]:
    desk = make_desk()
    desk.agreement = Agreement.from_document(signed_agreement(**FIRST))
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "ledger.db", desk.clock, desk.randomness)
        desk.database = database  # type: ignore[assignment]
        try:
            yield desk
        finally:
            database.close()


@dataclass(frozen=True)
class Course:
    """An order of the facts, after how many of them the amendment is signed and the parts are closed, and whether all
    that is due is done after each: windows are judged as they are watched, or once the parts are closed."""

    order: tuple[str, ...]
    amended_after: int
    closed_after: int
    at_once: bool


@st.composite
def courses(draw: st.DrawFn) -> Course:
    order = draw(st.permutations(list(FACTS)))
    closed_after = draw(st.integers(0, len(order)))
    return Course(tuple(order), draw(st.integers(0, closed_after)), closed_after, draw(st.booleans()))


def outcome(course: Course) -> dict[str, Any]:
    """What is said of each part in the end."""
    with ledger() as desk:
        desk.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
        desk.register()
        for at, name in enumerate(course.order):
            if at == course.amended_after:
                amend(desk, Agreement.from_document(signed_agreement(**SECOND)))
            if at == course.closed_after:
                close(desk)
            FACTS[name](desk)
            if course.at_once:
                watch(desk)
                work(desk)
        if course.amended_after == len(course.order):
            amend(desk, Agreement.from_document(signed_agreement(**SECOND)))
        if course.closed_after == len(course.order):
            close(desk)
        work(desk)
        return {part: said_of(desk, part) for part in PARTS}


def close(desk: Desk) -> None:
    desk.clock.now = parse_instant_ns("2023-07-05T00:00:00Z")
    timeline = found(desk)
    for part in PARTS:
        terms_of, period = timeline.timeline.named(part)
        with desk.database.begin() as tx:
            close_period(tx, timeline.of(terms_of), period, cause=Cause.REQUEST, now_ns=desk.clock.now_ns())


def watch(desk: Desk) -> None:
    """Judge the running period, which is the whole one before the amendment is signed."""
    timeline = found(desk)
    period = timeline.timeline.at(desk.clock.now_ns())
    assert period is not None
    terms_of, _ = timeline.timeline.starting(period.first)
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, timeline.of(terms_of), period, read_rows=read_rows, running=True)
        record_violations(
            tx,
            timeline.of(terms_of),
            period,
            judged,
            find_evidence=find_evidence,
            find_requests=find_requests,
            now_ns=desk.clock.now_ns(),
        )


def work(desk: Desk) -> None:
    while runner(desk).run_once():
        pass


def said_of(desk: Desk, part: str) -> dict[str, Any]:
    with desk.database.read() as tx:
        return said(tx, found(desk), part)


def digests(course: Course) -> dict[str, str]:
    return {part: hashlib.sha256(canonical_bytes(each)).hexdigest() for part, each in outcome(course).items()}


@cache
def straight() -> dict[str, str]:
    """All facts as they are listed, and the closing after them."""
    return digests(Course(tuple(FACTS), 0, len(FACTS), at_once=False))


def last(name: str) -> Course:
    """One fact after everything else, and all but three after the closing."""
    return Course((*(each for each in FACTS if each != name), name), 0, 3, at_once=True)


@pytest.mark.long
# Nothing is shrunk: each course takes seconds, and it is printed.
@settings(max_examples=3, phases=(Phase.explicit, Phase.reuse, Phase.generate))
# Which samples count was asked of the newest terms: what only the terms before it take changed no closed part.
@example(last("samples of the whole month"))
# What was judged past the amendment, while nobody had signed it, was taken for windows of the first part.
@example(Course(tuple(FACTS), 4, 8, at_once=True))
@given(courses())
def test_does_not_change_what_is_said_and_owed(course: Course) -> None:
    assert digests(course) == straight()
