"""What the beat does at each look at the clock."""

from __future__ import annotations

import pytest

from ledger.app.ports.store import Database
from ledger.errors import ClosingFailed
from ledger.workers.schedule import Beat
from tests.support.stored import memory_database


class Directory:
    """A data directory whose closing may fail."""

    def __init__(self, failure: ClosingFailed | None = None) -> None:
        self._failure = failure
        self.done: list[str] = []

    @property
    def database(self) -> Database:
        return memory_database()

    @property
    def schedule(self) -> Directory:
        return self

    @property
    def watch(self) -> Directory:
        return self

    @property
    def block_seals(self) -> Directory:
        return self

    @property
    def batches(self) -> Directory:
        return self

    def seal_due(self) -> int:
        self.done.append("sealed")
        return 0

    def judge_new(self) -> int:
        self.done.append("judged")
        return 0

    def close_due(self) -> int:
        self.done.append("closed")
        if self._failure is not None:
            raise self._failure
        return 1

    def sign_log(self) -> None:
        self.done.append("signed")

    def form_due(self) -> int:
        self.done.append("formed")
        return 0


def test_it_seals_closes_judges_signs_and_forms_batches() -> None:
    directory = Directory()
    assert not Beat(directory).tick()
    assert directory.done == ["sealed", "closed", "judged", "signed", "formed"]


def test_it_judges_and_signs_also_when_closing_failed_and_says_so() -> None:
    directory = Directory(ClosingFailed("one agreement cannot be closed"))
    with pytest.raises(ClosingFailed):
        Beat(directory).tick()
    assert directory.done == ["sealed", "closed", "judged", "signed", "formed"]
