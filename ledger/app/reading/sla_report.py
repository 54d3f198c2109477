"""The report of a time window over all agreements of a tenant: uptime, error rate, 95th percentile of latency.

Uptime is counted in committed windows (the newest judgement of each) that lie wholly inside the time window, so it
is what settlement counts. The percentile is the exact nearest rank over the recorded rows (semantics 7: quantiles are
never settled on interpolation), by the verdicts of ``ledger.domain.rows.observation``.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from ledger.app.agreements.registering import timeline_of
from ledger.app.facts.observations import ReadRows
from ledger.app.periods.exclusions import load_excluded
from ledger.app.ports.store import Transaction
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import observations_stream
from ledger.domain.rows.observation import IdentityBook, RequestRow, RowRejection, Rows, Verdict, one_by_one
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.indicators import REQUESTS as UNIT_REQUESTS
from ledger.domain.terms.log_kinds import REQUESTS
from ledger.domain.terms.where import Selection
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval, covered, union
from ledger.errors import QueryInvalid

MAX_WINDOWS = 100_000
"""Committed windows one report counts; a minute's windows of 69 days."""
MAX_RAW_BYTES = 256 * 1024 * 1024
"""Raw batches one report reads, uncompressed."""
MAX_REQUESTS = 1_000_000
"""Different requests one report keeps apart, at about 200 bytes each."""
_P95 = (95, 100)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_UNMEASURED = -1

_MaySee = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Uptime:
    """Requests of the availability objectives in the windows that were counted."""

    good: int
    valid: int
    windows: int


@dataclass(frozen=True, slots=True)
class Latency:
    """``p95_ns`` is None where ``measured`` (succeeded requests with a latency) is 0."""

    p95_ns: int | None
    measured: int


class LatencyCache:
    """Remembers results by everything they follow from, batch digests included, so that none can be stale."""

    def __init__(self, size: int = 128) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._found: OrderedDict[Any, Latency] = OrderedDict()

    def get(self, key: Any) -> Latency | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Any, latency: Latency) -> None:
        with self._lock:
            self._found[key] = latency
            if len(self._found) > self._size:
                self._found.popitem(last=False)


def uptime(tx: Transaction, within: Interval, *, may_see: _MaySee) -> Uptime:
    """What the committed windows inside ``within`` counted for availability.

    All availability objectives of one agreement count the same requests, so the first stands for them; one that counts
    minutes cannot be added up with them. Raises
    ``QueryInvalid`` where that would be more than ``MAX_WINDOWS``.
    """
    good = valid = counted = 0
    wanted = [
        (sla_id, name, period)
        for sla_id, agreement in _agreements(tx, may_see)
        for name in _first_availability(agreement)
        for period in _checked_periods(agreement, within)
    ]
    for sla_id, name, period in wanted:
        for window in tx.views.windows(sla_id, str(period)):
            cell = window["cells"].get(name)
            inside = within.start_ns <= window["start_ns"] and window["end_ns"] <= within.end_ns
            if inside and cell is not None:
                counted += 1
                good += cell["good"]
                valid += cell["good"] + cell["bad"]
        if counted > MAX_WINDOWS:
            raise _too_long("windows", counted, MAX_WINDOWS)
    return Uptime(good, valid, counted)


def response_latency(
    tx: Transaction, within: Interval, *, read_rows: ReadRows, may_see: _MaySee, cache: LatencyCache
) -> Latency:
    """The exact 95th percentile of the full response latency of succeeded requests that started in ``within``.

    A request reported with two bodies counts as failed, so it is measured nowhere, and neither is one that starts in
    excluded time. Raises ``QueryInvalid`` where more than ``MAX_RAW_BYTES`` or ``MAX_REQUESTS`` would have to be read.
    """
    sources = [
        _Source(tx, sla_id, agreement, tuple(_checked_periods(agreement, within)))
        for sla_id, agreement in _agreements(tx, may_see)
    ]
    sources = [source for source in sources if source.periods and source.batches]
    key = (within, tuple(source.key for source in sources))
    known = cache.get(key)
    if known is not None:
        return known
    size = sum(source.raw_bytes for source in sources)
    if size > MAX_RAW_BYTES:
        raise _too_long("raw_bytes", size, MAX_RAW_BYTES)
    measured: array[int] = array("q")
    requests = 0
    for source in sources:
        sample = _Sample(source, room=MAX_REQUESTS - requests)
        for digest, spans in source.batches.items():
            sample.add_all(one_by_one(cast(Rows, read_rows(tx.batches.get(digest)))), spans)
        requests += sample.requests
        measured.extend(sample.latencies(within))
    found = Latency(nearest_rank(measured, *_P95), len(measured))
    cache.put(key, found)
    return found


def nearest_rank(values: Iterable[int], numerator: int, denominator: int) -> int | None:
    """The value of rank ceil(q * n) for q = numerator / denominator, 0 < q <= 1; None of no values."""
    ordered = sorted(values)
    rank = -(-len(ordered) * numerator // denominator)
    return ordered[rank - 1] if ordered else None


class _Source:
    """The batches of one agreement's source that can hold a request of some periods."""

    def __init__(self, tx: Transaction, sla_id: str, agreement: Agreement, periods: tuple[Period, ...]) -> None:
        self.sla_id = sla_id
        self.agreement = agreement
        self.periods = periods
        self.raw_bytes = 0
        # None: recorded without a declaration, and then no row of the batch lies outside.
        self.batches: dict[str, tuple[Interval, ...] | None] = {}
        events = tx.events.stream(observations_stream(sla_id, agreement.source)) if periods else ()
        declared: defaultdict[str, list[Interval]] = defaultdict(list)
        sizes: dict[str, int] = {}
        for event in events:
            payload = event.payload
            if not self._matters(event):
                continue
            sizes[payload["digest"]] = payload["bytes"]
            if payload["declared_complete"] is None:
                self.batches[payload["digest"]] = None
            else:
                declared[payload["digest"]].append(_interval(payload["declared_complete"]))
        for digest, spans in declared.items():
            self.batches.setdefault(digest, union(spans))
        self.raw_bytes = sum(sizes.values())
        loaded = (load_excluded(tx, sla_id, agreement, period).union for period in periods)
        self.excluded = union(part for parts in loaded for part in parts)
        self.key = (
            sla_id,
            agreement.doc_sha256,
            self.excluded,
            tuple(sorted(self.batches.items(), key=lambda item: item[0])),
        )

    def _matters(self, event: StoredEvent) -> bool:
        """False for a batch of samples, and for one whose every row lies elsewhere.

        The recorded span is that of accepted rows. Duplicates repeat a row that some span covers; conflicts, and
        rows that other terms may not reject, could lie anywhere.
        """
        if event.payload.get("format", REQUESTS) != REQUESTS:
            return False
        rows, span = event.payload["rows"], event.payload["span"]
        if rows["conflict"] or rows["rejected"]:
            return True
        if span is None:
            return False
        found = _interval(span)
        return self.periods[0].interval.start_ns < found.end_ns and found.start_ns < self.periods[-1].interval.end_ns


class _Sample:
    """Requests of one source by identity, with their latency: the rule is the ``Evaluator``'s."""

    def __init__(self, source: _Source, *, room: int) -> None:
        self.requests = 0
        self._source = source
        self._room = room
        self._selection = Selection(objective.where for objective in source.agreement.objectives)
        self._books = {
            period: IdentityBook(source.sla_id, source.agreement.source, str(period)) for period in source.periods
        }
        self._starts_ns: dict[Period, array[int]] = {period: array("q") for period in source.periods}
        self._latencies_ns: dict[Period, array[int]] = {period: array("q") for period in source.periods}

    def add_all(self, rows: Iterable[Any], spans: tuple[Interval, ...] | None) -> None:
        service = self._source.agreement.service
        period: Period | None = self._source.periods[0]
        for row in rows:
            if not isinstance(row, RequestRow) or row.service != service:
                continue
            if self._selection.asks and isinstance(self._selection.of_row(row), RowRejection):
                continue
            start_ns = row.started_at_ns
            if spans is not None and not any(start_ns in span for span in spans):
                continue
            if period is None or start_ns not in period.interval:
                period = next((found for found in self._books if start_ns in found.interval), None)
            if period is not None:
                self._add(period, row)

    def _add(self, period: Period, row: RequestRow) -> None:
        verdict, slot = self._books[period].classify(row)
        if verdict is Verdict.ACCEPTED:
            self.requests += 1
            if self.requests > self._room:
                raise _too_long("requests", MAX_REQUESTS + 1, MAX_REQUESTS)
            self._starts_ns[period].append(row.started_at_ns)
            succeeded = row.error_code is None and row.response_ns is not None
            self._latencies_ns[period].append((row.response_ns or 0) if succeeded else _UNMEASURED)
        elif verdict is Verdict.CONFLICT:
            self._latencies_ns[period][slot] = _UNMEASURED

    def latencies(self, within: Interval) -> Iterator[int]:
        for period, starts_ns in self._starts_ns.items():
            for start_ns, latency_ns in zip(starts_ns, self._latencies_ns[period], strict=True):
                if latency_ns != _UNMEASURED and start_ns in within and not self._left_out(start_ns):
                    yield latency_ns

    def _left_out(self, start_ns: int) -> bool:
        excluded = self._source.excluded
        return bool(excluded) and covered(Interval(start_ns, start_ns + 1), excluded)


def _agreements(tx: Transaction, may_see: _MaySee) -> Iterator[tuple[str, Agreement]]:
    for row in sorted(tx.views.agreements(), key=lambda row: str(row["sla_id"])):
        if may_see(row["sla_id"]):
            for terms in timeline_of(tx, row["sla_id"]).terms:
                yield row["sla_id"], terms.agreement


def _first_availability(agreement: Agreement) -> tuple[str, ...]:
    found = [each for each in agreement.objectives if each.indicator == "availability" and each.unit == UNIT_REQUESTS]
    return tuple(each.id for each in found[:1])


def _checked_periods(agreement: Agreement, within: Interval) -> Iterator[Period]:
    """The agreement's periods that share an instant with ``within``; refuses more than a report can count."""
    windows = within.duration_ns // (agreement.window_seconds * SECOND_NS)
    if windows > MAX_WINDOWS:
        raise _too_long("windows", windows, MAX_WINDOWS)
    yield from agreement.periods.sharing(within)


def _interval(span: Mapping[str, str]) -> Interval:
    return Interval(int(span["from_ns"]), int(span["to_ns"]))


def _too_long(limit: str, found: int, allowed: int) -> QueryInvalid:
    return QueryInvalid(
        f"the time window holds too much for one report ({limit}: {found}, at most {allowed}); ask for a shorter one",
        parameter="timeWindow",
        limit=limit,
        allowed=allowed,
    )
