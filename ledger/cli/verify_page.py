"""``sla-ledger verify-page``: assemble the page that checks bundles in a browser."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from ledger.cli.output import print_json, ticking
from ledger.errors import DocumentInvalid


@click.command("verify-page")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Where to write the page.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def verify_page(out: Path, as_json: bool) -> None:
    """Write one HTML file that checks bundles in a browser, without any connection (docs/verify-page.md).

    It is made of this release and the installed packages of toolchain/; equal ones give equal bytes, so that its sha256
    can be compared. The file contains snarkjs and is under GPL-3.0 as a whole.

    Exit codes: 0 written; 1 a package is missing or another one than expected; 2 the file cannot be written.
    """
    from ledger.attest.verify_page.assembly import assemble
    from ledger.settings import ProverSettings
    from ledger.wiring.provers import node_toolchain

    if not out.parent.is_dir():
        raise DocumentInvalid(f"{out}: cannot be written: there is no folder {out.parent}", file=str(out))
    with ticking("assembling the page"):
        page = assemble(node_toolchain(ProverSettings.read(os.environ)))
    _write(out, page.html)
    if as_json:
        print_json(
            {
                "file": str(out),
                "bytes": len(page.html),
                "sha256": page.sha256,
                "program_sha256": page.program_sha256,
                "snarkjs_sha256": page.snarkjs_sha256,
                "tzdata": page.tzdata,
            }
        )
        return
    click.echo(f"{out}  {len(page.html)} bytes  sha256 {page.sha256}")


def _write(out: Path, html: bytes) -> None:
    """All of the file or nothing of it; raises ``DocumentInvalid``."""
    try:
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as scratch:
            scratch.write(html)
        written = Path(scratch.name)
        written.chmod(0o644)
        written.replace(out)
    except OSError as error:
        raise DocumentInvalid(f"{out}: cannot be written: {error.strerror}", file=str(out)) from error
