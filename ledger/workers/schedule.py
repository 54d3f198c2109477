"""What happens by the clock, beside the workers: periods are closed when their grace is over, and the log is signed."""

from __future__ import annotations

from typing import Protocol

from ledger.app.ports import Database


class Closes(Protocol):
    def close_due(self) -> int: ...


class BeatServices(Protocol):
    """What the beat needs of a data directory; ``ledger.wiring.Services`` has it."""

    @property
    def database(self) -> Database: ...
    @property
    def schedule(self) -> Closes: ...

    def sign_log(self) -> None: ...


class Beat:
    """One look at the clock after the other. Two of them do no harm: a period is closed once, a size signed once."""

    def __init__(self, services: BeatServices) -> None:
        self._services = services

    def tick(self) -> bool:
        """Close what is due and sign what is new, also where closing failed. False: there is nothing to hurry for.

        Raises what closing or signing raise.
        """
        try:
            self._services.schedule.close_due()
        finally:
            self._services.sign_log()
        return False
