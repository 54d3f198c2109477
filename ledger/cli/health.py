"""``sla-ledger health``: a look at the work for whoever watches a deployment, such as a container's health check."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.app.reading.progress import Progress, Watched, read_progress
from ledger.app.reading.readiness import SchemaState
from ledger.app.work.outbox import Stage
from ledger.cli.options import AS_JSON, DATABASE, data_option
from ledger.cli.output import print_json
from ledger.domain.terms.nesting import too_deep
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import BadInput, SlaLedgerError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WAIT_S = 120
ASK_TIMEOUT_S = 5
MAX_ANSWER_BYTES = 100_000


@click.command(
    epilog="Exit codes: 0 the work goes on; 1 it does not, or the database or server does not answer; 2 the input "
    "cannot be used."
)
@data_option("Data directory of the ledger.", required=False)
@DATABASE
@click.option(
    "--for",
    "watched",
    multiple=True,
    type=click.Choice([str(name) for name in Watched]),
    help="Whose work. Default: all.",
)
@click.option(
    "--stage", "stages", multiple=True, type=click.Choice([str(stage) for stage in Stage]), help="Default: all."
)
@click.option(
    "--max-wait",
    "max_wait_s",
    metavar="SECONDS",
    type=click.IntRange(1, 86_400),
    default=MAX_WAIT_S,
    show_default=True,
    help="How long work may wait before it counts as standing still.",
)
@click.option("--url", metavar="URL", help="Ask the server at this address whether it can answer, and nothing else.")
@AS_JSON
def health(
    data_dir: Path | None,
    database_url: str | None,
    watched: tuple[str, ...],
    stages: tuple[str, ...],
    max_wait_s: int,
    url: str | None,
    as_json: bool,
) -> int:
    """Say whether the work behind a ledger goes on.

    Nobody's heartbeat is asked for: the database says what is to be done and how long it waits already. Nothing is
    written, and a database of another version is left as it is.
    """
    if url is not None:
        return _tell(_of_server(url), as_json=as_json)
    if data_dir is None:
        raise BadInput("no data directory: pass --data DIR or set SLA_LEDGER_DATA, or ask a server with --url")
    progress = _look(data_dir, database_url)
    chosen = [Watched(name) for name in watched] or list(Watched)
    faults = progress.faults(chosen, stages or None, max_wait_s)
    return _tell(_document(progress, faults), as_json=as_json)


def _look(data_dir: Path, database_url: str | None) -> Progress:
    from ledger.store.migrate import SCHEMA_REVISION  # takes a while, which asking a server need not wait for
    from ledger.wiring.storage import looked_at

    now_ns = time.time_ns()
    try:
        with looked_at(data_dir, database_url) as database:
            return read_progress(database, SchemaState(database.revision(), SCHEMA_REVISION), now_ns)
    except BadInput:
        raise
    except SlaLedgerError as error:
        return Progress(now_ns, error.message, None)


def _document(progress: Progress, faults: Sequence[str]) -> dict[str, Any]:
    def age_s(since_ns: int | None) -> int | None:
        return None if since_ns is None else max(0, progress.now_ns - since_ns) // SECOND_NS

    return {
        "healthy": not faults,
        "faults": list(faults),
        "schema": None if progress.schema is None else progress.schema.current,
        "unsigned_s": age_s(progress.unsigned_since_ns),
        "stages": {
            wait.stage: {
                "untold_s": age_s(wait.untold_since_ns),
                "untried_s": age_s(wait.untried_since_ns),
                "worked": wait.worked,
            }
            for wait in progress.stages
        },
    }


def _of_server(url: str) -> dict[str, Any]:
    """What /health/ready says; a server that is not ready answers 503 with the same document."""
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--url {url[:100]!r} is no http address of a server")
    address = f"{url.rstrip('/')}/health/ready"
    try:
        with urllib.request.urlopen(address, timeout=ASK_TIMEOUT_S) as answer:  # noqa: S310 - checked above
            said = answer.read(MAX_ANSWER_BYTES)
        if too_deep(said):
            raise ValueError("it nests too deeply")
        ready = json.loads(said)
    except urllib.error.HTTPError as error:
        return {"healthy": False, "faults": [f"{address} answers {error.code}"], "ready": None}
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        said = getattr(reason, "strerror", None) or str(reason)
        return {"healthy": False, "faults": [f"{address} does not answer: {said}"], "ready": None}
    return {"healthy": True, "faults": [], "ready": ready}


def _tell(document: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(document)
    else:
        click.echo("\n".join(document["faults"]) or "healthy")
    return 0 if document["healthy"] else 1
