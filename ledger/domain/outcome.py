"""What one request counts to each objective of an agreement.

availability,
error_rate     valid = requests that no exclusion clause takes out, good = those that succeeded
*_latency      valid = requests that succeeded, good = those at or under the threshold
graded scores  valid as for availability, in thousandths of a request: the score of the first grade whose bound holds
               the latency, 0 beyond the last bound and for a failed request
samples        nothing: their counts come from elsewhere (``samples``)

A request succeeded when its error code is null; any code (429, -100, 0, ...) is a failure, and a clause can
take named codes out of both sides. A stream that breaks off after its first token is a failure like any other, and
its first token counts for no latency. A conflicting id is a failure without a code (see ``observation``).

With a repeat window (Azure AI) failed requests that repeat an earlier failure leave both sides (``repeated_failures``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ledger.domain.agreement import Agreement
from ledger.domain.instant import SECOND_NS
from ledger.domain.objective import SCORE_UNITS
from ledger.domain.observation import RequestColumns, RequestRow

# An outcome says for each objective whether a request is valid (bits 16 to 31) and good (lower bits), and above both
# which bounds of a graded objective it keeps. Of a request that a clause takes out no bit is valid, and the lower bits
# are the clause's number from 1; without availability among the objectives a failed request is valid to none, and its
# outcome is 0. A key of the tally has the window above the outcome.
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
        first_token: list[tuple[int, int]] = []
        response: list[tuple[int, int]] = []
        self.bits = OUTCOME_BITS
        self.repeats: list[tuple[int, int]] = []
        self.graded: dict[int, list[tuple[int, int]]] = {}
        for index, objective in enumerate(agreement.objectives):
            valid, good = 1 << VALID_SHIFT + index, 1 << index
            if objective.sampled:
                continue
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

    def counted(self, outcome: int, index: int) -> tuple[int, int] | None:
        """Good and bad of one request to the objective at ``index``; None where it is not valid to it."""
        if not outcome >> VALID_SHIFT + index & 1:
            return None
        if index not in self.graded:
            good = outcome >> index & 1
            return good, 1 - good
        units = next((units for bit, units in self.graded[index] if outcome & bit), 0)
        return units, SCORE_UNITS - units

    def outcomes(self, columns: RequestColumns) -> list[int]:
        """``outcome`` of many rows."""
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
        return found
