"""``sla-ledger export`` and ``import``: a whole log as a file that proves itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from ledger.app.log.restore_guard import KnownCheckpoint
from ledger.app.log.transfer import Summary, export_log, import_log, verify_export
from ledger.cli.options import AS_JSON, DATABASE, data_option
from ledger.cli.output import ProgressLine, note, print_json
from ledger.errors import BadInput, StorageUnavailable
from ledger.wiring.data_directory import (
    KEY_FOLDER,
    new_data_directory,
    open_data_directory,
    read_checkpoint,
    require_trust,
    trust_keys,
)

_FILE = click.argument("file", type=click.Path(path_type=Path))
_CHECKPOINT = click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A signed checkpoint that the file must hold everything of; may be repeated.",
)
_VKEY = click.option(
    "--vkey", "vkeys", multiple=True, metavar="KEY", help="The log's key, that checkpoints are held to."
)


@click.command(
    "export",
    epilog="Exit codes: 0 written, or FILE is complete; 1 FILE cannot be written, or lacks what a checkpoint has; 2 "
    "FILE or another input cannot be used.",
)
@_FILE
@data_option("Data directory to export.", required=False)
@click.option("--batches", is_flag=True, help="Take the raw batches of facts along.")
@click.option("--verify", is_flag=True, help="Do not write FILE: read it, and prove that it is complete.")
@_CHECKPOINT
@_VKEY
@DATABASE
@AS_JSON
def export_command(
    file: Path,
    data_dir: Path | None,
    database_url: str | None,
    batches: bool,
    verify: bool,
    checkpoints: tuple[Path, ...],
    vkeys: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the whole log to FILE: headers, payloads, their salts, checkpoints and idempotency keys.

    Not in it: private keys, the secrets behind openings and proofs, chain transactions. The backup that has
    everything is a copy of the data directory.
    """
    progress = ProgressLine()
    if verify:
        if checkpoints and not vkeys:
            raise BadInput("a checkpoint proves nothing without the key it is held to: add --vkey")
        trust = trust_keys(vkeys) if vkeys else None
        known = [read_checkpoint(path, require_trust(trust)) for path in checkpoints]
        with reading(file) as source:
            summary = verify_export(source, known=known, trust=trust, progress=progress)
    elif data_dir is None:
        raise BadInput("name the data directory to export with --data, or check a file with --verify")
    else:
        with (
            open_data_directory(data_dir, vkeys, database_url=database_url) as data,
            data.database.inspect() as inspection,
        ):
            origin = require_trust(data.trust).origin
            with writing(file) as out:
                summary = export_log(inspection, origin, out, batches=batches, progress=progress)
        note("the export has no private keys and no secrets behind openings and proofs; keep a backup of those, too")
    progress.clear()
    _print("complete" if verify else f"wrote {file}", summary, as_json=as_json)


@click.command("import", epilog="Exit codes: 0 made; 2 FILE or DIR cannot be used, and nothing was left.")
@_FILE
@click.option(
    "--data",
    "data_dir",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="New data directory. It may hold the log's keys/ already: then the log goes on under its own key.",
)
@_CHECKPOINT
@_VKEY
@DATABASE
@AS_JSON
def import_command(
    file: Path,
    data_dir: Path,
    checkpoints: tuple[Path, ...],
    vkeys: tuple[str, ...],
    database_url: str | None,
    as_json: bool,
) -> None:
    """Make a new data directory from an export: same events, ids, root and views, or nothing at all.

    Without keys/ in DIR the checkpoints of the log stay behind, and `sla-ledger init` makes keys of its own. Where the
    key was rotated, name every key of the log with --vkey.
    """
    progress = ProgressLine()
    with reading(file) as source, new_data_directory(data_dir, vkeys, database_url=database_url) as data:
        known: list[KnownCheckpoint] = data.outside(checkpoints)
        with data.database.restore() as restoration:
            summary = import_log(source, restoration, known=known, trust=data.trust, progress=progress)
        trusted = data.trust is not None
    progress.clear()
    if not trusted and summary.checkpoints:
        note(f"{summary.checkpoints} checkpoints of {summary.origin} stay behind: {data_dir} has another key")
    if not (data_dir / KEY_FOLDER).exists():
        note(f"{data_dir} has no keys yet; make some with: sla-ledger init --data {data_dir}")
    _print(f"imported into {data_dir}", summary, as_json=as_json)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A file that is named on the command line; raises ``BadInput`` where it cannot be read."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
    with stream:
        yield stream


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A new file that appears under its name once it is complete, readable by its owner alone."""
    if path.exists():
        raise BadInput(f"{path} exists and is not overwritten", path=str(path))
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb", buffering=1 << 20) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        Path(temporary).rename(path)
        temporary = None
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _print(done: str, summary: Summary, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "origin": summary.origin,
                "size": summary.size,
                "root": summary.root.hex(),
                "erased_payloads": summary.erased,
                "checkpoints": summary.checkpoints,
                "idempotency_keys": summary.requests,
                "batches": summary.batches,
                "proved_size": summary.proved,
            }
        )
        return
    click.echo(f"{done}: {summary.size} events of {summary.origin}, root {summary.root.hex()}")
    if summary.proved is not None:
        click.echo(f"holds everything that was signed at size {summary.proved}")
