"""``sla-ledger charges`` and ``claims``: what was charged is handed in, and credits are claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.billing.claims import Claimable, Filed
from ledger.app.settlement.charges import RecordedCharges
from ledger.cli.opening import chosen_of, opened, receipt_document
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.domain.money import format_minor_units
from ledger.domain.time.instant import format_instant_ns
from ledger.ingest.charges_yaml import load_charges_file
from ledger.wiring.services import Services

STATEMENT = click.argument("statement_id", metavar="STATEMENT")


@click.group()
def charges() -> None:
    """Hand in what was charged for a period, where credits are a share of it."""


@charges.command(
    epilog="Exit codes: 0 recorded, now or before; 1 refused (no base, too late); 2 the file cannot be used."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@SLA_ID
@TENANT
@DATABASE
@AS_JSON
def record(
    path: Path, data_dir: Path, sla_id: str | None, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Record the charges in FILE (YAML or JSON: period and lines, docs/credits.md) in place of those before.

    A closed period that waits for them is settled, one that was settled by others is restated.
    """
    document = load_charges_file(path)
    with opened(data_dir, database_url) as services:
        sla_id = chosen_of(services.database.of_tenant(tenant), sla_id)
        desk = services.commands.of_tenant(tenant).charges
        recorded = desk.record(sla_id, document["period"], document["lines"])
        _print_charges(services, recorded, as_json=as_json)


@charges.command(epilog="Exit codes: 0 shown; 1 none are recorded; 2 no such period.")
@DATA
@SLA_ID
@click.option("--period", required=True, metavar="PERIOD", help="Such as 2023-12-01/P1M.")
@TENANT
@DATABASE
@AS_JSON
def show(data_dir: Path, sla_id: str | None, period: str, tenant: str, database_url: str | None, as_json: bool) -> None:
    """Show the charges of a period as they stand."""
    with opened(data_dir, database_url) as services:
        sla_id = chosen_of(services.database.of_tenant(tenant), sla_id)
        recorded = services.commands.of_tenant(tenant).charges.of(sla_id, period)
        _print_charges(services, recorded, as_json=as_json)


@click.group()
def claims() -> None:
    """Claim credits of agreements that settle by claim."""


@claims.command(
    epilog="Exit codes: 0 filed, now or before; 1 refused (too late, claimed before, nothing credited), or no such "
    "statement; 2 bad usage."
)
@STATEMENT
@DATA
@click.option("--violation", metavar="ID", help="Claim for this incident alone. Default: for all that is open.")
@click.option("--evidence", metavar="SHA256", help="SHA-256 of the batch of facts that the claim stands on, in hex.")
@click.option("--request", metavar="KEY", help="Names the request: again under the same key it is done once.")
@TENANT
@DATABASE
@AS_JSON
def file(
    statement_id: str,
    data_dir: Path,
    violation: str | None,
    evidence: str | None,
    request: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Claim what STATEMENT credits; a credit line is issued for each claim."""
    with opened(data_dir, database_url) as services:
        key = request or services.randomness.bytes(16).hex()
        desk = services.commands.of_tenant(tenant).claims
        filed = desk.file(statement_id, violation=violation, evidence=evidence, request=key)
    if as_json:
        print_json({"request": key, "items": [_filed_document(claim) for claim in filed]})
        return
    for claim in filed:
        amount = format_minor_units(int(claim["minor_units"]), claim["currency"])
        click.echo(f"filed {claim['claim_id']}: {amount} {claim['currency']}, line {claim['line_id']}")


@claims.command(name="list", epilog="Exit codes: 0 shown; 1 no such statement.")
@STATEMENT
@DATA
@TENANT
@DATABASE
@AS_JSON
def list_claims(statement_id: str, data_dir: Path, tenant: str, database_url: str | None, as_json: bool) -> None:
    """List what can be or was claimed of STATEMENT, incident by incident."""
    with opened(data_dir, database_url) as services:
        found = services.commands.of_tenant(tenant).claims.of(statement_id)
    if as_json:
        print_json({"items": [_claimable_document(each) for each in found]})
        return
    if not found:
        note(f"nothing can be claimed of {statement_id}: the agreement settles by itself, or nothing is credited")
        return
    print_table(
        ("claim", "level", "scope", "amount", "until", "status"),
        [
            (
                each.claim_id,
                each.objective or "-",
                each.scope,
                f"{format_minor_units(each.minor_units, each.currency)} {each.currency}",
                format_instant_ns(each.deadline_ns),
                str(each.status),
            )
            for each in found
        ],
    )


def _print_charges(services: Services, recorded: RecordedCharges, *, as_json: bool) -> None:
    receipt = receipt_document(services, recorded.receipt)
    if as_json:
        shown = {"sla_id": recorded.sla_id, "period": recorded.period, "version": recorded.version}
        print_json({**receipt, **shown, "lines": list(recorded.lines)})
        return
    click.echo(
        f"charges of {recorded.period} of {recorded.sla_id}, version {recorded.version}: {len(recorded.lines)} lines, "
        f"event {receipt['event_id']} at seq {receipt['seq']}"
    )
    print_table(
        ("service", "region", "model", "kind", "amount"),
        [
            (line["service"], line.get("region", "-"), line.get("model", "-"), line["kind"], _amount(line))
            for line in recorded.lines
        ],
    )


def _amount(line: Any) -> str:
    rate = line.get("rate")
    return f"{line['amount']} {line['currency']}" + ("" if rate is None else f" at {rate['rate']} ({rate['source']})")


def _filed_document(claim: Filed) -> dict[str, Any]:
    return {key: value for key, value in claim.items() if key not in ("request", "deadline_ns")} | {
        "deadline": format_instant_ns(int(claim["deadline_ns"]))
    }


def _claimable_document(each: Claimable) -> dict[str, Any]:
    return {
        "claim_id": each.claim_id,
        "scope": each.scope,
        "objective": each.objective,
        "violation_id": each.violation_id,
        "currency": each.currency,
        "minor_units": str(each.minor_units),
        "deadline": format_instant_ns(each.deadline_ns),
        "status": str(each.status),
        "filed": None if each.filed is None else _filed_document(each.filed),
    }
