"""What a settlement rests on and what follows from it: exclusions, explanations, credit lines, claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import strawberry
from strawberry.scalars import JSON

from api.graphql.access import resource, scoped
from api.graphql.amounts import Money, money_of
from api.graphql.context import RequestContext
from api.graphql.scalars import Count, InstantNs, instant_or_none
from ledger.app.billing.claims import Claimable
from ledger.app.paging import Row
from ledger.errors import QueryInvalid

LISTED = ("lost", "all")


@strawberry.type(description="The part of an exclusion's time that leaves the counts.")
class Honoured:
    start: InstantNs
    end: InstantNs


@strawberry.type(description="Time that is to be excluded, and what becomes of it under the terms beside all others.")
class Exclusion:
    id: strawberry.ID
    sla_id: strawberry.ID
    clause: str = strawberry.field(description="The maintenance class or carve-out of the agreement")
    ticket: str | None
    start: InstantNs
    end: InstantNs
    announced_at: InstantNs | None
    approved_by: str | None
    reason: str
    by: str | None = strawberry.field(description="Who recorded it")
    state: str = strawberry.field(description="recorded, or withdrawn")
    ruling: str | None = strawberry.field(
        description="honoured, shortened, or why it takes nothing out: no_clause, not_approved, announced_late, "
        "too_many, over_cap; null once withdrawn"
    )
    honoured: Honoured | None = strawberry.field(description="What of it leaves the counts; null: nothing")
    why: str | None = scoped("exclusion", "why", description="Why not all of it does; null where all does")
    withdrawn_reason: str | None
    withdrawn_by: str | None
    seq: Count


@strawberry.type(
    description="A statement as a reader redoes it by hand (docs/explain.md has every member). What may not be seen of "
    "its parts is null and named in their `withheld`."
)
class Explanation:
    statement: JSON = strawberry.field(description="Which statement, of which terms and period")
    coverage: JSON = strawberry.field(description="Windows observed, left out, without data, and why")
    objectives: JSON = strawberry.field(description="Method and formula, clause, counts, verdict, and what was bad")
    credit: JSON | None = scoped("statement", "trace", description="The steps to the credit, in their order")
    exclusions: JSON | None = strawberry.field(description="What became of each exclusion")
    violations: JSON | None = resource("violations")
    credit_lines: JSON | None = resource("credits")
    restatement: JSON | None = strawberry.field(description="What differs from the version it replaces")


@strawberry.type(description="Where billing has booked a line.")
class Billing:
    reference: str
    at: InstantNs
    by: str | None


@strawberry.type(description="An entry that is never edited: the sum of all is what is owed.")
class CreditLine:
    id: strawberry.ID
    statement_id: strawberry.ID
    sla_id: strawberry.ID
    customer: str
    period: str
    objective: str | None
    violation_id: strawberry.ID | None = strawberry.field(
        description="Null: the ratio of the whole period failed alone"
    )
    credit: Money = strawberry.field(description="Below zero where it takes something back")
    status: str = strawberry.field(description="draft (its statement's proof is due), issued, applied or void")
    reverses: strawberry.ID | None = strawberry.field(description="The line it takes back")
    reversed_by: strawberry.ID | None = strawberry.field(description="The line that takes it back")
    restates: strawberry.ID | None = strawberry.field(
        description="Of a difference: the statement that the line's own replaces"
    )
    reason: str | None
    billing: Billing | None
    proof_hash: str | None
    anchor_tx: str | None
    seq: Count


@strawberry.type(description="What a statement credits for one incident, and how its claim stands.")
class Claim:
    claim_id: strawberry.ID = strawberry.field(description="Follows from agreement, period, level and incident")
    scope: str
    objective: str | None
    violation_id: strawberry.ID | None
    credit: Money
    deadline: InstantNs = strawberry.field(description="The first instant that is too late")
    status: str = strawberry.field(description="open, filed or too_late")
    line_id: strawberry.ID | None = strawberry.field(description="The line that pays it, once it is filed")
    evidence: str | None = strawberry.field(description="SHA-256 of the batch of facts that it was filed with")
    filed_by: str | None


def exclusion_of(row: Row, _context: RequestContext) -> Exclusion:
    """Of a row of ``ledger.app.reading.lists.Lists``, from which everything that is not to be seen was taken."""
    same = ("clause", "ticket", "approved_by", "reason", "by", "state", "ruling", "why", "seq")
    honoured = row["honoured"]
    return Exclusion(
        **{name: row[name] for name in (*same, "withdrawn_reason", "withdrawn_by")},
        id=strawberry.ID(row["id"]),
        sla_id=strawberry.ID(row["sla_id"]),
        start=InstantNs(row["from_ns"]),
        end=InstantNs(row["to_ns"]),
        announced_at=instant_or_none(row["announced_at_ns"]),
        honoured=honoured and Honoured(start=InstantNs(honoured["from_ns"]), end=InstantNs(honoured["to_ns"])),
    )


def explanation_of(context: RequestContext, statement_id: str, windows: str) -> Explanation:
    """Raises ``NotFound``, and ``QueryInvalid`` for a list of windows that there is not."""
    if windows not in LISTED:
        raise QueryInvalid(f"windows is {windows[:20]!r}; it is one of {', '.join(LISTED)}", parameter="windows")
    found = context.seen_queries.explanation(statement_id, all_windows=windows == "all")
    names = ("statement", "coverage", "objectives", "credit", "exclusions", "violations", "credit_lines", "restatement")
    return Explanation(**{name: found[name] for name in names})


def credit_line_of(row: Row, _context: RequestContext) -> CreditLine:
    billing = row["billing"]
    ids = ("statement_id", "sla_id", "violation_id", "reverses", "reversed_by")
    return CreditLine(
        **{name: row[name] for name in ("customer", "period", "objective", "status", "reason", "anchor_tx", "seq")},
        **{name: _id(row[name]) for name in ids},
        id=strawberry.ID(row["id"]),
        restates=_id(row.get("restates")),
        credit=money_of(row),
        billing=billing
        and Billing(reference=billing["reference"], at=InstantNs(int(billing["at_ns"])), by=billing["by"]),
        proof_hash=row["proof_ref"],
    )


def claims_of(context: RequestContext, statement_id: str) -> list[Claim]:
    """Raises ``NotFound``, and ``QueryInvalid`` where this deployment takes no claims."""
    return [_claim(each) for each in context.claims(statement_id)]


def _claim(each: Claimable) -> Claim:
    filed: Mapping[str, Any] = each.filed or {}
    return Claim(
        claim_id=strawberry.ID(each.claim_id),
        scope=each.scope,
        objective=each.objective,
        violation_id=_id(each.violation_id),
        credit=money_of({"currency": each.currency, "minor_units": each.minor_units}),
        deadline=InstantNs(each.deadline_ns),
        status=str(each.status),
        line_id=_id(filed.get("line_id")),
        evidence=filed.get("evidence"),
        filed_by=filed.get("by"),
    )


def _id(name: str | None) -> Any:
    return None if name is None else strawberry.ID(name)
