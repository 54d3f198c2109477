"""``sla-ledger verify``: check a bundle offline. Imports neither database nor chain nor prover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ledger.attest import verification
from ledger.attest.bundle_schema import MAX_BUNDLE_BYTES
from ledger.attest.verification import Line, Outcome, Report
from ledger.cli import output
from ledger.errors import BadInput, DocumentInvalid

_COLOURS = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.NOT_CHECKED: "yellow", Outcome.ASSUMED: "yellow"}


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--trust", type=click.Path(path_type=Path), help="Trust file: the keys, circuits and chain you accept.")
@click.option("--opening", type=click.Path(path_type=Path), help="Counts and salts, to work out every number again.")
@click.option("--accept-dev", is_flag=True, help="Accept a proof under a development key, which its maker can forge.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def verify(
    context: click.Context, bundle: Path, trust: Path | None, opening: Path | None, accept_dev: bool, as_json: bool
) -> None:
    """Verify BUNDLE, a statement's evidence, without a database or a service.

    Exit codes: 0 every check holds against the pins; 1 a check failed; 2 a file cannot be used;
    3 consistent, but nothing is pinned or a development key was not accepted.
    """
    report = verification.verify_bundle(
        read_document(bundle, verification.read_bundle),
        None if trust is None else read_document(trust, verification.read_trust),
        None if opening is None else read_document(opening, verification.read_opening),
    )
    exit_code = report.exit_code(accept_dev=accept_dev)
    if as_json:
        output.print_json(_document(report, exit_code))
    else:
        _print(report, exit_code)
    context.exit(exit_code)


def read_document(path: Path, parse: Callable[[bytes], Mapping[str, Any]]) -> Mapping[str, Any]:
    """A document from a file; raises ``DocumentInvalid`` that names the file."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise DocumentInvalid(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    try:
        return parse(data)
    except BadInput as error:
        raise DocumentInvalid(f"{path}: {error.message}", **{**error.data, "file": str(path)}) from error


def _document(report: Report, exit_code: int) -> dict[str, object]:
    return {
        "exit_code": int(exit_code),
        "lines": [{"check": x.check, "outcome": str(x.outcome), "detail": x.detail} for x in report.lines],
        "not_established": list(report.not_established),
    }


def _print(report: Report, exit_code: int) -> None:
    for line in report.lines:
        click.echo(line_text(line))
    verdicts = {
        verification.Exit.HOLDS: "consistent offline, against your pins",
        verification.Exit.FAILED: "does not hold: "
        + ", ".join(x.check for x in report.lines if x.outcome is Outcome.FAIL),
        verification.Exit.NOT_PINNED: "consistent offline, but resting on what is ASSUMED above",
    }
    click.echo(f"{verdicts[verification.Exit(exit_code)]}; not established: {'; '.join(report.not_established)}")


def line_text(line: Line) -> str:
    """A line of a report for people."""
    outcome = click.style(f"{line.outcome:<11}", fg=_COLOURS[line.outcome])
    return f"{outcome}  {line.check:<20}  {line.detail}"
