"""A ledger that is told facts of some kind, and what it makes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from ledger.app.facts.handing_in import HandedIn, hand_in
from ledger.app.facts.quality import QualityDesk, QualityFault
from ledger.app.judgement.windows import evaluate_windows, load_windows
from ledger.app.settlement.statements import IssuedStatement, issued_for
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import DAY_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Window
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk, log, make_desk
from tests.unit.app.test_stages import close, runner

DAY = "2023-06-14/P1D"


def desk_of(objectives: Sequence[dict[str, Any]], **changes: Any) -> Desk:
    """A ledger of one agreement with these objectives, each of which earns 10 % below its target."""
    compensation = json.loads(json.dumps(make_desk().agreement.document["compensation"]))
    compensation["rules"][0]["tiers"] = {
        each["id"]: [{"below": each["target"], "credit_percent": "10"}] for each in objectives
    }
    desk = make_desk(objectives=list(objectives), compensation=compensation, **changes)
    # Late enough for two days to be over, early enough for facts about them.
    desk.clock.now = period_named(desk.agreement, DAY).interval.end_ns + DAY_NS
    return desk


def hand(desk: Desk, *rows: dict[str, Any], period: str | None = DAY, complete: Interval | None = None) -> HandedIn:
    """Hand in a log that is complete in a period, or between two instants, or (neither) nowhere."""
    if period is not None and complete is None:
        complete = period_named(desk.agreement, period).interval
    return hand_in(
        desk.database,
        desk.register().sla_id,
        log(*rows),
        attestor=desk.attestor,
        clock=desk.clock,
        read_rows=read_facts,
        declared_complete=complete,
    )


def judge(desk: Desk, period: str = DAY) -> tuple[Window, ...]:
    registered, chosen = desk.register(), period_named(desk.agreement, period)
    with desk.database.begin() as tx:
        judged = evaluate_windows(tx, registered, chosen, read_rows=read_facts)
        assert load_windows(tx, registered, chosen).windows == judged.windows
        return judged.windows


def settle(desk: Desk, period: str = DAY) -> IssuedStatement:
    """Close a period, do what follows, and give its newest statement."""
    close(desk, period=period)
    return work(desk, period)


def work(desk: Desk, period: str = DAY) -> IssuedStatement:
    """Do what is due, and give the newest statement of a period."""
    while runner(desk).run_once():
        pass
    registered = desk.register()
    with desk.database.read() as tx:
        return issued_for(tx, registered, period_named(desk.agreement, period))


def faults(desk: Desk) -> list[QualityFault]:
    """Rows that block a period, or did."""
    return QualityDesk(desk.database, read_facts).of(desk.register().sla_id)


def figures(issued: IssuedStatement) -> dict[str, tuple[int, int, str]]:
    return {each.objective.id: (each.good, each.valid, str(each.state)) for each in issued.settlement.objectives}


def sha256(issued: IssuedStatement) -> str:
    return hashlib.sha256(canonical_bytes(issued.settlement.as_document())).hexdigest()
