"""``sla-ledger agreements add``, ``digest`` and ``keys``: registering agreements with a ledger."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from ledger.app.commands import EVM_SIGNATURE_BYTES, Commands
from ledger.cli.agreement_reading import read_agreement
from ledger.cli.opening import opened, receipt_document
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import note, print_json
from ledger.cli.transfer import writing
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.calendar import Period
from ledger.errors import BadInput
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services


@click.command(
    epilog="Exit codes: 0 registered, now or before; 1 refused (signatures, collector, other terms); 2 not valid."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@click.option(
    "--first-period",
    metavar="PERIOD",
    help="First period to be recorded on chain, and so every one after it. Default: the first of the terms.",
)
@click.option(
    "--registration-signature",
    metavar="HEX",
    help="The customer's signature, r, s and v, over what `agreements digest` prints. Without it statements are "
    "issued and proved, but the registry will not take them.",
)
@click.option(
    "--own-keys",
    is_flag=True,
    help="Put this directory's keys in place of the parties' and sign for all of them: to try things out.",
)
@TENANT
@DATABASE
@AS_JSON
def add(
    path: Path,
    data_dir: Path,
    first_period: str | None,
    registration_signature: str | None,
    own_keys: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Register a signed agreement. The same document again gives the first receipt."""
    agreement = read_agreement(path)
    document, left_out = dict(agreement.document), _left_out(agreement, first_period)
    if own_keys and registration_signature is not None:
        raise BadInput("--own-keys signs by itself; leave --registration-signature out")
    with opened(data_dir, database_url) as services:
        commands = services.commands.of_tenant(tenant)
        signature = registration_signature_of(registration_signature)
        if own_keys:
            document, signature = _with_own_keys(services, commands, document, first_period)
        registered = commands.register(document, first_period=first_period, customer_signature=signature)
        receipt = receipt_document(services, registered.receipt)
    shown = {"sla_id": registered.sla_id, "doc_sha256": registered.doc_sha256, "on_chain": registered.on_chain}
    if left_out:
        note(
            f"--first-period {first_period}: the {len(left_out)} periods of the terms before it ({left_out[0]} to "
            f"{left_out[-1]}) can never be recorded on chain, now or later; statements of them stand in the log alone"
        )
    if as_json:
        print_json({**shown, "periods_left_out": list(map(str, left_out)), **receipt})
        return
    click.echo(f"registered {registered.sla_id}: event {receipt['event_id']} at seq {receipt['seq']}")
    if not registered.on_chain:
        note("not registered on chain: the customer did not sign that, or no circuit attests the statements")


@click.command(
    epilog="Exit codes: 0 shown; 1 the parties have not signed; 2 not valid, or no circuit attests statements of it."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@click.option("--first-period", metavar="PERIOD", help="As of `agreements add`.")
@click.option("--typed-data", is_flag=True, help="Print the document that wallets sign (eth_signTypedData_v4) instead.")
@DATABASE
@AS_JSON
def digest(
    path: Path, data_dir: Path, first_period: str | None, typed_data: bool, database_url: str | None, as_json: bool
) -> None:
    """Print what the customer signs with the EVM key, so that statements can be recorded on chain (EIP-712).

    The key may be anywhere: hand the digest or, with --typed-data, the document to whoever holds it, and the signature
    to `agreements add --registration-signature`.
    """
    document = read_agreement(path).document
    with opened(data_dir, database_url) as services:
        request = services.commands.registration_request(document, first_period=first_period)
    if request is None:
        raise BadInput(f"{path}: no circuit attests statements of this agreement, so there is nothing to register")
    if typed_data:
        print_json(request.typed_data)
    elif as_json:
        print_json(
            {
                "sla_id": request.sla_id,
                "first_period": request.first_period,
                "digest": "0x" + request.digest.hex(),
                "typed_data": request.typed_data,
            }
        )
    else:
        click.echo(f"0x{request.digest.hex()}")


@click.command(
    "signing-bytes", epilog="Exit codes: 0 shown; 2 not valid (the message names file, line, field), or --out is there."
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the bytes as they are to this new file.")
@AS_JSON
def signing_bytes(path: Path, out: Path | None, as_json: bool) -> None:
    """Print, in hex, the bytes that each party signs of the agreement in FILE, signed or not (Ed25519, RFC 8032).

    With keys of one's own nothing else is needed: the signature goes into the document, in hex, as signatures.issuer or
    signatures.customer. What ends an agreement is printed by `agreements terminate` without signatures, what puts it on
    chain by `agreements digest`.
    """
    agreement = read_agreement(path)
    message = agreement.signing_message
    if out is not None:
        with writing(out) as file:
            file.write(message)
    if as_json:
        parties = {"issuer": agreement.issuer, "customer": agreement.customer}
        keys = {name: party.ed25519_public_key.hex() for name, party in parties.items()}
        doc_sha256 = agreement.doc_sha256.hex()
        print_json({"doc_sha256": doc_sha256, "message": message.hex(), "algorithm": "Ed25519", "public_keys": keys})
    elif out is None:
        click.echo(message.hex())
    else:
        click.echo(f"wrote {out}: {len(message)} bytes to sign with Ed25519")


@click.command(epilog="Exit codes: 0 shown; 2 no such data directory.")
@DATA
@DATABASE
@AS_JSON
def keys(data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Show the collector's keys that this ledger seals with: an agreement must name one of them to be attested."""
    with opened(data_dir, database_url) as services:
        found = services.collectors.public_keys()
    shown = {name: {"x": str(x), "y": str(y)} for name, (x, y) in found.items()}
    if as_json:
        print_json({"collectors": shown})
        return
    for name, key in shown.items():
        click.echo(f'{name}\n  x: "{key["x"]}"\n  y: "{key["y"]}"')


def _left_out(agreement: Agreement, first_period: str | None) -> list[Period]:
    """The periods of the terms before the first that is to be recorded on chain."""
    if first_period is None:
        return []
    first = period_named(agreement, first_period)
    return list(takewhile(lambda period: period != first, agreement.periods.all()))


def registration_signature_of(text: str | None) -> bytes | None:
    """The bytes of a ``--registration-signature``, if there is one. Raises ``BadInput``."""
    if text is None:
        return None
    digits = text.removeprefix("0x")
    try:
        signature = bytes.fromhex(digits)
    except ValueError:
        signature = b""
    if len(signature) != EVM_SIGNATURE_BYTES:
        raise BadInput("--registration-signature is not 65 bytes in hex: r, s and v, as wallets print them")
    return signature


def _with_own_keys(
    services: Services, commands: Commands, document: dict[str, Any], first_period: str | None
) -> tuple[dict[str, Any], bytes | None]:
    parties = DemoParties(services.keyring)
    nonce = "0x" + services.randomness.bytes(32).hex()
    signed = parties.signed({**parties.with_keys(document), "nonce": nonce})
    request = commands.registration_request(signed, first_period=first_period)
    return signed, None if request is None else parties.sign_registration(request.digest)
