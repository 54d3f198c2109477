"""Samples: what a row of a sample log counts to the objectives of an agreement, and what becomes of a period's samples.

A sample counts to an objective of its indicator that names its evaluator, its tokenizer and its resource (or none). It
brings counts, or a value: at least or at most the measure's bound is one good; a score is that many thousandths of the
full one, and what lies between two thousandths is undecided.

Samples are told apart as requests are (``observation``): by (tenant, source, period, sample id). A conflicting id
counts once, as bad: for every objective that any of its bodies counts to, as much as the largest of them, at the
earliest of their times.

Counts that no honest source gives, more good than all, below 0, a score above the full one, are never cut to size. Such
a row is rejected, and its period is not settled until a usable row stands under its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ledger.domain.rows.observation import (
    BodyBook,
    Reason,
    RowRejection,
    SampleRow,
    SampleRows,
    Verdict,
    VerdictCounts,
    request_id_digest,
)
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import SAMPLES
from ledger.domain.terms.objective import SCORE_UNITS, Objective
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval, covered, union
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState, counting
from ledger.domain.windows.window_inputs import Conflict, with_conflicts
from ledger.errors import ImplausibleCounts

_MEASURE_UNIT = 10**9
_MAY_BE_NEGATIVE = ("gpu_memory_leak", "metric_value")


class Counted(NamedTuple):
    """What one sample is to the objective at this place of the agreement."""

    objective: int
    good: int
    bad: int
    undecided: int

    @property
    def valid(self) -> int:
        return self.good + self.bad + self.undecided


class Refused(NamedTuple):
    """Why a sample counts to nothing."""

    reason: Reason
    field: str
    message: str


def scope_of(period: str) -> str:
    """What stands for the period in ``identity_scope``, so that a sample and a request of one id never meet."""
    return f"{period}/{SAMPLES}"


class SampleRule:
    """What one sample counts to the objectives of an agreement."""

    def __init__(self, agreement: Agreement) -> None:
        self._service = agreement.service
        self._of_indicator: dict[str, list[tuple[int, Objective]]] = {}
        for index, objective in enumerate(agreement.objectives):
            if objective.sampled:
                self._of_indicator.setdefault(objective.indicator, []).append((index, objective))

    def counted(self, row: SampleRow) -> tuple[Counted, ...] | Refused:
        """What it counts to each objective that it is for; only plausible counts come back."""
        if row.service != self._service:
            return Refused(Reason.OTHER_SERVICE, "service", f"{row.service[:80]!r} is not {self._service!r}")
        promised = self._of_indicator.get(row.indicator, [])
        of_resource = [(at, each) for at, each in promised if each.resource in (None, row.resource)]
        if not of_resource:
            said = f" of {row.resource[:80]!r}" if promised and row.resource is not None else ""
            return Refused(Reason.NOT_PROMISED, "indicator", f"no objective promises {row.indicator}{said}")
        judged = [(at, each) for at, each in of_resource if each.evaluator in (None, row.evaluator)]
        if not judged:
            named = [each.evaluator for _, each in of_resource]
            return _other(Reason.OTHER_EVALUATOR, "evaluator", row.evaluator, named)
        found = [(at, each) for at, each in judged if each.tokenizer in (None, row.tokenizer)]
        if not found:
            return _other(Reason.OTHER_TOKENIZER, "tokenizer", row.tokenizer, [each.tokenizer for _, each in judged])
        wrong = _implausible(row, [each for _, each in found])
        if wrong is not None:
            return wrong
        if row.counts is not None:
            return tuple(Counted(at, *row.counts) for at, _ in found)
        if any(each.measure is None for _, each in found):
            return Refused(Reason.MEASURE_MISSING, "value", "no measure says which values are good; hand in counts")
        return tuple(_measured(at, each, row.value or Fraction(0)) for at, each in found)


class SampleBook:
    """Takes the samples of one period, in any order, and gives the cells of the sampled objectives.

    ``spans`` are where sample logs are declared complete; None: in the whole period. A row is rejected where it lies
    outside the period, or outside the spans declared for its batch. What lies in ``excluded`` time leaves both sides,
    an id in conflict only where every body of it does; it counts in an observed window where it can (``Evaluator``).
    """

    def __init__(
        self,
        agreement: Agreement,
        period: Period,
        *,
        tenant: str = "",
        spans: Sequence[Interval] | None = None,
        excluded: Excluded = NOTHING_EXCLUDED,
    ) -> None:
        self.counts = VerdictCounts()
        self._agreement = agreement
        self._period = period
        self._scope = (tenant, agreement.source, scope_of(str(period)))
        self._spans = None if spans is None else union(spans)
        self._excluded = excluded
        self._rule = SampleRule(agreement)
        self._book = BodyBook({})
        self._found: dict[bytes, tuple[int, tuple[Counted, ...]]] = {}
        self._implausible: dict[bytes, tuple[SampleRow, Refused]] = {}
        # Of each batch the windows it has samples in; the first takes samples that are added one by one.
        self._reaches: list[set[int]] = [set()]
        self._first_batch: dict[bytes, int] = {}
        self._conflicts: dict[bytes, Conflict] = {}

    def declare(self, spans: Sequence[Interval]) -> None:
        """Windows are observed in these spans, instead of those given before."""
        self._spans = union(spans)

    def add_all(self, rows: SampleRows, *, within: Sequence[Interval] = ()) -> None:
        """Take the rows of one batch; ``within`` are the spans declared for it, none: nothing lies outside."""
        self._reaches.append(set())
        for row in rows:
            self.add(row, within=within)

    @property
    def looks_around(self) -> bool:
        """Whether an id came with two bodies: what it counts may depend on which windows are observed."""
        return bool(self._conflicts)

    def reaches(self) -> list[set[int]]:
        """Of each batch (``add_all``), in the order in which they came, the windows whose counts stand on its rows."""
        return with_conflicts(self._reaches, self._conflicts.values())[1:]

    def add(self, row: SampleRow | RowRejection, *, within: Sequence[Interval] = ()) -> Verdict | RowRejection:
        """Take one row. A rejection comes back as ``RowRejection``."""
        if isinstance(row, RowRejection):
            self.counts.reject(row.reason)
            return row
        counted = self._rule.counted(row)
        if isinstance(counted, Refused) and counted.reason is Reason.OTHER_SERVICE:
            return self._reject(row, counted)
        if row.at_ns not in self._period.interval:
            return self._reject(row, Refused(Reason.OUTSIDE_PERIOD, "at", f"lies outside the period {self._period}"))
        if within and not any(row.at_ns in span for span in within):
            return self._reject(row, Refused(Reason.OUTSIDE_SPAN, "at", "lies outside the spans declared complete"))
        identity = request_id_digest(*self._scope, row.sample_id)
        if isinstance(counted, Refused):
            if counted.reason is Reason.IMPLAUSIBLE:
                self._implausible.setdefault(identity, (row, counted))
            return self._reject(row, counted)
        verdict, batch = self._book.classify(identity, row.body_digest), len(self._reaches) - 1
        self._reaches[batch].add(self._index(row.at_ns))
        if verdict is Verdict.ACCEPTED:
            self.counts.accepted += 1
            self._first_batch[identity] = batch
            self._found[identity] = (row.at_ns, counted)
        elif verdict is Verdict.DUPLICATE:
            self.counts.duplicates += 1
        else:
            self.counts.conflicts += 1
            at_ns, before = self._found[identity]
            known = Conflict({self._index(at_ns)}, {self._first_batch[identity]}, {at_ns})
            conflict = self._conflicts.setdefault(identity, known)
            conflict.times_ns.add(row.at_ns)
            conflict.windows.add(self._index(row.at_ns))
            conflict.batches.add(batch)
            first_ns = min(at_ns, row.at_ns, key=lambda each: (self._left_out(each), each))
            self._found[identity] = (first_ns, _all_bad(before, counted))
        return verdict

    def windows(self, judged: Sequence[Window]) -> tuple[Window, ...]:
        """The period's windows with the cells of its samples; one that no sample log covers has no data.

        Raises ``ImplausibleCounts`` where a rejected count stands unanswered.
        """
        for identity, (row, refused) in self._implausible.items():
            if identity not in self._found:
                raise ImplausibleCounts(
                    f"sample {row.sample_id[:80]!r} (line {row.line}): {refused.field}: {refused.message}; "
                    "hand in a row of the same id that says what was measured",
                    sample_id=row.sample_id[:80],
                    field=refused.field,
                )
        sampled = [objective.sampled for objective in self._agreement.objectives]
        sums: dict[tuple[int, int], list[int]] = {}
        seen = [each.state is WindowState.OBSERVED and self._covers(each.interval) for each in judged]
        for identity, (first_ns, counted) in self._found.items():
            if self._left_out(first_ns):
                continue
            window = self._index(first_ns)
            if identity in self._conflicts and not seen[window]:
                window = self._observed_body(self._conflicts[identity], seen, window)
            for each in counted:
                cell = sums.setdefault((window, each.objective), [0, 0, 0])
                cell[0] += each.good
                cell[1] += each.bad
                cell[2] += each.undecided
        return tuple(self._window(window, at, sampled, sums) for at, window in enumerate(judged))

    def _window(
        self, window: Window, at: int, sampled: Sequence[bool], sums: Mapping[tuple[int, int], Sequence[int]]
    ) -> Window:
        if window.state is not WindowState.OBSERVED:
            return window
        if not self._covers(window.interval):
            return Window(window.interval, WindowState.NO_DATA, tuple(Cell(0, 0) for _ in sampled))
        cells = list(window.cells)
        for index, objective in enumerate(self._agreement.objectives):
            if sampled[index]:
                with counting(objective.id, window.interval):
                    cells[index] = Cell(*sums.get((at, index), (0, 0)))
        return Window(window.interval, window.state, tuple(cells))

    def _covers(self, interval: Interval) -> bool:
        return self._spans is None or covered(interval, self._spans)

    def _observed_body(self, conflict: Conflict, seen: Sequence[bool], otherwise: int) -> int:
        """The window of the first body in conflict that lies in an observed one, and in no excluded time."""
        found = (self._index(at_ns) for at_ns in sorted(conflict.times_ns) if not self._left_out(at_ns))
        return next((window for window in found if seen[window]), otherwise)

    def _index(self, at_ns: int) -> int:
        return (at_ns - self._period.interval.start_ns) // (self._agreement.window_seconds * SECOND_NS)

    def _left_out(self, at_ns: int) -> bool:
        return self._excluded.position(at_ns) is not None

    def _reject(self, row: SampleRow, refused: Refused) -> RowRejection:
        self.counts.reject(refused.reason)
        return RowRejection(row.line, *refused)


def _other(reason: Reason, field: str, said: str | None, named: Sequence[str | None]) -> Refused:
    says = "the sample names none" if said is None else repr(said[:80])
    return Refused(reason, field, f"{says}; the agreement names {', '.join(sorted(set(filter(None, named))))}")


def _measured(index: int, objective: Objective, value: Fraction) -> Counted:
    measure = objective.measure
    assert measure is not None  # noqa: S101 (SampleRule.counted has looked)
    bound = Fraction(measure.bound, _MEASURE_UNIT)
    if measure.kind == "score_of":
        good, rest = divmod(value * SCORE_UNITS, bound)
        undecided = 1 if rest else 0
        return Counted(index, int(good), SCORE_UNITS - int(good) - undecided, undecided)
    good = value >= bound if measure.kind == "at_least" else value <= bound
    return Counted(index, int(good), 1 - int(good), 0)


def _implausible(row: SampleRow, objectives: Sequence[Objective]) -> Refused | None:
    if row.counts is not None:
        for field, count in zip(("good", "bad", "undecided"), row.counts, strict=True):
            if not 0 <= count <= MAX_COUNT:
                hint = "; is good more than the total?" if field == "bad" and count < 0 else ""
                return Refused(Reason.IMPLAUSIBLE, field, f"{count} is not from 0 to {MAX_COUNT}{hint}")
        return None
    value = row.value or Fraction(0)
    scores = [each.measure for each in objectives if each.measure is not None and each.measure.kind == "score_of"]
    if value < 0 and (scores or row.indicator not in _MAY_BE_NEGATIVE):
        return Refused(Reason.IMPLAUSIBLE, "value", f"no {row.indicator} is below 0")
    for score in scores:
        if value * _MEASURE_UNIT > score.bound:
            return Refused(Reason.IMPLAUSIBLE, "value", "is more than the full score, and so more than 100 %")
    return None


def _all_bad(*bodies: Sequence[Counted]) -> tuple[Counted, ...]:
    most: dict[int, int] = {}
    for each in (each for body in bodies for each in body):
        most[each.objective] = max(most.get(each.objective, 0), each.valid)
    return tuple(Counted(index, 0, valid, 0) for index, valid in sorted(most.items()))
