"""What is known of metrics by their names: which series they belong to, what values they can have, what they tell.

A catalogue is the knowledge about one exporter. What it does not name is read all the same and tells nothing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from ledger.domain.rows.telemetry import Doubt, EvidenceKind, Refusal, Sample, SampleVerdict, Telling
from ledger.ingest.reading import ReadingProblem, clean

MAX_LABEL_CHARS = 4_000
ONE = Decimal(1)
HUNDRED = Decimal(100)

Steps = tuple[tuple[Decimal, int], ...]
Labels = Mapping[str, str]
SeriesLabels = tuple[tuple[str, str], ...]

_STALE = (0x7FF0000000000002, 0x7FF8000000000002)
"""Prometheus' stale marker, and what is left of it where a machine has made the NaN a quiet one."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is the one all its spellings are recorded under.

    A value over ``maximum`` is quarantined: as ``unit_error`` where the metric is a ratio or a percentage. ``tells``:
    accepted values become evidence, with the severities of ``steps``.
    """

    name: str
    maximum: Decimal | None = None
    tells: bool = False
    steps: Steps = ()
    on_change: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The metrics of one exporter by every name they have had.

    ``identity`` names the labels that make a series (None: all of them); ``required`` is the one that must be there.
    ``subject`` says in words what a series measures. ``blank``: whether a value stands for no value.
    """

    kind: EvidenceKind
    metrics: Mapping[str, Metric]
    subject: Callable[[Labels], str]
    identity: tuple[str, ...] | None = None
    required: str | None = None
    percent_suffix: str | None = None
    blank: Callable[[int | float], bool] = lambda _value: False
    absences: Mapping[str, Doubt] = field(default_factory=dict)

    def metric(self, name: str) -> Metric:
        known = self.metrics.get(name)
        if known is not None:
            return known
        percent = self.percent_suffix is not None and name.endswith(self.percent_suffix)
        return Metric(name, HUNDRED if percent else None)

    def series(self, labels: Labels, where: str) -> SeriesLabels:
        """The labels that identify a series, sorted by name. Raises ``ReadingProblem``."""
        if self.required is not None and not labels.get(self.required):
            raise ReadingProblem(Doubt.FIELD_MISSING, where, f"the label {self.required} is missing")
        names = labels if self.identity is None else [name for name in self.identity if name in labels]
        found = tuple((name, labels[name]) for name in sorted(names))
        if sum(len(name) + len(value) for name, value in found) > MAX_LABEL_CHARS:
            raise ReadingProblem(Doubt.FIELD_INVALID, where, f"its labels have more than {MAX_LABEL_CHARS} characters")
        return found

    def telling(self, metric: Metric, labels: Labels) -> Telling | None:
        if not metric.tells:
            return None
        return Telling(self.kind, clean(self.subject(labels)) or "unknown", metric.steps, metric.on_change)


def make_sample(
    catalogue: Catalogue,
    name: str,
    labels: Labels,
    value: int | float,
    at_ns: int,
    where: str,
    *,
    cumulative: bool = False,
    start_ns: int | None = None,
) -> Sample | Refusal:
    """One sample, or why it is not used. ``where`` is its place in the batch, for people."""
    try:
        series = catalogue.series(labels, where)
        metric = catalogue.metric(name)
        if isinstance(value, float) and math.isnan(value):
            if not is_stale_marker(value):
                raise _doubtful(Doubt.NOT_A_NUMBER, where, f"{name} is NaN: nothing was measured", value)
            return Sample(metric.name, series, at_ns, None, "ended", cumulative, start_ns)
        number = _number(catalogue, metric, name, value, where)
    except ReadingProblem as problem:
        return problem.refusal
    telling = catalogue.telling(metric, labels)
    return Sample(metric.name, series, at_ns, number, str(number), cumulative, start_ns, telling)


def is_stale_marker(value: float) -> bool:
    """Whether a NaN says that its series ends here."""
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits in _STALE


def _number(catalogue: Catalogue, metric: Metric, name: str, value: int | float, where: str) -> Decimal:
    if catalogue.blank(value):
        raise _doubtful(Doubt.NO_VALUE, where, f"{name} has the exporter's mark for no value", value)
    if isinstance(value, float) and math.isinf(value):
        raise _doubtful(Doubt.OUT_OF_RANGE, where, f"{name} is infinite", value)
    # The shortest text that reads as the same double: what the exporter printed.
    number = Decimal(repr(value))
    if len(str(number)) > 60:
        raise _doubtful(Doubt.OUT_OF_RANGE, where, f"{name} has more digits than any measurement", value)
    if metric.maximum is not None and not 0 <= number <= metric.maximum:
        ratio = metric.maximum in (ONE, HUNDRED) and number > 0
        unit = f"is more than {metric.maximum}: is it in another unit?" if ratio else "cannot be"
        raise _doubtful(Doubt.UNIT_ERROR if ratio else Doubt.OUT_OF_RANGE, where, f"{name} {unit}", value)
    return number


def _doubtful(reason: Doubt, where: str, message: str, raw: object) -> ReadingProblem:
    return ReadingProblem(reason, where, message, raw, SampleVerdict.QUARANTINED)
