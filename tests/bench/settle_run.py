"""What ``tests.bench.settle`` measures, in a process of its own: ``python -m tests.bench.settle_run PART`` prints JSON.

Months of judged windows, made by seed. Every settlement is checked against sums made beside it, because the time of a
wrong result means nothing.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from statistics import median
from typing import Any

from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Window, WindowState
from ledger.domain.windows.window_columns import CellColumn, WindowColumns
from tests.unit.domain.samples import agreement

ROUNDS = 15
AGREEMENTS = 1_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe")
MONTH = date(2023, 10, 1)
# A calm window, and one in twenty with failures: of 300 requests one or three fail, or a third of them.
_BAD = (0,) * 95 + (1, 1, 3, 3, 100)


def terms(window: str = "PT5M", *, means: bool = False, number: int = 0) -> Agreement:
    """A month with four objectives: ``means``: all as means of 5-minute intervals."""

    def change(plain: dict[str, Any]) -> None:
        plain |= {"period": "P1M", "window": window, "timezone": ZONES[number % len(ZONES)]}
        plain["nonce"] = f"0x{number:064x}"
        plain["compensation"]["base"] = f"{1000 + number}.00"
        first = plain["objectives"][0]
        plain["objectives"].append({**first, "id": "errors", "indicator": "error_rate", "target": "99.9"})
        if means:
            for objective in plain["objectives"]:
                objective.pop("quantile", None)
                objective |= {"method": "interval_mean-v1", "interval": "PT5M"}

    return agreement(change)


def month(of: Agreement, seed: int) -> tuple[Period, WindowColumns]:
    """A month's judged windows by seed, as columns."""
    draw = random.Random(seed)
    period = of.period_starting(MONTH)
    count = of.window_count(period)
    columns = []
    for _ in of.objectives:
        bad = draw.choices(_BAD, k=count)
        columns.append(CellColumn([300 - failed for failed in bad], bad))
    states = [WindowState.OBSERVED] * count
    return period, WindowColumns(period.interval.start_ns, of.window_seconds * SECOND_NS, states, columns)


def checked(windows: WindowColumns, found: Settlement) -> None:
    """Ends the run where a result is not what the columns sum up to."""
    for result, column in zip(found.objectives, windows.cells, strict=True):
        if result.objective.method == "interval_mean-v1":
            # Every window has 300 requests, so the mean of the ratios is the ratio of the sums.
            expected = len(windows) * 10**9 - -(-sum(column.bad) * 10**9 // 300)
        else:
            expected = sum(column.good)
        if result.good != expected:
            raise SystemExit(f"{result.objective.id} came to {result.good} and not to {expected}")
    if found.credit is None or found.coverage.observed != len(windows):
        raise SystemExit("the month was not settled; the figure would mean nothing")


def timed_ms(of: Agreement, period: Period, windows: Sequence[Window]) -> list[float]:
    """The times that settlement and violations took, in ms, the median first."""
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        started = time.perf_counter()
        settle(of, period, windows)
        violations(of, windows)
        times.append((time.perf_counter() - started) * 1000)
    return [median(times), *times]


def one_month(*, means: bool) -> dict[str, float]:
    """Settlement and violations of one month, from windows as objects and from columns."""
    of = terms(means=means)
    period, columns = month(of, 1)
    objects = list(columns)
    checked(columns, settle(of, period, objects))

    return {"objects_ms": timed_ms(of, period, objects)[0], "columns_ms": timed_ms(of, period, columns)[0]}


def agreements() -> dict[str, float]:
    """A month of each of 1,000 agreements, one after the other; each is read and its windows are made first."""
    credit = settling_s = 0.0
    for number in range(AGREEMENTS):
        of = terms(number=number)
        period, windows = month(of, number)
        started = time.perf_counter()
        found = settle(of, period, windows)
        violations(of, windows)
        settling_s += time.perf_counter() - started
        checked(windows, found)
        credit += found.credit or 0
    return {"settled": AGREEMENTS, "settling_s": settling_s, "credit": credit}


def growth() -> dict[str, float]:
    """One month in windows of 8 minutes and of 30 seconds, 16 times as many, one after the other in each round."""
    months = []
    for window in ("PT8M", "PT30S"):
        of = terms(window)
        period, columns = month(of, 1)
        checked(columns, settle(of, period, columns))
        months.append((of, period, columns))
    rounds = [[timed_ms(*each)[0] for each in months] for _ in range(ROUNDS // 3)]
    return {"small_ms": median(small for small, _ in rounds), "large_ms": median(large for _, large in rounds)}


def feeds() -> dict[str, float]:
    """Feeds of a day in few batches, and in 16 times as many."""
    from tests.bench import feed_run  # loads a store, whose memory would count as that of the agreements

    rounds = [(feed_run.feed_ms(feed_run.FEW), feed_run.feed_ms(feed_run.MANY)) for _ in range(2)]
    return {"small_ms": min(small for small, _ in rounds), "large_ms": min(large for _, large in rounds)}


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "month": lambda: one_month(means=False),
    "interval_mean": lambda: one_month(means=True),
    "agreements": agreements,
    "growth": growth,
    "feeds": feeds,
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
