"""``sla-ledger proof``: that an entry is in the log, as one file that is checked offline (C2SP tlog-proof)."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.cli.options import DATA, DATABASE
from ledger.cli.output import note, print_json
from ledger.errors import BadInput


@click.command(
    epilog="Exit codes: 0 exported; 1 no such entry, or no checkpoint covers it yet; 2 the file or data directory "
    "cannot be used."
)
@click.argument("entry", metavar="SEQ|STATEMENT_ID")
@DATA
@DATABASE
@click.option("--out", type=click.Path(path_type=Path), help="File to write, usually *.tlog-proof; stdout without it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the proof within it.")
def proof(entry: str, data_dir: Path, database_url: str | None, out: Path | None, as_json: bool) -> None:
    """Export the inclusion proof of a log entry, by its position or by the statement it issued."""
    from ledger.cli.opening import opened  # takes seconds, which a mistyped option need not wait for

    with opened(data_dir, database_url) as services:
        log = services.public_log
        # A statement id has dots; a position has digits alone.
        made = log.proof(int(entry)) if entry.isascii() and entry.isdigit() else log.statement_proof(entry)
    if out is not None:
        try:
            out.write_bytes(made)
        except OSError as error:
            raise BadInput(f"{out} cannot be written: {error.strerror}", file=str(out)) from error
    if as_json:
        print_json({"entry": entry, "file": None if out is None else str(out), "tlog_proof": made.decode()})
    elif out is None:
        click.echo(made, nl=False)
    else:
        note(f"wrote {out}")
