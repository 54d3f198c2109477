"""What finance does with credit lines: take one back, or say that billing has booked it.

A line is taken back whole by an entry of the negative amount with reason and link, never by an edit. If it was not
booked yet, line and entry are both void; if it was, the line stays applied and the entry is to be booked as well. So
both sums are what is owed: of all entries, and of those that are not void.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.access import DEFAULT_TENANT
from ledger.app.agreements.registering import timeline_of
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import proved
from ledger.app.settlement.credit_lines import Line, current_lines
from ledger.domain.credits.credit_lines import LineStatus
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import credit_lines_stream, reversal_line_id, statement_of_line
from ledger.domain.time.instant import Clock
from ledger.errors import CreditLineRefused, IdempotencyConflict, NotFound


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for a change, and under which Idempotency-Key: the same key again means the same request."""

    request: str
    by: str | None
    now_ns: int


class CreditDesk:
    """The changes of one tenant's lines, each in a transaction of its own.

    Every one raises ``NotFound``, ``CreditLineRefused``, ``IdempotencyConflict`` for a key that was used for
    something else, and ``VersionConflict`` where another change of the statement's lines came between.
    """

    def __init__(self, database: Database, clock: Clock, tenant: str = DEFAULT_TENANT) -> None:
        """``database`` is that of ``tenant``."""
        self._database = database
        self._clock = clock
        self.tenant = tenant

    def of_tenant(self, tenant: str) -> CreditDesk:
        """The same for another tenant's lines."""
        return self if tenant == self.tenant else CreditDesk(self._database.of_tenant(tenant), self._clock, tenant)

    def reverse(self, line_id: str, *, reason: str, request: str, by: str | None = None) -> Line:
        """Take a line back; the reversal entry."""
        with self._database.begin() as tx:
            return reverse_credit_line(tx, line_id, reason=reason, asked=Asked(request, by, self._clock.now_ns()))

    def apply(self, line_id: str, *, reference: str, request: str, by: str | None = None) -> Line:
        """Record that billing booked a line; the line as it is now."""
        with self._database.begin() as tx:
            asked = Asked(request, by, self._clock.now_ns())
            return apply_credit_line(tx, line_id, reference=reference, asked=asked)


def reverse_credit_line(tx: Transaction, line_id: str, *, reason: str, asked: Asked) -> Line:
    """See ``CreditDesk.reverse``."""

    def change(line: Line) -> dict[str, Any]:
        if line["reverses"] is not None:
            raise CreditLineRefused(f"{line_id} is a reversal itself, and stays", line_id=line_id)
        if line["reversed_by"] is not None:
            raise CreditLineRefused(f"{line_id} was taken back before, by {line['reversed_by']}", line_id=line_id)
        booked = line["status"] == LineStatus.APPLIED
        entry_id, units = reversal_line_id(line_id), int(line["minor_units"])
        entry = {
            **line,
            "line_id": entry_id,
            "minor_units": str(-units),
            "status": str(LineStatus.ISSUED if booked else LineStatus.VOID),
            "reverses": line_id,
            "reason": reason,
            "billing": None,
        }
        status = str(LineStatus.APPLIED if booked else LineStatus.VOID)
        return {"entry": entry, "reversed": {**line, "reversed_by": entry_id, "status": status}}

    def same(made: Mapping[str, Any]) -> bool:
        return bool(made["entry"]["reason"] == reason)

    entry: Line = _changed(tx, line_id, "credit_line_reversed", asked, change, same)["entry"]
    return entry


def apply_credit_line(tx: Transaction, line_id: str, *, reference: str, asked: Asked) -> Line:
    """See ``CreditDesk.apply``."""

    def change(line: Line) -> dict[str, Any]:
        if line["status"] != LineStatus.ISSUED:
            said = line["billing"] and f" under {line['billing']['reference']}"
            raise CreditLineRefused(f"{line_id} is {line['status']} already{said or ''}", line_id=line_id)
        if line["proof_due"] and proved(tx, line["statement_id"]) is None:
            raise CreditLineRefused(
                f"{line_id} is a draft until its statement is proved; book it after that", line_id=line_id
            )
        billing = {"reference": reference, "at_ns": str(asked.now_ns), "by": asked.by}
        return {"line": {**line, "status": str(LineStatus.APPLIED), "billing": billing}}

    def same(made: Mapping[str, Any]) -> bool:
        return bool(made["line"]["billing"]["reference"] == reference)

    line: Line = _changed(tx, line_id, "credit_applied", asked, change, same)["line"]
    return line


def _changed(
    tx: Transaction,
    line_id: str,
    kind: str,
    asked: Asked,
    change: Callable[[Line], dict[str, Any]],
    same: Callable[[Mapping[str, Any]], bool],
) -> Mapping[str, Any]:
    """The payload that was appended for this request, now or before."""
    stream, events = _held(tx, line_id)
    line = current_lines(events).get(line_id)
    if line is None:
        raise NotFound(f"there is no credit line {line_id[:140]}", line_id=line_id[:140])
    before = next((event for event in events if event.payload.get("request") == asked.request), None)
    if before is not None:
        if before.type != kind or _subject(before) != line_id or not same(before.payload):
            raise IdempotencyConflict(
                f"the idempotency key was used for another change of {_subject(before)}; take a new one",
                line_id=_subject(before),
            )
        return before.payload
    payload = {"request": asked.request, "by": asked.by, **change(line)}
    tx.events.append(
        stream,
        [NewEvent(kind, payload, occurred_at_ns=asked.now_ns)],
        expected_version=len(events),
        # Held over all statements: the look above sees those of this one alone.
        idempotency_key=f"credit-change/{asked.request}",
    )
    return payload


def _held(tx: Transaction, line_id: str) -> tuple[str, list[StoredEvent]]:
    """The stream and the events of the statement that a line is of, none for one that is of no statement.

    Nobody restates it until the transaction ends: the lines of a restatement are differences from all before them.
    """
    statement_id = statement_of_line(line_id)
    if statement_id is None:
        return "", []
    stream = credit_lines_stream(statement_id)
    issued = next(iter(tx.events.stream(stream)), None)
    if issued is None:
        return stream, []
    sla_id = issued.payload["sla_id"]
    tx.identities.reserve(sla_id, timeline_of(tx, sla_id).newest.source)
    return stream, list(tx.events.stream(stream))


def _subject(event: StoredEvent) -> str:
    """The line that a change was asked for."""
    changed = event.payload["reversed"] if event.type == "credit_line_reversed" else event.payload["line"]
    return str(changed["line_id"])
