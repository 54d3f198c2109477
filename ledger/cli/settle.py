"""``sla-ledger settle``: one period of a request log by an agreement. No database, no chain, no signatures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ledger.cli.agreement_reading import read_agreement
from ledger.cli.feed_reading import read_feeds, require_logs
from ledger.cli.log_reading import Problems, parse_span, period_unclear, read_heartbeats, read_log, read_samples
from ledger.cli.objectives import OBJECTIVE_COLUMNS, objective_cells, objective_documents, withheld_reason
from ledger.cli.output import print_json, print_table
from ledger.domain.credits.charges import Charges, charges_for, charges_period, read_charges, require_payable
from ledger.domain.credits.settlement import Settlement
from ledger.domain.credits.settlement import settle as settle_period
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.heartbeats import HeartbeatBook
from ledger.domain.facts.joined_logs import joined
from ledger.domain.facts.samples import SampleBook
from ledger.domain.money import format_minor_units
from ledger.domain.rows.observation import VerdictCounts
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import COUNTERS, HISTOGRAMS, OUTAGES, REQUESTS, SAMPLES
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval
from ledger.domain.violations.own_recovery import with_own_recoveries
from ledger.errors import BadInput
from ledger.ingest.charges_yaml import load_charges_file
from ledger.ingest.request_log import open_request_log

EPILOG = """\b
Exit codes:
  0  settled or withheld
  1  charges are missing, or the ledger would not record them; --strict, and a row was rejected or in conflict
  2  the agreement or the log cannot be used; a message names file, line and field
"""


@click.command(epilog=EPILOG)
@click.option("--agreement", "agreement_path", required=True, type=click.Path(path_type=Path), help="Agreement (YAML).")
@click.option("--requests", "requests_path", type=click.Path(path_type=Path), help="Request log (NDJSON).")
@click.option("--samples", "samples_path", type=click.Path(path_type=Path), help="Sample log (NDJSON).")
@click.option(
    "--heartbeats",
    "heartbeats_path",
    type=click.Path(path_type=Path),
    help="Heartbeat log (NDJSON), where the agreement shows coverage by heartbeats; needs --period.",
)
@click.option("--outages", type=click.Path(path_type=Path), help="Outage list (NDJSON).")
@click.option("--counters", type=click.Path(path_type=Path), help="Counter log (NDJSON).")
@click.option("--histograms", type=click.Path(path_type=Path), help="Histogram log (NDJSON).")
@click.option("--service", help="Stands in for the service the agreement names; terms_hash is then the altered one's.")
@click.option("--period", "period_text", help="Such as 2023-12-19/P1D. Default: the one period that holds all rows.")
@click.option(
    "--span",
    "span_texts",
    multiple=True,
    metavar="FROM/TO",
    help="Where the log is complete, as two instants; repeatable. Default: in the whole period.",
)
@click.option(
    "--charges",
    "charges_path",
    type=click.Path(path_type=Path),
    help="Charges (YAML: period and lines), where the agreement takes its base from them.",
)
@click.option("--strict", is_flag=True, help="Exit 1 if a row was rejected or in conflict.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def settle(  # noqa: PLR0913, PLR0917 - one for each option
    agreement_path: Path,
    requests_path: Path | None,
    samples_path: Path | None,
    heartbeats_path: Path | None,
    outages: Path | None,
    counters: Path | None,
    histograms: Path | None,
    service: str | None,
    period_text: str | None,
    span_texts: tuple[str, ...],
    charges_path: Path | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Settle one period of the logs that the agreement is counted from: counts, verdicts and credit.

    Pure computation: no database, no chain, no signature check.
    """
    agreement = read_agreement(agreement_path)
    if service is not None:
        agreement = agreement.for_service(service)
    feeds_given = {OUTAGES: outages, COUNTERS: counters, HISTOGRAMS: histograms}
    given = require_logs(agreement, {REQUESTS: requests_path, **feeds_given})
    period = period_named(agreement, period_text) if period_text is not None else None
    spans = [parse_span(text) for text in span_texts]
    alive, unusable = _alive(agreement, period, heartbeats_path, spans)
    evaluator = _evaluator(agreement, period, spans, alive)
    if requests_path is not None:
        unusable += _read_requests(requests_path, agreement, evaluator)
    if evaluator.period is None:
        raise BadInput("without a request log nothing tells the period; name it with --period")
    held = (spans or None) if alive is None else [*spans, *alive]
    samples = None if samples_path is None else SampleBook(agreement, evaluator.period, spans=held)
    if samples_path is not None and samples is not None:
        unusable += read_samples(samples_path, samples, spans)
    feeds = read_feeds(agreement, evaluator.period, given, spans, held)
    windows = joined(evaluator, [*([] if samples is None else [samples]), *feeds.books])
    windows, unusable = with_own_recoveries(agreement, windows), unusable + feeds.unusable
    charges = None if charges_path is None else _charges(agreement, evaluator.period, charges_path)
    settlement = settle_period(agreement, evaluator.period, windows, charges)
    logs = {**({} if samples is None else {"samples": samples.counts}), **feeds.counts}
    document = _document(evaluator, logs, settlement, _terms_hash(agreement, settlement))
    if as_json:
        print_json(document)
    else:
        _print(document, settlement, evaluator)
    return 1 if strict and unusable else 0


def _evaluator(
    agreement: Agreement, period: Period | None, spans: Sequence[Interval], alive: Sequence[Interval] | None
) -> Evaluator:
    if alive is None:
        return Evaluator(agreement, period, spans=spans)
    return Evaluator(agreement, period, spans=[*spans, *alive], declared=spans)


def _alive(
    agreement: Agreement, period: Period | None, path: Path | None, spans: Sequence[Interval]
) -> tuple[Sequence[Interval] | None, int]:
    """What heartbeats cover of the period, and how many could not be used; None where the agreement has none: then a
    log without a span is the complete one."""
    if agreement.heartbeat_longest_s is None:
        if path is not None:
            raise BadInput("this agreement shows coverage by complete_log; leave --heartbeats out")
        return None, 0
    if path is None:
        if not spans:
            raise BadInput(
                "this agreement shows coverage by heartbeats, and without one nothing is observed; give --heartbeats "
                "FILE, or --span where the log is complete"
            )
        return (), 0
    if period is None:
        raise BadInput("--heartbeats also needs --period, because heartbeats reach over several")
    book = HeartbeatBook(agreement, period)
    unusable = read_heartbeats(path, book)
    return book.spans, unusable


def _read_requests(path: Path, agreement: Agreement, evaluator: Evaluator) -> int:
    """Every row of a request log, and how many of them could not be used."""
    problems = Problems(str(path))
    with open_request_log(path) as stream:
        read_log(stream, str(path), os.fstat(stream.fileno()).st_size, evaluator, problems)
    if evaluator.period is None or evaluator.other_periods:
        raise period_unclear(evaluator, agreement, path)
    problems.report()
    return problems.count


def _charges(agreement: Agreement, period: Period, path: Path) -> Charges:
    if agreement.compensation.charges is None:
        raise BadInput("the base of this agreement is agreed on (compensation.base); leave --charges out")
    document, of = load_charges_file(path), charges_period(agreement, period)
    if document["period"] != str(of):
        raise BadInput(f"{path}: has the charges of {document['period']}, and {period} is settled by those of {of}")
    # What the ledger would not record is not settled by either.
    require_payable(agreement, read_charges(agreement, of, document["lines"]))
    return charges_for(agreement, period, document["lines"])


def _terms_hash(agreement: Agreement, settlement: Settlement) -> str | None:
    if settlement.not_attestable:
        return None
    from ledger.attest.commitments.agreement_terms import attested_terms

    return str(attested_terms(agreement).hash())


def _document(
    evaluator: Evaluator, logs: Mapping[str, VerdictCounts], settlement: Settlement, terms_hash: str | None
) -> dict[str, Any]:
    counts = evaluator.counts
    return {
        "period": str(settlement.period),
        "state": str(settlement.state),
        "requests": counts.requests,
        "accepted": counts.accepted,
        "rejected": counts.rejected_total,
        "duplicates": counts.duplicates,
        "conflicts": counts.conflicts,
        **{name: _verdicts(of_log) for name, of_log in logs.items()},
        "objectives": objective_documents(settlement),
        "credit": {"currency": settlement.currency, "minor_units": settlement.credit},
        "terms_hash": terms_hash,
    }


def _verdicts(counts: VerdictCounts) -> dict[str, int]:
    return {
        "accepted": counts.accepted,
        "rejected": counts.rejected_total,
        "duplicates": counts.duplicates,
        "conflicts": counts.conflicts,
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
    for name in (SAMPLES, *BOOKS):
        if (verdicts := document.get(name)) is not None:
            click.echo(f"{name.capitalize()} " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    if uncounted := evaluator.uncounted_requests():
        click.echo(f"{uncounted} of the accepted lie in windows that the spans do not cover whole, and count nowhere")
    click.echo()
    print_table(
        OBJECTIVE_COLUMNS,
        [objective_cells(result) for result in settlement.objectives],
    )
    click.echo()
    if (reason := withheld_reason(settlement)) is not None:
        click.echo(reason)
    elif settlement.credit is not None:
        click.echo(f"Credit: {format_minor_units(settlement.credit, settlement.currency)} {settlement.currency}")
    if document["terms_hash"] is not None:
        click.echo(f"Terms hash: {document['terms_hash']}")
    for reason in settlement.not_attestable:
        click.echo(f"Not attestable: {reason}")
