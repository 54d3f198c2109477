"""``sla-ledger bundle``, ``opening`` and ``trust``: the files that ``verify`` reads, from a data directory."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.app.bundles.building import build_opening
from ledger.cli.opening import chosen_sla, opened
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, print_json
from ledger.cli.transfer import writing
from ledger.domain.record.canonical import canonical_bytes
from ledger.wiring.trust import trust_of

STATEMENT = click.argument("statement_id", metavar="STATEMENT")
OUT = click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="New file. Default: the output.")
ORIGIN_OF_PINS = (
    "these pins are this directory's own word. Handed over by the provider they prove nothing about the provider: "
    "compare each with what you learnt another way (the signed contract for the parties' keys, the witnesses for the "
    "log's, a node of your own for chain and registry, your own build for the circuits)"
)


@click.group()
def bundle() -> None:
    """Export all evidence of a statement as one file, which anybody verifies offline."""


@bundle.command(
    "export",
    epilog="Exit codes: 0 exported; 1 no such statement, or no checkpoint covers it yet; 2 FILE cannot be used.",
)
@STATEMENT
@DATA
@OUT
@TENANT
@DATABASE
@AS_JSON
def export_bundle(
    statement_id: str, data_dir: Path, out: Path | None, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Export the bundle of STATEMENT, signed by the issuer, under the newest signed checkpoint."""
    with opened(data_dir, database_url) as services:
        made = services.bundles.get(statement_id, tenant)
    _hand_over(made, out, as_json=as_json)


@click.group()
def opening() -> None:
    """Export the counts of every window behind a statement, which its bundle keeps to itself."""


@opening.command(
    "export",
    epilog="Exit codes: 0 exported; 1 no such statement, or nothing is sealed for it (no circuit attests its terms); 2 "
    "FILE cannot be used.",
)
@STATEMENT
@DATA
@OUT
@TENANT
@DATABASE
@AS_JSON
def export_opening(
    statement_id: str, data_dir: Path, out: Path | None, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Export the opening of STATEMENT: with it `verify --opening` works every total out again.

    It shows the counts of every window. Give it to those alone who may see them.
    """
    with opened(data_dir, database_url) as services, services.database.of_tenant(tenant).read() as tx:
        made = build_opening(tx, statement_id)
    _hand_over(made, out, as_json=as_json)


@click.group()
def trust() -> None:
    """Export the pins that bundles are checked against."""


@trust.command(
    "export", epilog="Exit codes: 0 exported; 1 no such agreement; 2 FILE or the data directory cannot be used."
)
@DATA
@SLA_ID
@OUT
@TENANT
@DATABASE
@AS_JSON
def export_trust(
    data_dir: Path, sla_id: str | None, out: Path | None, tenant: str, database_url: str | None, as_json: bool
) -> None:
    """Export a trust file for an agreement: keys of log, parties and witnesses, circuits, chain and registry.

    What it says is this directory's own word. Compare every pin with what you learnt another way before you rely on it.
    """
    with opened(data_dir, database_url) as services, services.database.of_tenant(tenant).read() as tx:
        pins = trust_of(services, tx, chosen_sla(tx.views.agreements(), sla_id), tenant)
    note(ORIGIN_OF_PINS)
    if not pins["circuits"]:
        note("no statement of this tenant is proved yet, so no circuit is pinned; export again once one is")
    _hand_over(canonical_bytes(pins), out, as_json=as_json)


def _hand_over(made: bytes, out: Path | None, *, as_json: bool) -> None:
    """Write a document, whose exact bytes count, to a new file of its owner's, or print it."""
    if out is None:
        # It is JSON as it stands.
        click.echo(made, nl=False)
        return
    with writing(out) as file:
        file.write(made)
    if as_json:
        print_json({"file": str(out), "bytes": len(made)})
    else:
        click.echo(f"wrote {out}: {len(made)} bytes")
