"""``sla-ledger fsck``, ``rebuild`` and ``erase``: looking after a data directory."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ledger.app.log.erasure import erase_payload
from ledger.app.log.fsck import FsckReport, fsck
from ledger.cli.options import AS_JSON, DATA, DATABASE
from ledger.cli.output import ProgressLine, note, print_json
from ledger.wiring.data_directory import open_data_directory, require_trust


@click.command("fsck", epilog="Exit codes: 0 clean; 1 findings; 2 the input cannot be used.")
@DATA
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A signed checkpoint kept elsewhere; may be repeated. Only with one is a forged history found that was "
    "rewritten as a whole.",
)
@click.option("--vkey", "vkeys", multiple=True, metavar="KEY", help="Trust this key of the log, not the one in DIR.")
@DATABASE
@AS_JSON
def fsck_command(
    data_dir: Path, checkpoints: tuple[Path, ...], vkeys: tuple[str, ...], database_url: str | None, as_json: bool
) -> int:
    """Hash everything stored again: payloads, headers, leaves, tiles, checkpoints; compare streams, idempotency keys
    and views with the events. Changes nothing.

    The pin beside the log's key counts as a checkpoint that is kept elsewhere.
    """
    progress = ProgressLine()
    with open_data_directory(data_dir, vkeys, database_url=database_url) as data:
        trust, known = require_trust(data.trust), data.outside(checkpoints)
        with data.database.inspect() as inspection:
            report = fsck(inspection, trust, known, progress=progress)
    progress.clear()
    if as_json:
        print_json(_document(report))
    else:
        _print(report)
    return 0 if report.clean else 1


@click.command(epilog="Exit codes: 0 made anew; 1 an event cannot be read; 2 the input cannot be used.")
@DATA
@DATABASE
@AS_JSON
def rebuild(data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Make every view anew from the events, in one transaction. Readers see the old views until it is done."""
    progress, started = ProgressLine(), time.monotonic()
    with open_data_directory(data_dir, database_url=database_url) as data:
        with data.database.read() as tx:
            size = tx.log.size()
        count = data.database.rebuild_views(progress=lambda done: progress("rebuilding views", done, size))
    progress.clear()
    seconds = time.monotonic() - started
    if as_json:
        print_json({"events": count, "seconds": f"{seconds:.3f}"})
    else:
        click.echo(f"rebuilt the views from {count} events in {seconds:.1f} s")


@click.command(epilog="Exit codes: 0 erased; 1 no such event, or it cannot be erased; 2 the input cannot be used.")
@click.argument("event_id")
@DATA
@click.option("--reason", required=True, help="Why. It stays in the log for good: do not repeat what is erased.")
@click.option("--requested-by", help="Who asked for it; stays in the log, too.")
@DATABASE
@AS_JSON
def erase(
    event_id: str, data_dir: Path, reason: str, requested_by: str | None, database_url: str | None, as_json: bool
) -> None:
    """Erase the payload of an event of the class `erasable`, for good, and record that in the log.

    Header, log entry, proofs and checkpoints stay valid. Copies elsewhere (backups, exports) keep the payload.
    """
    with open_data_directory(data_dir, database_url=database_url) as data:
        with data.database.begin() as tx:
            receipt = erase_payload(tx, event_id, reason=reason, requested_by=requested_by, now_ns=data.now_ns())
        seq = data.settle_erasure(receipt.event_id)
    if as_json:
        print_json({"event_id": event_id, "record": receipt.event_id, "seq": seq})
    else:
        click.echo(f"erased; the log says so at seq {seq}")
        note("backups and exports made before still have the payload")


def _document(report: FsckReport) -> dict[str, object]:
    return {
        "clean": report.clean,
        "size": report.size,
        "root": report.root.hex(),
        "checkpoints": report.checkpoints,
        "outside_checkpoints": report.outside,
        "erased_payloads": report.erased,
        "counts": dict(report.counts),
        "findings": [
            {
                "what": finding.what,
                "seq": finding.seq,
                "message": finding.message,
                "expected": finding.expected,
                "found": finding.found,
            }
            for finding in report.findings
        ],
    }


def _print(report: FsckReport) -> None:
    for finding in report.findings:
        where = "" if finding.seq is None else f"seq {finding.seq}: "
        click.echo(f"{finding.what}: {where}{finding.message}")
        if finding.expected is not None or finding.found is not None:
            click.echo(f"    expected {finding.expected}, found {finding.found}")
    hidden = report.counts.total() - len(report.findings)
    if hidden:
        click.echo(f"... and {hidden} more findings")
    checked = f"{report.size} events, {report.checkpoints} checkpoints, {report.outside} from outside"
    if report.erased:
        checked += f", {report.erased} erased payloads"
    click.echo(
        f"{'clean' if report.clean else f'{report.counts.total()} findings'}: {checked}; root {report.root.hex()}"
    )
    if not report.outside:
        note("no checkpoint from outside was given (--checkpoint): a forger who holds the log's key is not found so")
