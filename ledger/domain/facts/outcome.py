"""What one request counts to each objective of an agreement.

availability,
error_rate     valid = requests that no exclusion clause takes out, good = those that succeeded
*_latency      valid = requests that succeeded, good = those at or under the threshold
graded scores  valid as for availability, in thousandths of a request: the score of the first grade whose bound holds
               the latency, 0 beyond the last bound and for a failed request
other sources  nothing: their counts come from elsewhere (``samples``, ``feeds``)

A request succeeded when its error code is null; any code (429, -100, 0, ...) is a failure, and a clause can
take named codes out of both sides. A stream that breaks off after its first token is a failure like any other, and
its first token counts for no latency. A conflicting id is a failure without a code (see ``observation``).

A request that starts in time that is excluded (``exclusions``) leaves both sides too, whatever became of it.

To an objective with a selector (``where``) only the requests that it selects are valid. A conflicting id is a failure
to each objective that selects one of its bodies.

With a repeat window (Azure AI) failed requests that repeat an earlier failure leave both sides (``repeated_failures``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.domain.rows.observation import RequestColumns, RequestRow, RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import REQUESTS
from ledger.domain.terms.objective import SCORE_UNITS
from ledger.domain.terms.where import Said, Selection, Where
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.windows.exclusions import Excluded

# An outcome says for each objective whether a request is valid (bits 16 to 31) and good (lower bits), and above both
# which bounds of a graded objective it keeps. Of a request that a clause takes out no bit is valid, and the lower bits
# are the clause's number from 1, or, after the clauses, the number of the exclusion in whose time it starts; without
# availability among the objectives a failed request is valid to none, and its outcome is 0. A key of the tally has the
# window above the outcome.
VALID_SHIFT = 16
OUTCOME_BITS = 32


def repeated_failures(starts_ns: Iterable[int], within_ns: int) -> list[int]:
    """The starts of failed requests that only repeat a failure, and so leave both sides of the ratio.

    The first failure opens a window of ``within_ns``, which holds its start and not its end; those that start in it
    are repeats. The first one after it counts and opens the next. What counts is the largest number of failures that
    are ``within_ns`` apart, so neither the order in which they are told nor a failure more can make it smaller.
    """
    repeated: list[int] = []
    opened_ns: int | None = None
    for start_ns in sorted(starts_ns):
        if opened_ns is None or start_ns - opened_ns >= within_ns:
            opened_ns = start_ns
        else:
            repeated.append(start_ns)
    return repeated


class OutcomeRule:
    """What one request means to each objective of an agreement, as one integer of ``bits`` bits.

    ``repeats`` are the objectives with a repeat window (index, nanoseconds).
    """

    def __init__(self, agreement: Agreement) -> None:
        self._excluded = {
            code: number for number, clause in enumerate(agreement.exclusions, 1) for code in clause.error_codes
        }
        self.failed = 0
        self._succeeded = 0
        self._selection = Selection(objective.where for objective in agreement.objectives)
        self.selects = self._selection.asks
        self._selectors: list[tuple[Where, int]] = []
        first_token: list[tuple[int, int]] = []
        response: list[tuple[int, int]] = []
        self.bits = OUTCOME_BITS
        self.repeats: list[tuple[int, int]] = []
        self.graded: dict[int, list[tuple[int, int]]] = {}
        for index, objective in enumerate(agreement.objectives):
            valid, good = 1 << VALID_SHIFT + index, 1 << index
            if objective.source.kind != REQUESTS:
                continue
            if objective.where is not None:
                self._selectors.append((objective.where, ~(valid | good)))
            if objective.repeat_window_seconds is not None:
                self.repeats.append((index, objective.repeat_window_seconds * SECOND_NS))
            if objective.grades:
                self.failed |= valid
                self._succeeded |= valid
                self.graded[index] = [(1 << self.bits + at, grade.units) for at, grade in enumerate(objective.grades)]
                response += [(grade.at_most_ns, 1 << self.bits + at) for at, grade in enumerate(objective.grades)]
                self.bits += len(objective.grades)
            elif objective.threshold_ns is None:
                self.failed |= valid
                self._succeeded |= valid | good
            else:
                self._succeeded |= valid
                bounds = first_token if objective.indicator == "first_token_latency" else response
                bounds.append((objective.threshold_ns, good))
        self._first_token, self._response = tuple(first_token), tuple(response)

    def outcome(self, row: RequestRow) -> int:
        """The outcome of a row that all objectives select."""
        if row.error_code is not None:
            return self._excluded.get(row.error_code, self.failed)
        found = self._succeeded
        first_token_ns, response_ns = row.first_token_ns, row.response_ns
        if first_token_ns is not None:
            for threshold_ns, good in self._first_token:
                if first_token_ns <= threshold_ns:
                    found |= good
        if response_ns is not None:
            for threshold_ns, good in self._response:
                if response_ns <= threshold_ns:
                    found |= good
        return found

    def selected(self, row: RequestRow) -> int | RowRejection:
        """The bits that an outcome of this row may have (``only``), or why the row cannot be used."""
        said = self._selection.of_row(row)
        return said if isinstance(said, RowRejection) else self._selected(said)

    def all_selected(self, columns: RequestColumns) -> Sequence[int] | None:
        """``selected`` of many rows, nothing at all without selectors; None: not all rows can be used."""
        said = self._selection.of_columns(columns)
        if said is None:
            return None
        bits = {each: self._selected(each) for each in set(said)}
        return [bits[each] for each in said]

    def _selected(self, said: Said) -> int:
        """All bits but those of the objectives that do not select it."""
        bits = -1
        for where, others in self._selectors:
            if not where.selects(said):
                bits &= others
        return bits

    def fails(self, outcome: int, index: int) -> bool:
        """Whether a request is valid and not good to an objective without grades."""
        return bool(outcome >> VALID_SHIFT + index & 1 and not outcome >> index & 1)

    def counted(self, outcome: int, index: int) -> tuple[int, int] | None:
        """Good and bad of one request to the objective at ``index``; None where it is not valid to it."""
        if not outcome >> VALID_SHIFT + index & 1:
            return None
        if index not in self.graded:
            good = outcome >> index & 1
            return good, 1 - good
        units = next((units for bit, units in self.graded[index] if outcome & bit), 0)
        return units, SCORE_UNITS - units

    def outcomes(self, columns: RequestColumns, selected: Sequence[int] = ()) -> list[int]:
        """``outcome`` of many rows, without what is not ``selected`` of them."""
        codes = columns.error_codes
        found = [self._succeeded if code is None else self._excluded.get(code, self.failed) for code in codes]
        for bounds, latencies_ns in (
            (self._first_token, columns.first_tokens_ns),
            (self._response, columns.responses_ns),
        ):
            for threshold_ns, good in bounds:
                found = [
                    outcome | good if code is None and ns is not None and ns <= threshold_ns else outcome
                    for outcome, code, ns in zip(found, codes, latencies_ns, strict=True)
                ]
        return list(map(only, found, selected)) if self.selects else found


def only(outcome: int, selected: int) -> int:
    """An outcome without the objectives that do not select the request; the number of a clause stays as it is."""
    return outcome & selected if outcome >> VALID_SHIFT else outcome


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Requests that left both sides in one window: by the clause for their error code, and by the exclusion in whose
    time they started. One that the time of two exclusions holds is counted with the first."""

    by_clause: dict[str, int]
    by_exclusion: dict[str, int]


class ExcludedTime:
    """The outcome of requests by their start alone: of each exclusion its number, after those of ``clauses``."""

    def __init__(self, excluded: Excluded, clauses: int) -> None:
        self.rulings, self.parts = excluded.rulings, excluded.parts
        self.union = excluded.union
        self._first = clauses + 1
        # Start and end of each part in turn: an instant is in one where an odd number of them do not lie after it.
        self._edges_ns = [edge_ns for part, _ in excluded.parts for edge_ns in (part.start_ns, part.end_ns)]
        self._numbers = [self._first + at for _, at in excluded.parts]

    def __bool__(self) -> bool:
        return bool(self._edges_ns)

    def outcome(self, start_ns: int) -> int:
        """0 for what starts in no excluded time."""
        at = bisect_right(self._edges_ns, start_ns)
        return self._numbers[at >> 1] if at & 1 else 0

    def outcomes(self, starts_ns: Sequence[int], outcomes: Sequence[int]) -> list[int]:
        """The outcomes of many requests, of which those in excluded time leave both sides."""
        return [number or outcome for number, outcome in zip(map(self.outcome, starts_ns), outcomes, strict=True)]

    def named(self, outcome: int) -> str | None:
        """The exclusion of an outcome; None where it is none's."""
        at = outcome - self._first
        return self.rulings[at].exclusion.id if at >= 0 and outcome < 1 << VALID_SHIFT else None
