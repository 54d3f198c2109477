"""Samples of a service's machines: what one is, and what becomes of it.

Every sample gets a verdict. ``accepted``: it says something new. ``duplicate``: it was said before. ``conflict``: the
same series said something else for the same instant. ``quarantined``: it was read, but its value cannot be believed;
the raw value is kept with the reason. ``rejected``: it could not be read. Telemetry never decides a credit; it is
evidence beside a violation, so a doubtful sample is set aside and never corrected.

A series is a metric with the labels that identify what it measures. A counter that is lower than before was reset
only if it says so by a newer start time; without one, several processes may be answering behind one address, and the
lower value is quarantined.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from ledger.domain.rows.observation import BodyBook
from ledger.domain.time.instant import HOUR_NS

DIGEST_BYTES = 16
MAX_POINTS = 100
MAX_SHOWN = 20
MAX_RAW_CHARS = 80


class SampleVerdict(StrEnum):
    """What became of one sample."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    QUARANTINED = "quarantined"
    REJECTED = "rejected"


class Doubt(StrEnum):
    """Why a sample was quarantined (first group) or rejected (second group)."""

    UNIT_ERROR = "unit_error"
    OUT_OF_RANGE = "out_of_range"
    NO_VALUE = "no_value"
    NOT_A_NUMBER = "not_a_number"
    NOT_SUPPORTED = "not_supported"
    DEVICE_FAULT = "device_fault"
    COUNTER_WENT_BACK = "counter_went_back"

    MALFORMED = "malformed"
    FIELD_MISSING = "field_missing"
    FIELD_INVALID = "field_invalid"
    TIME_INVALID = "time_invalid"
    BUCKETS_INVALID = "buckets_invalid"
    TEMPORALITY_UNKNOWN = "temporality_unknown"
    EXEMPLAR_IN_TEXT = "exemplar_in_text"
    SPECVERSION_UNKNOWN = "specversion_unknown"
    UNKNOWN_SERVICE = "unknown_service"


class EvidenceKind(StrEnum):
    """What a piece of evidence is."""

    GPU_SAMPLE = "gpu_sample"
    BREAKER_EVENT = "breaker_event"
    SERVER_METRIC = "server_metric"


class Telling(NamedTuple):
    """What a metric tells beside a violation: of which subject, and how severe its values are.

    ``steps`` are (value above which, severity), rising. With ``on_change`` only a value other than the one before is
    told: such a gauge shows the last code for as long as the process lives.
    """

    kind: EvidenceKind
    subject: str
    steps: tuple[tuple[Decimal, int], ...] = ()
    on_change: bool = False


class Sample(NamedTuple):
    """One readable sample. ``value`` None: the series ends here. ``labels`` are those that identify the series.

    ``body`` is all the sample says, for telling duplicates from conflicts. ``cumulative`` counters have their
    ``start_ns`` where the source gives it.
    """

    metric: str
    labels: tuple[tuple[str, str], ...]
    at_ns: int
    value: Decimal | None
    body: str
    cumulative: bool = False
    start_ns: int | None = None
    telling: Telling | None = None

    @property
    def series(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.metric, self.labels


class Refusal(NamedTuple):
    """A sample that is not used: ``field`` says where it stands, ``raw`` is what it said."""

    verdict: SampleVerdict
    reason: Doubt
    field: str
    raw: str
    message: str


class BreakerState(StrEnum):
    """States of a circuit breaker, and of a host that outlier detection takes out (``ejected``)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    FORCED_OPEN = "forced_open"
    DISABLED = "disabled"
    METRICS_ONLY = "metrics_only"
    EJECTED = "ejected"
    UNEJECTED = "unejected"


BREAKER_SEVERITY: Mapping[BreakerState, int] = {
    BreakerState.OPEN: 100,
    BreakerState.FORCED_OPEN: 100,
    BreakerState.EJECTED: 90,
    BreakerState.HALF_OPEN: 60,
    BreakerState.DISABLED: 50,
    BreakerState.METRICS_ONLY: 50,
    BreakerState.CLOSED: 30,
    BreakerState.UNEJECTED: 30,
}
"""How much the state a breaker went to tells beside a violation, from 0 to 100, on the scale of ``Telling``."""


class Transition(NamedTuple):
    """A breaker that changed its state. ``identity`` is what a repetition of the report has in common with it.

    ``failure_rate`` is in percent, None where the sender did not know it.
    """

    identity: str
    breaker: str
    kind: str
    from_state: BreakerState | None
    to_state: BreakerState
    at_ns: int
    failure_rate: Decimal | None


class BreakerReport(NamedTuple):
    """A breaker's event that changes no state (a call that failed, a threshold that was passed)."""

    identity: str
    breaker: str
    kind: str
    at_ns: int


Reading = Sample | Refusal | Transition | BreakerReport


@dataclass(slots=True)
class ServiceReadings:
    """What a batch says of one service; None: it does not say of which. ``place`` is where a service would stand."""

    service: str | None
    place: str
    readings: list[Reading] = field(default_factory=list)


class Point(NamedTuple):
    """What the accepted samples of one series in one hour come to."""

    telling: Telling
    metric: str
    low: Decimal
    high: Decimal
    last: Decimal
    from_ns: int
    to_ns: int
    samples: int

    @property
    def severity(self) -> int:
        return max((severity for above, severity in self.telling.steps if self.high > above), default=10)


@dataclass(slots=True)
class Judged:
    """Counts, accepted samples and refusals of the samples of one service in one batch."""

    verdicts: Counter[SampleVerdict] = field(default_factory=Counter)
    reasons: Counter[Doubt] = field(default_factory=Counter)
    refused: list[Refusal] = field(default_factory=list)
    accepted: list[Sample] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    resets: int = 0

    def refuse(self, refusal: Refusal, samples: int = 1) -> None:
        self.verdicts[refusal.verdict] += samples
        self.reasons[refusal.reason] += samples
        if len(self.refused) < MAX_SHOWN:
            self.refused.append(refusal)

    @property
    def usable(self) -> int:
        """Samples that said something, now or before."""
        return sum(
            self.verdicts[each] for each in (SampleVerdict.ACCEPTED, SampleVerdict.DUPLICATE, SampleVerdict.CONFLICT)
        )


def identity_of(reading: Sample | Transition | BreakerReport, source: str) -> bytes:
    """The 16 bytes under which a store remembers what was said of a series and instant, or in a report."""
    if isinstance(reading, Sample):
        return _digest("sample", source, reading.metric, repr(reading.labels), str(reading.at_ns))
    return _digest("breaker", source, reading.identity)


def body_of(reading: Sample | Transition | BreakerReport) -> bytes:
    """The 16 bytes of what it said."""
    if isinstance(reading, Sample):
        return _digest(reading.body)
    return _digest(*(str(part) for part in reading))


def judge(readings: Iterable[Reading], known: BodyBook, before: Iterable[Sample], source: str) -> Judged:
    """Give every reading its verdict. ``before`` are the samples of the source's batch before this one."""
    judged = Judged()
    last = {sample.series: sample for sample in before}
    # A batch may hold a series' samples in any order; resets are judged by time. Stable, so that of two samples for
    # one instant the first stays the first.
    for reading in sorted(readings, key=_instant):
        if isinstance(reading, Refusal):
            judged.refuse(reading)
            continue
        verdict = SampleVerdict(known.classify(identity_of(reading, source), body_of(reading)))
        if isinstance(reading, Sample) and verdict is SampleVerdict.ACCEPTED:
            _judge_sample(reading, last, judged)
            continue
        judged.verdicts[verdict] += 1
        if verdict is SampleVerdict.ACCEPTED:
            judged.times_ns.append(reading.at_ns)
            if isinstance(reading, Transition):
                judged.transitions.append(reading)
    return judged


def condense(samples: Iterable[Sample]) -> list[Point]:
    """The telling samples as one point per series and hour, the most severe and newest first."""
    points: dict[tuple[object, ...], Point] = {}
    for sample in samples:
        telling, value = sample.telling, sample.value
        if telling is None or value is None:
            continue
        key = (sample.series, sample.at_ns // HOUR_NS)
        point = points.get(key)
        if point is None:
            point = Point(telling, sample.metric, value, value, value, sample.at_ns, sample.at_ns + 1, 1)
        else:
            point = point._replace(
                low=min(point.low, value),
                high=max(point.high, value),
                last=value if sample.at_ns >= point.to_ns - 1 else point.last,
                from_ns=min(point.from_ns, sample.at_ns),
                to_ns=max(point.to_ns, sample.at_ns + 1),
                samples=point.samples + 1,
            )
        points[key] = point
    return sorted(points.values(), key=lambda point: (-point.severity, -point.to_ns, point.metric))[:MAX_POINTS]


def _judge_sample(sample: Sample, last: dict[tuple[str, tuple[tuple[str, str], ...]], Sample], judged: Judged) -> None:
    series, value = sample.series, sample.value
    earlier = last.get(series)
    if earlier is not None and earlier.at_ns >= sample.at_ns:
        # It came late: what came before it is not known any more.
        _accept(sample, judged)
        return
    if value is None:
        last.pop(series, None)
    else:
        last[series] = sample
    if value is None or earlier is None or earlier.value is None:
        _accept(sample, judged)
        return
    if sample.telling is not None and sample.telling.on_change and value == earlier.value:
        sample = sample._replace(telling=None)
    if sample.cumulative and value < earlier.value:
        if sample.start_ns is None or earlier.start_ns is None or sample.start_ns <= earlier.start_ns:
            message = (
                f"the counter went from {earlier.value} back to {value} without a newer start time: "
                "was the process restarted, or do several answer behind one address? Send the start time"
            )
            raw = str(value)[:MAX_RAW_CHARS]
            judged.refuse(
                Refusal(SampleVerdict.QUARANTINED, Doubt.COUNTER_WENT_BACK, shown_series(sample), raw, message)
            )
            return
        judged.resets += 1
    _accept(sample, judged)


def _accept(sample: Sample, judged: Judged) -> None:
    judged.verdicts[SampleVerdict.ACCEPTED] += 1
    judged.accepted.append(sample)
    judged.times_ns.append(sample.at_ns)


def shown_series(sample: Sample) -> str:
    """``metric{label="value"}`` as people write a series, cut to what a message holds."""
    labels = ",".join(f'{name}="{value}"' for name, value in sample.labels)
    shown = f"{sample.metric}{{{labels}}}" if labels else sample.metric
    return shown if len(shown) <= 200 else shown[:197] + "..."


def _instant(reading: Reading) -> int:
    return -1 if isinstance(reading, Refusal) else reading.at_ns


def _digest(*parts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()
