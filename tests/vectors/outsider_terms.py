"""An agreement as ``outsider`` reads it: periods, numbers of the circuit, exclusions, reasons without a proof.

Sections 3 to 7 of docs/attestation-format.md, and docs/agreement.md for periods and excluded time.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tests.vectors.outsider_hashes import U64, h, keccak, words
from tests.vectors.outsider_shapes import jcs

SECOND = 10**9
DECIMALS = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}
ROUNDINGS = ("floor", "half_up", "half_even")
NO_SUM = "is no sum over sealed counts, which is all that the circuits add up"
UNPROVED = {
    "interval_mean-v1": f"a mean of ratios {NO_SUM}",
    "downtime_minutes-v1": f"whether a minute is down {NO_SUM}",
    "interval_threshold-v1": f"whether an interval is down {NO_SUM}",
    "attainment-v1": f"whether a slice meets its target {NO_SUM}",
}
METHOD_UNITS = {
    "graded_score-v1": "thousandths of a request",
    "interval_mean-v1": "billionths of an interval",
    "downtime_minutes-v1": "minutes",
    "interval_threshold-v1": "intervals",
    "deployment_minutes-v1": "deployment windows",
    "attainment-v1": "slices",
}
OF_REQUESTS = ("availability", "error_rate", "first_token_latency", "response_latency")
INDICATOR_UNITS = {
    **dict.fromkeys(OF_REQUESTS, "requests"),
    "token_rate": "streams",
    "service_token_rate": "intervals",
    "fact_consistency": "answers",
    "hallucination": "answers",
    "controlled_refusal": "questions",
    "context_fidelity": "facts",
    "logical_consistency": "thousandths of a score",
    "recovery_time": "incidents",
    "gpu_memory_leak": "hours",
    "kv_pollution": "requests",
    "oom_avoidance": "requests",
    "checksum_failure": "loads",
    "deployment_up": "deployment minutes",
    "metric_value": "samples",
}


class Span(NamedTuple):
    start: int
    end: int


class Period(NamedTuple):
    """``whole`` is the span of the period that this one is a part of, itself where it is none."""

    name: str
    first: date
    span: Span
    whole: Span


def scaled(text: str, by: int) -> int:
    value = Fraction(text) * by
    assert value.denominator == 1, f"{text} is too fine"
    return int(value)


def ppb(percent: str) -> int:
    value = scaled(percent, 10**7)
    assert 0 < value <= 10**9
    return value


def percent_bps(percent: str) -> int:
    value = scaled(percent, 100)
    assert value <= 10_000
    return value


def seconds(duration: str) -> int:
    return int(duration[2:-1]) * {"S": 1, "M": 60, "H": 3600}[duration[-1]]


def of_date(text: str) -> date:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII)
    return date.fromisoformat(text)


@lru_cache
def zone_of(name: str) -> ZoneInfo:
    with importlib.resources.files("tzdata").joinpath("zoneinfo", name).open("rb") as stream:
        return ZoneInfo.from_file(stream, key=name)


@lru_cache(4096)
def day_start(day: date, zone: str, minutes: int) -> int:
    """The first instant at which the wall clock has come to a time of a day, in nanoseconds."""
    shown = datetime(day.year, day.month, day.day, tzinfo=zone_of(zone)) + timedelta(minutes=minutes)
    found = sorted(int(shown.replace(fold=fold).timestamp()) for fold in (0, 1))
    naive = shown.replace(tzinfo=None)
    for second in range(found[0], found[1] + 1):
        if datetime.fromtimestamp(second, zone_of(zone)).replace(tzinfo=None) >= naive:
            return second * SECOND
    raise AssertionError(f"{day} does not begin in {zone}")


def months_on(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


class Terms:
    """A signed agreement; ``ended_on`` is the day on which an amendment or a notice ended it."""

    def __init__(self, doc: Any, ended_on: date | None = None) -> None:
        self.doc, self.ended_on = doc, ended_on
        self.bytes = jcs({name: doc[name] for name in doc if name != "signatures"})
        self.sha256 = hashlib.sha256(self.bytes).digest()
        self.parties = {name: doc["parties"][name]["ed25519_public_key"] for name in ("issuer", "customer")}
        self.addresses = tuple(doc["parties"][name]["evm_address"] for name in ("issuer", "customer"))
        self.sla_id = keccak(words(*self.addresses, doc["nonce"]))
        self.first, self.until = (of_date(doc["effective"][name]) for name in ("from", "until"))
        assert self.first < self.until
        self.anchor = of_date(doc.get("anchor", doc["effective"]["from"]))
        self.window, self.grace = seconds(doc["window"]), seconds(doc["grace"])
        hour, minute = doc.get("day_start", "00:00").split(":")
        self.minutes = int(hour) * 60 + int(minute)
        self.objectives, self.paid = doc["objectives"], doc["compensation"]
        self.floor = percent_bps(doc["coverage_floor"])
        self.rolling = not self._same_step

    def leaves_open(self, objective: Any) -> bool:
        """Whether counts of an objective may be undecided: those of histograms and samples, or held against such."""
        companion = objective.get("slice", {}).get("only_with")
        both = [each for each in self.objectives if each["id"] in (objective["id"], companion)]
        sources = {each.get("source", "requests" if each["indicator"] in OF_REQUESTS else "samples") for each in both}
        return bool(sources & {"histograms", "samples"})

    # --- periods ---

    @property
    def _length(self) -> tuple[int, str]:
        return int(self.doc["period"][1:-1]), self.doc["period"][-1]

    @property
    def _step(self) -> tuple[int, str]:
        step = self.doc.get("step", self.doc["period"])
        return int(step[1:-1]), step[-1]

    @property
    def _same_step(self) -> bool:
        def days(length: tuple[int, str]) -> tuple[int, str]:
            return (length[0] * 7, "D") if length[1] == "W" else length

        return days(self._length) == days(self._step)

    def _on(self, day: date, length: tuple[int, str], times: int) -> date:
        number, unit = length
        if unit == "M":
            return months_on(day, number * times)
        return day + timedelta(days=number * times * (7 if unit == "W" else 1))

    def _boundary(self, index: int) -> date:
        return self._on(self.anchor, self._step, index)

    def _end(self, index: int) -> date:
        if self._length[1] != "M":
            return self._on(self._boundary(index), self._length, 1)
        steps = index * (self._step[0] if self._step[1] == "M" else 0)
        start = self.anchor if self._step[1] == "M" else self._boundary(index)
        return months_on(start, steps + self._length[0])

    def _index(self, day: date) -> int:
        """The last period of the grid that starts on a day or before it."""
        number, unit = self._step
        about = number * {"D": 1, "W": 7, "M": 31}[unit]
        index = (day - self.anchor).days // about - 1
        while self._boundary(index + 1) <= day:
            index += 1
        while self._boundary(index) > day:
            index -= 1
        return index

    def starts(self, day: date) -> int:
        return day_start(day, self.doc["timezone"], self.minutes)

    def _period(self, index: int, until: date) -> Period:
        start, end = self._boundary(index), self._end(index)
        first, last = max(start, self.first), min(end, until)
        name = self.doc["period"] if (first, last) == (start, end) else f"P{(last - first).days}D"
        span = Span(self.starts(first), self.starts(last))
        assert span.start < span.end
        return Period(f"{first}/{name}", first, span, Span(self.starts(start), self.starts(end)))

    def periods(self, until: date, *, cut: bool) -> Iterator[Period]:
        """The periods up to a day; ``cut``: one that this day cuts is kept as a part."""
        parts = self.doc.get("partial_periods") == "prorate"
        begin = self._index(self.first)
        if self._boundary(begin) < self.first and not parts:
            begin += 1
        for index in count(begin):
            if self._boundary(index) >= until:
                return
            if self._end(index) <= until or parts or cut:
                yield self._period(index, until)

    def period(self, name: str) -> Period:
        until = self.until if self.ended_on is None else self.ended_on
        cut = self.ended_on is not None and not self.rolling
        found = [one for one in self.periods(until, cut=cut) if one.name == name]
        assert found, f"the terms have no period {name}"
        return found[0]

    def count(self, period: Period) -> int:
        number, rest = divmod(period.span.end - period.span.start, self.window * SECOND)
        assert number > 0
        assert rest == 0, "windows do not fill the period"
        return number

    def window_spans(self, period: Period) -> list[Span]:
        step = self.window * SECOND
        return [
            Span(period.span.start + i * step, period.span.start + (i + 1) * step) for i in range(self.count(period))
        ]

    @cached_property
    def most_windows(self) -> int:
        return max(self.count(one) for one in self.periods(self.until, cut=False))

    def base(self, period: Period) -> int:
        """Of a part, its share by time: between two cuts, each rounded half up to whole units."""
        total, whole = self.money(self.paid.get("base", "0")), period.whole
        if period.span == whole:
            return total
        length = whole.end - whole.start
        return sum(
            sign * ((2 * total * (at - whole.start) + length) // (2 * length))
            for sign, at in ((1, period.span.end), (-1, period.span.start))
        )

    # --- claims ---

    def _local_day(self, instant: int) -> date:
        """The day that the clock shows, which begins when the terms say."""
        shown = datetime.fromtimestamp(instant // SECOND, UTC).astimezone(zone_of(self.doc["timezone"]))
        return (shown.replace(tzinfo=None) - timedelta(minutes=self.minutes)).date()

    def accepts_until(self, period: Period) -> int:
        """The first instant that is too late for claims and facts of a period."""
        deadline = self.doc.get("settlement", {}).get("deadline", {"kind": "days_after_period", "count": 30})
        kind, number, end = deadline["kind"], deadline["count"], period.span.end
        if kind == "days_after_period":
            return self.starts(self._local_day(end) + timedelta(days=number))
        if kind == "months_after_period":
            return self.starts(months_on(self._local_day(end), number))
        if kind == "billing_cycles":
            return self.starts(self._boundary(self._index(period.first) + number + 1))
        assert kind == "days_after_incident"
        return self.starts(self._local_day(end - 1) + timedelta(days=number + 1))

    # --- numbers ---

    def money(self, text: str) -> int:
        value = scaled(text, 10 ** DECIMALS.get(self.paid["currency"], 2))
        assert value < U64
        return value

    def seal_key(self, period: Period) -> int:
        head = (keccak(b"sla-ledger/seal/v1"), self.sla_id, self.sha256)
        return int.from_bytes(keccak(words(*head, *period.span, self.window)), "big") >> 8

    @property
    def tiers(self) -> dict[str, list[tuple[int, int]]]:
        """By objective: thresholds in parts per billion and credits in basis points."""
        rules = [rule for rule in self.paid["rules"] if rule["kind"] == "tiered"]
        return {
            name: [(ppb(step["below"]), percent_bps(step["credit_percent"])) for step in steps]
            for rule in rules
            for name, steps in rule["tiers"].items()
        }

    @property
    def caps(self) -> list[tuple[str, str]]:
        return [
            (level, self.paid["caps"][level])
            for level in ("scope", "service", "contract")
            if level in self.paid["caps"]
        ]

    @property
    def cap(self) -> int:
        return min((self.money(text) for _, text in self.caps if "%" not in text), default=U64 - 1)

    @property
    def hash(self) -> int:
        key = self.doc["collector"]["babyjubjub_public_key"]
        flags = (self.paid["tiers_combine"] == "sum") + 2 * ROUNDINGS.index(self.paid["rounding"])
        flags += 8 * (self.paid["credit_visibility"] == "committed")
        flags += 16 * any(rule["kind"] == "impact" for rule in self.paid["rules"])
        numbers = [int.from_bytes(self.sha256[:16], "big"), int.from_bytes(self.sha256[16:], "big")]
        numbers += [int(key["x"]), int(key["y"]), flags, self.cap, self.money(self.paid["minimum"]), self.floor]
        numbers += padded([1] * len(self.objectives)) + padded([ppb(each["target"]) for each in self.objectives])
        rows = [self.tiers.get(each["id"], []) for each in self.objectives]
        rows += [[]] * (4 - len(rows))
        for column in (0, 1):
            for row in rows:
                numbers += padded([step[column] for step in row])
        assert len(numbers) == 48
        return h("terms", numbers)

    def unit(self, objective: Any) -> str:
        """What the counts of a result are of."""
        source = "minutes" if objective.get("source") == "outages" else INDICATOR_UNITS[objective["indicator"]]
        return METHOD_UNITS.get(objective["method"], source)

    # --- why there is no proof ---

    @property
    def priced_beyond_64_bits(self) -> bool:
        """Whether an impact rule has a coefficient or a price that its circuit has no room for."""
        factors = [
            (scaled(rule["level_coefficients"][self.doc["business_level"]], 10**9), scaled(rule["unit_price"], 10**9))
            for rule in self.paid["rules"]
            if rule["kind"] == "impact"
        ]
        return any(max(coefficient, price * self.money("1")) > U64 - 1 for coefficient, price in factors)

    @cached_property
    def reasons(self) -> list[str]:
        paid, found = self.paid, []
        kinds = {rule["kind"]: rule["method"] for rule in paid["rules"]}
        if self.priced_beyond_64_bits:
            found.append(
                "coefficient or unit price of the impact rule has more than 64 bits in billionths (of a minor unit), "
                "which the circuit incidents_64 takes"
            )
        found += [f"no circuit works out {name}" for kind, name in kinds.items() if kind not in ("tiered", "impact")]
        if "charges" in paid:
            found.append("the base are charges that finance records, which no circuit commits to")
        if scopes := self.scopes:
            found.append(f"the scope cap holds for each of {scopes} scopes, and the circuit has one cap")
        if any("%" in text for _, text in self.caps):
            found.append("a cap is a percentage of the base, and the circuit takes amounts")
        if len(self.objectives) > 4:
            found.append(f"{len(self.objectives)} objectives; the circuit takes at most 4")
        for each in self.objectives:
            found += self._of_objective(each)
        found += [
            f"{len(of)} tiers for {name}; the circuit takes at most 4" for name, of in self.tiers.items() if len(of) > 4
        ]
        if self.rolling:
            found.append(
                f"periods of {self.doc['period']} every {self.doc['step']} overlap; the registry takes periods that "
                "follow each other"
            )
        if self.most_windows > 750:
            found.append(
                f"a period of {self.doc['period']} has up to {self.most_windows} windows of {self.window} s; the "
                "largest circuit, compliance_750x4, takes at most 750"
            )
        return found

    def _of_objective(self, each: Any) -> list[str]:
        found, method = [], each["method"]
        if method in UNPROVED:
            found.append(f"{each['id']} is measured by {method}: {UNPROVED[method]}")
        elif each.get("denominator") == "full":
            said = "takes what is excluded as up (denominator: full), and no circuit adds up what is not sealed"
            found.append(f"{each['id']} {said}")
        if "confidence" in each:
            found.append(f"{each['id']} asks for confidence (wilson-95), which no circuit works out")
        if "minimum_valid" in each and method not in ("downtime_minutes-v1", "interval_threshold-v1"):
            found.append(f"{each['id']} has a minimum volume, which no circuit checks")
        return found

    @cached_property
    def scopes(self) -> int:
        """How many scopes the scope cap tells apart; 0 where one total comes to the same."""
        paid, scope_of = self.paid, {each["id"]: str(sorted(each.get("scope", {}).items())) for each in self.objectives}
        by_rule = [set(rule["tiers"]) if rule["kind"] == "tiered" else {rule["objective"]} for rule in paid["rules"]]
        scopes = {scope_of[name] for names in by_rule for name in names}
        tiered = {scope_of[name] for name in self.tiers}
        summed = paid["rules_combine"] == "sum" or (paid["tiers_combine"] == "sum" and len(tiered) > 1)
        cap = paid["caps"].get("scope")
        shares = cap is not None and "%" in cap and "charges" in paid
        return len(scopes) if cap is not None and len(scopes) > 1 and (summed or shares) else 0

    @property
    def simple(self) -> bool:
        """Whether tiers of an agreed base and incidents under fixed caps are all there is to a credit."""
        tiered = all(rule["kind"] in ("tiered", "impact") for rule in self.paid["rules"])
        return (
            tiered and "charges" not in self.paid and not self.scopes and all("%" not in text for _, text in self.caps)
        )

    # --- excluded time ---

    @property
    def classes(self) -> dict[str, Any]:
        return {one["id"]: one for one in self.doc.get("maintenance", {}).get("classes", [])}

    def honoured(self, listed: list[Any], period: Period) -> dict[str, Span]:
        """What the terms allow of the exclusions that a statement lists, within the period."""
        used: Counter[tuple[Any, ...]] = Counter()
        found = {}
        for each in sorted(listed, key=lambda one: (int(one["from_ns"]), int(one["to_ns"]), one["exclusion_id"])):
            part = self._allowed(each, used)
            if part is not None and part.start < period.span.end and period.span.start < part.end:
                part = Span(max(part.start, period.span.start), min(part.end, period.span.end))
                found[each["exclusion_id"]] = part
        return self._capped(found, {each["exclusion_id"]: each["clause"] for each in listed}, period)

    def _allowed(self, each: Any, used: Counter[tuple[Any, ...]]) -> Span | None:
        clause, span = each["clause"], Span(int(each["from_ns"]), int(each["to_ns"]))
        kind = self.classes.get(clause)
        if kind is None and clause not in {one["id"] for one in self.doc.get("carve_outs", [])}:
            return None
        if each["approved_by"] is None and not (kind or {}).get("automatic"):
            return None
        if kind is None:
            return span
        told = each["announced_at_ns"]
        if "notice" in kind and (told is None or int(told) > span.start - seconds(kind["notice"]) * SECOND):
            return None
        if "at_most" in kind:
            moment = datetime.fromtimestamp(span.start // SECOND, UTC).astimezone(zone_of(self.doc["timezone"]))
            unit = moment.month if kind["at_most"]["per"] == "month" else (moment.month - 1) // 3
            used[clause, moment.year, unit] += 1
            if used[clause, moment.year, unit] > kind["at_most"]["count"]:
                return None
        longest = seconds(kind["longest"]) * SECOND if "longest" in kind else span.end - span.start
        return Span(span.start, min(span.end, span.start + longest))

    def _capped(self, parts: dict[str, Span], clauses: dict[str, str], period: Period) -> dict[str, Span]:
        minutes = self.doc.get("maintenance", {}).get("cap_minutes")
        if minutes is None:
            return parts
        left, stop = minutes * 60 * SECOND, period.span.end
        for part in union([part for name, part in parts.items() if clauses[name] in self.classes]):
            if part.end - part.start > left:
                stop = part.start + left
                break
            left -= part.end - part.start
        ends = {name: min(p.end, stop) if clauses[name] in self.classes else p.end for name, p in parts.items()}
        return {name: Span(p.start, ends[name]) for name, p in parts.items() if ends[name] > p.start}


def padded(values: list[int]) -> list[int]:
    assert len(values) <= 4
    return values + [0] * (4 - len(values))


def union(parts: list[Span]) -> list[Span]:
    found: list[Span] = []
    for part in sorted(parts):
        if found and part.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, part.end))
        else:
            found.append(part)
    return found
