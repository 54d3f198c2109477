"""``sla-ledger init``, ``observe``, ``evaluate`` and ``close``: what a ledger is told. Its server or its workers do
what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.agreements.registering import load_agreement, timeline_of
from ledger.app.facts.handing_in import HandedIn, hand_in
from ledger.cli.log_reading import parse_span, read_whole_log, rejection_text
from ledger.cli.opening import chosen_sla, opened, receipt_document
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, print_json
from ledger.domain.attested import WINDOWS
from ledger.domain.rows.observation import Reason
from ledger.domain.terms.log_kinds import HEARTBEATS, format_of
from ledger.domain.time.instant import format_instant_ns
from ledger.errors import BadInput
from ledger.ingest.facts import read_facts
from ledger.wiring.services import Services
from ledger.wiring.stages import judge_of

WORKED_BY = "`sla-ledger up` on this directory settles it, or the workers where there is a broker"


@click.command(epilog="Exit codes: 0 made, or there already; 2 a directory or database that cannot be used.")
@DATA
@DATABASE
@click.option(
    "--proving-keys",
    is_flag=True,
    help="Make now, in up to a minute, the proving key for short periods, which is else made on first use.",
)
@click.option(
    "--windows",
    type=click.IntRange(1, WINDOWS),
    default=1,
    help="With --proving-keys: make those for periods of up to so many windows, too. 750, a month of hours, take some "
    "minutes.",
)
@click.option(
    "--incidents",
    is_flag=True,
    help="With --proving-keys: make that of incident credits, too, which agreements with an impact rule need.",
)
@AS_JSON
def init(
    data_dir: Path, database_url: str | None, proving_keys: bool, windows: int, incidents: bool, as_json: bool
) -> None:
    """Make a data directory: its keys, its database and the log's first key. One that is there stays as it is."""
    with opened(data_dir, database_url, create=True) as services:
        # A server that only reads its keys could not make it.
        services.guest_seed()
        if proving_keys:
            services.warm_provers(windows, incidents=incidents)
        origin, vkey = services.log_signer.origin, services.log_signer.identity.first_key.vkey()
    if as_json:
        print_json({"data": str(data_dir), "origin": origin, "log_vkey": vkey})
        return
    click.echo(f"{data_dir} holds the ledger {origin}")
    click.echo(f"log key  {vkey}")


@click.command(
    epilog="Exit codes: 0 recorded, now or before (rows that were rejected are counted); 1 refused as things stand "
    "(the deadline for facts about a closed period is over); 2 no row of the log can be used, and nothing was written."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@SLA_ID
@click.option("--period", metavar="PERIOD", help="The log is complete in this period, such as 2023-12-19/P1D.")
@click.option("--span", metavar="FROM/TO", help="The log is complete between these instants.")
@TENANT
@DATABASE
@AS_JSON
def observe(
    path: Path,
    data_dir: Path,
    sla_id: str | None,
    period: str | None,
    span: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Record a log (NDJSON) as facts of an agreement: requests, samples, heartbeats, outages, counters or histograms.
    The same log again changes nothing.

    Windows that no span and no heartbeat covers count as missing data, not as idle.
    """
    if period is not None and span is not None:
        raise BadInput("--period and --span both say where the log is complete; give one")
    data = read_whole_log(path)
    with opened(data_dir, database_url) as services:
        database = services.database.of_tenant(tenant)
        with database.read() as tx:
            sla_id = chosen_sla(tx.views.agreements(), sla_id)
            timeline = timeline_of(tx, sla_id)
        complete = parse_span(span) if span is not None else None
        if period is not None:
            complete = timeline.named(period)[1].interval
        handed_in = hand_in(
            database,
            sla_id,
            data,
            attestor=services.attestor,
            clock=services.clock,
            # Batches of before have no file.
            read_rows=lambda raw: read_facts(raw, str(path)) if raw is data else read_facts(raw),
            declared_complete=complete,
        )
        taken = handed_in.batch.declared_complete
        if complete is not None and taken != complete:
            until = format_instant_ns(complete.end_ns)
            note(f"not over until {until}: taken as complete up to now; hand it in again after that")
        undeclared = complete is None and format_of(data) != HEARTBEATS
        for row in handed_in.rejections:
            note(rejection_text(str(path), row))
        _print_batch(services, handed_in, undeclared=undeclared, as_json=as_json)


@click.command(epilog="Exit codes: 0 closed, now or before; 1 not over yet; 2 no such agreement or period.")
@DATA
@SLA_ID
@click.option("--period", required=True, metavar="PERIOD", help="Such as 2023-12-19/P1D.")
@TENANT
@DATABASE
@AS_JSON
def close(
    data_dir: Path, sla_id: str | None, period: str, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Close a period that is over: its windows are judged and its statement is issued, proved and recorded on chain.

    A period is closed once; again gives the first receipt. It also closes by itself when its grace is over.
    """
    with opened(data_dir, database_url) as services:
        with services.database.of_tenant(tenant).read() as tx:
            sla_id = chosen_sla(tx.views.agreements(), sla_id)
        closed = services.commands.of_tenant(tenant).close(sla_id, period)
        receipt = receipt_document(services, closed.receipt)
    if as_json:
        print_json({"sla_id": closed.sla_id, "period": closed.period, **receipt})
        return
    click.echo(f"closed {closed.period} of {closed.sla_id}: event {receipt['event_id']} at seq {receipt['seq']}")
    note(WORKED_BY)


@click.command(epilog="Exit codes: 0 judged; 1 closed already, or no period runs; 2 no such agreement or period.")
@DATA
@SLA_ID
@click.option("--period", metavar="PERIOD", help="Such as 2023-12-19/P1D. Default: the one that runs now.")
@TENANT
@DATABASE
@AS_JSON
def evaluate(
    data_dir: Path, sla_id: str | None, period: str | None, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Judge a period that is not over by the facts that are in: its violations open, grow and close.

    `sla-ledger up` and the beat do it by themselves as facts come in. The same facts again change nothing, and what the
    period will come to when it is closed stays the same.
    """
    with opened(data_dir, database_url) as services:
        judge = judge_of(services)
        with services.database.of_tenant(tenant).begin() as tx:
            registered = load_agreement(tx, chosen_sla(tx.views.agreements(), sla_id), services.attestor)
            chosen = judge.current(tx, registered, period)
            new = judge.judge(tx, registered, chosen)
            appended = [tx.events.by_id(receipt.event_id) for receipt in new]
    found = [{"violation_id": each.payload["violation_id"], "event": each.type} for each in appended]
    if as_json:
        print_json({"sla_id": registered.sla_id, "period": str(chosen), "violations": found})
        return
    click.echo(f"judged {chosen} of {registered.sla_id}: {len(found)} new events about violations")
    for line in found:
        click.echo(f"  {line['event'].removeprefix('violation_')}  {line['violation_id']}")


def _print_batch(services: Services, handed_in: HandedIn, *, undeclared: bool, as_json: bool) -> None:
    batch, counts = handed_in.batch, handed_in.batch.counts
    rows = {
        "accepted": counts.accepted,
        "duplicate": counts.duplicates,
        "conflict": counts.conflicts,
        "rejected": counts.rejected_total,
    }
    document: dict[str, Any] = {
        "digest": batch.digest,
        "rows": rows,
        "rejected_reasons": {str(reason): count for reason, count in sorted(counts.rejected.items())},
        "rejected": [
            {"line": row.line, "reason": str(row.reason), "field": row.field, "message": row.message}
            for row in handed_in.rejections
        ],
        "complete_until": batch.complete_until,
        "judged_anew": list(batch.judged_anew),
        **receipt_document(services, batch.receipt),
    }
    if as_json:
        print_json(document)
        return
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in rows.items()) + f"; batch {batch.digest}")
    for reason, count in document["rejected_reasons"].items():
        click.echo(f"  rejected: {reason}: {count}")
    if Reason.IMPLAUSIBLE in counts.rejected:
        note(
            "what is implausible blocks its period until a row in its place says what is true: see "
            "`sla-ledger data-quality`"
        )
    for period in batch.judged_anew:
        note(
            f"{period} is closed: it is judged anew, and where that gives other figures the next version of its "
            "statement follows"
        )
    if undeclared:
        note(
            "nobody says where this log is complete (--period, --span): windows that no declared span and no heartbeat "
            "covers are missing data"
        )
