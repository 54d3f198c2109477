"""Data quality: rows that say what no honest source says, told one by one, and whether each has been answered.

More good than all, a count below 0, more than the full score: such a row blocks the settlement of its period
(``ledger.domain.samples``). One event for the batch says which row, which source and which value. It is resolved once a
usable row stands under the same id, whether that came before or after; nothing else resolves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.app.access import Principal
from ledger.app.ports import Database, Transaction
from ledger.domain.events import NewEvent, StoredEvent
from ledger.domain.interval import Interval
from ledger.domain.lifecycle import Timeline
from ledger.domain.money import format_floored
from ledger.domain.naming import agreement_stream, quality_stream
from ledger.domain.observation import Reason, SampleRow, identity_scope, request_id_digests
from ledger.domain.quality_events import MAX_ROWS
from ledger.domain.samples import Refused, SampleRule, scope_of
from ledger.errors import NotFound

REPORTED = "data_quality_reported"
_VALUE_DECIMALS = 30
"""As many as a value of a row may have."""


@dataclass(frozen=True, slots=True)
class QualityFault:
    """A row that blocks its period, or did. ``resolved``: a usable row stands under its id."""

    sla_id: str
    source: str
    period: str
    digest: str
    reason: str
    row: Mapping[str, Any]
    resolved: bool
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class QualityDesk:
    """Shows what is wrong with the facts of one tenant's agreements."""

    database: Database

    def of(self, sla_id: str, principal: Principal | None = None) -> list[QualityFault]:
        """All rows that were reported for an agreement, the open ones first, then as they came; for a principal or
        whoever runs this. Raises ``NotFound``."""
        with self.database.read() as tx:
            unseen = principal is not None and not principal.may_see(sla_id)
            if unseen or next(iter(tx.events.stream(agreement_stream(sla_id))), None) is None:
                raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
            found = [fault for event in tx.events.stream(quality_stream(sla_id)) for fault in _faults(tx, event)]
        return sorted(found, key=lambda fault: fault.resolved)


def report_implausible(
    tx: Transaction,
    timeline: Timeline,
    said: Mapping[str, Any],
    rows: Iterable[Any],
    declared_complete: Interval | None,
    now_ns: int,
) -> None:
    """Append what is implausible among the rows of a batch, by the period and the terms that each row lies in.

    ``said`` is the payload of the event that recorded the batch.
    """
    rules = [(each.agreement.periods, SampleRule(each.agreement)) for each in reversed(timeline.terms)]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if not isinstance(row, SampleRow) or (declared_complete is not None and row.at_ns not in declared_complete):
            continue
        for periods, rule in rules:
            period = periods.at(row.at_ns)
            if period is not None:
                refused = rule.counted(row)
                if isinstance(refused, Refused) and refused.reason is Reason.IMPLAUSIBLE:
                    found.setdefault(str(period), []).append(_row(row, refused))
                break
    same = {"sla_id": said["sla_id"], "source": said["source"], "digest": said["digest"], "reason": "implausible"}
    events = [
        NewEvent(REPORTED, {**same, "period": period, "rows": wrong[at : at + MAX_ROWS]}, occurred_at_ns=now_ns)
        for period, wrong in found.items()
        for at in range(0, len(wrong), MAX_ROWS)
    ]
    stream = quality_stream(said["sla_id"])
    if events:
        tx.events.append(stream, events, expected_version=sum(1 for _ in tx.events.stream(stream)))


def _row(row: SampleRow, refused: Refused) -> dict[str, Any]:
    if row.counts is not None:
        value = "good {}, bad {}, undecided {}".format(*row.counts)
    else:
        value = _plain(row.value or Fraction(0))
    return {
        "sample_id": row.sample_id,
        "line": row.line,
        "indicator": row.indicator,
        "field": refused.field,
        "value": value[:200],
        "message": refused.message[:300],
        "at_ns": str(row.at_ns),
    }


def _plain(value: Fraction) -> str:
    """A value as a decimal text: exact, because rows say decimals of at most so many places."""
    return format_floored(value.numerator, value.denominator, _VALUE_DECIMALS).rstrip("0").removesuffix(".")


def _faults(tx: Transaction, event: StoredEvent) -> list[QualityFault]:
    payload = event.payload
    sla_id, source, rows = payload["sla_id"], payload["source"], payload["rows"]
    scope = identity_scope(sla_id, source, scope_of(payload["period"]))
    ids = request_id_digests(scope, [row["sample_id"] for row in rows])
    known = tx.identities.known(sla_id, source, sorted(ids))
    same = (sla_id, source, payload["period"], payload["digest"], payload["reason"])
    return [QualityFault(*same, row, each in known, event) for row, each in zip(rows, ids, strict=True)]
