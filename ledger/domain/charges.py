"""Charges of a period, as finance hands them in, and what of them is the base of an objective (semantics 13).

The base is the sum of the recurring charges of the service in the objective's scope. One-time fees, tax and earlier
credits are shown and left out. A line in another currency is converted by the rate that stands with it, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from ledger.domain import money
from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period, add_months, make_period, parse_date
from ledger.domain.compensation_terms import ChargesOf
from ledger.domain.event_values import CURRENCY
from ledger.domain.instant import parse_instant_ns
from ledger.domain.interval import Interval
from ledger.domain.objective import Objective, Scope
from ledger.domain.objective_shapes import DECIMAL
from ledger.domain.schema import ListOf, Object, OneOf, Text, convert, fail
from ledger.domain.window import period_named
from ledger.errors import ChargesRefused

MAX_LINES = 1000
_NAME = Text(max_length=120, what="a name as it stands on the invoice", visible=True)
_INSTANT = Text(r"\d{4}-\d\d-\d\d[Tt][0-9:.]{8,18}(?:Z|z|[+-]\d\d:\d\d)", "an instant such as 2023-06-14T00:00:00Z", 40)

CHARGE_LINE = Object(
    {
        "service": _NAME,
        "kind": OneOf(("recurring", "one_time", "tax", "credit")),
        "amount": DECIMAL,
        "currency": CURRENCY,
    },
    {
        "region": _NAME,
        "model": _NAME,
        "rate": Object(
            {
                "rate": DECIMAL,
                "source": Text(max_length=200, what="where the rate was published", visible=True),
                "date": Text(r"\d{4}-\d\d-\d\d", "a date YYYY-MM-DD", 10),
            }
        ),
        "life": Object({"from": _INSTANT, "until": _INSTANT}),
    },
)
CHARGE_LINES = ListOf(CHARGE_LINE, 1, MAX_LINES)
CHARGES = Object(
    {"period": Text(r"\d{4}-\d\d-\d\d/P\d{1,3}[DWM]", "a period such as 2023-12-01/P1M", 16), "lines": CHARGE_LINES}
)
"""What finance hands in: the period that was charged, and all its lines."""


@dataclass(frozen=True, slots=True)
class ChargeLine:
    """One line of an invoice. ``amount`` is in minor units of the credit's currency, exact after conversion.

    ``life``: when the resource was there, None for all of the period.
    """

    service: str
    region: str | None
    model: str | None
    kind: str
    amount: Fraction
    life: Interval | None


@dataclass(frozen=True, slots=True)
class Charges:
    """The charges of one period. ``documents`` are the lines as they were handed in."""

    period: str
    lines: tuple[ChargeLine, ...]
    documents: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Base:
    """What an objective's percentages are of. ``lines`` number the charges in it, none for a base that is agreed on;
    ``parts`` are their amounts, with the life of what they are for."""

    amount: Fraction
    lines: tuple[int, ...]
    parts: tuple[tuple[Fraction, Interval | None], ...]


def read_charges(agreement: Agreement, period: str, documents: Sequence[Mapping[str, Any]]) -> Charges:
    """Charges from shape-checked lines; raises ``DocumentInvalid`` naming line and field."""
    currency = agreement.compensation.currency
    lines = tuple(_line(f"lines[{at}]", item, currency) for at, item in enumerate(documents))
    return Charges(period, lines, tuple(documents))


def charges_period(agreement: Agreement, period: Period) -> Period:
    """The period whose charges are the base of this one: itself or, where the agreement says so, the one before.

    Before the first period of the agreement lies one of its length that ends where the first begins.
    """
    if agreement.compensation.charges is not ChargesOf.PREVIOUS_PERIOD:
        return period
    return agreement.periods.before(period) or _before_the_first(agreement, period.first)


def chargeable_period(agreement: Agreement, text: str) -> Period:
    """The period called ``2023-12-01/P1M`` that charges can be of.

    Raises ``DocumentInvalid`` or ``CalendarInvalid``.
    """
    if agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD:
        before = _before_the_first(agreement, next(agreement.periods.all()).first)
        if text == str(before):
            return before
    return period_named(agreement, text)


def _before_the_first(agreement: Agreement, first: date) -> Period:
    length = agreement.period_length
    start = add_months(first, -length.count) if length.unit == "M" else first - timedelta(days=length.days)
    return make_period(start, length, agreement.timezone, end=first, day_start_s=agreement.day_start_s)


def base_of(charges: Charges, service: str, scopes: Sequence[Scope]) -> Base:
    """The recurring charges of the service that lie in one of the scopes; each counts once."""
    found = [
        at
        for at, line in enumerate(charges.lines)
        if line.kind == "recurring" and line.service == service and any(_inside(line, scope) for scope in scopes)
    ]
    parts = tuple((charges.lines[at].amount, charges.lines[at].life) for at in found)
    return Base(sum((amount for amount, _ in parts), Fraction(0)), tuple(found), parts)


def require_bases(agreement: Agreement, charges: Charges) -> None:
    """Refuse charges that leave an objective without a base although a rule pays a share of it.

    Raises ``ChargesRefused`` naming the clause and what the lines sum to.
    """
    by_id = {objective.id: objective for objective in agreement.objectives}
    for objective_id, clause in agreement.compensation.based.items():
        objective: Objective = by_id[objective_id]
        if base_of(charges, agreement.service, (objective.scope,)).amount == 0:
            raise ChargesRefused(
                f"{clause} pays a share of the recurring charges of {agreement.service} ({objective.scope}), and these "
                f"lines have 0 of them for {charges.period}; hand in the lines of the invoice with service, region and "
                "model as the agreement names them",
                clause=clause,
                objective=objective_id,
                scope=str(objective.scope),
                base="0",
            )


def _inside(line: ChargeLine, scope: Scope) -> bool:
    return (scope.region is None or scope.region == line.region) and (scope.model is None or scope.model == line.model)


def _line(at: str, item: Mapping[str, Any], currency: str) -> ChargeLine:
    convert(f"{at}.currency", item["currency"], money.currency_exponent)
    units = convert(f"{at}.amount", item["amount"], lambda text: money.minor_units(text, item["currency"]))
    life = None
    if "life" in item:
        start, end = (convert(f"{at}.life.{key}", item["life"][key], parse_instant_ns) for key in ("from", "until"))
        if start >= end:
            raise fail(f"{at}.life", f"ends at {item['life']['until']}, which is not after {item['life']['from']}")
        life = Interval(start, end)
    return ChargeLine(
        service=item["service"],
        region=item.get("region"),
        model=item.get("model"),
        kind=item["kind"],
        amount=units * _rate(at, item, currency),
        life=life,
    )


def _rate(at: str, item: Mapping[str, Any], currency: str) -> Fraction:
    """Minor units of the credit's currency for one minor unit of the line's."""
    if "rate" not in item:
        if item["currency"] != currency:
            raise fail(f"{at}.rate", f"is missing: the line is in {item['currency']}, and credits are in {currency}")
        return Fraction(1)
    if item["currency"] == currency:
        raise fail(f"{at}.rate", f"converts {currency} to itself; leave it out")
    convert(f"{at}.rate.date", item["rate"]["date"], parse_date)
    rate = convert(f"{at}.rate.rate", item["rate"]["rate"], lambda text: money.scaled_integer(text, 9))
    if rate == 0:
        raise fail(f"{at}.rate.rate", "must be above 0")
    shift = 10 ** money.currency_exponent(currency)
    return Fraction(rate * shift, 10**9 * 10 ** money.currency_exponent(item["currency"]))
