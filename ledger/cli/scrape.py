"""``sla-ledger scrape``: what the counters and histograms of an agreement say at its endpoints, as facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from ledger.app.facts.scrape_restarts import restarting
from ledger.app.facts.scraping import RecordedRound, Round, longest_silence_s, record_round, terms_at
from ledger.cli.looking import ONCE, every_option, looks, seconds
from ledger.cli.opening import chosen_of
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, visible
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.instant import format_instant_ns
from ledger.errors import BadInput, DataDirectoryInvalid, SlaLedgerError
from ledger.ingest.facts import read_facts
from ledger.ingest.scrape import Exposition, fetch
from ledger.ingest.scraped_facts import read_mark, read_round
from ledger.wiring.needs import COLLECT_NEEDS
from ledger.wiring.services import Services, open_data

AT_ONCE = 16
EPILOG = """\b
Exit codes:
  0  recorded (without --once: stopped by Ctrl-C or SIGTERM)
  1  --once, and the time since the round before is not shown to be complete
  2  nothing was recorded: no endpoint says anything of the agreement, or it is counted otherwise
"""


@click.command(epilog=EPILOG)
@DATA
@SLA_ID
@click.option(
    "--target", "targets", metavar="URL", multiple=True, required=True, help="A metrics endpoint; all of them."
)
@every_option("1m")
@ONCE
@TENANT
@DATABASE
@AS_JSON
def scrape(
    data_dir: Path,
    sla_id: str | None,
    targets: tuple[str, ...],
    every: str,
    once: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> int:
    """Read the counters and histograms that an agreement is counted from, and record them as facts.

    Name every process of the service: time counts as covered only where all of them answered.
    """
    every_s, named = seconds(every), _named(targets)
    following, complete = looks(every_s, once=once), False
    if not data_dir.is_dir():
        raise DataDirectoryInvalid(
            f"{data_dir} is not a directory; make one with: sla-ledger init --data {data_dir}", path=str(data_dir)
        )
    services = open_data(data_dir, notify=note, database_url=database_url, needs=COLLECT_NEEDS)
    with closing(services):
        scraper = _Scraper(services, tenant, chosen_of(services.database.of_tenant(tenant), sla_id), named)
        scraper.require_often_enough(every_s)
        for _ in following:
            try:
                found, recorded = scraper.look()
            except SlaLedgerError as error:
                # One round that fails is no reason to stop; its time simply has no data.
                if once:
                    raise
                note(f"sla-ledger: {error.message}")
                continue
            complete = recorded.complete is not None
            _report(found, recorded, scraper.restarting(), as_json=as_json)
    return 1 if once and not complete else 0


@dataclass(frozen=True, slots=True)
class _Scraper:
    services: Services
    tenant: str
    sla_id: str
    targets: Mapping[str, str]

    def look(self) -> tuple[Round, RecordedRound]:
        # What is read later than this belongs to it all the same: nothing before it is missing.
        services, at_ns = self.services, self.services.clock.now_ns()
        with ThreadPoolExecutor(min(len(self.targets), AT_ONCE)) as pool:
            answers = dict(zip(self.targets, pool.map(_asked, self.targets.values()), strict=True))
        found = read_round(self._agreement(), at_ns, answers)
        recorded = record_round(
            services.database.of_tenant(self.tenant),
            self.sla_id,
            found,
            attestor=services.attestor,
            clock=services.clock,
            read_rows=read_facts,
            read_mark=read_mark,
        )
        return found, recorded

    def restarting(self) -> list[str]:
        services = self.services
        database = services.database.of_tenant(self.tenant)
        return restarting(database, self.sla_id, attestor=services.attestor, read_rows=read_facts, read_mark=read_mark)

    def require_often_enough(self, every_s: int) -> None:
        """Raises ``BadInput`` where no round could ever continue the one before it."""
        longest_s = longest_silence_s(self._agreement())
        if every_s > longest_s:
            raise BadInput(
                f"--every {every_s}s: the agreement lets its source be silent for {longest_s} s (source.heartbeat, or "
                "a window), so no time would ever be covered; scrape more often"
            )

    def _agreement(self) -> Agreement:
        with self.services.database.of_tenant(self.tenant).read() as tx:
            return terms_at(tx, self.sla_id, self.services.attestor, self.services.clock.now_ns())


def _asked(url: str) -> Exposition | SlaLedgerError:
    try:
        return fetch(url)
    except SlaLedgerError as error:
        return error


def _named(targets: tuple[str, ...]) -> dict[str, str]:
    """The targets by the ``instance`` that their series get: host and port, and a path that is not the usual one."""
    found: dict[str, str] = {}
    for url in targets:
        parts = urlsplit(url)
        name = parts.netloc.rpartition("@")[2] + ("" if parts.path in ("", "/", "/metrics") else parts.path)
        if name in found:
            raise BadInput(f"--target {url[:200]}: {name} is named twice, and nobody counts twice")
        found[name] = url
    return found


def _report(found: Round, recorded: RecordedRound, warnings: Sequence[str], *, as_json: bool) -> None:
    complete = recorded.complete
    document: dict[str, Any] = {
        "at": format_instant_ns(found.mark.at_ns),
        "complete_from": None if complete is None else format_instant_ns(complete.start_ns),
        "rows": {kind: batch.counts.requests for kind, batch in recorded.batches.items()},
        "rejected": {kind: batch.counts.rejected_total for kind, batch in recorded.batches.items()},
        "digests": {kind: batch.digest for kind, batch in recorded.batches.items()},
        "problems": list(found.problems),
        "warnings": list(warnings),
    }
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    rows = ", ".join(f"{count} readings of {kind}" for kind, count in document["rows"].items())
    since = "nothing is shown to be complete" if complete is None else f"complete from {document['complete_from']}"
    click.echo(f"{document['at']}  {rows}; {since}")
    for said in (*found.problems, *warnings):
        click.echo(f"  {visible(said)}")
