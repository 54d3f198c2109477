"""The shapes of what `<sla-dashboard>` is shown."""

from __future__ import annotations

from typing import Annotated

import msgspec

from api.rest.values import Instant, Money, Word

Withheld = Annotated[list[str], msgspec.Meta(description="Members that need more rights; they read null or empty")]


class SummaryAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whose promise it is, and its calendar."""

    sla_id: Word
    terms_version: int
    service: str
    issuer: str
    customer: str
    timezone: Annotated[str, msgspec.Meta(description="IANA time zone of the periods")]
    period: Annotated[str, msgspec.Meta(description="Length of a settlement period, ISO 8601, such as P1D")]
    window: Annotated[str, msgspec.Meta(description="Length of a window, ISO 8601, such as PT1H")]


class SummaryPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """The settled period that objectives, bars and violations are of."""

    period: str
    start: Instant
    end: Instant
    state: Annotated[str, msgspec.Meta(description="settled, or withheld: too few windows were observed")]
    version: Annotated[int, msgspec.Meta(description="The newest; earlier ones were restated")]
    standing: Annotated[str, msgspec.Meta(description="draft: late facts may still restate it; or final")]
    accepts_until: Annotated[Instant, msgspec.Meta(description="Late facts about the period are taken until then")]
    windows: int
    observed: int
    excluded: int
    idle: int


class SummaryObjective(msgspec.Struct, frozen=True, kw_only=True):
    """A promise and how it was kept. Null without a name in `withheld`: there is no such figure."""

    id: str
    indicator: str | None
    target_percent: str | None
    quantile: Annotated[str | None, msgspec.Meta(description="Share of requests the threshold is for, such as 0.95")]
    threshold_ms: str | None
    state: Annotated[
        str | None,
        msgspec.Meta(
            description="met, breached, no_data, insufficient_data (too few or undecided) or withheld; "
            "null: not settled yet"
        ),
    ]
    good: int | None
    valid: int | None
    undecided: Annotated[int | None, msgspec.Meta(description="Of the valid ones: the data cannot say")]
    unit: Annotated[
        str | None,
        msgspec.Meta(description="What good and valid count: requests, minutes ...; null: nothing yet"),
    ]
    window_unit: Annotated[str, msgspec.Meta(description="What the counts of a window are")]
    attainment_percent: Annotated[str | None, msgspec.Meta(description="good / valid, four decimals, rounded down")]
    score: Annotated[
        str | None,
        msgspec.Meta(description="context_fidelity: facts kept / all from 0 to 1, rounded down; null for the others"),
    ]
    budget_used_percent: Annotated[
        str | None, msgspec.Meta(description="Failed / allowed to fail, two decimals, rounded up")
    ]
    withheld: Withheld


class SummaryCell(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one objective in one bar."""

    good: int
    bad: int
    undecided: int
    attainment_percent: str | None
    verdict: Annotated[
        str | None,
        msgspec.Meta(
            description="clean, undecided (nothing failed for sure), failures, missed (a violation is in it); "
            "null: nothing was valid"
        ),
    ]


class SummaryBar(msgspec.Struct, frozen=True, kw_only=True):
    """A window, or several in a row where a period has many."""

    start: Instant
    end: Instant
    windows: int
    state: Annotated[str, msgspec.Meta(description="observed, idle, excluded or no_data")]
    excluded_requests: int
    cells: Annotated[dict[str, SummaryCell], msgspec.Meta(description="By objective; those that may be seen")]


class SummaryEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured at the time of a violation."""

    kind: str
    at: Instant
    summary: str


class SummaryViolation(msgspec.Struct, frozen=True, kw_only=True):
    """A run of windows in which an objective was missed."""

    id: str
    objective: str
    state: Annotated[str, msgspec.Meta(description="open, or closed")]
    opened: Instant
    closed: Annotated[Instant | None, msgspec.Meta(description="Null: it goes on")]
    windows: int
    bad: int | None
    valid: int | None
    unit: Annotated[str | None, msgspec.Meta(description="What its counts are; null: requests")]
    evidence: Annotated[list[SummaryEvidence], msgspec.Meta(description="The most telling first, ten at most")]
    credit: Annotated[Money | None, msgspec.Meta(description="Sum of its credit lines; null while it has none")]
    withheld: Withheld


class SummaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is owed for one violation, or taken back."""

    id: str
    violation_id: str | None
    objective: str | None
    credit: Money
    status: Annotated[str, msgspec.Meta(description="draft, issued, applied or void")]
    reverses: Annotated[str | None, msgspec.Meta(description="The line it takes back")]
    restates: Annotated[
        str | None, msgspec.Meta(description="Of a difference: the statement that the line's own replaces")
    ]


class SummaryClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What is credited for one incident and owed only once it is claimed."""

    claim_id: str
    objective: str | None
    violation_id: str | None
    credit: Money
    deadline: Annotated[Instant, msgspec.Meta(description="The first instant that is too late")]
    status: Annotated[str, msgspec.Meta(description="open, filed or too_late")]


class SummaryStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A settled period, its credit, and how far its proof has come."""

    id: str
    period: str
    start: Instant
    end: Instant
    state: str
    version: Annotated[int, msgspec.Meta(description="The newest; earlier ones were restated")]
    standing: Annotated[str, msgspec.Meta(description="draft: late facts may still restate it; or final")]
    accepts_until: Annotated[Instant, msgspec.Meta(description="Late facts about the period are taken until then")]
    restates: Annotated[str | None, msgspec.Meta(description="The statement it replaces")]
    reason: Annotated[str | None, msgspec.Meta(description="Why it replaces that")]
    credit: Money | None
    credit_difference: Annotated[
        Money | None, msgspec.Meta(description="By how much its credit differs from that of what it replaces")
    ]
    proof: Annotated[
        str | None,
        msgspec.Meta(
            description="none, proved, anchored (recorded on chain), confirmed (enough blocks stand on that) or final "
            "(the chain says that nothing undoes it)"
        ),
    ]
    published: Annotated[
        list[Word] | None, msgspec.Meta(description="Transactions that published a batch with it, one of each chain")
    ]
    unattested_reasons: Annotated[
        list[str] | None,
        msgspec.Meta(
            description="Why no circuit can prove it, in sentences that name what of the terms is beyond them"
        ),
    ]
    dev_key: Annotated[bool | None, msgspec.Meta(description="True: the proof is under a key that its maker can forge")]
    proof_hash: Word | None
    tx_hash: Word | None
    bundle: Annotated[str | None, msgspec.Meta(description="Path of the bundle that verifies it")]
    withheld: Withheld


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at an agreement shows."""

    agreement: SummaryAgreement
    shown: Annotated[SummaryPeriod | None, msgspec.Meta(description="Null: nothing was settled yet")]
    objectives: list[SummaryObjective]
    bars: Annotated[list[SummaryBar], msgspec.Meta(description="At most 120, in order of time")]
    violations: Annotated[list[SummaryViolation] | None, msgspec.Meta(description="Newest first, 50 at most")]
    violation_count: int
    credit_lines: Annotated[
        list[SummaryLine] | None, msgspec.Meta(description="Of the period shown, 100 at most; null: withheld")
    ]
    credit_line_count: int
    claims: Annotated[
        list[SummaryClaim] | None,
        msgspec.Meta(
            description="Of the period shown, where the agreement settles by claim; null: withheld, or none are taken"
        ),
    ]
    statements: Annotated[
        list[SummaryStatement],
        msgspec.Meta(description="Newest first, 12 at most: the newest, or those that the cursor continues with"),
    ]
    statement_count: Annotated[int, msgspec.Meta(description="Of all periods")]
    statements_before: Annotated[int, msgspec.Meta(description="How many newer ones come before those listed")]
    next_cursor: Annotated[str | None, msgspec.Meta(description="Continues with older ones; null at the oldest")]
    credit_totals: Annotated[
        list[Money] | None, msgspec.Meta(description="Sum of the credit lines of all periods, by currency")
    ]
    withheld: Withheld
