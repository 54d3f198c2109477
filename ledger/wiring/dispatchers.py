"""Who works the outbox of a deployment: a thread of this process, several, or nobody here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ledger.app.work.repeating import Repeating
from ledger.errors import SlaLedgerError

POLL_S = 0.2
RETRY_SIGNING_S = 10

Notify = Callable[[str], None]


class Dispatcher:
    """Works the outbox in a thread of this process and signs the log whenever nothing is left to do."""

    def __init__(self, run_once: Callable[[], bool], after_work: Callable[[], None], notify: Notify) -> None:
        self._run_once = run_once
        self._after_work = after_work
        self._notify = notify
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="dispatcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        sign_at_s = 0.0
        while not self._stopping.is_set():
            try:
                if self._run_once():
                    continue
                # Also when idle: what was appended may get its place in the log after the work is done.
                if time.monotonic() >= sign_at_s:
                    # Set first: a checkpoint that witnesses did not cosign is tried again, but not at every look.
                    sign_at_s = time.monotonic() + RETRY_SIGNING_S
                    self._after_work()
                    sign_at_s = 0.0
            # A fault of the program, too: the thread's end would be noticed by nobody.
            except Exception as error:
                said = error.message if isinstance(error, SlaLedgerError) else repr(error)
                self._notify(f"the dispatcher goes on after an error: {said}")
            self._stopping.wait(POLL_S)


class Dispatchers:
    """Several of them side by side."""

    def __init__(self, *each: Dispatcher | Repeating) -> None:
        self._each = each

    def start(self) -> None:
        for dispatcher in self._each:
            dispatcher.start()

    def stop(self) -> None:
        for dispatcher in self._each:
            dispatcher.stop()


class NoDispatcher:
    """Leaves the outbox to workers in processes of their own."""

    def start(self) -> None:
        """There is nothing to start: the relay tells the workers."""

    def stop(self) -> None:
        """There is nothing to stop."""
