"""One thing, over and over until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ledger.errors import SlaLedgerError

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 10.0

Notify = Callable[[str], None]


def repeat(step: Callable[[], bool], *, name: str, rest_s: float, stopping: threading.Event, notify: Notify) -> None:
    """Call ``step`` until ``stopping`` is set: at once again where it did something, else after ``rest_s``.

    Whatever it raises is told once, and it is called again after 0.5, 1, 2 ... up to 10 seconds: a database or broker
    that is away for an hour is worth one line and one more when it is back.
    """
    told, backoff_s = "", FIRST_BACKOFF_S
    while not stopping.is_set():
        try:
            did_something = step()
        except Exception as error:  # a fault of the program, too: nobody would notice that the process is idle
            said = error.message if isinstance(error, SlaLedgerError) else repr(error)
            if said != told:
                notify(f"{name} goes on after an error: {said}")
            told = said
            stopping.wait(backoff_s)
            backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)
            continue
        if told:
            notify(f"{name} is at work again")
            told, backoff_s = "", FIRST_BACKOFF_S
        if not did_something:
            stopping.wait(rest_s)


class Repeating:
    """``repeat`` in a thread of this process."""

    def __init__(self, step: Callable[[], bool], *, name: str, rest_s: float, notify: Notify) -> None:
        self._stopping = threading.Event()
        arguments = {"name": name, "rest_s": rest_s, "stopping": self._stopping, "notify": notify}
        self._thread = threading.Thread(target=repeat, args=(step,), kwargs=arguments, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the step at hand is done."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
