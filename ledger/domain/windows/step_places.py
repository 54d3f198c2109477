"""In which window a step of a series counts: in the one in which it was seen.

Where that instant is excluded, or its window has no data, the step counts at the last instant of its own time that is
neither. For what happened before a reading that is missing, or in conflict, is seen at the next one: whoever sends
another value for a reading, so that the next one lies in a maintenance, would get rid of the failures before it. What
lies in such time whole counts nowhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import Excluded


class Moved(NamedTuple):
    """A step that counts in another window than the one in which it was seen."""

    series: Hashable
    since_ns: int
    at_ns: int
    within: Interval


class StepPlaces:
    """Places steps in the windows of a period; ``with_data`` says of each whether it has any."""

    def __init__(self, windows: Sequence[Interval], excluded: Excluded, with_data: Sequence[bool]) -> None:
        self._windows, self._excluded, self._with_data = windows, excluded, with_data
        self._start_ns = windows[0].start_ns
        self._step_ns = windows[0].duration_ns
        self.moved: list[Moved] = []

    def place(self, series: Hashable, since_ns: int, at_ns: int) -> int | None:
        """The window of what happened after ``since_ns`` up to and with ``at_ns``; None: it counts nowhere."""
        instant_ns = self._not_excluded(since_ns, at_ns)
        while instant_ns is not None:
            window = (instant_ns - 1 - self._start_ns) // self._step_ns
            if self._with_data[window]:
                if instant_ns != at_ns:
                    self.move(series, since_ns, at_ns, window)
                return window
            instant_ns = self._not_excluded(since_ns, self._windows[window].start_ns)
        return None

    def move(self, series: Hashable, since_ns: int, at_ns: int, window: int) -> None:
        """Note that a step counts in another window than the one in which it was seen."""
        self.moved.append(Moved(series, since_ns, at_ns, self._windows[window]))

    def excludes(self, since_ns: int, at_ns: int) -> bool:
        """Whether a step lies in excluded time whole."""
        return self._not_excluded(since_ns, at_ns) is None

    def _not_excluded(self, since_ns: int, at_ns: int) -> int | None:
        """The last instant of a step's time in this period that is not excluded."""
        while at_ns > max(since_ns, self._start_ns):
            part = self._excluded.part_at(at_ns - 1)
            if part is None:
                return at_ns
            at_ns = part.start_ns
        return None
