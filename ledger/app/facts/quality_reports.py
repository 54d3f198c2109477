"""Reporting rows that say what no honest source says, one by one, as they are handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from ledger.app.ports.store import Transaction
from ledger.domain.events.quality_events import MAX_ID_CHARS, MAX_MESSAGE_CHARS, MAX_ROWS, MAX_VALUE_CHARS, REPORTED
from ledger.domain.facts.fact_kinds import KINDS
from ledger.domain.facts.feeds import FactRow
from ledger.domain.facts.samples import Refused, SampleRule
from ledger.domain.money import format_plain
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import quality_stream
from ledger.domain.rows.observation import Reason, SampleRow
from ledger.domain.terms.lifecycle import Timeline
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval

Wrong = tuple[Period, dict[str, Any]]
"""The first period that a row blocks, and the row as the event has it."""


def report_implausible(
    tx: Transaction,
    timeline: Timeline,
    said: Mapping[str, Any],
    rows: Iterable[Any],
    declared_complete: Interval | None,
    now_ns: int,
) -> None:
    """Append what is implausible among the rows of a batch, by the first period that each row blocks, and its terms.

    ``said`` is the payload of the event that recorded the batch.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    wrong_of = _wrong_of(timeline, declared_complete)
    for row in rows:
        blocked = wrong_of(row)
        if blocked is not None:
            period, wrong = blocked
            found.setdefault(str(period), []).append(wrong)
    same = {"sla_id": said["sla_id"], "source": said["source"], "digest": said["digest"], "reason": "implausible"}
    events = [
        NewEvent(REPORTED, {**same, "period": period, "rows": wrong[at : at + MAX_ROWS]}, occurred_at_ns=now_ns)
        for period, wrong in found.items()
        for at in range(0, len(wrong), MAX_ROWS)
    ]
    stream = quality_stream(said["sla_id"])
    if events:
        tx.events.append(stream, events, expected_version=sum(1 for _ in tx.events.stream(stream)))


def _wrong_of(timeline: Timeline, declared: Interval | None) -> Callable[[Any], Wrong | None]:
    """Finds the first period that a row of any log blocks, if it blocks one."""
    rules = [(each.agreement.periods, SampleRule(each.agreement)) for each in reversed(timeline.terms)]

    def of_sample(row: SampleRow) -> Wrong | None:
        if declared is not None and row.at_ns not in declared:
            return None
        for periods, rule in rules:
            period = periods.at(row.at_ns)
            if period is not None:
                refused = rule.counted(row)
                if not isinstance(refused, Refused) or refused.reason is not Reason.IMPLAUSIBLE:
                    return None
                says = format_plain(row.value or Fraction(0))
                if row.counts is not None:
                    says = "good {}, bad {}, undecided {}".format(*row.counts)
                return period, _row(row.line, row.sample_id, row.indicator, refused, says, row.at_ns)
        return None

    def of_fact(row: FactRow) -> Wrong | None:
        kind, spans = KINDS[type(row)], () if declared is None else (declared,)
        about = kind.about(row)
        if about is None:
            return None
        for terms in timeline.terms:
            refused = kind.judged(terms.agreement, row, spans)
            period = next(terms.agreement.periods.touching(about), None)
            if period is not None and refused is not None and refused.reason is Reason.IMPLAUSIBLE:
                shown = kind.shown(row)
                return period, _row(row.line, kind.identity(row), kind.name, refused, shown.says, shown.at_ns)
        return None

    def of(row: Any) -> Wrong | None:
        if type(row) is SampleRow:
            return of_sample(row)
        return of_fact(row) if type(row) in KINDS else None

    return of


def _row(line: int, name: str, indicator: str, refused: Refused, says: str, at_ns: int) -> dict[str, Any]:
    return {
        "sample_id": name[:MAX_ID_CHARS],
        "line": line,
        "indicator": indicator,
        "field": refused.field,
        "value": says[:MAX_VALUE_CHARS] or "nothing",
        "message": refused.message[:MAX_MESSAGE_CHARS],
        "at_ns": str(at_ns),
    }
