"""``sla-ledger explain``: every number of a statement down to windows and clauses, of a ledger or of a bundle."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from ledger.attest.checks.verification import read_bundle, read_opening
from ledger.cli.explain_text import print_explanation
from ledger.cli.options import DATABASE, TENANT, data_option
from ledger.cli.output import ProgressLine, print_json, visible
from ledger.cli.verify import read_document
from ledger.domain.credits.explanation import Holdings
from ledger.domain.credits.explanation import explain as explanation_of
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import BadInput, DocumentInvalid, SlaLedgerError


@click.command(epilog="Exit codes: 0 shown; 1 there is no such statement; 2 the input cannot be used.")
@click.argument("statement", metavar="STATEMENT")
@data_option("Data directory of the ledger that holds STATEMENT.", required=False)
@DATABASE
@TENANT
@click.option(
    "--opening", type=click.Path(path_type=Path), help="Of a bundle: the counts of its windows, which it has not."
)
@click.option(
    "--windows",
    "listed",
    type=click.Choice(("lost", "all")),
    default="lost",
    show_default=True,
    help="Which windows, intervals or slices are listed: the telling ones, at most 50, or all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON (docs/explain.md).")
def explain(
    statement: str,
    data_dir: Path | None,
    database_url: str | None,
    tenant: str,
    opening: Path | None,
    listed: str,
    as_json: bool,
) -> None:
    """Show how STATEMENT follows from what was counted, so that it can be worked out again by hand.

    STATEMENT is the file of a bundle, or the id of a statement of the ledger in --data, such as
    1f0c3a9b7e21.2023-12-19.v1. This shows what the statement says; `sla-ledger verify` checks it.
    """
    progress = ProgressLine()

    def tell(done: int, of: int) -> None:
        progress("explaining", done, of)

    path = Path(statement)
    if data_dir is None and not path.exists():
        raise BadInput(f"{statement} is no file; for the statement of a ledger name its directory with --data DIR")
    if path.is_file() or data_dir is None:
        found = _of_bundle(path, opening, all_windows=listed == "all", tell=tell)
    elif opening is not None:
        raise BadInput("--opening is for a bundle; the ledger has the counts of its windows")
    else:
        found = _of_ledger(data_dir, database_url, tenant, statement, all_windows=listed == "all", tell=tell)
    progress.clear()
    if as_json:
        print_json(found)
    else:
        print_explanation(visible(found))


def _of_ledger(
    data_dir: Path, database_url: str | None, tenant: str, statement: str, *, all_windows: bool, tell: Any
) -> dict[str, Any]:
    # What a ledger needs is not there where bundles alone are read.
    from ledger.app.reading.explanation import read_explanation
    from ledger.wiring.data_directory import open_data_directory

    with open_data_directory(data_dir, database_url=database_url) as data, data.database.of_tenant(tenant).read() as tx:
        return read_explanation(tx, statement, all_windows=all_windows, progress=tell)


def _of_bundle(path: Path, opening: Path | None, *, all_windows: bool, tell: Any) -> dict[str, Any]:
    document = read_document(path, read_bundle)
    issued = document["statement"]["payload"]
    windows = None if opening is None else read_document(opening, read_opening)
    try:
        agreement = Agreement.from_document(document["agreement"])
        held = Holdings(windows=None if windows is None else _windows(agreement, issued, windows))
        found = explanation_of(agreement, issued, held, all_windows=all_windows, progress=tell)
        # What is no trace may show only where its figures are written.
        with redirect_stdout(io.StringIO()):
            print_explanation(found)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, SlaLedgerError) as error:
        # A trace is bound by `verify`, not by the bundle's shape.
        raise DocumentInvalid(
            f"{path}: statement.payload.trace: is not the trace of a credit under these terms ({error})", file=str(path)
        ) from error
    return found


def _windows(agreement: Agreement, issued: Mapping[str, Any], opening: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The windows of an opening as the ledger says them. Raises ``BadInput`` for one of another statement."""
    if opening["statement_id"] != issued["statement_id"]:
        raise BadInput(f"the opening is that of {opening['statement_id']}, not of {issued['statement_id']}")
    step_ns = agreement.window_seconds * SECOND_NS
    return [
        {
            **window,
            "index": at,
            "start_ns": str(int(issued["start_ns"]) + at * step_ns),
            "end_ns": str(int(issued["start_ns"]) + (at + 1) * step_ns),
        }
        for at, window in enumerate(opening["windows"])
    ]
