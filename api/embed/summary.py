"""``GET /v1/embed/summary``: everything `<sla-dashboard>` shows, in one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from litestar.params import QueryParameter

from api.rest.routes import Seen, reads
from api.rest.values import Instant, Money, Word, attainment_percent, instant, money
from ledger.app.access import Scope
from ledger.app.overview import Bar, BarCell, ObjectiveNow, Overview, Settled
from ledger.app.paging import Row
from ledger.domain.indicators import REQUESTS, shown_score
from ledger.domain.money import BASIS_POINTS

MAX_EVIDENCE: Final = 10

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
    statements: Annotated[list[SummaryStatement], msgspec.Meta(description="The newest 12, newest first")]
    statement_count: int
    credit_totals: Annotated[
        list[Money] | None, msgspec.Meta(description="Sum of the credit lines of all periods, by currency")
    ]
    withheld: Withheld


@reads(
    "/v1/embed/summary",
    summary="Everything the dashboard shows",
    tag="embedding",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_summary(
    seen: Seen,
    sla_id: Annotated[str, QueryParameter(pattern="^0x[0-9a-f]{64}$", description="`0x` and 64 lowercase hex digits")],
    period: Annotated[
        str | None,
        QueryParameter(
            pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}/P[0-9]{1,3}[DWM]$",
            description="A settled period, such as 2023-12-19/P1D; the newest one where absent",
        ),
    ] = None,
) -> Summary:
    """State, windows, violations and credits of one agreement, as far as the asker may see them."""
    return as_summary(seen.overview(sla_id, period=period))


def as_summary(overview: Overview) -> Summary:
    """The overview in the API's spelling of instants, money and percentages."""
    totals = overview.credit_totals
    return Summary(
        agreement=_agreement(overview.agreement),
        shown=None if overview.shown is None else _period(overview.shown),
        objectives=[_objective(each) for each in overview.objectives],
        bars=[_bar(each) for each in overview.bars],
        violations=None if overview.violations is None else [_violation(each) for each in overview.violations],
        violation_count=overview.violation_count,
        credit_lines=None if overview.credit_lines is None else [_line(each) for each in overview.credit_lines],
        credit_line_count=overview.credit_line_count,
        statements=[_statement(each) for each in overview.statements],
        statement_count=overview.statement_count,
        credit_totals=None if totals is None else [money(*total) for total in sorted(totals.items())],
        withheld=list(overview.withheld),
    )


def _agreement(row: Row) -> SummaryAgreement:
    document: Mapping[str, Any] = row["document"]
    return SummaryAgreement(
        sla_id=row["sla_id"],
        terms_version=row["terms_version"],
        service=document["service"]["name"],
        issuer=document["parties"]["issuer"]["name"],
        customer=document["parties"]["customer"]["name"],
        timezone=document["timezone"],
        period=document["period"],
        window=document["window"],
    )


def _period(row: Row) -> SummaryPeriod:
    return SummaryPeriod(
        period=row["period"],
        start=instant(row["start_ns"]),
        end=instant(row["end_ns"]),
        state=row["state"],
        version=row["statement_version"],
        standing=row["standing"],
        accepts_until=instant(row["accepts_until_ns"]),
        windows=row["windows"],
        observed=row["observed"],
        excluded=row["excluded"],
        idle=row["idle"],
    )


def _objective(now: ObjectiveNow) -> SummaryObjective:
    counted = now.good is not None and now.valid is not None
    return SummaryObjective(
        id=now.id,
        indicator=now.indicator,
        target_percent=now.target,
        quantile=now.quantile,
        threshold_ms=now.threshold_ms,
        state=now.state,
        good=now.good,
        valid=now.valid,
        undecided=now.undecided,
        unit=now.unit,
        window_unit=now.window_unit,
        attainment_percent=attainment_percent(now.good or 0, now.valid or 0) if counted else None,
        score=shown_score(now.unit or REQUESTS, now.good or 0, now.valid or 0) if counted else None,
        budget_used_percent=None if now.budget_used_bps is None else _two_decimals(now.budget_used_bps),
        withheld=[f"{name}_percent" if name == "target" else name for name in _spelt(now)],
    )


def _spelt(now: ObjectiveNow) -> list[str]:
    """The names of withheld members as this answer spells them; attainment and score go with their counts."""
    names = ["budget_used_percent" if name == "budget_used_bps" else name for name in now.withheld]
    return [*names, "attainment_percent", "score"] if "good" in names else names


def _bar(bar: Bar) -> SummaryBar:
    return SummaryBar(
        start=instant(bar.start_ns),
        end=instant(bar.end_ns),
        windows=bar.windows,
        state=bar.state,
        excluded_requests=bar.excluded_requests,
        cells={name: _cell(cell) for name, cell in bar.cells.items()},
    )


def _cell(cell: BarCell) -> SummaryCell:
    return SummaryCell(
        good=cell.good,
        bad=cell.bad,
        undecided=cell.undecided,
        attainment_percent=attainment_percent(cell.good, cell.good + cell.bad + cell.undecided),
        verdict=cell.verdict,
    )


def _violation(row: Row) -> SummaryViolation:
    credit = row["credit"]
    return SummaryViolation(
        id=row["id"],
        objective=row["objective"],
        state=row["state"],
        opened=instant(row["start_ns"]),
        closed=None if row["state"] == "open" else instant(row["end_ns"]),
        windows=row["windows"],
        bad=row["bad"],
        valid=row["valid"],
        unit=row["unit"],
        evidence=[
            SummaryEvidence(kind=item["kind"], at=instant(int(item["at_ns"])), summary=item["summary"])
            for item in row["evidence"]["signals"][:MAX_EVIDENCE]
        ],
        credit=None if credit is None else money(credit["currency"], credit["minor_units"]),
        withheld=[name for name in row["withheld"] if name in SummaryViolation.__struct_fields__],
    )


def _line(row: Row) -> SummaryLine:
    return SummaryLine(
        id=row["id"],
        violation_id=row["violation_id"],
        objective=row["objective"],
        credit=money(row["currency"], row["minor_units"]),
        status=row["status"],
        reverses=row["reverses"],
    )


def _statement(settled: Settled) -> SummaryStatement:
    row = settled.row
    credit, attestation, anchor = row["credit"], row["attestation"], row["anchor"]
    delta, roots, replaced = row["credit_delta"], row["roots"], row["restates"]
    return SummaryStatement(
        id=row["id"],
        period=row["period"],
        start=instant(row["start_ns"]),
        end=instant(row["end_ns"]),
        state=row["state"],
        version=row["statement_version"],
        standing=row["standing"],
        accepts_until=instant(row["accepts_until_ns"]),
        restates=None if replaced is None else replaced["statement_id"],
        reason=row["reason"],
        credit=None if credit is None else money(credit["currency"], credit["minor_units"]),
        credit_difference=None if delta is None else money(delta["currency"], delta["difference"]),
        proof=settled.proof,
        published=None if roots is None else [root["tx_hash"] for root in roots],
        unattested_reasons=row["unattested_reasons"],
        dev_key=None if attestation is None else attestation["dev_key"],
        proof_hash=None if attestation is None else attestation["proof_hash"],
        tx_hash=None if anchor is None else anchor["tx_hash"],
        bundle=f"/v1/bundles/{row['id']}" if settled.bundle else None,
        withheld=list(settled.withheld),
    )


def _two_decimals(basis_points: int) -> str:
    whole, fraction = divmod(basis_points, BASIS_POINTS // 100)
    return f"{whole}.{fraction:02}"
