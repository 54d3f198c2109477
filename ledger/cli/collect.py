"""``sla-ledger collect``: scrape a metrics endpoint into the ledger, once or again and again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from ledger.app.facts.telemetry import RawTelemetry, RecordedTelemetry, record_telemetry
from ledger.app.ports.store import Database
from ledger.app.work.retrying import write
from ledger.cli.looking import ONCE, every_option, looks, seconds
from ledger.cli.options import DATA, DATABASE
from ledger.cli.output import note
from ledger.domain.time.instant import Clock
from ledger.errors import DataDirectoryInvalid, SlaLedgerError
from ledger.ingest.registry import SCRAPED, read_telemetry
from ledger.ingest.scrape import fetch

EPILOG = """\b
Exit codes:
  0  scraped (with --every: stopped by Ctrl-C or SIGTERM)
  1  --once, and a sample was quarantined or rejected
  2  the endpoint cannot be read, nothing in it can be used, or no agreement names the service
"""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """What is scraped, as the options say it."""

    target: str
    service: str
    format_name: str
    source: str | None

    def scrape(self, clock: Clock) -> RawTelemetry:
        at_ns, found = clock.now_ns(), fetch(self.target)
        source = self.source or urlsplit(self.target).netloc.rpartition("@")[2][:100] or "target"
        return RawTelemetry(self.format_name, found.media_type, found.data, source, self.service, at_ns)


@click.command(epilog=EPILOG)
@DATA
@DATABASE
@click.option("--target", metavar="URL", required=True, help="The metrics endpoint.")
@click.option("--service", metavar="NAME", required=True, help="The service it belongs to, as the agreement names it.")
@click.option("--format", "format_name", type=click.Choice(SCRAPED), required=True, help="What exports the metrics.")
@click.option("--source", metavar="NAME", help="Name of this collector. Default: host and port of the target.")
@every_option("15s")
@ONCE
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each scrape.")
def collect(
    data_dir: Path, database_url: str | None, every: str, once: bool, as_json: bool, **endpoint: str | None
) -> int:
    """Scrape a metrics endpoint: what tells something about the service becomes evidence."""
    every_s = seconds(every)
    if not data_dir.is_dir():
        raise DataDirectoryInvalid(
            f"{data_dir} is not a directory; make one with: sla-ledger init --data {data_dir}", path=str(data_dir)
        )
    from ledger.wiring import open_data  # takes seconds, which a mistyped option need not wait for
    from ledger.wiring.needs import COLLECT_NEEDS

    scraped = _Endpoint(**endpoint)  # type: ignore[arg-type]
    unusable, following = 0, looks(every_s, once=once)
    services = open_data(data_dir, notify=note, database_url=database_url, needs=COLLECT_NEEDS)
    try:
        for _ in following:
            try:
                raw = scraped.scrape(services.clock)
                recorded = _record(services.database, services.clock, raw)
                _report(recorded, as_json=as_json)
                unusable = recorded.unusable
            except SlaLedgerError as error:
                # One scrape that fails is no reason to stop; its time simply has no samples.
                if once:
                    raise
                note(f"sla-ledger: {error.message}")
    finally:
        services.close()
    return 1 if once and unusable else 0


def _record(database: Database, clock: Clock, raw: RawTelemetry) -> RecordedTelemetry:
    groups = read_telemetry(raw)
    return write(database, lambda tx: record_telemetry(tx, raw, groups, read=read_telemetry, now_ns=clock.now_ns()))


def _report(recorded: RecordedTelemetry, *, as_json: bool) -> None:
    document: dict[str, Any] = {
        "digest": recorded.digest,
        "event_id": recorded.receipts[0].event_id,
        "samples": dict(recorded.verdicts),
        "reasons": dict(recorded.reasons),
        "refused": list(recorded.refused),
    }
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    counts = ", ".join(f"{count} {verdict}" for verdict, count in recorded.verdicts.items() if count)
    click.echo(f"{counts}  (event {document['event_id']})")
    for refused in recorded.refused:
        click.echo(f"  {refused['field']}: {refused['message']}")
