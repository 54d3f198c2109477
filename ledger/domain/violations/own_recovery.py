"""Recovery times from the violations that the ledger itself found: nobody has to hand in samples, or may leave one out.

An objective of ``recovery_time`` with ``source: own_violations`` counts every violation of the agreement's other
objectives in the period: good if service was back within the bound, from opened to closed. It counts in the last
observed window of the violation. One that is still open has not been recovered from: it is bad once it lasts longer
than the bound, and counts nothing before. What such an objective itself comes to is no violation that it counts.

A pure function of the windows that all other objectives gave: the order of facts changes nothing, and where other facts
withdraw a violation its recovery is gone with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import OWN_VIOLATIONS
from ledger.domain.terms.objective import Measure
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.violations.recovery import recovery_samples
from ledger.domain.violations.violation import Violation, violations
from ledger.domain.windows.window import Cell, Window, WindowState

_MEASURE_UNIT = 10**9


def with_own_recoveries(agreement: Agreement, windows: Sequence[Window]) -> tuple[Window, ...]:
    """The windows of a period with the cells of the objectives that count the agreement's own violations."""
    own = {
        index: objective.measure
        for index, objective in enumerate(agreement.objectives)
        if objective.source.kind == OWN_VIOLATIONS and objective.measure is not None
    }
    if not own:
        return tuple(windows)
    found = [each for each in violations(agreement, windows) if each.objective.source.kind != OWN_VIOLATIONS]
    added: dict[tuple[int, int], list[int]] = {}
    for index, measure in own.items():
        for violation in found:
            in_time = _in_time(violation, measure)
            if in_time is not None:
                counts = added.setdefault((_last_observed(violation, windows), index), [0, 0])
                counts[0 if in_time else 1] += 1
    return tuple(_with(window, at, own, added) for at, window in enumerate(windows))


def _in_time(violation: Violation, measure: Measure) -> bool | None:
    """Whether service was back within the bound; None where that is not known yet."""
    bound = Fraction(measure.bound, _MEASURE_UNIT)
    if violation.open:
        lasted = Fraction(violation.interval.duration_ns, SECOND_NS)
        return False if lasted > bound else None
    (sample,) = recovery_samples([violation])
    return sample.seconds <= bound


def _last_observed(violation: Violation, windows: Sequence[Window]) -> int:
    """Slices may reach over windows without data; what breaks a promise was observed somewhere."""
    run = range(violation.first_window, violation.first_window + violation.windows)
    return max(at for at in run if windows[at].state is WindowState.OBSERVED)


def _with(window: Window, at: int, own: dict[int, Measure], added: dict[tuple[int, int], list[int]]) -> Window:
    cells = (Cell(*added.get((at, index), (0, 0))) if index in own else cell for index, cell in enumerate(window.cells))
    return Window(window.interval, window.state, tuple(cells))
