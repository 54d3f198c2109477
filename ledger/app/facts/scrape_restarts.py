"""What the last rounds of a scrape say of processes that begin anew too often, for the operator: see
``ledger.domain.rows.restarts``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

from ledger.app.agreements.registering import load_agreement
from ledger.app.facts.earlier_batches import EarlierBatches, format_by
from ledger.app.facts.observations import ReadRows
from ledger.app.facts.scraping import SCRAPED, ReadMark
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.domain.facts.counter_log import CounterRow
from ledger.domain.facts.histogram_log import HistogramRow
from ledger.domain.rows.restarts import Restarts, SeriesReading, restarts_of

ROUNDS = 20
"""How many of the last logs of each kind are looked at."""

Series = tuple[str, str]
"""A metric and the labels of one of its series."""


def restarting(
    database: Database, sla_id: str, *, attestor: Attestor, read_rows: ReadRows, read_mark: ReadMark
) -> list[str]:
    """A sentence for each target whose series begin anew too often. Raises ``NotFound``."""
    with database.read() as tx:
        source = load_agreement(tx, sla_id, attestor).agreement.source
        read: dict[Series, dict[int, SeriesReading]] = {}
        for data in _last_logs(tx, EarlierBatches(tx, sla_id, source), read_mark):
            for row in read_rows(data):
                if isinstance(row, CounterRow):
                    reading = SeriesReading(row.at_ns, row.value, row.start_ns)
                    read.setdefault((row.counter, row.series), {})[row.at_ns] = reading
                elif isinstance(row, HistogramRow) and row.is_step:
                    count = max((count for _, count in row.buckets), default=0)
                    reading = SeriesReading(row.at_ns, count, row.start_ns)
                    read.setdefault((row.histogram, row.series), {})[row.at_ns] = reading
    found = {series: restarts_of(readings.values()) for series, readings in read.items()}
    return _sentences({series: each for series, each in found.items() if each.worth_saying}, read)


def _last_logs(tx: Transaction, earlier: EarlierBatches, read_mark: ReadMark) -> Iterator[bytes]:
    """The last ``ROUNDS`` logs that were scraped, of each kind."""

    def scraped(kind: str) -> Iterator[bytes]:
        for events in earlier.back_from(tx.events.length(earlier.stream)):
            for event in reversed(events):
                if format_by(event) == kind:
                    data = tx.batches.get(event.payload["digest"])
                    if read_mark(data) is not None:
                        yield data

    for kind in sorted(SCRAPED):
        yield from islice(scraped(kind), ROUNDS)


def _sentences(found: dict[Series, Restarts], read: dict[Series, dict[int, SeriesReading]]) -> list[str]:
    """One for each target, by the series of it that began anew most often."""
    of_target: dict[str, list[Series]] = {}
    for name, series in sorted(found):
        of_target.setdefault(str(json.loads(series).get("instance", "")), []).append((name, series))
    said = []
    for target, of_it in sorted(of_target.items()):
        worst = max(of_it, key=lambda each: (found[each].several, found[each].times))
        many = f"{worst[0]}, one of {len(of_it)} series" if len(of_it) > 1 else worst[0]
        if found[worst].several:
            said.append(
                f"{target}: several processes answer behind this address ({many}, began later and then earlier again, "
                "or fell without a restart), so what is counted is not what happened: give each an address of its own"
            )
        else:
            said.append(
                f"{target}: began anew {found[worst].times} times in {len(read[worst])} readings ({many}): its process "
                "restarts again and again, or several answer behind this address, and then each turn counts a whole "
                "value once more: give each an address of its own"
            )
    return said
