"""``sla-ledger verify``: check a bundle offline, or with nodes, too. Imports neither database nor chain nor prover."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ledger.attest.checks import verification
from ledger.attest.checks.bundle_schema import MAX_BUNDLE_BYTES
from ledger.attest.checks.json_rpc import HttpNode
from ledger.attest.checks.recount import LoggedFacts
from ledger.attest.checks.verification import Exit, Line, Outcome, Report
from ledger.cli import output
from ledger.cli.output import visible
from ledger.errors import BadInput, DocumentInvalid, SettingInvalid

_COLOURS = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.NOT_CHECKED: "yellow", Outcome.ASSUMED: "yellow"}


class _OwnRandomness:
    """From the operating system, so that whoever made the bundles cannot foresee it."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


@click.command()
@click.argument("bundles", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="BUNDLE...")
@click.option("--trust", type=click.Path(path_type=Path), help="Trust file: the keys, circuits and chain you accept.")
@click.option("--opening", type=click.Path(path_type=Path), help="Counts and salts, to work out every number again.")
@click.option(
    "--facts",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Your own copy of the logged batches, a file or a folder: the opened counts are counted again. Repeatable.",
)
@click.option(
    "--rpc",
    "rpcs",
    metavar="URL",
    multiple=True,
    help="A node of a chain, asked whether the statement, or the batch root over it, stands there. Repeatable.",
)
@click.option("--accept-dev", is_flag=True, help="Accept a proof under a development key, which its maker can forge.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def verify(
    context: click.Context,
    bundles: tuple[Path, ...],
    trust: Path | None,
    opening: Path | None,
    facts: tuple[Path, ...],
    rpcs: tuple[str, ...],
    accept_dev: bool,
    as_json: bool,
) -> None:
    """Verify each BUNDLE, a statement's evidence, without a database or a service.

    Proofs of several bundles under one key are checked together. With --rpc nodes are asked, too, each about the chain
    that it says it is on; it is believed only as far as "by this node".

    Exit codes: 0 every check holds against the pins; 1 a check failed; 2 a file cannot be used;
    3 consistent, but nothing is pinned, a development key was not accepted, or the node that was asked did not
    answer, or shows the statement as superseded or not final yet, or a batch is not among the facts.
    """
    if opening is not None and len(bundles) != 1:
        raise SettingInvalid("--opening belongs to one bundle: verify that one by itself", setting="--opening")
    if facts and opening is None:
        raise SettingInvalid("--facts are held against an opening: give that, too (--opening)", setting="--facts")
    asks = [HttpNode(rpc).ask for rpc in rpcs]
    read = [read_document(bundle, verification.read_bundle) for bundle in bundles]
    pins = None if trust is None else read_document(trust, verification.read_trust)
    opened = None if opening is None else read_document(opening, verification.read_opening)
    with output.ticking(f"verifying {len(read)} bundle(s)"):
        if len(read) == 1:
            kept = logged_facts(facts) if facts else None
            reports: Sequence[Report] = [verification.verify_bundle(read[0], pins, opened, asks, kept)]
        else:
            reports = verification.verify_bundles(read, pins, _OwnRandomness(), asks)
    codes = [report.exit_code(accept_dev=accept_dev) for report in reports]
    exit_code = next(code for code in (Exit.FAILED, Exit.NOT_PINNED, Exit.HOLDS) if code in codes)
    if as_json:
        documents = [_document(report, accept_dev=accept_dev) for report in reports]
        named = [{"file": str(path), **document} for path, document in zip(bundles, documents, strict=True)]
        output.print_json(documents[0] if len(named) == 1 else {"exit_code": int(exit_code), "bundles": named})
    else:
        for path, report in zip(bundles, reports, strict=True):
            if len(bundles) > 1:
                click.echo(f"{path}:")
            _print(report, accept_dev=accept_dev)
    context.exit(exit_code)


def logged_facts(paths: Sequence[Path]) -> LoggedFacts:
    """The batches in files and folders, by their SHA-256; raises ``DocumentInvalid`` for one that cannot be read."""
    # What reads logs is no part of a plain verification.
    from ledger.ingest.facts import read_facts

    found: dict[str, Path] = {}
    for path, named in ((each, each == given) for given in paths for each in [given, *sorted(given.rglob("*"))]):
        # A pipe would keep the reader waiting, and gives its bytes once, where they are needed twice.
        if path.exists() and not path.is_file():
            if named and not path.is_dir():
                raise DocumentInvalid(f"{path}: is no regular file; save what it gives to one first", file=str(path))
            continue
        try:
            with path.open("rb") as stream:
                found[hashlib.file_digest(stream, "sha256").hexdigest()] = path
        except OSError as error:
            raise DocumentInvalid(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error

    def read(digest: str) -> bytes | None:
        data = found[digest].read_bytes() if digest in found else b""
        # The file may be another one by now.
        return data if hashlib.sha256(data).hexdigest() == digest else None

    return LoggedFacts(read, read_facts, frozenset(found))


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


def _document(report: Report, *, accept_dev: bool) -> dict[str, object]:
    return {
        "exit_code": int(report.exit_code(accept_dev=accept_dev)),
        "verdict": report.verdict(accept_dev=accept_dev),
        "on_chain": [
            {"stands": str(x.stands), "chain_id": x.chain_id, "block_number": x.block_number} for x in report.on_chain
        ],
        "resting_on": list(report.resting_on(accept_dev=accept_dev)),
        "lines": [{"check": x.check, "outcome": str(x.outcome), "detail": x.detail} for x in report.lines],
        "not_established": list(report.not_established),
    }


def _print(report: Report, *, accept_dev: bool) -> None:
    width = max(len(line.check) for line in report.lines)
    for line in report.lines:
        click.echo(line_text(line, width))
    click.echo(f"{visible(report.verdict(accept_dev=accept_dev))}; not established:")
    for unsure in report.not_established:
        click.echo(f"  {visible(unsure)}")


def line_text(line: Line, width: int = 0) -> str:
    """A line of a report for people; ``width`` is that of the longest check's name."""
    outcome = click.style(f"{line.outcome:<11}", fg=_COLOURS[line.outcome])
    return f"{outcome}  {visible(line.check):<{max(width, 20)}}  {visible(line.detail)}"
