"""Data quality: rows that say what no honest source says, told one by one, and whether each has been answered.

More good than all, a count below 0, more than the full score, an outage that ends before it begins: such a row blocks
the settlement of its period (``ledger.domain.facts.samples``, ``ledger.domain.facts.feeds``). One event for the batch
says which row, which source and which value. It is resolved once a usable row stands in its place, whether that came
before or after; nothing else resolves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from ledger.app.access import Principal, metric_scopes
from ledger.app.agreements.registering import timeline_of
from ledger.app.facts.observations import ReadRows
from ledger.app.paging import Page, Row, no_place, page_of
from ledger.app.ports.store import Database, Transaction
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.feeds import FactKind, FactRow, newest_editions
from ledger.domain.facts.samples import scope_of
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import agreement_stream, observations_stream, quality_stream
from ledger.domain.rows.observation import RowRejection, identity_scope, request_id_digests
from ledger.domain.terms.log_kinds import REQUESTS
from ledger.domain.time.interval import Interval
from ledger.errors import NotFound

_COUNTS = ("value", "message")
"""What of a row says how much was counted."""


@dataclass(frozen=True, slots=True)
class QualityFault:
    """A row that blocks its period, or did. ``resolved``: a usable row stands under its id."""

    place: int
    sla_id: str
    source: str
    period: str
    digest: str
    reason: str
    row: Mapping[str, Any]
    resolved: bool
    event: StoredEvent

    @property
    def id(self) -> str:
        """Names it within its agreement: the event that reported it, and its place in there."""
        return f"{self.event.version}.{self.place}"

    @property
    def state(self) -> str:
        return "resolved" if self.resolved else "open"


@dataclass(frozen=True, slots=True)
class QualityPage:
    """Some of the rows that were reported, and how many of all are open."""

    page: Page
    open: int


@dataclass(frozen=True, slots=True)
class QualityDesk:
    """Shows what is wrong with the facts of one tenant's agreements."""

    database: Database
    read_rows: ReadRows

    def of(self, sla_id: str) -> list[QualityFault]:
        """All rows that were reported for an agreement, the open ones first, then as they came. Raises ``NotFound``."""
        return sorted(self._all(sla_id), key=lambda fault: fault.resolved)

    def page(
        self, sla_id: str, principal: Principal, *, state: str | None, after: str | None, limit: int
    ) -> QualityPage:
        """Rows as they came, open or resolved ones alone where ``state`` says so, as far as the principal may see them.

        A row is {id, state, source, period, digest, reason, sample_id, line, indicator, field, value, message, at_ns,
        withheld}. Raises ``NotFound`` and ``CursorInvalid``.
        """
        if not principal.may_see(sla_id):
            raise _not_there(sla_id)
        found = self._all(sla_id)
        places = [fault.id for fault in found]
        if after is not None and after not in places:
            raise no_place(after)
        # By its place among all: a row may have been resolved since the page before, and so have left the filter.
        following = found[0 if after is None else places.index(after) + 1 :]
        chosen = [fault for fault in following if state in (None, fault.state)]
        rows = [_visible(fault, principal) for fault in chosen[: limit + 1]]
        return QualityPage(page_of(rows, limit, "id"), sum(not fault.resolved for fault in found))

    def _all(self, sla_id: str) -> list[QualityFault]:
        with self.database.read() as tx:
            if next(iter(tx.events.stream(agreement_stream(sla_id))), None) is None:
                raise _not_there(sla_id)
            answered = _by_feeds(tx, self.read_rows)
            events = tx.events.stream(quality_stream(sla_id))
            return [fault for event in events for fault in _faults(tx, event, answered)]


def _not_there(sla_id: str) -> NotFound:
    return NotFound(f"there is no agreement {sla_id}", agreement=sla_id)


def _visible(fault: QualityFault, principal: Principal) -> Row:
    """A fault as a row. What was counted needs the scope of the indicator, as everywhere."""
    same = ("id", "state", "source", "period", "digest", "reason")
    row = {**{name: getattr(fault, name) for name in same}, **fault.row, "at_ns": int(fault.row["at_ns"])}
    if principal.holds(*metric_scopes(fault.row["indicator"])):
        return {**row, "withheld": []}
    return {**row, **dict.fromkeys(_COUNTS), "withheld": sorted(_COUNTS)}


Answered = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def _faults(tx: Transaction, event: StoredEvent, answered: Answered) -> list[QualityFault]:
    payload = event.payload
    sla_id, source, rows = payload["sla_id"], payload["source"], payload["rows"]
    same = (sla_id, source, payload["period"], payload["digest"], payload["reason"])
    if rows[0]["indicator"] in BOOKS:
        return [QualityFault(at, *same, row, answered(payload, row), event) for at, row in enumerate(rows)]
    scope = identity_scope(sla_id, source, scope_of(payload["period"]))
    ids = request_id_digests(scope, [row["sample_id"] for row in rows])
    known = tx.identities.known(sla_id, source, sorted(ids))
    return [
        QualityFault(at, *same, row, each in known, event) for at, (row, each) in enumerate(zip(rows, ids, strict=True))
    ]


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
