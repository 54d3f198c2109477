"""``sla-ledger keys ceremony-check``, ``import`` and ``pins``: proving keys that more than one party made."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ledger.cli.options import AS_JSON, DATA
from ledger.cli.output import note, print_json, print_table
from ledger.errors import BadInput
from ledger.resources import resource_dir

_FILE = click.argument("file", type=click.Path(path_type=Path))
_CIRCUIT = click.option("--circuit", "name", required=True, help="Name of the circuit, such as compliance_25x4.")
_CIRCUITS = click.option(
    "--circuits",
    type=click.Path(path_type=Path),
    help="Folder with circuits.json and its sources; those of this release without it.",
)


@click.command(
    "ceremony-check",
    epilog="Exit codes: 0 everything passed; 1 a check failed: do not use the key; 2 a file cannot be read; 3 nothing "
    "failed, but not everything was checked: see the lines NOT CHECKED and ASSUMED.",
)
@_FILE
@_CIRCUIT
@click.option("--ptau", type=click.Path(path_type=Path), help="The powers of tau that the ceremony started from.")
@click.option("--accept-ptau", default="", help="sha256 of powers of tau that you trust though they are unpublished.")
@click.option("--manifest", type=click.Path(path_type=Path), help="Write what to publish and pin to this file.")
@_CIRCUITS
@AS_JSON
def ceremony_check(
    file: Path,
    name: str,
    ptau: Path | None,
    accept_ptau: str,
    manifest: Path | None,
    circuits: Path | None,
    as_json: bool,
) -> None:
    """Check the key in FILE (.zkey), the outcome of a ceremony: docs/ceremony.md."""
    from ledger.attest.proving.ceremony import Outcome
    from ledger.attest.proving.ceremony_manifest import describe, read_manifest
    from ledger.attest.proving.ceremony_verify import Check, exit_code
    from ledger.attest.proving.circuits import circuit_named
    from ledger.attest.proving.powers_of_tau import identify
    from ledger.attest.proving.zkey import read_zkey
    from ledger.settings import ProverSettings
    from ledger.wiring.provers import node_toolchain

    folder = circuits or resource_dir("circuits")
    circuit = circuit_named(folder, name)
    zkey, powers = read_zkey(file), identify(ptau) if ptau else None
    toolchain = node_toolchain(ProverSettings.read(os.environ))
    findings = list(Check(file, zkey, circuit, folder, toolchain, note, ptau, powers, accept_ptau).findings())
    code = exit_code(findings)
    digest = None
    if manifest is not None and not any(
        each.what == "verification key" and each.outcome is Outcome.FAIL for each in findings
    ):
        text = describe(circuit, folder, file, zkey, powers.sha256 if powers else "", safe=code == 0)
        try:
            manifest.write_bytes(text)
        except OSError as error:
            raise BadInput(f"{manifest} cannot be written: {error.strerror}", file=str(manifest)) from error
        digest = read_manifest(text).digest
    if as_json:
        lines = [{"check": each.what, "outcome": each.outcome, "detail": each.detail} for each in findings]
        print_json({"file": str(file), "circuit": name, "exit_code": code, "checks": lines, "pin": digest})
    else:
        for each in findings:
            click.echo(f"{each.outcome:<12} {each.what}: {each.detail}")
        if digest is not None:
            click.echo(f"pin {digest}")
            if code:
                note("the manifest says dev_unsafe, since not every check passed")
    raise SystemExit(code)


@click.command(
    "import",
    epilog="Exit codes: 0 imported and pinned; 1 the key is not the pinned one or not of this circuit, or the "
    "prover cannot be started; 2 a file cannot be read.",
)
@_FILE
@_CIRCUIT
@click.option("--manifest", type=click.Path(path_type=Path, exists=True), required=True, help="As it was published.")
@click.option("--pin", required=True, help="sha256 of the manifest that the parties agreed on.")
@click.option("--wasm", type=click.Path(path_type=Path, exists=True), help="The circuit, for snarkjs and rapidsnark.")
@DATA
@_CIRCUITS
@AS_JSON
def import_zkey(
    file: Path,
    name: str,
    manifest: Path,
    pin: str,
    wasm: Path | None,
    data_dir: Path,
    circuits: Path | None,
    as_json: bool,
) -> None:
    """Take the key in FILE (.zkey) and pin it: from now on this data directory proves the circuit with no other."""
    from ledger.attest.proving.ceremony_keys import import_key
    from ledger.attest.proving.ceremony_manifest import read_manifest
    from ledger.attest.proving.circuits import circuit_named
    from ledger.attest.proving.prover_process import ProverProcess
    from ledger.attest.proving.zk_keys import KeyCache
    from ledger.settings import ProverSettings
    from ledger.wiring.provers import default_key_cache
    from ledger.wiring.proving_pins import pin_circuit

    _require_data(data_dir)
    folder = circuits or resource_dir("circuits")
    circuit = circuit_named(folder, name)
    try:
        described = read_manifest(manifest.read_bytes())
    except OSError as error:
        raise BadInput(f"{manifest} cannot be read: {error.strerror}", file=str(manifest)) from error
    cache = KeyCache(default_key_cache(), folder, note)
    settings = ProverSettings.read(os.environ)
    with ProverProcess(memory_mb=settings.memory_mb, notify=note) as process:
        key = import_key(cache, circuit, file, described, pin, process, wasm)
    pin_circuit(data_dir, name, pin)
    dev = bool(key.manifest["dev_unsafe"])
    if as_json:
        print_json({"circuit": name, "circuit_id": key.circuit_id.hex(), "pin": pin, "dev_unsafe": dev})
        return
    click.echo(f"{name} is proved with the key {pin[:16]}..., circuit id {key.circuit_id.hex()}")
    if dev:
        note("its manifest says dev_unsafe: it is refused on every chain but test chains")


@click.command(epilog="Exit codes: 0 shown; 2 no data directory, or its file of pins cannot be read.")
@DATA
@AS_JSON
def pins(data_dir: Path, as_json: bool) -> None:
    """The proving keys that a data directory is pinned to, by circuit."""
    from ledger.wiring.proving_pins import pins_of

    _require_data(data_dir)
    found = pins_of(data_dir)
    if as_json:
        print_json(found)
        return
    print_table(["circuit", "sha256 of the manifest"], [[name, pin] for name, pin in sorted(found.items())])


def _require_data(data_dir: Path) -> None:
    """A folder that is none would read as one that pins nothing."""
    from ledger.wiring.marker import read_marker

    read_marker(data_dir)
