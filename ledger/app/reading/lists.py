"""Lists that are continued by key, and what a principal may see of their rows: windows, violations, credit lines.

Rows are those of ``ledger.app.ports.views.Views`` without what the principal may not see: that is None and named in
``withheld``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from ledger.app.access import Principal, metric_scopes, redact
from ledger.app.billing.exports import ControlTotals, credit_rows, write_credit_export
from ledger.app.paging import ANY_START, Page, Row, Starts, no_place, page_of, place_of
from ledger.app.periods.exclusions import rulings_by_id
from ledger.app.ports.store import Database, Transaction
from ledger.domain.terms.agreement import Agreement
from ledger.domain.windows.exclusions import Ruled
from ledger.errors import NotFound

_COUNTS = ("good", "valid", "bad", "worst")


class Lists:
    """The lists of one tenant. Every method raises ``Unavailable`` where the database cannot be read.

    ``after`` is the ``last_id`` of the page before. Lists raise ``NotFound`` for an unknown agreement, or one that
    the principal may not see, and ``CursorInvalid``.
    """

    def __init__(self, database: Database) -> None:
        """``database`` is that of the tenant."""
        self._database = database

    def windows(self, principal: Principal, sla_id: str, period: str, *, after: str | None, limit: int) -> Page:
        """{index, start_ns, end_ns, state, excluded_requests, exclusions, objectives, seq} by index.

        ``objectives`` are {id, indicator, good, bad, undecided} in the agreement's order; counts that the principal
        may not see are None.
        """
        with self._database.read() as tx:
            _visible_agreements(tx, principal, sla_id)
            objectives = tx.views.agreement(sla_id)["document"]["objectives"]
            rows = tx.views.windows_page(sla_id, period, after=_index(after), limit=limit + 1)
        shown = [_window(row, objectives, principal) for row in rows]
        return page_of(shown, limit, "index")

    def exclusions(self, principal: Principal, sla_id: str, *, after: str | None, limit: int) -> Page:
        """What is excluded from an agreement's counts, by start, withdrawn ones among them.

        A row of ``Views.exclusions`` with its ``id``, ``ruling`` (None once it is withdrawn), ``honoured`` ({from_ns,
        to_ns} or None) and ``why`` not all of it is.
        """
        with self._database.read() as tx:
            _visible_agreements(tx, principal, sla_id)
            agreement = Agreement.from_document(tx.views.agreement(sla_id)["document"])
            rows = tx.views.exclusions(sla_id)
        rulings = rulings_by_id(agreement, [row for row in rows if row["state"] == "recorded"])
        places = [row["exclusion_id"] for row in rows]
        if after is not None and after not in places:
            raise no_place(after)
        first = 0 if after is None else places.index(after) + 1
        shown = rows[first : first + limit + 1]
        return page_of(
            [visible_exclusion(row, rulings.get(row["exclusion_id"]), principal) for row in shown], limit, "id"
        )

    def violations(
        self,
        principal: Principal,
        *,
        sla_id: str | None,
        state: str | None,
        objective: str | None,
        after: str | None,
        limit: int,
    ) -> Page:
        """Violations by start."""
        with self._database.read() as tx:
            among = _visible_agreements(tx, principal, sla_id)
            rows = tx.views.violations(
                sla_ids=among,
                state=state,
                objective=objective,
                after=place_of(after, tx.views.violation, among),
                limit=limit + 1,
            )
        return page_of([visible_violation(row, principal) for row in rows], limit, "id")

    def violation(self, principal: Principal, violation_id: str) -> Row:
        """Raises ``NotFound``."""
        with self._database.read() as tx:
            row = tx.views.violation(violation_id)
        if not principal.may_see(row["sla_id"]):
            raise NotFound(f"there is no violation {violation_id}", violation=violation_id)
        return visible_violation(row, principal)

    def credit_lines(
        self,
        principal: Principal,
        *,
        sla_id: str | None,
        statement_id: str | None,
        status: str | None,
        starts: Starts = ANY_START,
        after: str | None,
        limit: int,
    ) -> Page:
        """Credit lines by start of their period. Whoever may see credits may see all of a line."""
        with self._database.read() as tx:
            among = _visible_agreements(tx, principal, sla_id)
            rows = tx.views.credit_lines(
                sla_ids=among,
                statement_id=statement_id,
                status=status,
                after=starts.place(place_of(after, tx.views.credit_line, among)),
                before_ns=starts.to_ns,
                limit=limit + 1,
            )
        return page_of(rows, limit, "id")

    def export_credits(
        self, principal: Principal, out: IO[bytes], *, from_ns: int | None, to_ns: int | None
    ) -> ControlTotals:
        """Write the credit lines of periods that start in [from, to) as ``ledger.app.billing.exports`` says, from one
        state of the database."""
        with self._database.read() as tx:
            rows = credit_rows(tx, sla_ids=principal.sla_ids, from_ns=from_ns, to_ns=to_ns)
            return write_credit_export(rows, out)


def visible_exclusion(row: Row, ruled: Ruled | None, principal: Principal) -> Row:
    """What a principal may see of an exclusion and of what becomes of it, with the names of what is withheld."""
    honoured = None if ruled is None else ruled.honoured
    full = {
        **row,
        "id": row["exclusion_id"],
        "ruling": None if ruled is None else str(ruled.ruling),
        "honoured": honoured and {"from_ns": honoured.start_ns, "to_ns": honoured.end_ns},
        "why": None if ruled is None else ruled.why or None,
    }
    shown, withheld = redact("exclusion", full, principal)
    return {**shown, "withheld": sorted(withheld)}


def visible_violation(row: Row, principal: Principal) -> Row:
    """What a principal may see of a violation, with the names of what is withheld."""
    shown, withheld = redact("violation", row, principal)
    if not principal.holds(*metric_scopes(row["indicator"])):
        shown |= dict.fromkeys(_COUNTS)
        withheld += _COUNTS
        # They say how slow each was.
        shown["evidence"] = {**row["evidence"], "requests": []}
        withheld.append("requests")
    return {**shown, "withheld": sorted(withheld)}


def _window(row: Row, objectives: Iterable[Mapping[str, Any]], principal: Principal) -> Row:
    cells = []
    for objective in objectives:
        # Terms may have changed since the window was judged.
        cell = row["cells"].get(objective["id"])
        if cell is not None:
            counts = {name: cell.get(name, 0) for name in ("good", "bad", "undecided")}
            if not principal.holds(*metric_scopes(objective["indicator"])):
                counts = dict.fromkeys(counts)
            cells.append({"id": objective["id"], "indicator": objective["indicator"], **counts})
    names = ("index", "start_ns", "end_ns", "state", "excluded_requests", "exclusions", "seq")
    return {**{name: row[name] for name in names}, "objectives": cells}


def _visible_agreements(tx: Transaction, principal: Principal, sla_id: str | None) -> frozenset[str] | None:
    """The agreements that a list is about; None: all. Raises ``NotFound`` for one that is not to be seen."""
    if sla_id is None:
        return principal.sla_ids
    if not principal.may_see(sla_id):
        raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
    # An empty list for a misspelt id would read as "nothing happened".
    tx.views.agreement(sla_id)
    return frozenset({sla_id})


def _index(after: str | None) -> int | None:
    if after is not None and not (after.isascii() and after.isdigit() and len(after) <= 7):
        raise no_place(after)
    return None if after is None else int(after)
