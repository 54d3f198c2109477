"""Shares of an amount: what the parts of a period have of the whole one's base (semantics 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.credit_lines import apportion


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
