"""``sla-ledger statements``: what was settled, listed and shown. ``explain`` shows how it follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ledger.app.paging import Row, Starts, page_of, place_of
from ledger.attest.checks.report import DEV_KEY_SAID
from ledger.cli.credit_changes import line_document, lines_table
from ledger.cli.objectives import OBJECTIVE_COLUMNS, counts_text
from ledger.cli.opening import read_by
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import note, percent_floored, print_json, print_table
from ledger.cli.pages import (
    LISTED,
    MAX_LISTED,
    PageAsked,
    amount_document,
    amount_text,
    instant_text,
    paged,
    starting,
    tell_of_more,
)
from ledger.domain.terms.indicators import REQUESTS, shown_score

_SAME = (
    *("id", "sla_id", "period", "terms_version", "statement_version", "doc_sha256", "state", "standing"),
    *("restated_by", "restates", "reason", "attestable", "unattested_reasons"),
)
_ROOT = ("chain_id", "registry", "issuer", "size", "root", "batch_root", "tx_hash", "block_number", "block_hash")


@click.group()
def statements() -> None:
    """List and show statements: the settlements of periods."""


@statements.command("list", epilog=LISTED)
@DATA
@click.option("--all-versions", is_flag=True, help="Also the versions that another one replaced.")
@starting
@paged
@TENANT
@DATABASE
@AS_JSON
def list_statements(
    asked: PageAsked,
    starts: Starts,
    data_dir: Path,
    all_versions: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """List statements by the start of their period, of each period the newest version."""
    with read_by(data_dir, database_url, tenant) as tx:
        rows = tx.views.statements_page(
            sla_ids=asked.only(tx),
            after=starts.place(place_of(asked.after, tx.views.statement)),
            before_ns=starts.to_ns,
            newest=not all_versions,
            limit=asked.limit + 1,
        )
    page = page_of(rows, asked.limit, "id")
    if as_json:
        print_json({"items": [_document(row) for row in page.rows], "next": page.last_id})
        return
    print_table(
        ("statement", "period", "state", "standing", "breached", "credit", "proof"),
        [
            (
                row["id"],
                row["period"],
                row["state"],
                row["standing"],
                ", ".join(each["id"] for each in row["objectives"] if each["state"] == "breached") or "-",
                amount_text(row["credit"]),
                _proof_text(row),
            )
            for row in page.rows
        ],
    )
    if any(_dev_key(row) for row in page.rows):
        note(f"proofs under a development key are among these: {DEV_KEY_SAID}")
    tell_of_more(page)


@statements.command(epilog="Exit codes: 0 shown; 1 no such statement; 2 no such data directory.")
@click.argument("statement_id", metavar="STATEMENT")
@DATA
@TENANT
@DATABASE
@AS_JSON
def show(statement_id: str, data_dir: Path, tenant: str, database_url: str | None, as_json: bool) -> None:
    """Show STATEMENT: verdicts, credit and what became of its lines, proof, and what it replaces or is replaced by."""
    with read_by(data_dir, database_url, tenant) as tx:
        row = tx.views.statement(statement_id)
        lines = tx.views.credit_lines(statement_id=statement_id, limit=MAX_LISTED)
    if as_json:
        more = {"trace": row["trace"], "objective_deltas": row["objective_deltas"]}
        print_json({**_document(row), **more, "credit_lines": [line_document(line) for line in lines]})
        return
    _print(row, lines)


def _print(row: Row, lines: Sequence[Row]) -> None:
    click.echo(f"{row['id']}: {row['state']}, {row['standing']}, terms {row['terms_version']} of {row['sla_id']}")
    click.echo(f"period   {row['period']}: {instant_text(row['start_ns'])} to {instant_text(row['end_ns'])}")
    click.echo(
        f"windows  {row['windows']}: {row['observed']} observed ({row['idle']} idle), {row['excluded']} excluded"
    )
    if row["restates"]:
        click.echo(f"replaces {row['restates']['statement_id']}")
    if row["restated_by"]:
        click.echo(f"replaced by {row['restated_by']}")
    if row["reason"]:
        click.echo(f"reason   {row['reason']}")
    if row["standing"] == "draft":
        click.echo(f"facts    are taken until {instant_text(row['accepts_until_ns'])}")
    print_table(OBJECTIVE_COLUMNS, [_result(each) for each in row["objectives"]])
    click.echo(f"credit   {amount_text(row['credit'])}; proof {_proof_text(row)}")
    if _dev_key(row):
        click.echo(f"dev key  {DEV_KEY_SAID}")
    for root in row["roots"]:
        click.echo(f"root     published on chain {root['chain_id']} in block {root['block_number']}: {root['tx_hash']}")
    for reason in row["unattested_reasons"]:
        click.echo(f"unproved: {reason}")
    if lines:
        lines_table(lines)


def _result(each: Mapping[str, Any]) -> tuple[str, ...]:
    good, valid, unit = each["good"], each["valid"], each.get("unit", REQUESTS)
    counts = counts_text(good, valid, each.get("undecided", 0), unit)
    return each["id"], counts, percent_floored(good, valid), f"{each['target']} %", each["state"]


def _document(row: Row) -> dict[str, Any]:
    attestation, anchor, delta = row["attestation"], row["anchor"], row["credit_delta"]
    return {
        **{name: row[name] for name in _SAME},
        "start": instant_text(row["start_ns"]),
        "end": instant_text(row["end_ns"]),
        "accepts_until": instant_text(row["accepts_until_ns"]),
        "windows": {
            "total": row["windows"],
            **{name: row[name] for name in ("observed", "excluded", "idle")},
        },
        "objectives": [
            {"unit": REQUESTS, "undecided": 0, **{name: each[name] for name in each if name != "target"}}
            | {"target_percent": each["target"]}
            | {"score": shown_score(each.get("unit", REQUESTS), each["good"], each["valid"])}
            for each in row["objectives"]
        ],
        "credit": amount_document(row["credit"]),
        "credit_delta": delta
        and {
            name: amount_document({"currency": delta["currency"], "minor_units": delta[name]})
            if delta[name] is not None
            else None
            for name in ("old", "new", "difference")
        },
        "proof_hash": attestation and attestation["proof_hash"],
        "dev_key": attestation and attestation["dev_key"],
        "tx_hash": anchor and anchor["tx_hash"],
        "roots": [{name: root[name] for name in _ROOT} for root in row["roots"]],
    }


def _proof_text(row: Row) -> str:
    if row["anchor"] is not None:
        return "on chain"
    if row["attestation"] is not None:
        return "made, not on chain"
    return "due" if row["attestable"] else "none"


def _dev_key(row: Row) -> bool:
    return row["attestation"] is not None and bool(row["attestation"]["dev_key"])
