"""From rows to windows: each row gets its verdict, each window its cells (``ledger.domain.facts.outcome``)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ledger.domain.facts.outcome import OUTCOME_BITS, ExcludedTime, LeftOut, OutcomeRule, only, repeated_failures
from ledger.domain.rows.observation import (
    DistinctIds,
    IdentityBook,
    Reason,
    RequestColumns,
    RequestRow,
    RowRejection,
    Rows,
    Verdict,
    VerdictCounts,
    one_by_one,
)
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.time.interval import Interval, covered, union
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.domain.windows.window_inputs import Conflict, with_conflicts


class Evaluator:
    """Takes the rows of one service in one period, in any order, and gives verdicts and windows.

    Without ``spans`` the rows are the complete log of the period: every window is observed, and one without
    rows is idle. With spans a window is observed only where their union holds it whole, and a row in a span but in
    a window that is not observed is accepted and counts nowhere. A row is rejected when it names another service,
    lies outside the period, lies outside the spans that were declared for its batch (``add_all``; else all of them), or
    has a wrong type in a member that the agreement's selectors ask for (``where``). What is rejected takes no part in
    telling duplicates and conflicts.

    ``declared`` are those of the spans that were declared for the rows, where others are heartbeats: a row outside them
    is not rejected for it. With it no window is observed that the spans do not hold, even if there are none.

    ``excluded`` is what is taken out of the period: a window that lies in it whole is excluded, with or without data,
    and any other one keeps what starts outside it. An id in conflict is taken out only where every body of it starts
    in excluded time: nobody gets rid of a failure by sending its id again with a start in a maintenance. Nor with one
    in a window without data: where a body of it lies in an observed window, it counts there.

    Without ``period`` the period of the first row of the service is taken; ``other_periods`` then tells how
    many rows lie elsewhere (key None: in no period of the agreement), and the result may only be used when it
    is empty.

    ``distinct`` is for rows of which no id is expected to come twice, at half the time: where one does,
    ``IdRepeated`` is raised, and another evaluator without ``distinct`` has to take everything again.
    """

    def __init__(
        self,
        agreement: Agreement,
        period: Period | None = None,
        *,
        tenant: str = "",
        spans: Sequence[Interval] = (),
        declared: Sequence[Interval] | None = None,
        excluded: Excluded = NOTHING_EXCLUDED,
        distinct: bool = False,
    ) -> None:
        self.period = period
        self.counts = VerdictCounts()
        self.other_periods: dict[Period | None, int] = {}
        self.other_services: dict[str, int] = {}
        self._agreement = agreement
        self._service = agreement.service
        self._spans = union(spans)
        self._partial = bool(self._spans) or declared is not None
        self._declared = self._within = self._spans if declared is None else union(declared)
        self._rule = OutcomeRule(agreement)
        self._gaps = ExcludedTime(excluded, len(agreement.exclusions))
        self._has_gaps = bool(self._gaps)
        scope = (tenant, agreement.source, str(period or ""))
        self._ids = DistinctIds(*scope) if distinct else None
        self._book = self._ids or IdentityBook(*scope)
        self._fixed = period is not None
        self._last_found: Period | None = None
        self._start_ns = self._end_ns = self._low_ns = self._high_ns = self._step_ns = 0
        self._starts_ns = array("q")
        # Only grades need more than the 32 bits that keep a million requests small.
        self._key_shift = self._rule.bits
        self._selects = self._rule.selects
        # Of each slot what its bodies fail, where that is not the same for all rows.
        self._failed_as = array("I")
        self._outcomes: array[int] | list[int] = array("I") if self._key_shift == OUTCOME_BITS else []
        self._conflicts: dict[int, Conflict] = {}
        self._tally: dict[int, int] = {}
        # Of each batch the windows it has rows in, and the slots that there were before it; the first is no batch, and
        # takes rows that are added one by one.
        self._reaches: list[set[int]] = [set()]
        self._reach = self._reaches[0]
        self._slots_before = [0]
        if period is not None:
            self._take(period)

    def declare(self, spans: Sequence[Interval]) -> None:
        """Windows are observed in these spans, instead of those given before, and in no others."""
        self._spans, self._partial = union(spans), True

    def add(self, row: RequestRow | RowRejection) -> Verdict | RowRejection:
        """Count one row. A rejection that this scope makes comes back as ``RowRejection``."""
        if isinstance(row, RowRejection):
            self.counts.reject(row.reason)
            return row
        if row.service != self._service:
            return self._reject_service(row)
        start_ns = row.started_at_ns
        if not self._start_ns <= start_ns < self._end_ns:
            refused = self._outside_period(row)
            if refused is not None:
                return refused
        if self._within and not any(start_ns in span for span in self._within):
            return self._reject(row, Reason.OUTSIDE_SPAN, "started_at", "lies outside the spans declared complete")
        return self._count(row)

    def _count(self, row: RequestRow) -> Verdict | RowRejection:
        """Count a row that lies in the period and its spans."""
        start_ns, selected = row.started_at_ns, None
        if self._selects:
            found = self._rule.selected(row)
            if isinstance(found, RowRejection):
                self.counts.reject(found.reason)
                return found
            selected = found
        verdict, slot = self._book.classify(row)
        if verdict is Verdict.ACCEPTED:
            outcome = self._rule.outcome(row)
            if selected is not None:
                outcome = only(outcome, selected)
                self._failed_as.append(self._rule.failed & selected)
            if self._has_gaps:
                outcome = self._gaps.outcome(start_ns) or outcome
            self._starts_ns.append(start_ns)
            self._outcomes.append(outcome)
            window = self._index(start_ns)
            self._reach.add(window)
            key = window << self._key_shift | outcome
            self._tally[key] = self._tally.get(key, 0) + 1
            self.counts.accepted += 1
        elif verdict is Verdict.DUPLICATE:
            self._reach.add(self._index(start_ns))
            self.counts.duplicates += 1
        else:
            self._mark_conflict(slot, start_ns, self._rule.failed if selected is None else self._rule.failed & selected)
            self.counts.conflicts += 1
        return verdict

    def add_all(self, rows: Rows, *, within: Sequence[Interval] | None = None) -> None:
        """Count the rows of one batch.

        ``within`` are the spans declared for this batch; empty: none were, and nothing lies outside. Without it every
        span counts as declared for the batch.
        """
        self._take_spans(self._declared if within is None else union(within))
        self._reach = set()
        self._reaches.append(self._reach)
        self._slots_before.append(len(self._starts_ns))
        add, count, service = self.add, self._count, self._service
        for row in one_by_one(rows) if self._ids is None else self._others(self._ids, rows):
            # What nearly every row of a log is takes the short way.
            if type(row) is RequestRow and self._low_ns <= row.started_at_ns < self._high_ns and row.service == service:
                count(row)
            else:
                add(row)
        self._take_spans(self._declared)

    def _others(self, ids: DistinctIds, rows: Rows) -> Iterator[RequestRow | RowRejection]:
        """Count columns of rows that nothing is special about; the rows that are left."""
        for each in rows:
            if type(each) is not RequestColumns:
                yield each  # type: ignore[misc]
            elif (
                each.all_of(self._service, self._low_ns, self._high_ns)
                and (selected := self._rule.all_selected(each)) is not None
            ):
                ids.take(each.request_ids)
                first_ns, step_ns, outcomes = self._start_ns, self._step_ns, self._rule.outcomes(each, selected)
                if self._has_gaps:
                    outcomes = self._gaps.outcomes(each.starts_ns, outcomes)
                if self._rule.repeats:
                    self._keep_failures(each, outcomes)
                shift = self._key_shift
                keys = [
                    (start_ns - first_ns) // step_ns << shift | outcome
                    for start_ns, outcome in zip(each.starts_ns, outcomes, strict=True)
                ]
                for key, count in Counter(keys).items():
                    self._tally[key] = self._tally.get(key, 0) + count
                    self._reach.add(key >> shift)
                self.counts.accepted += len(each)
            else:
                yield from each.rows()

    def _keep_failures(self, columns: RequestColumns, outcomes: Sequence[int]) -> None:
        """What a repeat window needs of columns: of distinct ids no slot is ever asked for."""
        failed = {
            each for each in set(outcomes) if any(self._rule.fails(each, index) for index, _ in self._rule.repeats)
        }
        for start_ns, outcome in zip(columns.starts_ns, outcomes, strict=True):
            if outcome in failed:
                self._starts_ns.append(start_ns)
                self._outcomes.append(outcome)

    def windows(self) -> tuple[Window, ...]:
        """The judged windows of the period; raises ``ImplausibleCounts`` if a cell overflows 28 bits."""
        if self.period is None:
            return ()
        intervals = self._agreement.windows(self.period)
        good = [[0] * len(self._agreement.objectives) for _ in intervals]
        bad = [[0] * len(self._agreement.objectives) for _ in intervals]
        for key, count in self._placed().items():
            at = key >> self._key_shift
            for index in range(len(self._agreement.objectives)):
                counted = self._rule.counted(key, index)
                if counted is not None:
                    good[at][index] += counted[0] * count
                    bad[at][index] += counted[1] * count
        for index, within_ns in self._rule.repeats:
            for start_ns in repeated_failures(self._failures(intervals, index), within_ns):
                bad[(start_ns - self._start_ns) // self._step_ns][index] -= 1
        return tuple(
            self._window(interval, tuple(zip(good[at], bad[at], strict=True))) for at, interval in enumerate(intervals)
        )

    def _placed(self) -> Mapping[int, int]:
        """The tally, with each id in conflict in a window that is observed, where one of its bodies lies in one."""
        if self.period is None or not self._partial or not self._conflicts:
            return self._tally
        observed = [covered(interval, self._spans) for interval in self._agreement.windows(self.period)]
        placed = dict(self._tally)
        for slot, conflict in self._conflicts.items():
            counted_ns, failed = self._starts_ns[slot], self._outcomes[slot]
            seen = [
                at_ns for at_ns in conflict.times_ns if observed[self._index(at_ns)] and not self._gaps.outcome(at_ns)
            ]
            if seen and not observed[self._index(counted_ns)] and not self._gaps.outcome(counted_ns):
                placed[self._index(counted_ns) << self._key_shift | failed] -= 1
                key = self._index(min(seen)) << self._key_shift | failed
                placed[key] = placed.get(key, 0) + 1
        return placed

    def _failures(self, intervals: Sequence[Interval], index: int) -> list[int]:
        """Starts of the requests in observed windows that failed to the objective at ``index``.

        Without conflicting ids: which of their bodies is true nobody knows, so they are no repeats and have none.
        """
        failed = {each for each in set(self._outcomes) if self._rule.fails(each, index)}
        found = [
            start_ns
            for slot, (start_ns, outcome) in enumerate(zip(self._starts_ns, self._outcomes, strict=True))
            if outcome in failed and slot not in self._conflicts
        ]
        if not self._partial:
            return found
        observed = [covered(interval, self._spans) for interval in intervals]
        return [start_ns for start_ns in found if observed[(start_ns - self._start_ns) // self._step_ns]]

    def excluded_requests(self, index: int | None = None) -> dict[str, int]:
        """Requests that each exclusion clause took out, in window ``index`` or in the whole period."""
        clauses = self._agreement.exclusions
        found = dict.fromkeys((clause.id for clause in clauses), 0)
        for key, count in self._tally.items():
            outcome = key & (1 << self._key_shift) - 1
            if 0 < outcome <= len(clauses) and index in (None, key >> self._key_shift):
                found[clauses[outcome - 1].id] += count
        return found

    def left_out(self) -> list[LeftOut]:
        """What left both sides, window by window."""
        if self.period is None:
            return []
        clauses = self._agreement.exclusions
        found = [
            LeftOut(dict.fromkeys((clause.id for clause in clauses), 0), {})
            for _ in range(self._agreement.window_count(self.period))
        ]
        for part, at in self._gaps.parts:
            for index in range(self._index(part.start_ns), self._index(part.end_ns - 1) + 1):
                found[index].by_exclusion[self._gaps.rulings[at].exclusion.id] = 0
        for key, count in self._tally.items():
            outcome, left = key & (1 << self._key_shift) - 1, found[key >> self._key_shift]
            if 0 < outcome <= len(clauses):
                left.by_clause[clauses[outcome - 1].id] += count
            elif (name := self._gaps.named(outcome)) is not None:
                left.by_exclusion[name] += count
        return found

    @property
    def looks_around(self) -> bool:
        """Whether what a window counts may depend on which others are observed: ids in conflict, repeat windows."""
        return bool(self._conflicts or self._rule.repeats)

    def reaches(self) -> list[set[int]]:
        """Of each batch (``add_all``), in the order in which they came, the windows whose counts stand on its rows."""
        return with_conflicts(self._reaches, self._conflicts.values())[1:]

    def uncounted_requests(self) -> int:
        """Accepted requests that lie in windows which no declaration covers whole: they count nowhere."""
        states = [window.state for window in self.windows()]
        shift = self._key_shift
        return sum(count for key, count in self._placed().items() if states[key >> shift] is WindowState.NO_DATA)

    def _index(self, instant_ns: int) -> int:
        """The window of an instant of the period."""
        return (instant_ns - self._start_ns) // self._step_ns

    def _window(self, interval: Interval, counts: tuple[tuple[int, int], ...]) -> Window:
        if covered(interval, self._gaps.union):
            return Window(interval, WindowState.EXCLUDED, tuple(Cell(0, 0) for _ in counts))
        if self._partial and not covered(interval, self._spans):
            return Window(interval, WindowState.NO_DATA, tuple(Cell(0, 0) for _ in counts))
        return Window(interval, WindowState.OBSERVED, tuple(Cell(*pair) for pair in counts))

    def _take_spans(self, within: tuple[Interval, ...]) -> None:
        """What is declared for the rows that come; mostly one span, so what it shares with the period is kept."""
        self._within = within
        self._low_ns, self._high_ns = self._start_ns, self._end_ns
        if within:
            self._low_ns = max(self._start_ns, within[0].start_ns)
            self._high_ns = min(self._end_ns, within[0].end_ns)

    def _take(self, period: Period) -> None:
        self.period = period
        self._start_ns, self._end_ns = period.interval.start_ns, period.interval.end_ns
        self._take_spans(self._within)
        self._step_ns = period.interval.duration_ns // self._agreement.window_count(period)

    def _outside_period(self, row: RequestRow) -> RowRejection | None:
        if not self._fixed:
            found = self._find_period(row.started_at_ns)
            if self.period is None and found is not None:
                self._take(found)
                return None
            self.other_periods[found] = self.other_periods.get(found, 0) + 1
        where = f"the period {self.period}" if self.period else "every period of the agreement"
        return self._reject(row, Reason.OUTSIDE_PERIOD, "started_at", f"lies outside {where}")

    def _find_period(self, instant_ns: int) -> Period | None:
        """The period of an instant; logs are nearly sorted, so first try the one found last."""
        if self._last_found is None or instant_ns not in self._last_found.interval:
            self._last_found = self._agreement.periods.at(instant_ns)
        return self._last_found

    def _reject_service(self, row: RequestRow) -> RowRejection:
        if row.service in self.other_services or len(self.other_services) < 100:
            self.other_services[row.service] = self.other_services.get(row.service, 0) + 1
        message = f"{row.service[:80]!r} is not the service {self._service!r}"
        return self._reject(row, Reason.OTHER_SERVICE, "service", message)

    def _reject(self, row: RequestRow, reason: Reason, field: str, message: str) -> RowRejection:
        self.counts.reject(reason)
        return RowRejection(row.line, reason, field, message)

    def _mark_conflict(self, slot: int, start_ns: int, failed: int) -> None:
        """Count the id as failed in the window of its earliest start outside excluded time, instead of what was counted
        so far. ``failed`` is the outcome of its new body, were it a failure."""
        earlier_ns, outcome = self._starts_ns[slot], self._outcomes[slot]
        first_ns = min(start_ns, earlier_ns, key=lambda at_ns: (self._gaps.outcome(at_ns) > 0, at_ns))
        if self._failed_as:
            failed = self._failed_as[slot] = self._failed_as[slot] | failed
        failed = self._gaps.outcome(first_ns) or failed
        self._tally[(earlier_ns - self._start_ns) // self._step_ns << self._key_shift | outcome] -= 1
        key = (first_ns - self._start_ns) // self._step_ns << self._key_shift | failed
        self._tally[key] = self._tally.get(key, 0) + 1
        self._starts_ns[slot], self._outcomes[slot] = first_ns, failed
        conflict = self._conflicts.get(slot)
        if conflict is None:
            known = Conflict({self._index(earlier_ns)}, {self._batch_of(slot)}, {earlier_ns})
            conflict = self._conflicts[slot] = known
        conflict.times_ns.add(start_ns)
        conflict.windows.add(self._index(start_ns))
        conflict.batches.add(len(self._reaches) - 1)

    def _batch_of(self, slot: int) -> int:
        """Which batch brought the first body of a slot: the last one that began before it."""
        return bisect_right(self._slots_before, slot) - 1
