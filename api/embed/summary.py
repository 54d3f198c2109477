"""``GET /v1/embed/summary``: everything `<sla-dashboard>` shows, in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from litestar.di import NamedDependency
from litestar.params import QueryParameter

from api.embed.shapes import (
    Summary,
    SummaryAgreement,
    SummaryBar,
    SummaryCell,
    SummaryClaim,
    SummaryEvidence,
    SummaryLine,
    SummaryObjective,
    SummaryPeriod,
    SummaryStatement,
    SummaryViolation,
)
from api.parameters import CursorText, decode_cursor, encode_cursor
from api.rest.routes import Seen, reads
from api.rest.values import attainment_percent, instant, money
from ledger.app.access import Principal, Scope
from ledger.app.billing.claims import Claimable, ClaimDesk
from ledger.app.paging import Row
from ledger.app.reading.overview import Bar, BarCell, ObjectiveNow, Overview, Settled
from ledger.domain.money import BASIS_POINTS
from ledger.domain.terms.indicators import REQUESTS, shown_score

MAX_EVIDENCE: Final = 10


@reads(
    "/v1/embed/summary",
    summary="Everything the dashboard shows",
    tag="embedding",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_summary(
    seen: Seen,
    principal: NamedDependency[Principal],
    claim_desk: NamedDependency[ClaimDesk | None],
    sla_id: Annotated[str, QueryParameter(pattern="^0x[0-9a-f]{64}$", description="`0x` and 64 lowercase hex digits")],
    period: Annotated[
        str | None,
        QueryParameter(
            pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}/P[0-9]{1,3}[DWM]$",
            description="A settled period, such as 2023-12-19/P1D; the newest one that is listed where absent",
        ),
    ] = None,
    cursor: CursorText = None,
) -> Summary:
    """State, windows, violations and credits of one agreement, as far as the asker may see them."""
    overview = seen.overview(sla_id, period=period, after=decode_cursor(cursor, _listing(sla_id)))
    claims: Sequence[Claimable] | None = None
    if claim_desk is not None and principal.holds(Scope.READ_CREDITS):
        shown = overview.shown if overview.by_claim else None
        claims = () if shown is None else claim_desk.of(shown["id"], principal)
    return as_summary(overview, claims)


def as_summary(overview: Overview, claims: Sequence[Claimable] | None = None) -> Summary:
    """The overview in the API's spelling of instants, money and percentages. ``claims`` of the period shown."""
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
        claims=None if claims is None else [_claim(each) for each in claims],
        statements=[_statement(each) for each in overview.statements],
        statement_count=overview.statement_count,
        statements_before=overview.statements_before,
        next_cursor=encode_cursor(_listing(overview.agreement["sla_id"]), overview.last_period),
        credit_totals=None if totals is None else [money(*total) for total in sorted(totals.items())],
        withheld=list(overview.withheld),
    )


def _listing(sla_id: str) -> str:
    """What cursors of an agreement's periods are made for."""
    return f"embed/{sla_id}"


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
        restates=row.get("restates"),
    )


def _claim(each: Claimable) -> SummaryClaim:
    return SummaryClaim(
        claim_id=each.claim_id,
        objective=each.objective,
        violation_id=each.violation_id,
        credit=money(each.currency, each.minor_units),
        deadline=instant(each.deadline_ns),
        status=str(each.status),
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
