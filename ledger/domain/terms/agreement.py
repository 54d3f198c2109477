"""Agreement v1: what two parties signed, as frozen integers.

``Agreement.from_document`` is the only way in: it checks the closed shape, then every rule that a shape
cannot say, and turns decimal texts into exact integers. The document itself is kept, because its
canonical bytes (without ``signatures``) are what the parties signed and what ``termsHash`` binds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any

from ledger.domain import money
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.schema import convert, fail
from ledger.domain.terms.agreement_schema import AGREEMENT, HEARTBEAT
from ledger.domain.terms.alignment import check_alignment
from ledger.domain.terms.compensation_terms import Compensation, read_compensation
from ledger.domain.terms.exclusion_terms import ExclusionTerms, read_exclusion_terms
from ledger.domain.terms.largest_credit import Bounds, excess
from ledger.domain.terms.objective import Objective, read_objectives
from ledger.domain.terms.periods import PeriodGrid, count_windows, most_windows, rolling_step
from ledger.domain.terms.probe import Probe, read_probe
from ledger.domain.terms.settlement_terms import SettlementTerms, check_deadline, read_closing, read_settlement
from ledger.domain.time import calendar
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval

SIGNING_PREFIX = b"sla-ledger/agreement/v1\n"
MAX_DAYS = 36_600
MAX_HEARTBEAT_S = 86_400


@dataclass(frozen=True, slots=True)
class Party:
    """One side of the agreement and the keys it signs with."""

    name: str
    ed25519_public_key: bytes
    evm_address: str


@dataclass(frozen=True, slots=True)
class ExclusionClause:
    """Requests that failed with one of these codes leave both sides of every ratio, and are kept."""

    id: str
    error_codes: frozenset[int]
    reason: str


@dataclass(frozen=True)
class Agreement:
    """A validated agreement. ``document`` is the plain JSON value it was read from.

    ``heartbeat_longest_s`` is the most that one heartbeat of the source covers, None where it shows coverage by
    complete logs alone. ``closes_at_latest_s`` is how long after its end a period is closed though its source did not
    get past that end, None where the grace alone is waited for. ``ended_on`` is the local date at whose start other
    terms or a termination ended these; the document does not know.
    """

    document: Mapping[str, Any]
    nonce: bytes
    issuer: Party
    customer: Party
    collector_key: tuple[int, int]
    service: str
    business_level: str
    effective_from: date
    effective_until: date
    timezone: str
    period_length: calendar.PeriodLength
    window_seconds: int
    source: str
    heartbeat_longest_s: int | None
    missing_windows: str
    coverage_floor_bps: int
    grace_seconds: int
    closes_at_latest_s: int | None
    objectives: tuple[Objective, ...]
    exclusions: tuple[ExclusionClause, ...]
    exclusion_terms: ExclusionTerms
    compensation: Compensation
    settlement: SettlementTerms
    anchor: date
    period_step: calendar.PeriodLength
    day_start_s: int
    keeps_parts: bool
    probe: Probe | None
    ended_on: date | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Agreement:
        """Validate a plain document; raises ``DocumentInvalid`` with the path of the first wrong field."""
        AGREEMENT.check(document, "")
        read = _Reader(document)
        window_seconds = read("window", calendar.parse_window_seconds)
        period_length = read("period", calendar.parse_period_length)
        objectives = read_objectives(document["objectives"], window_seconds)
        grace_seconds = read("grace", calendar.parse_window_seconds)
        closes_at_latest_s = read_closing(document.get("closing"), grace_seconds)
        collector = document["collector"]["babyjubjub_public_key"]
        collector_key = int(collector["x"]), int(collector["y"])
        agreement = cls(
            document=document,
            nonce=bytes.fromhex(document["nonce"][2:]),
            issuer=_party(document["parties"]["issuer"]),
            customer=_party(document["parties"]["customer"]),
            collector_key=collector_key,
            service=document["service"]["name"],
            business_level=document["business_level"],
            effective_from=read("effective.from", calendar.parse_date),
            effective_until=read("effective.until", calendar.parse_date),
            timezone=read("timezone", lambda name: calendar.load_zone(name).key or name),
            period_length=period_length,
            window_seconds=window_seconds,
            source=document["source"]["name"],
            heartbeat_longest_s=read.heartbeat(window_seconds),
            missing_windows=document["missing_windows"],
            coverage_floor_bps=read("coverage_floor", money.percent_basis_points),
            grace_seconds=grace_seconds,
            closes_at_latest_s=closes_at_latest_s,
            objectives=objectives,
            exclusions=read.exclusions(),
            exclusion_terms=read_exclusion_terms(document),
            compensation=read_compensation(
                document["compensation"],
                {objective.id: objective for objective in objectives},
                document["business_level"],
            ),
            settlement=read_settlement(document.get("settlement")),
            anchor=read("anchor" if "anchor" in document else "effective.from", calendar.parse_date),
            period_step=read("step", lambda text: rolling_step(period_length, text))
            if "step" in document
            else period_length,
            day_start_s=read("day_start", calendar.parse_time_of_day) if "day_start" in document else 0,
            keeps_parts=document.get("partial_periods") == "prorate",
            probe=read_probe(document.get("probe"), collector_key),
        )
        _check_calendar(agreement)
        _check_largest_credit(agreement)
        return agreement

    def for_service(self, name: str) -> Agreement:
        """The same terms for another service; unsigned, because nobody signed that document."""
        document = self.unsigned_document
        return Agreement.from_document({**document, "service": {**document["service"], "name": name}})

    @property
    def unsigned_document(self) -> dict[str, Any]:
        """The document without its ``signatures`` member: what is hashed and signed."""
        return {key: value for key, value in self.document.items() if key != "signatures"}

    @property
    def canonical(self) -> bytes:
        """RFC 8785 bytes of the unsigned document."""
        return canonical_bytes(self.unsigned_document)

    @cached_property
    def doc_sha256(self) -> bytes:
        return hashlib.sha256(self.canonical).digest()

    @property
    def signing_message(self) -> bytes:
        """The bytes each party signs with Ed25519."""
        return SIGNING_PREFIX + self.canonical

    def period_starting(self, first: date) -> calendar.Period:
        """The settlement period whose first local date is ``first``; raises ``DocumentInvalid`` if none is."""
        return self.periods.starting(first)

    @cached_property
    def periods(self) -> PeriodGrid:
        """The periods that are settled while these terms are in force."""
        return PeriodGrid(
            first=self.effective_from,
            until=self.effective_until if self.ended_on is None else self.ended_on,
            length=self.period_length,
            zone=self.timezone,
            anchor=self.anchor,
            step=self.period_step,
            day_start_s=self.day_start_s,
            keeps_first=self.keeps_parts,
            # A change or an end inside a period splits it, whatever the terms say of their own dates.
            keeps_last=self.keeps_parts or (self.ended_on is not None and self.period_step == self.period_length),
        )

    @property
    def starts_ns(self) -> int:
        """The first instant of these terms."""
        return self.day_ns(self.effective_from)

    @property
    def ends_ns(self) -> int:
        """The instant at which these terms end or were ended."""
        return self.day_ns(self.periods.until)

    def day_ns(self, day: date) -> int:
        """The first instant of a local day of this agreement."""
        return calendar.day_start_ns(day, calendar.load_zone(self.timezone), self.day_start_s)

    def ending_on(self, day: date) -> Agreement:
        """The same terms, in force until the start of a local day before their own end."""
        return replace(self, ended_on=day)

    def windows(self, period: calendar.Period) -> tuple[Interval, ...]:
        """The N equal windows of a period; raises ``DocumentInvalid`` where they do not fill it exactly."""
        step, start = self.window_seconds * SECOND_NS, period.interval.start_ns
        return tuple(Interval(start + i * step, start + (i + 1) * step) for i in range(self.window_count(period)))

    def window_count(self, period: calendar.Period) -> int:
        """How many windows a period has; raises ``DocumentInvalid`` where they do not fill it, or are too many."""
        return count_windows(period, self.window_seconds)

    def check_windows(self) -> None:
        """Raises ``DocumentInvalid`` where the windows do not fill every period and part while the terms are in
        force."""
        most_windows(self.periods, self.window_seconds)

    def check_alignment(self) -> None:
        """Raises ``DocumentInvalid`` where intervals do not begin and end as the terms say, while they are in force."""
        check_alignment(self.document["objectives"], self.objectives, self.periods, self.day_ns)

    @property
    def most_windows(self) -> int:
        """Windows of the longest period of the document: months differ, and a day on which clocks go back has 25
        hours. Raises ``DocumentInvalid`` where the windows do not fill every period."""
        return most_windows(
            self.periods if self.ended_on is None else replace(self, ended_on=None).periods, self.window_seconds
        )


class _Reader:
    """Turns decimal texts of a shape-checked document into integers, naming the field that is wrong."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __call__(self, path: str, how: Any) -> Any:
        value: Any = self._document
        for key in path.split("."):
            value = value[key]
        return convert(path, value, how)

    def heartbeat(self, window_seconds: int) -> int | None:
        """The most seconds that one heartbeat covers: as agreed, else a window. None where coverage has none."""
        source = self._document["source"]
        if source["coverage"] != HEARTBEAT:
            if "heartbeat" in source:
                raise fail("source.heartbeat", f"has no effect with coverage {source['coverage']}; leave it out")
            return None
        seconds: int = self("source.heartbeat", calendar.parse_window_seconds) if "heartbeat" in source else 0
        if seconds > MAX_HEARTBEAT_S:
            raise fail(
                "source.heartbeat", f"{source['heartbeat']} is more than a day; a source that is alive says so sooner"
            )
        return seconds or min(window_seconds, MAX_HEARTBEAT_S)

    def exclusions(self) -> tuple[ExclusionClause, ...]:
        found: list[ExclusionClause] = []
        for index, item in enumerate(self._document["exclusions"]):
            for other in found:
                shared = other.error_codes & set(item["error_codes"])
                if other.id == item["id"] or shared:
                    said = f"the error codes {sorted(shared)}" if shared else "its id"
                    raise fail(
                        f"exclusions[{index}]", f"{item['id']!r} has {said} of the clause {other.id!r}; name each once"
                    )
            found.append(ExclusionClause(item["id"], frozenset(item["error_codes"]), item["reason"]))
        return tuple(found)


def _party(document: Mapping[str, Any]) -> Party:
    return Party(document["name"], bytes.fromhex(document["ed25519_public_key"]), document["evm_address"])


def _check_calendar(agreement: Agreement) -> None:
    # Instants are nanoseconds in 63 bits.
    for field, day in (
        ("effective.from", agreement.effective_from),
        ("effective.until", agreement.effective_until),
        ("anchor", agreement.anchor),
    ):
        if not 1970 < day.year < 2262:
            raise fail(field, f"{day} must lie in the years 1971 to 2261")
    if agreement.effective_until <= agreement.effective_from:
        raise fail(
            "effective.until",
            f"{agreement.effective_until} is not later than effective.from, {agreement.effective_from}",
        )
    if agreement.effective_until - agreement.effective_from > timedelta(days=MAX_DAYS):
        raise fail(
            "effective.until",
            f"{agreement.effective_until} is more than 100 years after {agreement.effective_from}; an agreement lasts "
            "at most so long",
        )
    if agreement.periods.rolling:
        _check_rolling(agreement)
    # Each period, because clock changes and months make some shorter or longer than others.
    agreement.check_windows()
    _check_lengths(agreement)
    agreement.check_alignment()
    if agreement.settlement.by_claim:
        waits_s = agreement.closes_at_latest_s or agreement.grace_seconds
        check_deadline(agreement.settlement.deadline, agreement.periods, agreement.window_seconds, waits_s)


def _check_largest_credit(agreement: Agreement) -> None:
    """That no period can earn more than an amount can hold; what recorded charges can earn is checked with them."""
    terms = agreement.compensation
    base = Fraction(terms.base) if terms.charges is None else None
    bounds = Bounds.of(base, agreement.most_windows, agreement.window_seconds)
    found = excess(terms, agreement.document["compensation"]["rules"], bounds)
    if found is not None:
        raise fail(*found)


def _check_lengths(agreement: Agreement) -> None:
    """That every promise can be judged: what a method looks at, and a run that it asks for, fits the longest period."""
    longest_s = agreement.most_windows * agreement.window_seconds
    for index, objective in enumerate(agreement.objectives):
        for field, seconds in _seconds_needed(objective):
            if seconds > longest_s:
                raise fail(
                    f"objectives[{index}].{field}",
                    f"takes {seconds} s, which is longer than every period ({agreement.period_length}, at most "
                    f"{longest_s} s), so nothing could ever be counted; agree on less",
                )
    for index, rule in enumerate(agreement.document["compensation"]["rules"]):
        if "longer_than" in rule and calendar.parse_window_seconds(rule["longer_than"]) >= longest_s:
            raise fail(
                f"compensation.rules[{index}].longer_than",
                f"no incident is longer than {rule['longer_than']}: every period ({agreement.period_length}) takes at "
                f"most {longest_s} s; agree on less",
            )


def _seconds_needed(objective: Objective) -> Iterator[tuple[str, int]]:
    if objective.window_seconds is not None:
        yield "window", objective.window_seconds
    if objective.repeat_window_seconds is not None:
        yield "repeat_window", objective.repeat_window_seconds
    if objective.down is not None:
        yield "interval", objective.down.interval_seconds
        yield "minimum_run", objective.down.minimum_run * objective.down.interval_seconds
    if objective.slices is not None:
        rule = objective.slices
        yield "slice.window", rule.window_seconds
        yield "slice.consecutive", rule.window_seconds + (rule.consecutive - 1) * rule.step_seconds


def _check_rolling(agreement: Agreement) -> None:
    step = agreement.document["step"]
    if agreement.document["compensation"]["rules"]:
        raise fail(
            "compensation.rules",
            f"periods of {agreement.period_length} every {step} overlap, so that one failure would be paid in each; "
            "leave the rules out, or the step",
        )
    if agreement.keeps_parts:
        raise fail("partial_periods", f"prorate: periods that overlap (step {step}) have no parts; write drop")
