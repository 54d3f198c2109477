"""The windows of a period: where an instant falls, what state a window has, what was counted in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from ledger.domain.attested import COUNT_BITS
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import ImplausibleCounts

MAX_COUNT = 2**COUNT_BITS - 1


class WindowState(StrEnum):
    """``observed``: its data is in; ``excluded``: agreed to leave out whole; ``no_data``: neither."""

    OBSERVED = "observed"
    EXCLUDED = "excluded"
    NO_DATA = "no_data"


@dataclass(frozen=True, slots=True)
class Cell:
    """Good and bad of one objective in one window, in its indicator's unit; ``undecided`` is valid and may be either
    (a histogram whose bounds leave it open).

    Raises ``ImplausibleCounts`` for a count below 0 or above 2^28 - 1 (what a circuit word holds): such a
    figure is a fault of its source and blocks settlement.
    """

    good: int
    bad: int
    undecided: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.good <= MAX_COUNT and 0 <= self.bad <= MAX_COUNT and 0 <= self.undecided <= MAX_COUNT):
            raise ImplausibleCounts(
                f"good {self.good}, bad {self.bad}, undecided {self.undecided}: each must be from 0 to {MAX_COUNT}; "
                "correct the source first",
                good=self.good,
                bad=self.bad,
                undecided=self.undecided,
            )

    @classmethod
    def from_document(cls, said: Mapping[str, int] | None) -> Cell:
        """The cell of what ``as_document`` gives; an empty one where nothing is said."""
        return cls(0, 0) if said is None else cls(said["good"], said["bad"], said.get("undecided", 0))

    def as_document(self) -> dict[str, int]:
        """Plain JSON; without ``undecided`` nothing is."""
        decided = {"good": self.good, "bad": self.bad}
        return {**decided, "undecided": self.undecided} if self.undecided else decided

    @property
    def valid(self) -> int:
        return self.good + self.bad + self.undecided


@dataclass(frozen=True, slots=True)
class Window:
    """One judged window: a state and one cell per objective, in the agreement's order.

    Raises ``ImplausibleCounts`` where a window that was not observed has counts.
    """

    interval: Interval
    state: WindowState
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        if self.state is not WindowState.OBSERVED and not self.empty:
            raise ImplausibleCounts(
                f"a window in state {self.state} has counts; only observed windows count", state=str(self.state)
            )

    @property
    def empty(self) -> bool:
        return all(cell.valid == 0 for cell in self.cells)

    @property
    def idle(self) -> bool:
        """Observed, and nothing came: not the same as missing data."""
        return self.state is WindowState.OBSERVED and self.empty


@contextmanager
def counting(objective: str, interval: Interval) -> Iterator[None]:
    """Says of counts that cannot be whose they are: ``ImplausibleCounts`` names the objective and the window."""
    try:
        yield
    except ImplausibleCounts as error:
        start = format_instant_ns(interval.start_ns)
        said = f"objective {objective}, the window from {start}: {error.message}"
        raise ImplausibleCounts(said, **{**error.data, "objective": objective, "window": start}) from None


def coverage_ok(observed: int, windows: int, excluded: int, floor_bps: int) -> bool:
    """observed / (windows - excluded) >= floor, in integers; the same comparison as in the circuit."""
    return observed * 10_000 >= (windows - excluded) * floor_bps
