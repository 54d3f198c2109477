"""Charges of a period, as finance hands them in, and what of them is the base of an objective (semantics 13).

The base is the sum of the recurring charges of the service in the objective's scope. One-time fees, tax and earlier
credits are shown and left out. A line in another currency is converted by the rate that stands with it, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ledger.domain import money
from ledger.domain.credits.proration import share_of_time
from ledger.domain.money import digits
from ledger.domain.record.event_values import CURRENCY
from ledger.domain.schema import ListOf, Object, OneOf, Text, convert, fail
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.compensation_terms import ChargesOf
from ledger.domain.terms.largest_credit import Bounds, excess
from ledger.domain.terms.objective import Objective, Scope
from ledger.domain.terms.objective_shapes import DECIMAL
from ledger.domain.terms.period_names import parse_period_name, period_named
from ledger.domain.time.calendar import Period, parse_date
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import ChargesRefused

MAX_LINES = 1000
_Share = Callable[[int, Interval | None], int]
"""What of a line's minor units is the base, by the life of what the line is for."""
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
    """The charges of one period. ``documents`` are the lines as they were handed in; ``lines`` are what of them is the
    base, where ``shared`` that of a part of the period."""

    period: str
    lines: tuple[ChargeLine, ...]
    documents: tuple[Mapping[str, Any], ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Base:
    """What an objective's percentages are of. ``lines`` number the charges in it, none for a base that is agreed on;
    ``parts`` are their amounts, with the life of what they are for."""

    amount: Fraction
    lines: tuple[int, ...]
    parts: tuple[tuple[Fraction, Interval | None], ...]


def read_charges(agreement: Agreement, charged: Period, documents: Sequence[Mapping[str, Any]]) -> Charges:
    """The charges of a whole period from shape-checked lines; raises ``DocumentInvalid`` naming line and field."""
    return _read(agreement, charged, documents, lambda units, _: units)


def charges_for(agreement: Agreement, period: Period, documents: Sequence[Mapping[str, Any]]) -> Charges:
    """What of the charges is the base of a period; raises ``DocumentInvalid`` naming line and field.

    Of a part that is its share of each line, by time: of the life of what the line is for, or of the whole period. A
    cut gives each side its share in whole minor units by largest remainder, so the parts sum to the line, however often
    a period is cut.
    """
    charged, whole = charges_period(agreement, period), period.whole
    if whole is None:
        return read_charges(agreement, charged, documents)
    # What was there in the period before says nothing of when in this one.
    before = agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD

    def share(units: int, life: Interval | None) -> int:
        return share_of_time(units, whole if before or life is None else life, period.interval)

    return replace(_read(agreement, charged, documents, share), shared=True)


def charges_period(agreement: Agreement, period: Period) -> Period:
    """The period whose charges are the base of this one: itself or, where the agreement says so, the one before.

    It is a whole one, as invoices are, though this one be a part; the one before may lie before the agreement.
    """
    back = 1 if agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD else 0
    return agreement.periods.uncut(period.first, back)


def chargeable_period(agreement: Agreement, text: str) -> Period:
    """The whole period called ``2023-12-01/P1M`` that charges can be of.

    Raises ``DocumentInvalid`` or ``CalendarInvalid``.
    """
    first, length = parse_period_name(text)
    grid = agreement.periods
    found = grid.uncut_starting(first)
    if found is not None:
        whole, index = found
        paying = (index, index + 1) if agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD else (index,)
        if length == whole.length and any(grid.at_index(each) is not None for each in paying):
            return whole
    period = period_named(agreement, text)
    raise fail(
        "period",
        f"{period} is a part of {grid.uncut(period.first)}; hand in the charges of the whole, and each part is "
        "settled by its share of them",
    )


def paid_by(agreement: Agreement, charged: Period) -> Period | None:
    """The period of these terms that is settled by the charges of a whole one."""
    found = agreement.periods.uncut_starting(charged.first)
    if found is None or found[0] != charged:
        return None
    return agreement.periods.at_index(
        found[1] + (1 if agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD else 0)
    )


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

    A part of a period may be left with nothing: a resource that was there in another part has no charge in this one.
    Raises ``ChargesRefused`` naming the clause and what the lines sum to.
    """
    if charges.shared:
        return
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


def require_payable(agreement: Agreement, charges: Charges) -> None:
    """Refuse charges that leave a rule without its base, or that could earn more in a period than an amount can hold.

    Raises ``ChargesRefused`` naming the clause and the value.
    """
    require_bases(agreement, charges)
    base = base_of(charges, agreement.service, [objective.scope for objective in agreement.objectives])
    lives_ns = [life.duration_ns for _, life in base.parts if life is not None]
    bounds = Bounds.of(base.amount, agreement.most_windows, agreement.window_seconds, lives_ns)
    found = excess(agreement.compensation, agreement.document["compensation"]["rules"], bounds)
    if found is not None:
        clause, said = found
        raise ChargesRefused(
            f"{clause}: of charges of {digits(base.amount.numerator // base.amount.denominator)} minor units {said}",
            clause=clause,
        )


def _inside(line: ChargeLine, scope: Scope) -> bool:
    return (scope.region is None or scope.region == line.region) and (scope.model is None or scope.model == line.model)


def _read(agreement: Agreement, charged: Period, documents: Sequence[Mapping[str, Any]], share: _Share) -> Charges:
    currency = agreement.compensation.currency
    before = agreement.compensation.charges is ChargesOf.PREVIOUS_PERIOD
    lines = tuple(_line(f"lines[{at}]", item, currency, charged, share) for at, item in enumerate(documents))
    if before:
        lines = tuple(replace(line, life=None) for line in lines)
    return Charges(str(charged), lines, tuple(documents))


def _line(at: str, item: Mapping[str, Any], currency: str, charged: Period, share: _Share) -> ChargeLine:
    convert(f"{at}.currency", item["currency"], money.currency_exponent)
    units = convert(f"{at}.amount", item["amount"], lambda text: money.minor_units(text, item["currency"]))
    life = None
    if "life" in item:
        start, end = (convert(f"{at}.life.{key}", item["life"][key], parse_instant_ns) for key in ("from", "until"))
        if start >= end:
            raise fail(f"{at}.life", f"ends at {item['life']['until']}, which is not after {item['life']['from']}")
        life = Interval(start, end)
        for key, inside in (("from", start >= charged.interval.start_ns), ("until", end <= charged.interval.end_ns)):
            if not inside:
                raise fail(
                    f"{at}.life.{key}",
                    f"{item['life'][key]} lies outside {charged}, from {format_instant_ns(charged.interval.start_ns)} "
                    f"to {format_instant_ns(charged.interval.end_ns)}; say what of its life lies in it, or nothing",
                )
    return ChargeLine(
        service=item["service"],
        region=item.get("region"),
        model=item.get("model"),
        kind=item["kind"],
        amount=share(units, life) * _rate(at, item, currency),
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
