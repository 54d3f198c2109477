"""What happens by the clock, beside the workers: periods are judged as facts come in, their blocks sealed and they are
closed when the grace is over, the log is signed, and the proved statements are put under roots for the chains."""

from __future__ import annotations

from typing import Protocol

from ledger.app.ports.store import Database


class Closes(Protocol):
    def close_due(self) -> int: ...


class Watches(Protocol):
    def judge_new(self) -> int: ...


class Seals(Protocol):
    def seal_due(self) -> int: ...


class Forms(Protocol):
    def form_due(self) -> int: ...


class BeatServices(Protocol):
    """What the beat needs of a data directory; ``ledger.wiring.Services`` has it."""

    @property
    def database(self) -> Database: ...
    @property
    def schedule(self) -> Closes: ...
    @property
    def watch(self) -> Watches: ...
    @property
    def block_seals(self) -> Seals: ...
    @property
    def batches(self) -> Forms: ...

    def sign_log(self) -> None: ...


class Beat:
    """One look at the clock after the other. Two of them do no harm: a period is closed once, a size signed once."""

    def __init__(self, services: BeatServices) -> None:
        self._services = services

    def tick(self) -> bool:
        """Seal what is over, close what is due, judge what has new facts, sign what is new and form what waits for a
        root, each also where the one before failed. False: there is nothing to hurry for.

        Raises what they raise.
        """
        try:
            try:
                # Before its period is closed, so that what was sealed is sealed by the clock and not by the statement.
                self._services.block_seals.seal_due()
            finally:
                try:
                    self._services.schedule.close_due()
                finally:
                    self._services.watch.judge_new()
        finally:
            self._services.sign_log()
            # What has just been signed for is what batches reach up to.
            self._services.batches.form_due()
        return False
