"""Where an objective's counts come from, if not from the rows of the request log or the sample log.

* ``outages``: a list of outages. A window counts its whole minutes, up or down (``ledger.domain.facts.outages``).
* ``counters``: readings of counters that only rise (``ledger.domain.facts.counter_log``).
* ``histograms``: readings of latency histograms, or sketches (``ledger.domain.facts.histogram_log``).
* ``own_violations``: the violations that the ledger itself found (``ledger.domain.violations.own_recovery``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema import Object, OneOf, Shape, Text, fail
from ledger.domain.terms.indicators import LATENCIES, SAMPLE_INDICATORS
from ledger.domain.terms.log_kinds import COUNTERS, HISTOGRAMS, OUTAGES, OWN_VIOLATIONS, REQUESTS, SAMPLES

METRIC_NAME = Text(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,119}", "a metric's name, such as llm_request_total", 120)

SOURCE_MEMBERS: Mapping[str, Shape] = {
    "source": OneOf((OUTAGES, COUNTERS, HISTOGRAMS, OWN_VIOLATIONS)),
    "counters": Object({"total": METRIC_NAME}, {"good": METRIC_NAME, "bad": METRIC_NAME}),
    "histogram": METRIC_NAME,
}

_INDICATORS: Mapping[str, tuple[str, ...]] = {
    OUTAGES: ("availability",),
    COUNTERS: ("availability", "error_rate"),
    HISTOGRAMS: LATENCIES,
    OWN_VIOLATIONS: ("recovery_time",),
}
_MEMBER_OF = {"counters": COUNTERS, "histogram": HISTOGRAMS}
_SEEN_ONE_BY_ONE = {
    "where": "selects requests one by one",
    "repeat_window": "looks at failed requests one by one",
    "grades": "grades requests one by one",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an objective's counts come from. ``total`` and one of ``good`` and ``bad`` name counters, ``histogram`` a
    histogram of latencies; None where the kind has none."""

    kind: str
    total: str | None = None
    good: str | None = None
    bad: str | None = None
    histogram: str | None = None

    @property
    def unit(self) -> str | None:
        """What one count is, where that is not the indicator's unit."""
        return "minutes" if self.kind == OUTAGES else None

    @property
    def counts_as_good(self) -> str | None:
        """What is good, where the indicator does not say it."""
        return "no outage that counts covers the minute whole" if self.kind == OUTAGES else None


OF_REQUESTS = Source(REQUESTS)


def read_source(at: str, item: Mapping[str, Any], base_seconds: int) -> Source:
    """The source of a shape-checked objective. Raises ``DocumentInvalid`` naming the field."""
    indicator, kind = item["indicator"], item.get("source")
    for member, needed_by in _MEMBER_OF.items():
        if (member in item) != (kind == needed_by):
            said = f"only source: {needed_by} has it" if member in item else f"is missing: source: {needed_by} needs it"
            raise fail(f"{at}.{member}", said)
    if kind is None:
        return Source(SAMPLES if indicator in SAMPLE_INDICATORS else REQUESTS)
    if indicator not in _INDICATORS[kind]:
        raise fail(f"{at}.source", f"{kind} says nothing of {indicator}, but of {', '.join(_INDICATORS[kind])}")
    for member, what in _SEEN_ONE_BY_ONE.items():
        if member in item:
            raise fail(f"{at}.{member}", f"{what}, and source: {kind} has none; leave it out")
    if kind == OUTAGES and base_seconds % 60:
        raise fail(
            f"{at}.source",
            f"outages are counted in whole minutes, which windows of {base_seconds} s do not have; agree on the "
            "window PT1M",
        )
    if kind == OWN_VIOLATIONS and "at_most" not in item.get("measure", {}):
        raise fail(f"{at}.measure", "say at_most, the seconds within which service is back")
    counters = item.get("counters", {})
    if counters and ("good" in counters) == ("bad" in counters):
        raise fail(f"{at}.counters", "say good or bad beside total, one of the two")
    return Source(kind, counters.get("total"), counters.get("good"), counters.get("bad"), item.get("histogram"))
