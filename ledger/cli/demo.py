"""``sla-ledger demo``: the main job on a request log, with every party's keys on this machine."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import yaml

from ledger.attest.checks.report import DEV_KEY_SAID
from ledger.cli.log_reading import Problems, parse_span, period_unclear, read_log, read_whole_log
from ledger.cli.objectives import OBJECTIVE_COLUMNS, objective_cells, objective_documents, withheld_reason
from ledger.cli.output import note, print_json, print_table
from ledger.domain.credits.settlement import Settlement
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.money import format_minor_units
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.rows.observation import RequestRow
from ledger.domain.terms.agreement import MAX_DAYS, Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import DAY_NS, format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import BadInput, StorageUnavailable
from ledger.ingest.agreement_yaml import parse_agreement, parse_document
from ledger.ingest.request_log import RequestLog
from ledger.resources import resource_dir
from ledger.wiring import Services, create_data
from ledger.wiring.clock import SystemClock
from ledger.wiring.files import replace_file
from ledger.wiring.main_job import MainJob, run_main_job
from ledger.wiring.parties import DemoParties
from ledger.wiring.provers import default_key_cache

EPILOG = """\b
Writes into DIR: agreement.yaml (signed), bundle.json, trust.json, opening.json, bundles/ and the ledger itself, which
`sla-ledger up --data DIR` serves. Running it again adds another agreement to the same ledger.
\b
Exit codes:
  0  done (a withheld or unproved statement is done, too: the output says why)
  1  proving or anchoring failed
  2  the log or the agreement cannot be used; nothing was written
"""


@click.command(epilog=EPILOG)
@click.option("--requests", type=click.Path(path_type=Path), help="Request log (NDJSON). Default: the sample.")
@click.option("--agreement", type=click.Path(path_type=Path), help="Terms (YAML); keys and nonce are replaced.")
@click.option(
    "--span",
    "spans",
    multiple=True,
    metavar="FROM/TO",
    help="Where the log is complete; once, since one log is one batch. Default: in the whole period.",
)
@click.option("--period", metavar="PERIOD", help="Such as 2023-12-19/P1D. Default: the one that holds all rows.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Data directory to write.")
@click.option("--database", metavar="URL", help="PostgreSQL (postgresql://...) for the log. Default: a file in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def demo(
    requests: Path | None,
    agreement: Path | None,
    spans: tuple[str, ...],
    period: str | None,
    out: Path,
    database: str | None,
    as_json: bool,
) -> None:
    """Run the main job: agreement, facts, log, judgements, statement, credit, proof, anchor, bundle.

    Without --agreement the example's terms are used for the service and dates of the log. This machine makes and
    holds the keys of issuer, customer and collector, and a proving key that its maker can forge under: good for
    trying, worth nothing as evidence.
    """
    requests = requests or resource_dir("examples") / "requests.ndjson"
    if len(spans) > 1:
        raise BadInput("--span is given more than once; a batch declares one span (`sla-ledger settle` takes several)")
    span_interval = parse_span(spans[0]) if spans else None
    log = read_whole_log(requests)
    terms = _terms(requests, log, agreement)
    chosen = _period(Agreement.from_document(terms), requests, log, period, span_interval)
    _require_over(chosen, SystemClock().now_ns())
    services = _open_data(out, database)
    try:
        parties = DemoParties(services.keyring)
        nonce = "0x" + services.randomness.bytes(32).hex()
        document = parties.signed({**parties.with_keys(terms), "nonce": nonce})
        signed = Agreement.from_document(document)
        job = run_main_job(
            services, parties, signed, chosen, log, read_rows=_read_rows, span=span_interval, step=_step(as_json)
        )
        _write(out, document, job)
        _print(job, signed, services, out, as_json=as_json)
    finally:
        services.close()


def _terms(requests: Path, log: bytes, agreement: Path | None) -> dict[str, Any]:
    """The given terms, or the example's for the service and dates that the log names."""
    path = agreement or resource_dir("examples") / "agreement.yaml"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    document: dict[str, Any] = dict(parse_document(data, str(path), AGREEMENT)[0])
    if agreement is not None:
        parse_agreement(data, str(path))
        return document
    services, first_ns, last_ns = _survey(requests, log)
    if len(services) != 1:
        named = ", ".join(sorted(services)[:5])
        raise BadInput(f"{requests}: its rows name {len(services)} services ({named}); pass --agreement to choose one")
    until = format_instant_ns(last_ns + DAY_NS)[:10]
    effective = {"from": format_instant_ns(first_ns)[:10], "until": until}
    return {**document, "service": {**document["service"], "name": services.pop()}, "effective": effective}


def _survey(requests: Path, log: bytes) -> tuple[set[str], int, int]:
    """Services, first and last start of the usable rows."""
    services: set[str] = set()
    starts_ns: list[int] = []
    for row in RequestLog(io.BytesIO(log), str(requests)):
        if isinstance(row, RequestRow):
            services.add(row.service)
            starts_ns.append(row.started_at_ns)
    if not starts_ns:
        raise BadInput(f"{requests}: no row can be used; `sla-ledger settle` names what is wrong with each")
    first_ns, last_ns = min(starts_ns), max(starts_ns)
    if last_ns - first_ns > MAX_DAYS * DAY_NS - DAY_NS:
        raise BadInput(
            f"{requests}: its rows lie in {format_instant_ns(first_ns)[:4]} to {format_instant_ns(last_ns)[:4]}, which "
            "is longer than an agreement lasts; pass --agreement to say its dates"
        )
    return services, first_ns, last_ns


def _period(agreement: Agreement, requests: Path, log: bytes, named: str | None, span: Interval | None) -> Period:
    period = None if named is None else period_named(agreement, named)
    evaluator = Evaluator(agreement, period, spans=[] if span is None else [span])
    problems = Problems(str(requests))
    read_log(io.BytesIO(log), str(requests), len(log), evaluator, problems)
    if evaluator.period is None or evaluator.other_periods:
        raise period_unclear(evaluator, agreement, requests)
    problems.report()
    return evaluator.period


def _require_over(period: Period, now_ns: int) -> None:
    if period.interval.end_ns > now_ns:
        end = format_instant_ns(period.interval.end_ns)
        raise BadInput(f"the period {period} ends at {end}, which is still to come; settle it after that")


def _open_data(out: Path, database: str | None) -> Services:
    """The data directory, opened or made; raises ``BadInput`` where nothing can be written into it."""
    try:
        for path in (out / name for name in ("agreement.yaml", "bundle.json", "trust.json", "opening.json")):
            if path.is_dir():
                raise BadInput(f"{path} is a folder, and demo writes a file of that name; move it away", path=str(path))
        if (out / "bundles").exists() and not (out / "bundles").is_dir():
            raise BadInput(f"{out / 'bundles'} is no folder, and demo writes into it; move it away", path=str(out))
        return create_data(out, key_cache=default_key_cache(), notify=note, database_url=database)
    except OSError as error:
        raise BadInput(f"--out {out}: {error.filename or out}: {error.strerror}", path=str(out)) from error


def _read_rows(data: bytes) -> RequestLog:
    return RequestLog(io.BytesIO(data), "batch")


def _step(quiet: bool) -> Callable[[str], None]:
    def say(what: str) -> None:
        if not quiet:
            note(f"- {what}")

    return say


def _write(out: Path, document: dict[str, Any], job: MainJob) -> None:
    _put(out / "agreement.yaml", yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode())
    _put(out / "bundles" / f"{job.statement.id}.json", job.bundle)
    _put(out / "bundle.json", job.bundle)
    _put(out / "trust.json", canonical_bytes(job.trust))
    if job.opening is None:
        (out / "opening.json").unlink(missing_ok=True)
    else:
        # Its owner's alone: it shows the counts of every window.
        _put(out / "opening.json", job.opening, mode=0o600)


def _put(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole, and its folder if need be; raises ``StorageUnavailable`` naming it."""
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, content, mode=mode)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def _print(job: MainJob, agreement: Agreement, services: Services, out: Path, *, as_json: bool) -> None:
    settlement = job.statement.settlement
    credit = settlement.credit
    if as_json:
        print_json(
            {
                "statement_id": job.statement.id,
                "period": str(settlement.period),
                "state": str(settlement.state),
                "objectives": objective_documents(settlement),
                "credit": {"currency": settlement.currency, "minor_units": credit},
                "proof_hash": job.proof_hash,
                "dev_key": job.dev_key,
                "tx_hash": job.tx_hash,
                "withheld_reason": withheld_reason(settlement),
                "not_attestable": list(settlement.not_attestable),
            }
        )
        return
    print_table((*OBJECTIVE_COLUMNS, "credit", "proof", "tx"), _rows(settlement, job.proof_hash, job.tx_hash))
    click.echo()
    click.echo(f"Statement {job.statement.id} of {agreement.service}, {settlement.period}: credit {_shown(settlement)}")
    if (reason := withheld_reason(settlement)) is not None:
        click.echo(f"{reason} Unproved.")
    for reason in settlement.not_attestable:
        click.echo(f"Unproved: {reason}")
    if job.dev_key:
        click.echo(f"Development key: {DEV_KEY_SAID}")
    click.echo(f"Verify it:  sla-ledger verify {out}/bundle.json --trust {out}/trust.json --accept-dev")
    click.echo(f"Serve it:   sla-ledger up --data {out} --port 8000")


def _rows(settlement: Settlement, proof_hash: str | None, tx_hash: str | None) -> list[tuple[str, ...]]:
    """The objectives, and the statement's credit, proof and transaction: no objective has a share of those."""
    statement = ("statement", "", "", "", str(settlement.state))
    return [
        *((*objective_cells(result), "", "", "") for result in settlement.objectives),
        (*statement, _shown(settlement), _short(proof_hash), _short(tx_hash)),
    ]


def _shown(settlement: Settlement) -> str:
    if settlement.credit is None:
        return "-"
    return f"{format_minor_units(settlement.credit, settlement.currency)} {settlement.currency}"


def _short(name: str | None) -> str:
    return "-" if name is None else name[:12] + "..."
