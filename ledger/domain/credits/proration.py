"""Splitting amounts over parts, to the last minor unit.

Parts of a period or of a credit come from the same rule: whole parts by largest remainder, so that they sum to the
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import nsmallest
from itertools import groupby
from typing import TypeVar

from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval

_APART = 64
"""Bits after the point by which remainders are told apart, before they are compared exactly."""

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
    parts: dict[K, int] = {}
    about: dict[K, int] = {}
    for key, each in weights.items():
        # Not as a Fraction: the sum of thousands of weights is a long one, and reducing by it takes long.
        share, whole = total * each.numerator * weight.denominator, each.denominator * weight.numerator
        parts[key], left = divmod(share, whole)
        about[key] = (left << _APART) // whole

    def exact(key: K) -> Fraction:
        return total * weights[key] / weight - parts[key]  # exact: Fractions

    for key in _largest(about, exact, total - sum(parts.values())):
        parts[key] += 1
    return parts


def _largest(about: Mapping[K, int], exact: Callable[[K], Fraction], count: int) -> list[K]:
    """The keys of the ``count`` largest remainders; of equal ones the first keys. ``about`` is what they are to so many
    bits; only where the cut goes through some that look the same are those told apart exactly."""
    found: list[K] = []
    for _, group in groupby(sorted(about, key=lambda key: (-about[key], key)), key=about.__getitem__):
        keys, wanted = list(group), count - len(found)
        if len(keys) > wanted:
            return found + nsmallest(wanted, keys, key=lambda key: (-exact(key), key))
        found += keys
    return found


def prorate(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Whole parts of ``total`` in proportion to the weights, by largest remainder; they sum to it exactly.

    Of equal remainders the earlier part has the unit. Raises ``ValueError`` where nothing has a weight.
    """
    shares = apportion(total, {at: Fraction(weight) for at, weight in enumerate(weights)})
    return tuple(shares[at] for at in range(len(weights)))


def terms_for(agreement: Agreement, period: Period) -> Agreement:
    """The terms as a period is paid by: of a part the base is the share that its time has of the whole period."""
    if period.whole is None:
        return agreement
    share = share_of_time(agreement.compensation.base, period.whole, period.interval)
    return replace(agreement, compensation=replace(agreement.compensation, base=share))


def share_of_time(total: int, whole: Interval, part: Interval) -> int:
    """What of a total that belongs to a whole time belongs to a part of it; 0 where the two have no instant in common.

    A cut at an instant gives each side its share by largest remainder, and a part has what lies between its two cuts.
    So it needs nothing but its own bounds, and however often the time is cut, the parts sum to the whole.
    """

    def before(instant_ns: int) -> int:
        at_ns = min(max(instant_ns, whole.start_ns), whole.end_ns)
        return prorate(total, (at_ns - whole.start_ns, whole.end_ns - at_ns))[0]

    return before(part.end_ns) - before(part.start_ns)
