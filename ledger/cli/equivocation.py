"""``sla-ledger equivocation``: show, and check, that a log said two things in one place. No database, no service."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.attest.checks import equivocation as proofs
from ledger.attest.checks.bundle_schema import MAX_BUNDLE_BYTES
from ledger.attest.checks.verification import Exit, read_trust
from ledger.cli.options import AS_JSON
from ledger.cli.output import print_json
from ledger.cli.verify import line_text, read_document
from ledger.errors import BadInput, DocumentInvalid, SlaLedgerError


@click.group()
def equivocation() -> None:
    """Two entries with one stream and version under a log's signature prove that it contradicts itself."""


@equivocation.command(
    epilog="Exit codes: 0 a proof was made; 1 the files do not contradict each other; 2 a file cannot be used."
)
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option("--vkey", help="The log's verifier key, for *.tlog-proof files, which do not name it.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="File to write. Default: the output.")
@AS_JSON
def prove(first: Path, second: Path, vkey: str | None, out: Path | None, as_json: bool) -> None:
    """Look in A and B, bundles or tlog-proofs, for two entries in one place, and make the proof of them.

    Anybody can check the file with the log's key alone. It tells no counts: entries commit to what they say.
    """
    made = proofs.prove([*_leaves(first, vkey), *_leaves(second, vkey)])
    if out is None:
        click.echo(made, nl=False)
        return
    try:
        out.write_bytes(made)
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror}", file=str(out)) from error
    if as_json:
        print_json({"file": str(out), "bytes": len(made)})
    else:
        click.echo(f"wrote {out}: {len(made)} bytes")


@equivocation.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--trust", type=click.Path(path_type=Path), help="Trust file: the log's key that you accept.")
@AS_JSON
@click.pass_context
def check(context: click.Context, file: Path, trust: Path | None, as_json: bool) -> None:
    """Check FILE, a proof that a log contradicts itself.

    Exit codes: 0 the pinned log contradicts itself; 1 the file does not show that; 2 a file cannot be used;
    3 some log contradicts itself, and nothing is pinned.
    """
    document = read_document(file, proofs.read_equivocation)
    report = proofs.check(document, None if trust is None else read_document(trust, read_trust))
    if as_json:
        lines = [{"check": x.check, "outcome": str(x.outcome), "detail": x.detail} for x in report.lines]
        print_json({"exit_code": int(report.exit_code), "lines": lines})
    else:
        for line in report.lines:
            click.echo(line_text(line))
        click.echo(_VERDICTS[report.exit_code])
    context.exit(report.exit_code)


_VERDICTS = {
    Exit.HOLDS: "the log contradicts itself: it signed two entries for one place",
    Exit.FAILED: "this shows nothing about the log",
    Exit.NOT_PINNED: "a log contradicts itself; whether it is the one you deal with only a pin can say (--trust)",
}


def _leaves(path: Path, vkey: str | None) -> tuple[proofs.Leaf, ...]:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise DocumentInvalid(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    try:
        return proofs.leaves_in(data, vkey)
    except SlaLedgerError as error:
        raise DocumentInvalid(f"{path}: {error.message}", file=str(path)) from error
