"""Data quality: rows that say what no honest source says, told one by one, and whether each has been answered.

More good than all, a count below 0, more than the full score, an outage that ends before it begins: such a row blocks
the settlement of its period (``ledger.domain.samples``, ``ledger.domain.feeds``). One event for the batch says which
row, which source and which value. It is resolved once a usable row stands in its place, whether that came before or
after; nothing else resolves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from ledger.app.access import Principal
from ledger.app.agreements import timeline_of
from ledger.app.observations import ReadRows
from ledger.app.ports import Database, Transaction
from ledger.domain.events import StoredEvent
from ledger.domain.fact_kinds import BOOKS
from ledger.domain.feeds import FactKind, FactRow, newest_editions
from ledger.domain.interval import Interval
from ledger.domain.log_kinds import REQUESTS
from ledger.domain.naming import agreement_stream, observations_stream, quality_stream
from ledger.domain.observation import RowRejection, identity_scope, request_id_digests
from ledger.domain.samples import scope_of
from ledger.errors import NotFound


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
    read_rows: ReadRows

    def of(self, sla_id: str, principal: Principal | None = None) -> list[QualityFault]:
        """All rows that were reported for an agreement, the open ones first, then as they came; for a principal or
        whoever runs this. Raises ``NotFound``."""
        with self.database.read() as tx:
            unseen = principal is not None and not principal.may_see(sla_id)
            if unseen or next(iter(tx.events.stream(agreement_stream(sla_id))), None) is None:
                raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
            answered = _by_feeds(tx, self.read_rows)
            events = tx.events.stream(quality_stream(sla_id))
            found = [fault for event in events for fault in _faults(tx, event, answered)]
        return sorted(found, key=lambda fault: fault.resolved)


Answered = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def _faults(tx: Transaction, event: StoredEvent, answered: Answered) -> list[QualityFault]:
    payload = event.payload
    sla_id, source, rows = payload["sla_id"], payload["source"], payload["rows"]
    same = (sla_id, source, payload["period"], payload["digest"], payload["reason"])
    if rows[0]["indicator"] in BOOKS:
        return [QualityFault(*same, row, answered(payload, row), event) for row in rows]
    scope = identity_scope(sla_id, source, scope_of(payload["period"]))
    ids = request_id_digests(scope, [row["sample_id"] for row in rows])
    known = tx.identities.known(sla_id, source, sorted(ids))
    return [QualityFault(*same, row, each in known, event) for row, each in zip(rows, ids, strict=True)]


def _by_feeds(tx: Transaction, read_rows: ReadRows) -> Answered:
    """Tells of a row of a feed (the event's payload, its row) whether a usable one stands in its place.

    By the rows themselves: what answers an outage is any later revision of it, and ids do not tell those.
    """

    def rows_of(digest: str) -> Iterator[FactRow]:
        rows = cast(Iterator[FactRow | RowRejection], read_rows(tx.batches.get(digest)))
        return (row for row in rows if not isinstance(row, RowRejection))

    @cache
    def in_batch(digest: str) -> Mapping[int, FactRow]:
        return {row.line: row for row in rows_of(digest)}

    @cache
    def standing(sla_id: str, source: str, name: str) -> Mapping[str, int]:
        kind: FactKind[Any] = BOOKS[name].kind
        terms, usable = timeline_of(tx, sla_id).documents, list[FactRow]()
        for event in tx.events.stream(observations_stream(sla_id, source)):
            said = event.payload
            if said.get("format", REQUESTS) == name:
                span = said["declared_complete"]
                within = () if span is None else (Interval(int(span["from_ns"]), int(span["to_ns"])),)
                usable += (
                    row
                    for row in rows_of(said["digest"])
                    if any(kind.judged(each, row, within) is None for each in terms)
                )
        return newest_editions(kind, usable)

    def answered(payload: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        name = row["indicator"]
        place, edition = BOOKS[name].kind.place(in_batch(payload["digest"])[row["line"]])
        return standing(payload["sla_id"], payload["source"], name).get(place, -1) >= edition

    return answered
