"""Agreement v1: what two parties signed, as frozen integers.

``Agreement.from_document`` is the only way in: it checks the closed shape, then every rule that a shape
cannot say, and turns decimal texts into exact integers. The document itself is kept, because its
canonical bytes (without ``signatures``) are what the parties signed and what ``termsHash`` binds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from ledger.domain import calendar, money
from ledger.domain.agreement_schema import AGREEMENT
from ledger.domain.canonical import canonical_bytes
from ledger.domain.instant import SECOND_NS
from ledger.domain.interval import Interval
from ledger.domain.money import Rounding
from ledger.domain.schema import fail
from ledger.errors import BadInput, CalendarInvalid, DocumentInvalid

SIGNING_PREFIX = b"sla-ledger/agreement/v1\n"
NO_CAP = money.MAX_MINOR_UNITS
MAX_WINDOWS = 100_000
MAX_DAYS = 36_600


@dataclass(frozen=True, slots=True)
class Party:
    """One side of the agreement and the keys it signs with."""

    name: str
    ed25519_public_key: bytes
    evm_address: str


@dataclass(frozen=True, slots=True)
class Objective:
    """One promise. ``target_ppb`` is the share of valid requests that must be good, in parts per billion.

    A latency objective counts requests at or under ``threshold_ns`` (``P95 <= T`` is nearest rank:
    good * 10^9 >= valid * target_ppb); availability counts requests that succeeded.
    """

    id: str
    method: str
    indicator: str
    target: str
    target_ppb: int
    threshold_ns: int | None


@dataclass(frozen=True, slots=True)
class ExclusionClause:
    """Requests that failed with one of these codes leave both sides of every ratio, and are kept."""

    id: str
    error_codes: frozenset[int]
    reason: str


@dataclass(frozen=True, slots=True)
class Tier:
    """Attainment strictly below ``below_ppb`` pays ``credit_bps`` of the base (absolute, not an increment)."""

    below_ppb: int
    credit_bps: int


@dataclass(frozen=True, slots=True)
class TieredRule:
    """``tiered-v1``: per objective, tiers with strictly falling thresholds and rising credits."""

    tiers: Mapping[str, tuple[Tier, ...]]


@dataclass(frozen=True, slots=True)
class ImpactRule:
    """``impact-v1``: duration_s * qps * coefficient * unit price, per incident of one objective.

    ``price_per_request`` is coefficient of the agreement's business level * unit price, in minor units.
    """

    objective: str
    price_per_request: Fraction


@dataclass(frozen=True, slots=True)
class Compensation:
    """How a breach becomes money; all amounts in minor units of ``currency``."""

    currency: str
    base: int
    tiered: TieredRule | None
    impact: ImpactRule | None
    tiers_combine: str
    rules_combine: str
    caps: Mapping[str, int]
    minimum: int
    rounding: Rounding
    credit_visibility: str

    @property
    def cap(self) -> int:
        """The smallest of the caps. One agreement names one service and scope, so all apply to one total."""
        return min(self.caps.values(), default=NO_CAP)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A validated agreement. ``document`` is the plain JSON value it was read from."""

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
    missing_windows: str
    coverage_floor_bps: int
    grace_seconds: int
    objectives: tuple[Objective, ...]
    exclusions: tuple[ExclusionClause, ...]
    compensation: Compensation

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Agreement:
        """Validate a plain document; raises ``DocumentInvalid`` with the path of the first wrong field."""
        AGREEMENT.check(document, "")
        read = _Reader(document)
        objectives = read.objectives()
        agreement = cls(
            document=document,
            nonce=bytes.fromhex(document["nonce"][2:]),
            issuer=_party(document["parties"]["issuer"]),
            customer=_party(document["parties"]["customer"]),
            collector_key=(
                int(document["collector"]["babyjubjub_public_key"]["x"]),
                int(document["collector"]["babyjubjub_public_key"]["y"]),
            ),
            service=document["service"]["name"],
            business_level=document["business_level"],
            effective_from=read("effective.from", calendar.parse_date),
            effective_until=read("effective.until", calendar.parse_date),
            timezone=read("timezone", lambda name: calendar.load_zone(name).key or name),
            period_length=read("period", calendar.parse_period_length),
            window_seconds=read("window", calendar.parse_window_seconds),
            source=document["source"]["name"],
            missing_windows=document["missing_windows"],
            coverage_floor_bps=read("coverage_floor", money.percent_basis_points),
            grace_seconds=read("grace", calendar.parse_window_seconds),
            objectives=objectives,
            exclusions=read.exclusions(),
            compensation=read.compensation({objective.id: objective for objective in objectives}),
        )
        _check_calendar(agreement)
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

    @property
    def doc_sha256(self) -> bytes:
        return hashlib.sha256(self.canonical).digest()

    @property
    def signing_message(self) -> bytes:
        """The bytes each party signs with Ed25519."""
        return SIGNING_PREFIX + self.canonical

    def period_starting(self, first: date) -> calendar.Period:
        """The settlement period whose first local date is ``first``; raises ``DocumentInvalid`` if none is."""
        length, anchor = self.period_length, self.effective_from
        if length.unit == "M":
            months = (first.year - anchor.year) * 12 + first.month - anchor.month
            aligned = first.day == anchor.day and months % length.count == 0
        else:
            days = length.count * (7 if length.unit == "W" else 1)
            aligned = (first - anchor).days % days == 0
        if not aligned or first < anchor or length.after(first) > self.effective_until:
            raise fail(
                "period",
                f"no period of this agreement starts on {first}: periods of {length} run from {anchor} "
                f"to {self.effective_until}",
            )
        return calendar.make_period(first, length, self.timezone)

    def windows(self, period: calendar.Period) -> tuple[Interval, ...]:
        """The N equal windows of a period; raises ``DocumentInvalid`` where they do not fill it exactly."""
        step, start = self.window_seconds * SECOND_NS, period.interval.start_ns
        return tuple(Interval(start + i * step, start + (i + 1) * step) for i in range(self.window_count(period)))

    def window_count(self, period: calendar.Period) -> int:
        """How many windows a period has; raises ``DocumentInvalid`` where they do not fill it, or are too many."""
        step, duration = self.window_seconds * SECOND_NS, period.interval.duration_ns
        count, rest = divmod(duration, step)
        if rest:
            raise fail(
                "window",
                f"the period {period} lasts {duration // SECOND_NS} s in {self.timezone}, which is not a "
                f"whole number of {self.window_seconds} s windows; agree on a shorter window",
            )
        if count > MAX_WINDOWS:
            raise fail("window", f"{period} would have {count} windows; agree on longer ones, at most {MAX_WINDOWS}")
        return count


class _Reader:
    """Turns decimal texts of a shape-checked document into integers, naming the field that is wrong."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __call__(self, path: str, convert: Any) -> Any:
        value: Any = self._document
        for key in path.split("."):
            value = value[key]
        return _convert(path, value, convert)

    def objectives(self) -> tuple[Objective, ...]:
        found: dict[str, Objective] = {}
        for index, item in enumerate(self._document["objectives"]):
            at = f"objectives[{index}]"
            if item["id"] in found:
                raise fail(f"{at}.id", f"{item['id']!r} names two objectives")
            target_ppb = _convert(f"{at}.target", item["target"], money.percent_ppb)
            threshold_ns = None
            if item["method"] == "exact_quantile":
                quantile_ppb = _convert(f"{at}.quantile", item["quantile"], lambda q: money.scaled_integer(q, 9))
                if quantile_ppb != target_ppb:
                    raise fail(
                        f"{at}.quantile",
                        f"{item['quantile']} and the target {item['target']} % must say the same share of requests",
                    )
                threshold_ns = _convert(
                    f"{at}.threshold_ms", item["threshold_ms"], lambda t: money.scaled_integer(t, 6)
                )
                if threshold_ns == 0:
                    raise fail(f"{at}.threshold_ms", "must be above 0")
            found[item["id"]] = Objective(
                item["id"], item["method"], item["indicator"], item["target"], target_ppb, threshold_ns
            )
        return tuple(found.values())

    def exclusions(self) -> tuple[ExclusionClause, ...]:
        found: list[ExclusionClause] = []
        for index, item in enumerate(self._document["exclusions"]):
            for other in found:
                shared = other.error_codes & set(item["error_codes"])
                if other.id == item["id"] or shared:
                    raise fail(f"exclusions[{index}]", f"clashes with the clause {other.id!r}: same id or error code")
            found.append(ExclusionClause(item["id"], frozenset(item["error_codes"]), item["reason"]))
        return tuple(found)

    def compensation(self, objectives: Mapping[str, Objective]) -> Compensation:
        document = self._document["compensation"]
        currency = document["currency"]
        _convert("compensation.currency", currency, money.currency_exponent)

        def amount(path: str, text: str) -> int:
            value: int = _convert(path, text, lambda t: money.minor_units(t, currency))
            return value

        tiered: TieredRule | None = None
        impact: ImpactRule | None = None
        for index, rule in enumerate(document["rules"]):
            at = f"compensation.rules[{index}]"
            if (tiered if rule["kind"] == "tiered" else impact) is not None:
                raise fail(at, f"a second {rule['kind']} rule; an agreement has at most one of each kind")
            if rule["kind"] == "tiered":
                tiered = _tiered_rule(at, rule, objectives)
            else:
                impact = self._impact_rule(at, rule, objectives, currency)
        return Compensation(
            currency=currency,
            base=amount("compensation.base", document["base"]),
            tiered=tiered,
            impact=impact,
            tiers_combine=document["tiers_combine"],
            rules_combine=document["rules_combine"],
            caps={name: amount(f"compensation.caps.{name}", text) for name, text in document["caps"].items()},
            minimum=amount("compensation.minimum", document["minimum"]),
            rounding=Rounding(document["rounding"]),
            credit_visibility=document["credit_visibility"],
        )

    def _impact_rule(
        self, at: str, rule: Mapping[str, Any], objectives: Mapping[str, Objective], currency: str
    ) -> ImpactRule:
        if rule["objective"] not in objectives:
            raise fail(f"{at}.objective", f"{rule['objective']!r} is not an objective of this agreement")
        level = self._document["business_level"]
        if level not in rule["level_coefficients"]:
            raise fail(f"{at}.level_coefficients", f"has no coefficient for business_level {level}")
        coefficient = _convert(
            f"{at}.level_coefficients.{level}", rule["level_coefficients"][level], lambda t: money.scaled_integer(t, 9)
        )
        price = _convert(f"{at}.unit_price", rule["unit_price"], lambda t: money.scaled_integer(t, 9))
        minor = 10 ** money.currency_exponent(currency)
        return ImpactRule(rule["objective"], Fraction(coefficient * price * minor, 10**18))


def _convert(path: str, value: Any, convert: Any) -> Any:
    try:
        return convert(value)
    except DocumentInvalid:
        raise
    except BadInput as error:
        raise fail(path, error.message) from error


def _party(document: Mapping[str, Any]) -> Party:
    return Party(document["name"], bytes.fromhex(document["ed25519_public_key"]), document["evm_address"])


def _tiered_rule(at: str, rule: Mapping[str, Any], objectives: Mapping[str, Objective]) -> TieredRule:
    found: dict[str, tuple[Tier, ...]] = {}
    for objective_id, steps in rule["tiers"].items():
        path = f"{at}.tiers.{objective_id}"
        if objective_id not in objectives:
            raise fail(path, "is not an objective of this agreement")
        tiers: list[Tier] = []
        for index, step in enumerate(steps):
            where = f"{path}[{index}]"
            below = _convert(f"{where}.below", step["below"], money.percent_ppb)
            credit = _convert(f"{where}.credit_percent", step["credit_percent"], money.percent_basis_points)
            if below > objectives[objective_id].target_ppb:
                raise fail(f"{where}.below", f"{step['below']} is above the target: a met objective would pay")
            if tiers and (below >= tiers[-1].below_ppb or credit <= tiers[-1].credit_bps):
                raise fail(where, "thresholds must fall and credits must rise from tier to tier")
            if credit == 0:
                raise fail(f"{where}.credit_percent", "must be above 0")
            tiers.append(Tier(below, credit))
        found[objective_id] = tuple(tiers)
    if not found:
        raise fail(f"{at}.tiers", "names no objective")
    return TieredRule(found)


def _check_calendar(agreement: Agreement) -> None:
    length = agreement.period_length
    # Instants are nanoseconds in 63 bits.
    for field, day in (("effective.from", agreement.effective_from), ("effective.until", agreement.effective_until)):
        if not 1970 < day.year < 2262:
            raise fail(field, f"{day} must lie in the years 1971 to 2261")
    if agreement.effective_until <= agreement.effective_from:
        raise fail("effective.until", "must be later than effective.from")
    if length.unit == "M" and agreement.effective_from.day > 28:
        raise fail("effective.from", "periods of months must start on a day from 1 to 28, which every month has")
    if agreement.effective_until - agreement.effective_from > timedelta(days=MAX_DAYS):
        raise fail("effective.until", "an agreement lasts at most 100 years")
    try:
        first_end = length.after(agreement.effective_from)
    except (ValueError, OverflowError) as error:
        raise fail("period", f"does not fit the calendar: {error}") from error
    if first_end > agreement.effective_until:
        raise fail("period", f"no whole period of {length} fits between effective.from and effective.until")
    # Each period, because clock changes and months make some shorter or longer than others.
    try:
        for period in calendar.periods_from(
            agreement.effective_from, length, agreement.timezone, until=agreement.effective_until
        ):
            agreement.window_count(period)
    except CalendarInvalid as error:
        raise fail("timezone", error.message) from error
