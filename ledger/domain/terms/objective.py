"""Objectives: what an agreement promises, read from its ``objectives`` member (shapes: ``objective_shapes``).

An objective names an indicator (what is counted: ``ledger.domain.terms.indicators``), a method (how counts become one
result for the period: ``ledger.domain.methods``) and a target: the share of what is valid that must be good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain import money
from ledger.domain.schema import convert, fail
from ledger.domain.terms.indicators import INDICATORS, LATENCIES, SAMPLE_INDICATORS
from ledger.domain.terms.log_kinds import OUTAGES, OWN_VIOLATIONS, SAMPLES
from ledger.domain.terms.objective_sources import OF_REQUESTS, Source, read_source
from ledger.domain.terms.where import Where, read_where
from ledger.domain.time.calendar import parse_window_seconds

_NAME_AND_VERSION = re.compile(r"\S(.*\S)? \S*\d\S*", re.ASCII)
_WITH_WINDOW = ("total_ratio", "exact_quantile", "graded_score-v1")


@dataclass(frozen=True, slots=True)
class DownRule:
    """When an interval is down: its error rate is above ``error_ppb`` (``closed``: at or above) with at least
    ``minimum_valid`` valid requests; runs shorter than ``minimum_run`` intervals do not count.

    ``scheduled``: excluded intervals leave the denominator; else they stay in it as up.
    """

    interval_seconds: int
    error_ppb: int
    closed: bool
    minimum_valid: int
    minimum_run: int
    scheduled: bool


@dataclass(frozen=True, slots=True)
class SliceRule:
    """When a slice of the period misses: less than ``target_ppb`` of its valid requests are good, of which it has at
    least ``minimum_valid``; it breaks the promise in a run of at least ``consecutive`` such slices, and where
    ``only_with`` names another objective, only if that one's slice of the same place misses as well.

    Slices are ``window_seconds`` long and start every ``step_seconds``; only whole ones count.
    """

    window_seconds: int
    step_seconds: int
    target_ppb: int
    minimum_valid: int
    consecutive: int
    only_with: str | None


@dataclass(frozen=True, slots=True)
class Measure:
    """How the value of a sample becomes a count: good where it is at least or at most ``bound`` (``kind``), or its
    share of the full score ``bound`` (``score_of``). ``bound`` is in units of 10^-9."""

    kind: str
    bound: int


@dataclass(frozen=True, slots=True)
class Grade:
    """A request answered within ``at_most_ns`` counts at least ``units`` of ``SCORE_UNITS``."""

    at_most_ns: int
    units: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What of the service an objective is about: a region, a model, both, or (None) any."""

    region: str | None = None
    model: str | None = None

    def __str__(self) -> str:
        named = (("region", self.region), ("model", self.model))
        return " ".join(f"{key}={value}" for key, value in named if value is not None) or "all"


SCORE_UNITS = 1_000
"""A full score in counts: scores have three decimals."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One promise. ``target_ppb`` is the share of valid requests that must be good, in parts per billion.

    A latency objective counts requests at or under ``threshold_ns`` (``P95 <= T`` is nearest rank:
    good * 10^9 >= valid * target_ppb); availability counts requests that succeeded. ``window_seconds`` is the length
    of the windows that violations are looked for in, None for the agreement's. Fewer valid than ``minimum_valid``
    counts (of the indicator; thousandths where it is scored) give no verdict. ``wilson``: breached only where the
    one-sided 95 % Wilson bound misses the target. ``where``: only these requests are counted. ``evaluator`` (name and
    version), ``tokenizer`` and ``resource``: only samples that name them are counted.
    """

    id: str
    method: str
    indicator: str
    target: str
    target_ppb: int
    threshold_ns: int | None
    clause: str | None = None
    minimum_valid: int = 0
    wilson: bool = False
    window_seconds: int | None = None
    repeat_window_seconds: int | None = None
    measure: Measure | None = None
    evaluator: str | None = None
    tokenizer: str | None = None
    resource: str | None = None
    grades: tuple[Grade, ...] = ()
    down: DownRule | None = None
    slices: SliceRule | None = None
    scope: Scope = Scope()
    where: Where | None = None
    source: Source = OF_REQUESTS

    @property
    def sampled(self) -> bool:
        """Whether its counts come from samples."""
        return self.source.kind == SAMPLES

    @property
    def unit(self) -> str:
        """What one of its counts is, before its method makes something of it."""
        return self.source.unit or INDICATORS[self.indicator].unit


def read_objectives(documents: Sequence[Mapping[str, Any]], window_seconds: int) -> tuple[Objective, ...]:
    """The objectives of a shape-checked agreement document whose windows have this length.

    Raises ``DocumentInvalid`` naming the field.
    """
    found: dict[str, Objective] = {}
    for index, item in enumerate(documents):
        at = f"objectives[{index}]"
        if item["id"] in found:
            raise fail(f"{at}.id", f"{item['id']!r} names two objectives")
        found[item["id"]] = _Reader(at, item, window_seconds).objective()
    for index, objective in enumerate(found.values()):
        _check_companion(f"objectives[{index}].slice.only_with", objective, found)
    if all(objective.source.kind == OWN_VIOLATIONS for objective in found.values()):
        raise fail("objectives", "no objective but of own_violations: there is nothing that could be violated")
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _Reader:
    at: str
    item: Mapping[str, Any]
    base_seconds: int

    def objective(self) -> Objective:
        item = self.item
        target_ppb = self._convert("target", money.percent_ppb)
        threshold_ns = self._threshold_ns()
        if "quantile" in item and self._convert("quantile", lambda q: money.scaled_integer(q, 9)) != target_ppb:
            raise fail(
                f"{self.at}.quantile",
                f"{item['quantile']} and the target {item['target']} % must say the same share of requests",
            )
        repeat = self._convert("repeat_window", parse_window_seconds)
        if repeat is not None and item["indicator"] not in ("availability", "error_rate"):
            raise fail(f"{self.at}.repeat_window", f"repeats are told by failed requests, not by {item['indicator']}")
        return Objective(
            id=item["id"],
            method=item["method"],
            indicator=item["indicator"],
            target=item["target"],
            target_ppb=target_ppb,
            threshold_ns=threshold_ns,
            clause=item.get("clause"),
            minimum_valid=self._minimum_valid(),
            wilson=self._wilson(),
            window_seconds=self._window_seconds(),
            repeat_window_seconds=repeat,
            measure=self._measure(),
            evaluator=self._evaluator(),
            tokenizer=self._tokenizer(),
            resource=self._of_samples("resource"),
            grades=self._grades(),
            down=self._down(),
            slices=self._slices(),
            scope=Scope(**item.get("scope", {})),
            where=read_where(f"{self.at}.where", item.get("where"), item["indicator"]),
            source=read_source(self.at, item, self.base_seconds),
        )

    def _convert(self, key: str, how: Any, item: Mapping[str, Any] | None = None, at: str = "") -> Any:
        """What ``how`` makes of an optional member; None where it is not there."""
        holder = self.item if item is None else item
        return convert(f"{at or self.at}.{key}", holder[key], how) if key in holder else None

    def _seconds(self, key: str, item: Mapping[str, Any] | None = None, at: str = "") -> Any:
        seconds = self._convert(key, parse_window_seconds, item, at)
        if seconds is not None and seconds % self.base_seconds:
            raise fail(
                f"{at or self.at}.{key}",
                f"{seconds} s are no whole number of the agreement's windows of {self.base_seconds} s",
            )
        return seconds

    def _window_seconds(self) -> int | None:
        method = self.item["method"]
        if "window" in self.item and method not in _WITH_WINDOW:
            said = "breaks its promise in intervals, slices or windows of its own"
            raise fail(f"{self.at}.window", f"{method} {said}, so {self.item['window']} has no effect; leave it out")
        seconds: int | None = self._seconds("window")
        return seconds

    def _threshold_ns(self) -> int | None:
        threshold_ns: int | None = self._convert("threshold_ms", lambda t: money.scaled_integer(t, 6))
        indicator = self.item["indicator"]
        needed = indicator in LATENCIES and "grades" not in self.item
        if needed != (threshold_ns is not None):
            said = "is missing: a latency is good at or under it" if needed else f"{indicator} is no latency"
            raise fail(f"{self.at}.threshold_ms", said)
        if threshold_ns == 0:
            raise fail(f"{self.at}.threshold_ms", "must be above 0")
        return threshold_ns

    def _minimum_valid(self) -> int:
        """The least volume of the period in counts. Where an interval has to have it (``DownRule``), the period has
        not."""
        least: int = 0 if "error_rate" in self.item else self.item.get("minimum_valid", 0)
        return least * SCORE_UNITS if self._scored else least

    def _wilson(self) -> bool:
        if "confidence" not in self.item:
            return False
        if self.item["method"] not in ("total_ratio", "exact_quantile") or self._scored:
            raise fail(
                f"{self.at}.confidence",
                f"wilson-95 is for a share of what is counted one by one, and {self.item['method']} gives none here",
            )
        return True

    @property
    def _scored(self) -> bool:
        """Whether each request or sample counts ``SCORE_UNITS``."""
        return "grades" in self.item or "score_of" in self.item.get("measure", {})

    def _evaluator(self) -> str | None:
        """Who judges, and by how many samples at least: of another evaluator, another version or three samples the
        same figure says something else."""
        found, indicator = self._of_samples("evaluator"), self.item["indicator"]
        if INDICATORS[indicator].named_by != "evaluator":
            return found
        if found is None or not _NAME_AND_VERSION.fullmatch(found):
            said = "is missing" if found is None else f"{found!r} has no version"
            raise fail(f"{self.at}.evaluator", f"{said}: {indicator} is judged; write name and version, factbench 2.1")
        sliced = "slice" in self.item
        if "minimum_valid" not in (self.item["slice"] if sliced else self.item):
            raise fail(
                f"{self.at}.{'slice.' if sliced else ''}minimum_valid",
                f"is missing: {indicator} is judged by samples; write how many {'a slice' if sliced else 'it'} needs "
                "for a verdict, such as 1000",
            )
        return found

    def _tokenizer(self) -> str | None:
        found, indicator = self._of_samples("tokenizer"), self.item["indicator"]
        if (found is None) == (INDICATORS[indicator].named_by == "tokenizer"):
            said = f"is missing: {indicator} counts tokens" if found is None else f"{indicator} counts no tokens"
            raise fail(f"{self.at}.tokenizer", f"{said}{'; name what splits them' if found is None else ''}")
        return found

    def _of_samples(self, key: str) -> str | None:
        has_one = self.item["indicator"] in SAMPLE_INDICATORS or (key, self.item.get("source")) == ("resource", OUTAGES)
        if key in self.item and not has_one:
            raise fail(f"{self.at}.{key}", f"only samples have one, and {self.item['indicator']} comes from requests")
        text: str | None = self.item.get(key)
        return text

    def _measure(self) -> Measure | None:
        said = self.item.get("measure")
        if said is None:
            return None
        at = f"{self.at}.measure"
        if self.item["indicator"] not in SAMPLE_INDICATORS:
            raise fail(at, f"{self.item['indicator']} is counted in the request log; only samples have values")
        if len(said) != 1:
            raise fail(at, "say one of at_least, at_most and score_of")
        ((kind, text),) = said.items()
        bound = convert(f"{at}.{kind}", text, lambda t: money.scaled_integer(t, 9))
        if kind == "score_of" and bound == 0:
            raise fail(f"{at}.{kind}", "the full score must be above 0")
        return Measure(kind, bound)

    def _grades(self) -> tuple[Grade, ...]:
        found: list[Grade] = []
        for index, said in enumerate(self.item.get("grades", ())):
            at = f"{self.at}.grades[{index}]"
            bound = convert(f"{at}.at_most_ms", said["at_most_ms"], lambda t: money.scaled_integer(t, 6))
            units = convert(f"{at}.score", said["score"], lambda t: money.scaled_integer(t, 3))
            if not 0 < units <= SCORE_UNITS:
                raise fail(f"{at}.score", f"{said['score']} is not above 0 and at most 1")
            if bound == 0 or (found and (bound <= found[-1].at_most_ns or units >= found[-1].units)):
                raise fail(
                    at,
                    f"at_most_ms {said['at_most_ms']} with score {said['score']}: latencies must be above 0 and rise, "
                    "and scores must fall, from grade to grade",
                )
            found.append(Grade(bound, units))
        return tuple(found)

    def _down(self) -> DownRule | None:
        item = self.item
        if item["method"] == "deployment_minutes-v1":
            return DownRule(self.base_seconds, 0, False, 0, 1, item.get("denominator", "scheduled") == "scheduled")
        if item["method"] == "interval_mean-v1":
            return DownRule(self._seconds("interval"), 0, False, 0, 1, True)
        if "error_rate" not in item:
            return None
        minutes = item["method"] == "downtime_minutes-v1"
        if minutes and 60 % self.base_seconds:
            raise fail(
                f"{self.at}.method",
                f"minutes are judged one by one, and the agreement's windows of {self.base_seconds} s do not fill one; "
                "agree on the window PT1M",
            )
        error_ppb = self._convert("error_rate", lambda t: money.scaled_integer(t, 7))
        closed = item["boundary"] == "at_or_above"
        if error_ppb > money.PARTS_PER_BILLION or (error_ppb == money.PARTS_PER_BILLION and not closed):
            raise fail(f"{self.at}.error_rate", f"no error rate is {item['boundary']} {item['error_rate']} %")
        if error_ppb == 0 and closed:
            raise fail(f"{self.at}.error_rate", "at or above 0 % every interval would be down")
        return DownRule(
            interval_seconds=60 if minutes else self._seconds("interval"),
            error_ppb=error_ppb,
            closed=closed,
            minimum_valid=item.get("minimum_valid", 0),
            minimum_run=item.get("minimum_run", 1),
            scheduled=item.get("denominator", "scheduled") == "scheduled",
        )

    def _slices(self) -> SliceRule | None:
        said = self.item.get("slice")
        if said is None:
            return None
        at = f"{self.at}.slice"
        window = self._seconds("window", said, at)
        step = self._seconds("step", said, at) or window
        if window % step:
            raise fail(f"{at}.step", f"windows of {window} s cannot roll on by {step} s: one must fill the other")
        return SliceRule(
            window_seconds=window,
            step_seconds=step,
            target_ppb=self._convert("target", money.percent_ppb, said, at),
            minimum_valid=said.get("minimum_valid", 0),
            consecutive=said.get("consecutive", 1),
            only_with=said.get("only_with"),
        )


def _check_companion(at: str, objective: Objective, found: Mapping[str, Objective]) -> None:
    rule = objective.slices
    if rule is None or rule.only_with is None:
        return
    other = found.get(rule.only_with)
    if other is None or other is objective or other.slices is None:
        raise fail(at, f"{rule.only_with!r} must be another objective by slices (attainment-v1) of this agreement")
    if (other.slices.window_seconds, other.slices.step_seconds) != (rule.window_seconds, rule.step_seconds):
        raise fail(at, f"the slices of {rule.only_with!r} have another length or step")
