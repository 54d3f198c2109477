"""``sla-ledger agreements list``, ``show``, ``amend`` and ``terminate``: the life of registered agreements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.agreements.lifecycle import read_lifecycle
from ledger.app.paging import Row
from ledger.cli.agreement_reading import read_agreement
from ledger.cli.opening import chosen_of, chosen_sla, opened, receipt_document
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.cli.registering import registration_signature_of
from ledger.domain.terms.termination import notice_message
from ledger.domain.time.instant import format_instant_ns
from ledger.errors import BadInput
from ledger.wiring.parties import DemoParties

OWN_KEYS = click.option(
    "--own-keys", is_flag=True, help="Sign for the parties with this directory's keys: to try things out."
)


@click.command("list", epilog="Exit codes: 0 listed; 2 no such data directory.")
@DATA
@TENANT
@DATABASE
@AS_JSON
def list_(data_dir: Path, tenant: str, database_url: str | None, as_json: bool) -> None:
    """List the agreements: where each stands, and in which version of its terms."""
    with opened(data_dir, database_url) as services, services.database.of_tenant(tenant).read() as tx:
        now_ns = services.clock.now_ns()
        rows = [
            (row, read_lifecycle(tx, str(row["sla_id"]), now_ns=now_ns))
            for row in sorted(tx.views.agreements(), key=lambda row: str(row["sla_id"]))
        ]
    shown = [
        {
            "sla_id": row["sla_id"],
            "state": life["state"],
            "service": row["service"],
            "customer": row["document"]["parties"]["customer"]["name"],
            "terms_version": row["terms_version"],
            "in_force": _in_force(life),
        }
        for row, life in rows
    ]
    if as_json:
        print_json({"agreements": shown})
        return
    header = ("sla_id", "state", "service", "customer", "terms_version", "in_force")
    titles = ("agreement", "state", "service", "customer", "newest terms", "in force")
    print_table(titles, ([str(row[name] or "") for name in header] for row in shown))


@click.command(epilog="Exit codes: 0 shown; 2 no such agreement.")
@DATA
@SLA_ID
@TENANT
@DATABASE
@AS_JSON
def show(data_dir: Path, sla_id: str | None, tenant: str, database_url: str | None, as_json: bool) -> None:
    """Show where an agreement stands, every version of its terms, and what became or becomes of it when."""
    with opened(data_dir, database_url) as services, services.database.of_tenant(tenant).read() as tx:
        now_ns = services.clock.now_ns()
        life = read_lifecycle(tx, chosen_sla(tx.views.agreements(), sla_id), now_ns=now_ns)
    if as_json:
        print_json(_document(life))
        return
    click.echo(f"{life['sla_id']}: {life['state']}")
    versions = [
        [
            str(each["terms_version"]),
            each["state"],
            _shown(each["from_ns"]),
            _shown(each["until_ns"]),
            "yes" if each["on_chain"] else "no",
            each["doc_sha256"],
        ]
        for each in life["versions"]
    ]
    print_table(("terms", "state", "from", "until", "on chain", "document"), versions)
    for each in life["timeline"]:
        to_come = ", to come" if each["at_ns"] > now_ns else ""
        click.echo(f"{_shown(each['at_ns'])}  {each['what']} (terms {each['terms_version']}{to_come})")
    if (ended := life["termination"]) is not None:
        click.echo(f"ended by notice of {' and '.join(ended['signed_by'])}: {ended['reason']}")


@click.command(
    epilog="Exit codes: 0 registered, now or before; 1 refused (signatures, collector); 2 not valid, or it cannot "
    "follow the terms before it: the message names clause and value."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@SLA_ID
@click.option(
    "--registration-signature",
    metavar="HEX",
    help="The customer's signature, r, s and v, over what `agreements digest` prints for this document.",
)
@OWN_KEYS
@TENANT
@DATABASE
@AS_JSON
def amend(
    path: Path,
    data_dir: Path,
    sla_id: str | None,
    registration_signature: str | None,
    own_keys: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Register the next version of an agreement's terms: the whole document, signed by both parties.

    It is in force from its effective.from on, which must be later than now. A period that it falls into is split.
    """
    document = dict(read_agreement(path).document)
    with opened(data_dir, database_url) as services:
        commands = services.commands.of_tenant(tenant)
        with services.database.of_tenant(tenant).read() as tx:
            sla_id = chosen_sla(tx.views.agreements(), sla_id)
            newest = tx.views.agreement(sla_id)["document"]
            life = read_lifecycle(tx, sla_id, now_ns=services.clock.now_ns())
        on_chain = all(each["on_chain"] for each in life["versions"])
        signature = registration_signature_of(registration_signature)
        if own_keys:
            parties = DemoParties(services.keyring)
            document = parties.signed({**parties.with_keys(document), "nonce": newest["nonce"]})
            request = commands.registration_request(document) if on_chain else None
            signature = None if request is None else parties.sign_registration(request.digest)
        registered = commands.amend(sla_id, document, customer_signature=signature)
        receipt = receipt_document(services, registered.receipt)
    if as_json:
        shown = {"sla_id": registered.sla_id, "doc_sha256": registered.doc_sha256, "on_chain": registered.on_chain}
        print_json({**shown, "terms_version": registered.receipt.version + 1, **receipt})
        return
    click.echo(
        f"terms {registered.receipt.version + 1} of {registered.sla_id} are in force from "
        f"{document['effective']['from']}: event {receipt['event_id']} at seq {receipt['seq']}"
    )
    if not registered.on_chain:
        note("not registered on chain: the customer did not sign that, or no circuit attests the statements")


@click.command(
    epilog="Exit codes: 0 the agreement ends, or what is to be signed is printed; 1 a signature does not hold; 2 it "
    "cannot end then, or another notice ended it: the message names clause and value."
)
@DATA
@SLA_ID
@click.option("--effective", required=True, metavar="DATE", help="Local date at whose start it ends, later than now.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; both parties read it.")
@click.option("--issuer-signature", metavar="HEX", help="Ed25519, over the message that is printed without signatures.")
@click.option("--customer-signature", metavar="HEX", help="The same of the customer. One of the two suffices.")
@OWN_KEYS
@TENANT
@DATABASE
@AS_JSON
def terminate(  # noqa: PLR0913, PLR0917 - what can be said to the command, each by its name
    data_dir: Path,
    sla_id: str | None,
    effective: str,
    reason: str,
    issuer_signature: str | None,
    customer_signature: str | None,
    own_keys: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """End an agreement by a notice that one party or both signed. Without signatures: print what is to be signed."""
    given = {"issuer": issuer_signature, "customer": customer_signature}
    signatures = {name: text.removeprefix("0x") for name, text in given.items() if text is not None}
    if own_keys and signatures:
        raise BadInput("--own-keys signs by itself; leave the signatures out")
    with opened(data_dir, database_url) as services:
        commands = services.commands.of_tenant(tenant)
        sla_id = chosen_of(services.database.of_tenant(tenant), sla_id)
        unsigned = commands.notice(sla_id, effective=effective, reason=reason)
        message = notice_message(unsigned)
        if own_keys:
            signatures = {
                name: services.keyring.signing_key(name).sign(message).hex() for name in ("issuer", "customer")
            }
        if not signatures:
            if as_json:
                print_json({"notice": unsigned, "message": message.hex()})
            else:
                click.echo(message.hex())
                note("sign these bytes with Ed25519, and hand the signature in")
            return
        ended = commands.terminate(sla_id, effective=effective, reason=reason, signatures=signatures)
        receipt = receipt_document(services, ended.receipt)
    if as_json:
        print_json({"sla_id": sla_id, "effective": ended.effective, "signed_by": list(ended.signed_by), **receipt})
        return
    click.echo(f"{sla_id} ends on {ended.effective}: event {receipt['event_id']} at seq {receipt['seq']}")


def _in_force(life: Row) -> int | None:
    return next((each["terms_version"] for each in life["versions"] if each["state"] == "active"), None)


def _shown(at_ns: int | None) -> str:
    return "never" if at_ns is None else format_instant_ns(at_ns)


def _document(life: Row) -> dict[str, Any]:
    """A lifecycle as JSON shows it: instants as RFC 3339 instead of nanoseconds."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name.removesuffix("_ns"): None
            if item is None
            else format_instant_ns(item)
            if name.endswith("_ns")
            else plain(item)
            for name, item in value.items()
        }

    found: dict[str, Any] = plain(dict(life))
    return found
