"""The most that the terms of an agreement can pay for one period: it has to be an amount that the ledger can hold.

No circuit, no event and no column holds more than 2^64 - 1 minor units. Terms that could pay more are refused with the
agreement, where the base is agreed on, or with the charges that are handed in, and not when a period comes to be
settled. The bounds are generous: every window full of requests, every second window an incident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ledger.domain.attested import COUNT_BITS
from ledger.domain.money import BASIS_POINTS, MAX_MINOR_UNITS, PARTS_PER_BILLION, digits
from ledger.domain.terms.compensation_terms import Compensation
from ledger.domain.terms.incident_rules import IncidentRule, MultiplierRule, ProportionalRule
from ledger.domain.time.instant import HOUR_NS, SECOND_NS

_MOST_VALID = 3 * (2**COUNT_BITS - 1)
"""Of one window: good, bad and undecided."""
_SAYS = {"tiered": "tiers", "impact": "unit_price", "proportional": "of", "multiplier": "factor", "step_table": "rows"}
"""The member of a rule that makes its amounts large."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a rule can be asked to pay for.

    ``base`` in minor units, None where it is not known yet; then only what is paid by a price of its own is bounded.
    ``shortest_ns`` is the shortest time that a base can be divided by: a window, or the life of a resource.
    """

    base: Fraction | None
    windows: int
    window_ns: int
    shortest_ns: int

    @classmethod
    def of(cls, base: Fraction | None, windows: int, window_seconds: int, lives_ns: Sequence[int] = ()) -> Bounds:
        window_ns = window_seconds * SECOND_NS
        return cls(base, windows, window_ns, min([window_ns, *lives_ns]))

    @property
    def incidents(self) -> int:
        """A window between two of them at least."""
        return (self.windows + 1) // 2


def excess(terms: Compensation, documents: Sequence[Mapping[str, Any]], bounds: Bounds) -> tuple[str, str] | None:
    """The clause that could pay more in one period than an amount can hold, and what to say of it; None where none can.

    ``documents`` are the rules as they were agreed on.
    """
    amounts = list(_amounts(terms, documents, bounds))
    if not amounts:
        return None
    each = [amount for _, _, amount in amounts]
    most = max(each) if terms.rules_combine == "best" else sum(each, Fraction(0))
    known = (cap for cap in terms.caps if bounds.base is not None or cap.minor_units is not None)
    # A scope cap that holds for each scope by itself leaves as much in all of them.
    limits = (
        cap.limit(bounds.base or Fraction(0)) * (len(terms.scopes) or 1 if cap.level == "scope" else 1) for cap in known
    )
    if min([most, *limits]) <= MAX_MINOR_UNITS:
        return None
    at, said, amount = max(amounts, key=lambda found: found[2])
    value = digits(amount.numerator // amount.denominator)
    return at, (
        f"{said} could pay {value} minor units of {terms.currency} in one period of {bounds.windows} windows, and an "
        "amount is at most 2^64 - 1; agree on less, or on a cap (compensation.caps)"
    )


def _amounts(
    terms: Compensation, documents: Sequence[Mapping[str, Any]], bounds: Bounds
) -> Iterator[tuple[str, str, Fraction]]:
    """Of each rule the clause, its figure, and the most it pays."""
    others, base = iter(terms.incident_rules), bounds.base or Fraction(0)
    for index, document in enumerate(documents):
        kind = document["kind"]
        at, said = f"compensation.rules[{index}].{_SAYS[kind]}", _figure(document)
        if kind == "tiered":
            yield at, said, base
        elif kind == "impact" and terms.impact is not None:
            yield at, said, terms.impact.price_per_request * _MOST_VALID * bounds.windows
        else:
            yield at, said, _of_incidents(next(others), base, bounds)


def _figure(document: Mapping[str, Any]) -> str:
    if document["kind"] == "step_table":
        last = document["rows"][-1]
        return f"hours {last['hours']}" if "hours" in last else f"percent {last['percent']}"
    said = document[_SAYS[document["kind"]]]
    return said if isinstance(said, str) else "they"


def _of_incidents(rule: IncidentRule, base: Fraction, bounds: Bounds) -> Fraction:
    if isinstance(rule, ProportionalRule):
        return base
    if isinstance(rule, MultiplierRule):
        return _multiplied(rule, base, bounds)
    row = rule.rows[-1]
    if row.credit_ns is None:
        return bounds.incidents * base * Fraction(row.credit_bps or 0, BASIS_POINTS)
    if rule.hourly_price is None:
        # Of a whole period's base at most a window is left for each incident; a resource may have lived shorter.
        times = 1 if bounds.shortest_ns == bounds.window_ns else bounds.incidents
        return times * base * Fraction(row.credit_ns, bounds.shortest_ns)
    return Fraction(bounds.incidents * rule.hourly_price * row.credit_ns, HOUR_NS)


def _multiplied(rule: MultiplierRule, base: Fraction, bounds: Bounds) -> Fraction:
    factor = Fraction(rule.factor_e9, PARTS_PER_BILLION)
    if rule.hourly_price is None:
        most = base * (factor + Fraction(rule.round_up_ns, bounds.window_ns))
    else:
        rounded = rule.round_up_ns * (1 if rule.together else bounds.incidents)
        most = rule.hourly_price * (bounds.windows * bounds.window_ns * factor + rounded) / HOUR_NS  # exact: Fractions
    if rule.incident_cap_bps is None:
        return most
    return min(most, bounds.incidents * base * Fraction(rule.incident_cap_bps, BASIS_POINTS))
