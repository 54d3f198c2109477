"""The windows that the logs of several kinds come to together.

A window is observed where every log has it, which is known when the last log was looked at. What others count may
depend on it: of an id in conflict a body in an observed window counts, a failure in a window without data opens no
repeat window, and a step of a series that was seen in one counts before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.feeds import FactBook
from ledger.domain.facts.samples import SampleBook
from ledger.domain.windows.window import Window, WindowState

Book = SampleBook | FactBook[Any]


def joined(evaluator: Evaluator, books: Sequence[Book]) -> tuple[Window, ...]:
    """The windows of a period by its requests and by the books of all other logs that are counted.

    Raises ``ImplausibleCounts`` where what came cannot be.
    """
    windows = _through(evaluator, books)
    looking_around = any(each.looks_around for each in (evaluator, *books))
    if looking_around and any(window.state is WindowState.NO_DATA for window in windows):
        observed = [window.interval for window in windows if window.state is WindowState.OBSERVED]
        for each in (evaluator, *books):
            each.declare(observed)
        windows = _through(evaluator, books)
    return windows


def _through(evaluator: Evaluator, books: Sequence[Book]) -> tuple[Window, ...]:
    windows = evaluator.windows()
    for book in books:
        windows = book.windows(windows)
    return windows
