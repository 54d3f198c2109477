"""Everything one look at an agreement shows: the state of its objectives, its windows, violations and credits.

Made for the dashboard, in one read, for one principal: what that principal may not see is None and named in
``withheld``. It is decided here, where the whole rows are known, because figures made from a withheld figure give it
away: the error budget shows the target, and so does a window's verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger.app.access import BUNDLE_SCOPES, Principal, Scope, metric_scopes, redact
from ledger.app.agreements.registering import timeline_of
from ledger.app.paging import Row, no_place, page_of
from ledger.app.ports.store import Transaction
from ledger.app.reading.lists import visible_violation
from ledger.domain.money import BASIS_POINTS, percent_ppb
from ledger.domain.terms.indicators import REQUESTS
from ledger.domain.violations.budget import burn_rate
from ledger.domain.violations.violation import unit_of_counts
from ledger.domain.windows.window import WindowState
from ledger.errors import NotFound

MAX_BARS: Final = 120
MAX_PERIODS: Final = 12
MAX_VIOLATIONS: Final = 50
MAX_LINES: Final = 100


@dataclass(frozen=True, slots=True)
class ObjectiveNow:
    """One promise and how the period shown kept it.

    ``target``, ``quantile`` (shares) and ``threshold_ms`` are the texts of the agreement; ``target_ppb`` is the target
    in parts per billion. ``budget_used_bps`` is failed / allowed to fail in basis points, rounded up; None where
    nothing was valid, or nothing may fail and something did. ``unit`` is what good and valid count (None: not settled
    yet), ``window_unit`` what the counts of a window are; ``undecided`` of the valid ones may be good or bad.
    """

    id: str
    indicator: str | None
    target: str | None
    quantile: str | None
    threshold_ms: str | None
    state: str | None
    good: int | None
    valid: int | None
    undecided: int | None
    unit: str | None
    window_unit: str
    budget_used_bps: int | None
    withheld: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BarCell:
    """Counts of one objective in one bar. ``verdict``: clean (nothing failed), failures, missed (a violation is in it),
    undecided (nothing failed for sure, and something may have) or None where nothing was valid. For a reader without
    the target it is never ``missed``.

    Counts alone do not tell what is missed: by minutes, intervals or slices a window breaks the promise or keeps it
    otherwise than by its share of good requests. What the ledger judged does, and that is its violations."""

    good: int
    bad: int
    undecided: int
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Bar:
    """Some windows in a row, one as a rule. ``state``: observed, idle, excluded or no_data (some data is missing)."""

    start_ns: int
    end_ns: int
    windows: int
    state: str
    excluded_requests: int
    cells: Mapping[str, BarCell]


@dataclass(frozen=True, slots=True)
class Settled:
    """One statement as a line: its credit and how far its proof has come (none, proved, anchored, confirmed, final)."""

    row: Row
    proof: str | None
    bundle: bool
    withheld: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """See the module. ``statements`` are one page of them, newest first: behind ``statements_before`` newer ones, and
    continued after the period ``last_period`` (None: the oldest is here). ``shown`` is what all but them is of.

    ``violations`` (newest first, without those withdrawn) and ``credit_lines`` are rows of ``Views``, as far as the
    reader may see them; the counts say how many there are of which these are the first. ``credit_totals`` are what is
    owed, in minor units by currency: the sum of the lines of all periods, of which those taken back are no part.
    ``by_claim``: what the statement shown credits is owed once it is claimed.
    """

    agreement: Row
    shown: Row | None
    statements: tuple[Settled, ...]
    statement_count: int
    statements_before: int
    last_period: str | None
    objectives: tuple[ObjectiveNow, ...]
    bars: tuple[Bar, ...]
    violations: tuple[Row, ...] | None
    violation_count: int
    credit_lines: tuple[Row, ...] | None
    credit_line_count: int
    credit_totals: Mapping[str, int] | None
    by_claim: bool
    withheld: tuple[str, ...]


def read_overview(
    tx: Transaction, principal: Principal, sla_id: str, *, period: str | None = None, after: str | None = None
) -> Overview:
    """The overview of one agreement, of ``period`` (such as 2023-12-19/P1D) or the newest that is listed.

    Listed are periods older than the one named ``after``, or the newest. Raises ``NotFound`` for an agreement that is
    not there or that the principal may not see, alike, and for a period that was never settled; ``CursorInvalid`` for
    an ``after`` with nothing behind it.
    """
    if not principal.may_see(sla_id):
        raise NotFound(f"there is no agreement {sla_id}", agreement=sla_id)
    agreement = tx.views.agreement(sla_id)
    rows = _newest_versions(tx.views.statements(sla_id))
    behind = _behind(rows, after)
    shown = _chosen(rows[behind:] if period is None else rows, period)
    listed = page_of(rows[behind : behind + MAX_PERIODS + 1], MAX_PERIODS, "period")
    windows = [] if shown is None else tx.views.windows(sla_id, shown["period"])
    document = _document_of(tx, agreement, shown)
    objectives = _terms(document, shown)
    visible = [terms for terms in objectives if principal.holds(*terms.scopes)]
    may_violations, may_credits = principal.holds(Scope.READ_VIOLATIONS), principal.holds(Scope.READ_CREDITS)
    violations = _violations(tx, shown, principal) if may_violations else []
    lines = _lines(tx, shown) if may_credits else []
    parts = (("violations", may_violations), ("credit_lines", may_credits), ("credit_totals", may_credits))
    return Overview(
        agreement=agreement,
        shown=shown,
        statements=tuple(_settled(row, principal) for row in listed.rows),
        statement_count=len(rows),
        statements_before=behind,
        last_period=listed.last_id,
        objectives=tuple(_objective_now(terms, shown, principal) for terms in objectives),
        bars=tuple(bars(windows, visible, broken=_broken(violations, principal))),
        violations=tuple(violations[:MAX_VIOLATIONS]) if may_violations else None,
        violation_count=len(violations),
        credit_lines=tuple(lines[:MAX_LINES]) if may_credits else None,
        credit_line_count=len(lines),
        credit_totals=tx.views.credit_totals(sla_id) if may_credits else None,
        by_claim=document.get("settlement", {}).get("mode") == "claim",
        withheld=tuple(name for name, held in parts if not held),
    )


def _violations(tx: Transaction, shown: Row | None, principal: Principal) -> list[Row]:
    """The violations of a period that still hold, newest first."""
    if shown is None:
        return []
    rows = tx.views.violations(
        sla_ids=frozenset({shown["sla_id"]}),
        after=(shown["start_ns"], ""),
        before_ns=shown["end_ns"],
        # One for each objective and first window: there can be no more.
        limit=shown["windows"] * len(shown["objectives"]),
    )
    return [visible_violation(row, principal) for row in rows if row["state"] != "withdrawn"][::-1]


def _lines(tx: Transaction, shown: Row | None) -> Sequence[Row]:
    """The credit lines of a period, of every version of its statement. In each every violation that was ever found has
    at most one, one has none, and each may be taken back once."""
    if shown is None:
        return []
    start_ns, versions = shown["start_ns"], shown["statement_version"]
    limit = 2 * versions * (shown["windows"] * len(shown["objectives"]) + 1)
    return tx.views.credit_lines(
        sla_ids=frozenset({shown["sla_id"]}), after=(start_ns, ""), before_ns=start_ns + 1, limit=limit
    )


@dataclass(frozen=True, slots=True)
class ObjectiveTerms:
    """What the windows of a period are compared with, and the scopes that its counts need."""

    id: str
    indicator: str | None
    target: str
    quantile: str | None
    threshold_ms: str | None
    scopes: frozenset[Scope]
    window_unit: str = REQUESTS

    @property
    def target_ppb(self) -> int:
        return percent_ppb(self.target)


def _broken(violations: Sequence[Row], principal: Principal) -> Mapping[str, frozenset[int]]:
    """The windows that broke an objective's promise, by objective. Which those are says on which side of the target
    they lie, so for a reader without it there are none."""
    found: dict[str, frozenset[int]] = {}
    if principal.holds(Scope.READ_THRESHOLDS):
        for row in violations:
            run = range(row["first_window"], row["first_window"] + row["windows"])
            found[row["objective"]] = found.get(row["objective"], frozenset()) | frozenset(run)
    return found


def bars(
    windows: Sequence[Row], objectives: Sequence[ObjectiveTerms], *, broken: Mapping[str, frozenset[int]]
) -> Iterator[Bar]:
    """Windows as at most ``MAX_BARS`` bars, each of equally many windows but the last.

    ``broken`` has the windows, by objective, in which the ledger found a violation.
    """
    size = -(-len(windows) // MAX_BARS)
    for start in range(0, len(windows), size or 1):
        group = windows[start : start + size]
        yield Bar(
            start_ns=group[0]["start_ns"],
            end_ns=group[-1]["end_ns"],
            windows=len(group),
            state=_bar_state(group),
            excluded_requests=sum(map(_left_out, group)),
            cells={terms.id: _bar_cell(group, terms.id, broken.get(terms.id, frozenset())) for terms in objectives},
        )


def _left_out(row: Row) -> int:
    """Requests that left both sides in a window: by a clause, or by an exclusion."""
    counts: Iterable[int] = (*row["excluded_requests"].values(), *row["exclusions"].values())
    return sum(counts)


def _bar_state(group: Sequence[Row]) -> str:
    states = {row["state"] for row in group}
    if WindowState.NO_DATA in states:
        return str(WindowState.NO_DATA)
    if states == {WindowState.EXCLUDED}:
        return str(WindowState.EXCLUDED)
    counted = any(sum(cell.values()) for row in group for cell in row["cells"].values())
    return str(WindowState.OBSERVED) if counted else "idle"


def _bar_cell(group: Sequence[Row], objective: str, broken: frozenset[int]) -> BarCell:
    cells = [row["cells"][objective] for row in group if objective in row["cells"]]
    good, bad, undecided = (sum(cell.get(name, 0) for cell in cells) for name in ("good", "bad", "undecided"))
    if good + bad + undecided == 0:
        return BarCell(good, bad, undecided, None)
    if any(row["index"] in broken for row in group):
        return BarCell(good, bad, undecided, "missed")
    return BarCell(good, bad, undecided, "failures" if bad else "undecided" if undecided else "clean")


def _newest_versions(rows: Iterable[Row]) -> list[Row]:
    """One statement for each period, its newest version, newest period first. ``rows`` come by start and version."""
    newest = {row["period"]: row for row in rows}
    return list(newest.values())[::-1]


def _behind(rows: Sequence[Row], after: str | None) -> int:
    """How many of ``rows`` come up to the period ``after``, itself included."""
    if after is None:
        return 0
    place = next((place for place, row in enumerate(rows, start=1) if row["period"] == after), len(rows))
    if place == len(rows):
        raise no_place(after)
    return place


def _chosen(rows: Sequence[Row], period: str | None) -> Row | None:
    if period is None:
        return next(iter(rows), None)
    for row in rows:
        if row["period"] == period:
            return row
    raise NotFound(f"the period {period} was not settled; leave it out for the newest one", period=period)


def _document_of(tx: Transaction, agreement: Row, shown: Row | None) -> Mapping[str, Any]:
    """The terms that the statement shown was made under, else the newest."""
    if shown is not None and shown["doc_sha256"] != agreement["doc_sha256"]:
        for document in timeline_of(tx, agreement["sla_id"]).documents:
            if document.doc_sha256.hex() == shown["doc_sha256"]:
                return document.document
    found: Mapping[str, Any] = agreement["document"]
    return found


def _terms(document: Mapping[str, Any], shown: Row | None) -> list[ObjectiveTerms]:
    """The objectives of the statement shown, else those of the terms."""
    signed = {item["id"]: item for item in document["objectives"]}
    results = signed.values() if shown is None else shown["objectives"]
    return [_objective_terms(item["id"], item["target"], signed.get(item["id"])) for item in results]


def _objective_terms(name: str, target: str, signed: Row | None) -> ObjectiveTerms:
    # Terms may have changed since: what kind of figure it was is then unknown, and needs what any of them needs.
    if signed is None:
        return ObjectiveTerms(name, None, target, None, None, metric_scopes(None))
    scopes = metric_scopes(signed["indicator"])
    unit = unit_of_counts(signed["method"], signed["indicator"], signed.get("source"))
    limits = (target, signed.get("quantile"), signed.get("threshold_ms"))
    return ObjectiveTerms(name, signed["indicator"], *limits, scopes, unit)


def _objective_now(terms: ObjectiveTerms, shown: Row | None, principal: Principal) -> ObjectiveNow:
    result = None if shown is None else next(item for item in shown["objectives"] if item["id"] == terms.id)
    values: dict[str, Any] = {
        "target": terms.target,
        "quantile": terms.quantile,
        "threshold_ms": terms.threshold_ms,
        "budget_used_bps": None
        if result is None
        else budget_used_bps(result["good"] + result.get("undecided", 0), result["valid"], terms),
        "state": None if result is None else result["state"],
        "good": None if result is None else result["good"],
        "valid": None if result is None else result["valid"],
        "undecided": None if result is None else result.get("undecided", 0),
    }
    limits, counts = ("target", "quantile", "threshold_ms", "budget_used_bps"), ("state", "good", "valid", "undecided")
    withheld: tuple[str, ...] = ()
    if not principal.holds(Scope.READ_THRESHOLDS):
        withheld += limits
    if not principal.holds(*terms.scopes):
        withheld += tuple(name for name in ("budget_used_bps", *counts) if name not in withheld)
    shown_values = {name: None if name in withheld else value for name, value in values.items()}
    return ObjectiveNow(
        id=terms.id,
        indicator=terms.indicator,
        unit=None if result is None else result.get("unit", REQUESTS),
        window_unit=terms.window_unit,
        withheld=withheld,
        **shown_values,
    )


def budget_used_bps(good: int, valid: int, terms: ObjectiveTerms) -> int | None:
    """How much of what may fail did fail, in basis points, rounded up. None where nothing was valid, or
    nothing may fail and something did."""
    used = burn_rate(valid - good, valid, terms.target_ppb) if valid else None
    return None if used is None else -(-used.numerator * BASIS_POINTS // used.denominator)


def _settled(row: Row, principal: Principal) -> Settled:
    visible, withheld = redact("statement", row, principal)
    proof = _proof_state(row) if principal.holds(Scope.READ_PROOFS) else None
    if proof is None:
        withheld = [*withheld, "proof"]
    return Settled(visible, proof, proof is not None and principal.holds(*BUNDLE_SCOPES), tuple(withheld))


def _proof_state(row: Row) -> str:
    anchor = row["anchor"]
    if anchor is None:
        return "none" if row["attestation"] is None else "proved"
    if anchor["standing"] == "final":
        return "final"
    return "confirmed" if anchor["confirmed"] else "anchored"
