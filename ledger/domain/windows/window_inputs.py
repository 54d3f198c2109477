"""Which batches a window was judged from: those it has counts of, and those that show its log to be complete.

A month of five-minute windows has thousands of batches, and no window stands on more than a few of them. What is named
for a window follows from the facts alone, in whatever order they came. With a repeat window, which failures only repeat
another follows from those before them, too; they are in the windows before, and named there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter
from typing import NamedTuple

from ledger.domain.time.interval import Interval, covered, union
from ledger.domain.windows.window import Window, WindowState


@dataclass(frozen=True, slots=True)
class Conflict:
    """When the bodies of one id are said to have been, in which windows that is, and which batches brought them, by
    their number."""

    windows: set[int]
    batches: set[int]
    times_ns: set[int]


def with_conflicts(reaches: Iterable[set[int]], conflicts: Iterable[Conflict]) -> list[set[int]]:
    """Of each batch the windows whose counts stand on it, given those it has rows in: what becomes of an id in conflict
    stands on all its bodies, wherever they lie."""
    found = [set(reach) for reach in reaches]
    for conflict in conflicts:
        for batch in conflict.batches:
            found[batch] |= conflict.windows
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of one kind of facts: the windows whose counts stand on it (``with_conflicts``), and the spans for which
    it was declared complete."""

    digest: str
    windows: Collection[int]
    declared: Sequence[Interval]


def window_inputs(windows: Sequence[Window], batches: Sequence[Batch]) -> list[set[str]]:
    """The digests behind each window (in order, without gaps), as far as batches of one kind go.

    An observed window has, beside the batches of its counts, what shows it to be complete where they do not: one
    declaration that holds it whole, of several the first to end, or else as few as cover it together.
    """
    found: list[set[str]] = [set() for _ in windows]
    shown = [window.state is not WindowState.OBSERVED for window in windows]
    for batch in batches:
        declared = union(batch.declared)
        for at in batch.windows:
            found[at].add(batch.digest)
            shown[at] = shown[at] or covered(windows[at].interval, declared)
    for at, declarations in enumerate(_declarations(windows, batches)):
        if not shown[at]:
            found[at].update(declarations)
    return found


class _Declaration(NamedTuple):
    """A declaration of completeness, and the batch that it came with: sorted, the first to end come first."""

    end_ns: int
    start_ns: int
    digest: str


_START = attrgetter("start_ns")


def _declarations(windows: Sequence[Window], batches: Sequence[Batch]) -> Iterable[Collection[str]]:
    """For each window the batches whose declarations cover it; none where they do not.

    One walk over both, so that thousands of declarations which all began long ago cost each window nothing.
    """
    declarations = {
        _Declaration(span.end_ns, span.start_ns, batch.digest) for batch in batches for span in batch.declared
    }
    coming = sorted(declarations, key=_START, reverse=True)
    begun: list[_Declaration] = []
    for window in windows:
        start_ns, end_ns = window.interval.start_ns, window.interval.end_ns
        while coming and coming[-1].start_ns <= start_ns:
            heappush(begun, coming.pop())
        within = []
        while begun and begun[0].end_ns < end_ns:
            within.append(heappop(begun))
        if begun:
            yield (begun[0].digest,)
            continue
        while coming and coming[-1].start_ns < end_ns:
            within.append(coming.pop())
        for each in within:
            if each.end_ns > end_ns:
                heappush(begun, each)
        yield _joined(within, start_ns, end_ns)


def _joined(declarations: Iterable[_Declaration], start_ns: int, end_ns: int) -> Collection[str]:
    """The fewest declarations that cover a time together: on with the one that reaches farthest into it."""
    found = set[str]()
    best: _Declaration | None = None
    for each in (*sorted(declarations, key=_START), None):
        while best is not None and (each is None or each.start_ns > start_ns):
            if best.end_ns <= start_ns:
                return ()
            found.add(best.digest)
            start_ns = best.end_ns
            if start_ns >= end_ns:
                return found
        if each is None or each.start_ns > start_ns:
            return ()
        if best is None or _reach(each, end_ns) > _reach(best, end_ns):
            best = each
    return ()


def _reach(declaration: _Declaration, end_ns: int) -> tuple[int, int, int, str]:
    """Sorted, one that reaches as far as another and is the first to end comes after it."""
    end, start, digest = declaration
    return min(end, end_ns), -end, -start, digest
