"""What the server counts of itself, in the Prometheus text format.

Gauges are read when they are asked for; requests are counted as they are answered, by route and not by address. Error
budgets alone name tenants and agreements: the page is the operator's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from ledger.app.chain.status import STATES
from ledger.app.reading.budget_board import BudgetBoard
from ledger.app.reading.readiness import Health, Readiness
from ledger.app.work.outbox import Stage
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import SlaLedgerError

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Meters:
    """Counts requests, and shows what ``health`` finds and what became of the bodies that ``outcomes`` counts."""

    def __init__(
        self,
        health: Health,
        outcomes: Callable[[], Mapping[tuple[str, str], int]] = dict,
        budgets: BudgetBoard | None = None,
    ) -> None:
        """``outcomes`` are counts by (route, outcome); see ``api.receiving.Outcomes``."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_State(health))
        self._registry.register(_Bodies(outcomes))
        if budgets is not None:
            self._registry.register(_BudgetsLeft(budgets))
        self._requests = Counter(
            "sla_ledger_http_requests",
            "Requests answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "sla_ledger_http_request_duration_seconds",
            "From the request's head to the end of its answer",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route`` is the template of the address, empty where there is no such route."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Everything, in exposition format 0.0.4."""
        return generate_latest(self._registry)


class _State:
    """A Prometheus collector over ``Health``."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterator[GaugeMetricFamily]:
        found = self._health.check()
        yield _gauge("sla_ledger_ready", "1 where the database answers at this version's schema", int(found.ready))
        if found.database_error is not None:
            # A size of 0 would look like a log that is lost.
            return
        yield _gauge("sla_ledger_log_leaves", "Events in the log", found.log_size)
        stages = GaugeMetricFamily("sla_ledger_outbox_stages", "Stages of work that are not done", labels=("state",))
        stages.add_metric(("pending",), found.outbox_pending)
        stages.add_metric(("parked",), found.outbox_parked)
        yield stages
        yield from _waits(found)
        yield from _progress(found)
        if found.chain_error is not None:
            return
        yield _gauge("sla_ledger_chain_transactions", "Transactions stored for the chain", found.chain_transactions)
        yield _gauge("sla_ledger_chain_failures", "Those that do not stand as they stood", found.chain_failures)


def _waits(found: Readiness) -> Iterator[GaugeMetricFamily]:
    """Every stage has a value at all times, so that a rule can tell nothing waiting from nothing known."""
    waits = {wait.stage: wait for wait in found.stages}
    untold = GaugeMetricFamily(
        "sla_ledger_outbox_untold_seconds", "Age of the oldest due work that nobody is told of", labels=("stage",)
    )
    untried = GaugeMetricFamily(
        "sla_ledger_outbox_untried_seconds", "Age of the oldest work that no worker ever took", labels=("stage",)
    )
    worked = GaugeMetricFamily("sla_ledger_outbox_worked", "Work that somebody is at", labels=("stage",))
    for stage in map(str, Stage):
        wait = waits.get(stage)
        untold.add_metric((stage,), _age_s(found, None if wait is None else wait.untold_since_ns))
        untried.add_metric((stage,), _age_s(found, None if wait is None else wait.untried_since_ns))
        worked.add_metric((stage,), 0 if wait is None else wait.worked)
    yield from (untold, untried, worked)
    unsigned_s = _age_s(found, found.unsigned_since_ns)
    yield _gauge("sla_ledger_log_unsigned_seconds", "Age of the oldest event that no checkpoint covers", unsigned_s)


def _progress(found: Readiness) -> Iterator[GaugeMetricFamily]:
    """From what is stored: the node need not answer. Every state has a value at all times."""
    states = GaugeMetricFamily("sla_ledger_chain_states", "Stored transactions by state", labels=("state",))
    for state in STATES:
        states.add_metric((state,), found.progress.count(state))
    yield states
    progress = found.progress
    waiting_s, unlooked_s = progress.waiting_s, progress.unlooked_s
    yield _gauge("sla_ledger_chain_unfinalized_seconds", "Age of the oldest transaction that is not final", waiting_s)
    yield _gauge("sla_ledger_chain_unlooked_seconds", "Age of the watcher's last look at a node's chain", unlooked_s)
    yield _gauge("sla_ledger_chain_looks_failing", "Contracts whose last look failed", progress.failing)
    yield _gauge("sla_ledger_chain_events_of_others", "What others did that concerns this ledger", progress.of_others)


def _age_s(found: Readiness, since_ns: int | None) -> int:
    return 0 if since_ns is None else max(0, found.at_ns - since_ns) // SECOND_NS


class _Bodies:
    """A Prometheus collector over what was received."""

    def __init__(self, outcomes: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        self._outcomes = outcomes

    def collect(self) -> Iterator[CounterMetricFamily]:
        bodies = CounterMetricFamily(
            "sla_ledger_ingest_bodies",
            "Bodies of facts and telemetry: recorded, or the code they were refused with",
            labels=("outcome", "route"),
        )
        for (route, outcome), count in sorted(self._outcomes().items()):
            bodies.add_metric((outcome, route), count)
        yield bodies


class _BudgetsLeft:
    """A Prometheus collector over a ``BudgetBoard``."""

    def __init__(self, board: BudgetBoard) -> None:
        self._board = board

    def collect(self) -> Iterator[GaugeMetricFamily]:
        left = GaugeMetricFamily(
            "sla_ledger_error_budget_remaining_ratio",
            "Share of an objective's error budget that is left; below 0 where more than all is gone",
            labels=("tenant", "agreement", "objective"),
        )
        try:
            found = self._board.look()
        except SlaLedgerError:
            # No series: 0 would look like a budget that is gone.
            return
        for each in found:
            value = -math.inf if each.left is None else float(each.left)
            left.add_metric((each.tenant, each.sla_id[2:14], each.objective), value)
        yield left
        yield _gauge(
            "sla_ledger_error_budget_agreements_left_out", "Agreements beyond those shown", self._board.left_out
        )


def _gauge(name: str, what: str, value: int) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, value=value)
