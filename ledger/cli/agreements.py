"""``sla-ledger agreements``: check agreement documents, import others, and register them with a ledger."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from ledger.app.agreements.registering import signature_holds
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.crypto.signing import verify
from ledger.cli.agreement_reading import PLACEHOLDER, placeholders, read_agreement
from ledger.cli.output import print_json
from ledger.domain.credits.settlement import attestability
from ledger.domain.terms.lifecycle import State

LATER = {
    "add": "ledger.cli.registering:add",
    "amend": "ledger.cli.lifecycle:amend",
    "digest": "ledger.cli.registering:digest",
    "import": "ledger.cli.importing:import_slos",
    "keys": "ledger.cli.registering:keys",
    "list": "ledger.cli.lifecycle:list_",
    "signing-bytes": "ledger.cli.registering:signing_bytes",
    "show": "ledger.cli.lifecycle:show",
    "terminate": "ledger.cli.lifecycle:terminate",
}
"""Loaded when they are needed: checking a document needs no extra installed."""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *LATER]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            module, _, attribute = LATER[cmd_name].partition(":")
            found: click.Command = getattr(importlib.import_module(module), attribute)
            return found
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Group)
def agreements() -> None:
    """Check agreement documents, and register them."""


@agreements.command(epilog="Exit codes: 0 valid (attestable or not); 2 not valid, the message names file, line, field.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def validate(path: Path, as_json: bool) -> None:
    """Check an agreement and say whether its statements can be proved, and if not, why.

    It is a draft until both parties' signatures hold: then it can be registered.
    """
    agreement, unwritten = read_agreement(path), placeholders(path)
    reasons = attestability(agreement)
    terms_hash = None if reasons else str(attested_terms(agreement).hash())
    signed_by = [party for party in ("issuer", "customer") if signature_holds(agreement, party, verify)]
    missing = [party for party in ("issuer", "customer") if party not in signed_by]
    state = State.DRAFT if missing else State.SIGNED
    if as_json:
        print_json(
            {
                "valid": True,
                "attestable": not reasons,
                "reasons": list(reasons),
                "doc_sha256": agreement.doc_sha256.hex(),
                "terms_hash": terms_hash,
                "state": str(state),
                "signed_by": signed_by,
                "missing_signatures": missing,
                "placeholders": unwritten,
            }
        )
        return
    lacks = f"; the signature of {' and '.join(missing)} is missing or does not hold" if missing else ""
    click.echo(f"{path}: valid; {state}{lacks}")
    if unwritten:
        click.echo(f"{PLACEHOLDER} is still in {', '.join(unwritten)}: write in what is yours before anybody signs")
    click.echo(f"document sha256  {agreement.doc_sha256.hex()}")
    if terms_hash is not None:
        click.echo(f"terms hash       {terms_hash}")
    click.echo(f"attestable       {'no' if reasons else 'yes'}")
    for reason in reasons:
        click.echo(f"  {reason}")
