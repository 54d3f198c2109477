"""``sla-ledger probe``: the customer's second signature over what the collector sealed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ledger.attest.checks import verification
from ledger.attest.checks.report import Outcome
from ledger.attest.crypto import babyjub
from ledger.attest.crypto.signing import SEED_BYTES, load_key, save_secret
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import print_json, ticking
from ledger.cli.verify import read_document
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.probe import MAX_PROBE_SIGNATURE_BYTES, PROBE_SIGNATURE, PROBE_SIGNATURE_FORMAT
from ledger.errors import BadInput, BundleCheckFailed

PROBE_LINE = "probe signature"
KEY = click.option(
    "--key", "key_path", required=True, type=click.Path(path_type=Path), help="The probe's secret, as `key` made it."
)


@click.group()
def probe() -> None:
    """Sign, as the customer's probe, what the collector sealed, and hand the signature in."""


@probe.command(epilog="Exit codes: 0 made; 2 FILE is there, or cannot be written.")
@click.option("--out", "key_path", required=True, type=click.Path(path_type=Path), help="New file for the secret.")
@AS_JSON
def key(key_path: Path, as_json: bool) -> None:
    """Make a probe's key, and print the public key that the agreement names (`probe.babyjubjub_public_key`).

    The secret stays with the customer: a provider that holds it could sign for both.
    """
    secret = os.urandom(SEED_BYTES)
    save_secret(key_path, secret)
    x, y = (str(part) for part in babyjub.public_key(secret))
    if as_json:
        print_json({"file": str(key_path), "babyjubjub_public_key": {"x": x, "y": y}})
    else:
        click.echo(f"wrote {key_path}; keep it to yourself\nx  {x}\ny  {y}")


@probe.command(
    epilog="Exit codes: 0 signed; 1 a check of the bundle or its opening failed, and nothing was signed; 2 a file "
    "cannot be used, or the agreement names another key."
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--opening", required=True, type=click.Path(path_type=Path), help="Counts and salts of the statement.")
@click.option("--trust", type=click.Path(path_type=Path), help="Trust file that the bundle must hold against.")
@KEY
@click.option("--out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="File to write.")
@AS_JSON
def sign(bundle: Path, opening: Path, trust: Path | None, key_path: Path, out: Path, as_json: bool) -> None:
    """Check BUNDLE with its opening, and sign its telemetry root.

    Compare the opened counts with what your probe saw before: this checks that they lead to the root, and not that they
    are true.
    """
    found = read_document(bundle, verification.read_bundle)
    secret = load_key(key_path).seed()
    _require_named(found, babyjub.public_key(secret))
    pins = None if trust is None else read_document(trust, verification.read_trust)
    opened = read_document(opening, verification.read_opening)
    with ticking(f"checking {bundle}"):
        report = verification.verify_bundle(found, pins, opened)
    failed = [line for line in report.lines if line.outcome is Outcome.FAIL and line.check != PROBE_LINE]
    if failed:
        raise BundleCheckFailed(
            f"{bundle} does not hold, so nothing was signed: " + "; ".join(f"{x.check}: {x.detail}" for x in failed)
        )
    made = canonical_bytes(_signed(found, secret))
    try:
        out.write_bytes(made)
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror}", file=str(out)) from error
    if as_json:
        print_json({"file": str(out), "telemetry_root": found["telemetry"]["root"]})
    else:
        click.echo(f"wrote {out}; hand it in: POST /v1/statements/ID/probe-signature, or `sla-ledger probe record`")


@probe.command(
    epilog="Exit codes: 0 recorded, now or before; 1 refused (no such statement, no probe in its terms, another root "
    "or key); 2 FILE or the data directory cannot be used."
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@DATA
@DATABASE
@TENANT
@AS_JSON
def record(file: Path, data_dir: Path, database_url: str | None, tenant: str, as_json: bool) -> None:
    """Record the signature in FILE; the statement's bundle has it from then on."""
    from ledger.cli.opening import opened, receipt_document  # takes seconds, which a mistyped option need not wait for

    document = read_document(file, read_probe_signature)
    with opened(data_dir, database_url) as services:
        receipt = receipt_document(services, services.commands.of_tenant(tenant).probes.record(document))
    if as_json:
        print_json(receipt)
    else:
        click.echo(f"recorded the probe's signature over {document['statement_id']}: event {receipt['event_id']}")


def read_probe_signature(data: bytes) -> Mapping[str, Any]:
    """The file in which a probe's signature is handed in; raises ``DocumentInvalid`` or ``NotCanonical``."""
    found = parse_json(data, max_bytes=MAX_PROBE_SIGNATURE_BYTES)
    return verification.read_document(found, PROBE_SIGNATURE, "probe signature")


def _require_named(bundle: Mapping[str, Any], key: tuple[int, int]) -> None:
    named = Agreement.from_document(bundle["agreement"]).probe
    if named is None or bundle["telemetry"] is None:
        raise BadInput("the agreement names no probe, or nothing is sealed under it: there is nothing to sign")
    if named.key != key:
        raise BadInput(f"the agreement names another key for the probe {named.name} than the one in --key")


def _signed(bundle: Mapping[str, Any], secret: bytes) -> dict[str, Any]:
    root = bundle["telemetry"]["root"]
    signature = babyjub.sign(secret, int(root))
    return {
        "format": PROBE_SIGNATURE_FORMAT,
        "statement_id": bundle["statement"]["payload"]["statement_id"],
        "telemetry_root": root,
        "signature": {"r8": {"x": str(signature.r8[0]), "y": str(signature.r8[1])}, "s": str(signature.s)},
    }
