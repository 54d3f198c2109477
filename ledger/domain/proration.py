"""Splitting amounts over parts, to the last minor unit, and over time.

Parts of a period, of a resource's life or of a credit come from the same rule: whole parts by largest remainder, so
that they sum to the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.interval import Interval

K = TypeVar("K", bound="int | str | tuple[int, str]")


def apportion(total: int, weights: Mapping[K, Fraction]) -> dict[K, int]:
    """Whole parts of ``total`` >= 0 in proportion to the weights, by largest remainder; equal ones by key.

    The parts sum to ``total`` exactly, none is a whole unit away from its exact share, and what weighs nothing gets
    nothing. Nothing to share out gives zeros. Raises ``ValueError`` where nothing has a weight to share by.
    """
    weight = sum(weights.values(), Fraction(0))
    if total == 0:
        return dict.fromkeys(weights, 0)
    if weight <= 0:
        raise ValueError("nothing has a weight to share by")
    exact = {key: total * each / weight for key, each in weights.items()}  # exact: Fractions
    parts = {key: share.numerator // share.denominator for key, share in exact.items()}
    rest = total - sum(parts.values())
    for key in sorted(exact, key=lambda key: (parts[key] - exact[key], key))[:rest]:
        parts[key] += 1
    return parts


def prorate(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Whole parts of ``total`` in proportion to the weights, by largest remainder; they sum to it exactly.

    Of equal remainders the earlier part has the unit. Raises ``ValueError`` where nothing has a weight.
    """
    shares = apportion(total, {at: Fraction(weight) for at, weight in enumerate(weights)})
    return tuple(shares[at] for at in range(len(weights)))


def terms_for(agreement: Agreement, period: Period) -> Agreement:
    """The terms as a period is paid by: of a part the base is the share that its time has of the whole period.

    A cut at an instant gives each side its share by largest remainder, and a part has what lies between its two cuts.
    So it needs nothing but its own bounds, and however often a period is cut, the parts sum to the whole.
    """
    whole, part = period.whole, period.interval
    if whole is None:
        return agreement
    base = agreement.compensation.base

    def before(instant_ns: int) -> int:
        return prorate(base, (instant_ns - whole.start_ns, whole.end_ns - instant_ns))[0]

    share = before(part.end_ns) - before(part.start_ns)
    return replace(agreement, compensation=replace(agreement.compensation, base=share))


def overlap_ns(one: Interval, other: Interval) -> int:
    """How long both last together, in nanoseconds."""
    return max(0, min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns))


def lived_ns(life: Interval, excluded: Sequence[Interval]) -> int:
    """How long a resource was there and was to be available: its life without what is excluded (disjoint intervals)."""
    return life.duration_ns - sum(overlap_ns(life, each) for each in excluded)


def share_of_life(lost: Interval, life: Interval, excluded: Sequence[Interval]) -> Fraction:
    """What part of a resource's own life a loss took: a resource that was there for ten days is divided by those.

    0 where all of its life is excluded.
    """
    lived = lived_ns(life, excluded)
    return Fraction(overlap_ns(lost, life), lived) if lived else Fraction(0)
