"""An amendment that changes how a source shows that nothing is missing: each part is covered as its own terms say."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.facts.handing_in import HandedIn, hand_in
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import DAY_NS, format_instant_ns, parse_instant_ns
from ledger.ingest.facts import read_facts
from tests.unit.app.conftest import Desk, log, make_desk, row, signed_agreement
from tests.unit.app.test_agreement_lifecycle import JUNE, PARTS, amend, amended, observe, settle

START_NS = parse_instant_ns("2023-06-01T00:00:00Z")
BY_LOG = {"name": "gateway-log", "coverage": "complete_log"}
BY_HEARTBEAT = {"name": "gateway-log", "coverage": "heartbeat", "heartbeat": "PT24H"}


def desk_of(before: dict[str, Any], after: dict[str, Any]) -> Desk:
    """A ledger on 5 July of an agreement whose source was amended from 15 June on."""
    desk = make_desk()
    desk.agreement = Agreement.from_document(signed_agreement(**JUNE, source=before))
    desk.clock.now = parse_instant_ns("2023-06-05T00:00:00Z")
    desk.register()
    amend(desk, amended(source=after))
    desk.clock.now = parse_instant_ns("2023-07-05T00:00:00Z")
    return desk


def beat_daily(desk: Desk) -> HandedIn:
    """A heartbeat at the end of each day of June."""
    said = {"service": "example-chat", "covers_s": 86_400}
    beats = (
        {"heartbeat_id": f"day-{day}", "at": format_instant_ns(START_NS + day * DAY_NS), **said} for day in range(1, 31)
    )
    sla_id = desk.attestor.sla_id(desk.agreement)
    return hand_in(
        desk.database,
        sla_id,
        log(*beats),
        attestor=desk.attestor,
        clock=desk.clock,
        read_rows=read_facts,
        declared_complete=None,
    )


def observed(desk: Desk) -> list[int]:
    return [settle(desk, name)["observed"] for name in PARTS]


@pytest.mark.parametrize(
    ("before", "after", "accepted", "expected"),
    [(BY_LOG, BY_HEARTBEAT, 16, [0, 8]), (BY_HEARTBEAT, BY_LOG, 14, [7, 0])],
)
def test_heartbeats_cover_the_part_whose_terms_take_them_and_no_other(
    before: dict[str, Any], after: dict[str, Any], accepted: int, expected: list[int]
) -> None:
    desk = desk_of(before, after)
    counts = beat_daily(desk).batch.counts
    assert (counts.accepted, counts.rejected) == (accepted, {"no_heartbeats": 30 - accepted})
    assert observed(desk) == expected


def test_a_log_that_is_declared_complete_covers_both_parts() -> None:
    desk = desk_of(BY_LOG, BY_HEARTBEAT)
    observe(desk, row("r-1", "2023-06-10T10:00:00Z"), last="2023-07-01")
    assert observed(desk) == [7, 8]
