"""Exclusions: which recorded ones are honoured under the terms, and which instants of a period they take out.

A pure function of what was recorded, in whatever order it came. What exceeds its class counts as ordinary time: only
the first part of a ticket that is too long is honoured, and of too many tickets the first by start. Overlaps are taken
out once. Instants are nanoseconds; intervals are half-open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ledger.domain.terms.exclusion_terms import ExclusionTerms, MaintenanceClass
from ledger.domain.time.calendar import local_moment
from ledger.domain.time.instant import MINUTE_NS, SECOND_NS, format_instant_ns
from ledger.domain.time.interval import Interval, clip, union


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One recorded exclusion: the clause it relies on, its time, when it was announced and who approved it."""

    id: str
    clause: str
    interval: Interval
    announced_at_ns: int | None
    approved_by: str | None


class Ruling(StrEnum):
    """What becomes of an exclusion: ``honoured`` whole, ``shortened``, or why not at all."""

    HONOURED = "honoured"
    SHORTENED = "shortened"
    NO_CLAUSE = "no_clause"
    NOT_APPROVED = "not_approved"
    ANNOUNCED_LATE = "announced_late"
    TOO_MANY = "too_many"
    OVER_CAP = "over_cap"


@dataclass(frozen=True, slots=True)
class Ruled:
    """An exclusion and what is honoured of it: a first part of its time, or nothing. ``why`` is for people; it is
    empty where all is honoured."""

    exclusion: Exclusion
    ruling: Ruling
    honoured: Interval | None
    why: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is taken out of one period.

    ``rulings`` are those of the exclusions that touch the period, their honoured part clipped to it. ``parts`` are
    disjoint and sorted, each with the position in ``rulings`` of the first exclusion that takes it out.
    """

    rulings: tuple[Ruled, ...]
    parts: tuple[tuple[Interval, int], ...]

    @property
    def union(self) -> tuple[Interval, ...]:
        return union(interval for interval, _ in self.parts)

    def position(self, instant_ns: int) -> int | None:
        """Which of ``rulings`` takes an instant out; None: none does."""
        found = self._holding(instant_ns)
        return None if found is None else found[1]

    def part_at(self, instant_ns: int) -> Interval | None:
        """The part that an instant lies in; None: in none."""
        found = self._holding(instant_ns)
        return None if found is None else found[0]

    def _holding(self, instant_ns: int) -> tuple[Interval, int] | None:
        at = bisect_right(self.parts, instant_ns, key=_part_start) - 1
        return self.parts[at] if at >= 0 and instant_ns in self.parts[at][0] else None

    def touching(self, interval: Interval) -> tuple[Ruled, ...]:
        """The rulings whose honoured part shares an instant with ``interval``."""
        return tuple(each for each in self.rulings if each.honoured and clip(each.honoured, interval))


NOTHING_EXCLUDED = Excluded((), ())


def rule(terms: ExclusionTerms, zone: str, recorded: Iterable[Exclusion]) -> tuple[Ruled, ...]:
    """What the limits of each class leave of all exclusions of an agreement, by start; the cap of a period comes after.

    ``zone`` is the agreement's: its calendar says which tickets are of one month or quarter.
    """
    used: Counter[tuple[str, tuple[int, int]]] = Counter()
    return tuple(_rule(terms, zone, each, used) for each in sorted(recorded, key=_order))


def excluded_in(terms: ExclusionTerms, rulings: Sequence[Ruled], period: Interval) -> Excluded:
    """What is taken out of a period: the honoured parts, clipped to it, under the cap of ``terms``."""
    capped_at_ns = _capped_at_ns(terms, rulings, period)
    found: list[Ruled] = []
    for each in rulings:
        if clip(each.exclusion.interval, period) is None:
            continue
        part = each.honoured and clip(each.honoured, period)
        if part is not None and each.exclusion.clause in terms.classes and capped_at_ns < part.end_ns:
            found.append(_capped(each, part, capped_at_ns, terms))
        else:
            found.append(replace(each, honoured=part))
    return Excluded(tuple(found), _parts(found))


def _rule(terms: ExclusionTerms, zone: str, exclusion: Exclusion, used: Counter[tuple[str, tuple[int, int]]]) -> Ruled:
    kind = terms.classes.get(exclusion.clause)
    if kind is None and exclusion.clause not in terms.carve_outs:
        why = f"the agreement has no clause {exclusion.clause!r} for maintenance or a carve-out"
        return Ruled(exclusion, Ruling.NO_CLAUSE, None, why)
    if exclusion.approved_by is None and not (kind and kind.automatic):
        return Ruled(exclusion, Ruling.NOT_APPROVED, None, f"{exclusion.clause} needs an approval, and has none")
    if kind is None:
        return Ruled(exclusion, Ruling.HONOURED, exclusion.interval, "")
    late = _late(kind, exclusion)
    if late:
        return Ruled(exclusion, Ruling.ANNOUNCED_LATE, None, late)
    if kind.most is not None:
        place = (kind.id, _calendar_unit(exclusion.interval.start_ns, zone, kind.most.per))
        used[place] += 1
        if used[place] > kind.most.count:
            why = (
                f"number {used[place]} of its {kind.most.per}, by start; {kind.id} has at most {kind.most.count}, so "
                "it counts as ordinary time"
            )
            return Ruled(exclusion, Ruling.TOO_MANY, None, why)
    return _first_part(kind, exclusion)


def _late(kind: MaintenanceClass, exclusion: Exclusion) -> str:
    if kind.notice_ns is None:
        return ""
    due_ns = exclusion.interval.start_ns - kind.notice_ns
    if exclusion.announced_at_ns is None:
        return f"never announced; {kind.id} is announced by {format_instant_ns(due_ns)}"
    if exclusion.announced_at_ns > due_ns:
        announced = format_instant_ns(exclusion.announced_at_ns)
        return f"announced at {announced}; {kind.id} is announced by {format_instant_ns(due_ns)}"
    return ""


def _first_part(kind: MaintenanceClass, exclusion: Exclusion) -> Ruled:
    interval, longest_ns = exclusion.interval, kind.longest_ns
    if longest_ns is None or interval.duration_ns <= longest_ns:
        return Ruled(exclusion, Ruling.HONOURED, interval, "")
    why = (
        f"lasts {_seconds(interval.duration_ns)} s; of {kind.id} the first {_seconds(longest_ns)} s are maintenance, "
        "and the rest counts as ordinary time"
    )
    return Ruled(exclusion, Ruling.SHORTENED, Interval(interval.start_ns, interval.start_ns + longest_ns), why)


def _capped_at_ns(terms: ExclusionTerms, rulings: Iterable[Ruled], period: Interval) -> int:
    """The instant at which the maintenance of a period reaches its cap; the period's end where it does not."""
    left_ns = terms.cap_ns
    if left_ns is None:
        return period.end_ns
    honoured = (each.honoured for each in rulings if each.honoured and each.exclusion.clause in terms.classes)
    for part in union(found for each in honoured if (found := clip(each, period)) is not None):
        if part.duration_ns > left_ns:
            return part.start_ns + left_ns
        left_ns -= part.duration_ns
    return period.end_ns


def _capped(ruled: Ruled, part: Interval, capped_at_ns: int, terms: ExclusionTerms) -> Ruled:
    minutes = (terms.cap_ns or 0) // MINUTE_NS
    why = (
        f"the cap of {minutes} minutes of maintenance in a period is reached at {format_instant_ns(capped_at_ns)}, and "
        "the rest counts as ordinary time"
    )
    if capped_at_ns <= part.start_ns:
        return replace(ruled, ruling=Ruling.OVER_CAP, honoured=None, why=why)
    return replace(ruled, ruling=Ruling.SHORTENED, honoured=Interval(part.start_ns, capped_at_ns), why=why)


def _parts(rulings: Sequence[Ruled]) -> tuple[tuple[Interval, int], ...]:
    """The union of what is honoured, cut where another exclusion comes first; the rulings are in order of start."""
    parts: list[tuple[Interval, int]] = []
    end_ns = 0
    for at, each in enumerate(rulings):
        if each.honoured is not None and each.honoured.end_ns > end_ns:
            parts.append((Interval(max(each.honoured.start_ns, end_ns), each.honoured.end_ns), at))
            end_ns = each.honoured.end_ns
    return tuple(parts)


def _calendar_unit(instant_ns: int, zone: str, unit: str) -> tuple[int, int]:
    moment = local_moment(instant_ns, zone)
    return moment.year, moment.month if unit == "month" else (moment.month - 1) // 3


def _seconds(duration_ns: int) -> str:
    """Seconds, to the last digit that is not zero."""
    whole, rest = divmod(duration_ns, SECOND_NS)
    return f"{whole}.{rest:09}".rstrip("0") if rest else str(whole)


def _order(exclusion: Exclusion) -> tuple[int, int, str]:
    return exclusion.interval.start_ns, exclusion.interval.end_ns, exclusion.id


def _part_start(part: tuple[Interval, int]) -> int:
    return part[0].start_ns
