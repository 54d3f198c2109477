"""``sla-ledger worker``: the processes that work the outbox where a broker is set. Without one the server does it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from ledger.app.work.outbox import Stage
from ledger.cli.options import DATA, DATABASE
from ledger.cli.output import note
from ledger.settings import LogFormat, LogSettings, WorkerSettings
from ledger.wiring.needs import BEAT_NEEDS, RELAY_NEEDS, Needs, needs_of

EXITS = (
    "Exit codes: 0 stopped by SIGTERM or Ctrl-C; 1 broker or database cannot be reached; 2 no broker is set, or the "
    "data directory cannot be used."
)
LOG_AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Log as lines of JSON, on stderr: SLA_LEDGER_LOG_FORMAT=json."
)

WORKERS = "ledger.workers.run"
"""Found by its name, as subcommands are: command line and workers are strangers to each other."""

STAGES = tuple(str(stage) for stage in Stage)
ALL_BUT_PROVE = tuple(stage for stage in STAGES if stage != Stage.PROVE)


@click.group(epilog="The broker is SLA_LEDGER_BROKER=redis://HOST:PORT/NUMBER, for these processes and for `up`.")
def worker() -> None:
    """Work a ledger in processes of their own: workers, the relay that tells them, the beat that knows the time."""


@worker.command(epilog=EXITS)
@click.argument("stages", nargs=-1, type=click.Choice(STAGES))
@DATA
@DATABASE
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Work at a time.")
@LOG_AS_JSON
def run(stages: tuple[str, ...], data_dir: Path, database_url: str | None, processes: int, as_json: bool) -> None:
    """Work STAGES; without any, all but `prove`, which takes a processor for seconds and wants workers of its own."""
    from ledger.wiring.given_keys import require_keys  # as below

    worked = stages or ALL_BUT_PROVE
    needs = needs_of(worked)
    settings, open_services = _opener(data_dir, database_url, needs, as_json=as_json)
    # Each of its processes opens the directory when it is started; what is missing is said here, and once.
    require_keys(data_dir, needs, os.environ)
    _log(as_json=as_json)
    importlib.import_module(WORKERS).run_worker(settings, open_services, stages=worked, processes=processes)


@worker.command(epilog=EXITS)
@DATA
@DATABASE
@LOG_AS_JSON
def relay(data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Tell the workers of the work that is due, again and again until it is taken. One is enough; more do no harm."""
    settings, open_services = _opener(data_dir, database_url, RELAY_NEEDS, as_json=as_json)
    importlib.import_module(WORKERS).run_relay(settings, open_services, notify=_log(as_json=as_json))


@worker.command(epilog=EXITS)
@DATA
@DATABASE
@LOG_AS_JSON
def beat(data_dir: Path, database_url: str | None, as_json: bool) -> None:
    """Close periods when their grace is over, and sign the log. One is enough; more do no harm."""
    settings, open_services = _opener(data_dir, database_url, BEAT_NEEDS, as_json=as_json)
    importlib.import_module(WORKERS).run_beat(settings, open_services, notify=_log(as_json=as_json))


def _opener(
    data_dir: Path, database_url: str | None, needs: Needs, *, as_json: bool
) -> tuple[WorkerSettings, Callable[[], Any]]:
    from ledger.wiring import open_data  # takes seconds, which a mistyped option need not wait for

    settings, notify = WorkerSettings.read(os.environ), _notify(_log_settings(as_json=as_json))
    return settings, partial(
        open_data, data_dir, notify=notify, database_url=database_url, workers=settings, needs=needs
    )


def _log_settings(*, as_json: bool) -> LogSettings:
    return LogSettings.read({**os.environ, "SLA_LEDGER_LOG_FORMAT": "json"} if as_json else os.environ)


def _notify(settings: LogSettings) -> Callable[[str], None]:
    """Where notices go: to people, or into the log that somebody collects."""
    from ledger.wiring.logs import log_notice

    return log_notice if settings.format is LogFormat.JSON else note


def _log(*, as_json: bool) -> Callable[[str], None]:
    """Set up this process's log as settings and options say; where its notices go."""
    from ledger.wiring.logs import configure_logs

    settings = _log_settings(as_json=as_json)
    configure_logs(settings)
    return _notify(settings)
