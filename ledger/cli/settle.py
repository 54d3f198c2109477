"""``sla-ledger settle``: one period of a request log by an agreement. No database, no chain, no signatures."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

from ledger.cli.output import note, percent_floored, print_json, print_table, with_progress
from ledger.domain.agreement import Agreement
from ledger.domain.evaluation import Evaluator
from ledger.domain.instant import parse_instant_ns
from ledger.domain.interval import Interval
from ledger.domain.money import format_minor_units
from ledger.domain.observation import Reason, RequestRow, RowRejection, Verdict
from ledger.domain.settlement import Settlement, SettlementState
from ledger.domain.settlement import settle as settle_period
from ledger.domain.window import period_named
from ledger.errors import BadInput
from ledger.ingest.agreement_yaml import load_agreement
from ledger.ingest.request_log import RequestLog, open_request_log

SHOWN_PROBLEMS = 20
SHOWN_PERIODS = 40

EPILOG = """\b
Exit codes:
  0  settled or withheld
  1  --strict, and a row was rejected or in conflict
  2  the agreement or the log cannot be used; a message names file, line and field
"""


@click.command(epilog=EPILOG)
@click.option("--agreement", "agreement_path", required=True, type=click.Path(path_type=Path), help="Agreement (YAML).")
@click.option("--requests", "requests_path", required=True, type=click.Path(path_type=Path), help="Log (NDJSON).")
@click.option("--service", help="Stands in for the service the agreement names; terms_hash is then the altered one's.")
@click.option("--period", "period_text", help="Such as 2023-12-19/P1D. Default: the one period that holds all rows.")
@click.option(
    "--span",
    "span_texts",
    multiple=True,
    metavar="FROM/TO",
    help="Where the log is complete, as two instants; repeatable. Default: in the whole period.",
)
@click.option("--strict", is_flag=True, help="Exit 1 if a row was rejected or in conflict.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def settle(
    agreement_path: Path,
    requests_path: Path,
    service: str | None,
    period_text: str | None,
    span_texts: tuple[str, ...],
    strict: bool,
    as_json: bool,
) -> int:
    """Settle one period of a request log: counts, verdicts and credit.

    Pure computation: no database, no chain, no signature check.
    """
    agreement = load_agreement(agreement_path)
    if service is not None:
        agreement = agreement.for_service(service)
    period = period_named(agreement, period_text) if period_text is not None else None
    evaluator = Evaluator(agreement, period, spans=[_span(text) for text in span_texts])
    problems = _Problems(str(requests_path))
    _read(requests_path, evaluator, problems)
    if evaluator.period is None or evaluator.other_periods:
        raise _period_unclear(evaluator, agreement, requests_path)
    problems.report()
    settlement = settle_period(agreement, evaluator.period, evaluator.windows())
    document = _document(evaluator, settlement, _terms_hash(agreement, settlement))
    if as_json:
        print_json(document)
    else:
        _print(document, settlement, evaluator)
    return 1 if strict and problems.count else 0


class _Problems:
    """Rows that could not be used: the first few are shown, all are counted."""

    def __init__(self, file: str) -> None:
        self.count = 0
        self._file = file
        self._shown: list[str] = []

    def add(self, row: RequestRow | RowRejection, result: Verdict | RowRejection) -> None:
        if result is Verdict.DUPLICATE:
            return
        self.count += 1
        if self.count > SHOWN_PROBLEMS:
            return
        if isinstance(result, RowRejection):
            field = f"{result.field}: " if result.field else ""
            self._shown.append(f"{self._file}:{result.line}: {field}{result.message} (rejected: {result.reason})")
        elif isinstance(row, RequestRow):
            self._shown.append(
                f"{self._file}:{row.line}: request_id: {row.request_id[:80]!r} came before with another body "
                "(conflict: the id counts once, as failed)"
            )

    def report(self) -> None:
        for line in self._shown:
            note(line)
        if self.count > SHOWN_PROBLEMS:
            note(f"... and {self.count - SHOWN_PROBLEMS} more rows that could not be used")


def _read(path: Path, evaluator: Evaluator, problems: _Problems) -> None:
    with open_request_log(path) as stream:
        log = RequestLog(stream, str(path))
        size = max(path.stat().st_size, 1)
        add, accepted = evaluator.add, Verdict.ACCEPTED
        # Rows hold no cycles; without the collector looking for some a million of them take a tenth less time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            for row in with_progress(log, lambda: 100 * log.bytes_read / size, f"reading {path.name}"):
                result = add(row)
                if result is not accepted:
                    problems.add(row, result)
        finally:
            if collecting:
                gc.enable()


def _span(text: str) -> Interval:
    start, separator, end = text.partition("/")
    if not separator:
        raise BadInput(f"--span {text[:80]!r}: write FROM/TO, such as 2023-12-19T00:00:00Z/2023-12-20T00:00:00Z")
    return Interval(parse_instant_ns(start), parse_instant_ns(end))


def _period_unclear(evaluator: Evaluator, agreement: Agreement, path: Path) -> BadInput:
    counts = evaluator.counts
    if evaluator.period is None and not evaluator.other_periods:
        services = ", ".join(list(evaluator.other_services)[:5])
        hint = f"; its rows name {services} (see --service)" if services else ""
        return BadInput(
            f"{path}: no usable row of the service {agreement.service!r}, so the period is unknown{hint}; "
            "name it with --period",
            file=str(path),
            services=list(evaluator.other_services),
        )
    found = {str(period): count for period, count in evaluator.other_periods.items() if period is not None}
    if evaluator.period is not None:
        inside = counts.accepted + counts.duplicates + counts.conflicts + counts.rejected.get(Reason.OUTSIDE_SPAN, 0)
        found[str(evaluator.period)] = inside
    lines = [f"  {name}  {count} rows" for name, count in sorted(found.items())]
    if len(lines) > SHOWN_PERIODS:
        lines = [*lines[:SHOWN_PERIODS], f"  ... and {len(lines) - SHOWN_PERIODS} more periods"]
    if outside := evaluator.other_periods.get(None):
        effective = f"{agreement.effective_from} to {agreement.effective_until}"
        lines.append(f"  outside every period of the agreement ({effective}, {agreement.timezone})  {outside} rows")
    return BadInput(
        f"{path}: no one period holds all rows; name one with --period:\n" + "\n".join(lines),
        file=str(path),
        periods=dict(sorted(found.items())),
        outside=evaluator.other_periods.get(None, 0),
    )


def _terms_hash(agreement: Agreement, settlement: Settlement) -> str | None:
    if settlement.not_attestable:
        return None
    from ledger.attest.agreement_terms import attested_terms

    return str(attested_terms(agreement).hash())


def _document(evaluator: Evaluator, settlement: Settlement, terms_hash: str | None) -> dict[str, Any]:
    counts = evaluator.counts
    return {
        "period": str(settlement.period),
        "state": str(settlement.state),
        "requests": counts.requests,
        "accepted": counts.accepted,
        "rejected": counts.rejected_total,
        "duplicates": counts.duplicates,
        "conflicts": counts.conflicts,
        "objectives": [
            {
                "id": result.objective.id,
                "good": result.good,
                "valid": result.valid,
                "target": result.objective.target,
                "verdict": str(result.state),
            }
            for result in settlement.objectives
        ],
        "credit": {"currency": settlement.currency, "minor_units": settlement.credit},
        "terms_hash": terms_hash,
    }


def _print(document: dict[str, Any], settlement: Settlement, evaluator: Evaluator) -> None:
    coverage = settlement.coverage
    click.echo(
        f"Period {document['period']}: {coverage.observed} of {coverage.windows} windows observed "
        f"({coverage.idle} idle, {coverage.excluded} excluded, {coverage.no_data} without data)"
    )
    click.echo(
        f"Requests {document['requests']}: {document['accepted']} accepted, {document['rejected']} rejected, "
        f"{document['duplicates']} duplicates, {document['conflicts']} conflicts; "
        f"{sum(evaluator.excluded_requests().values())} excluded by a clause"
    )
    click.echo()
    print_table(
        ("objective", "good/valid", "attained", "target", "verdict"),
        [
            (
                result.objective.id,
                f"{result.good}/{result.valid}",
                percent_floored(result.good, result.valid),
                f"{result.objective.target} %",
                str(result.state),
            )
            for result in settlement.objectives
        ],
    )
    click.echo()
    if settlement.state is SettlementState.WITHHELD or settlement.credit is None:
        floor = f"{coverage.floor_bps // 100}.{coverage.floor_bps % 100:02} %"
        click.echo(
            f"Withheld: {coverage.observed} of {coverage.windows - coverage.excluded} windows were observed, "
            f"below the agreement's floor of {floor}. No verdict, no credit."
        )
    else:
        click.echo(f"Credit: {format_minor_units(settlement.credit, settlement.currency)} {settlement.currency}")
    if document["terms_hash"] is not None:
        click.echo(f"Terms hash: {document['terms_hash']}")
    for reason in settlement.not_attestable:
        click.echo(f"Not attestable: {reason}")
