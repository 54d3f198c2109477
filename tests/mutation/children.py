"""What every process that runs tests on a mutant has in common."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = ROOT / "ledger/domain"
KILLED, SURVIVED, UNTRIED = 1, 0, 2
# An endless loop is noticed, too: by the time that a test takes.
_SECONDS_AT_LEAST = 10
_TIMES_AS_LONG = 5
_EXAMPLES = 40


def arguments(places: Sequence[str]) -> list[str]:
    """pytest's, for a run that stands alone and says nothing."""
    said = ["-q", "-s", "-p", "no:cacheprovider", "-m", "not slow", "--tb=no", "--hypothesis-profile=mutation"]
    return [*said, *places]


def quiet(examples: int = _EXAMPLES) -> None:
    """This process's tests say nothing, and draw the same examples each time."""
    from hypothesis import Phase, settings

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    settings.register_profile(
        "mutation",
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
    )


@dataclass
class Chosen:
    """A pytest plugin: only the chosen tests, in their order. The process ends with the first that fails or takes too
    long."""

    tests: Sequence[str]
    seconds: Mapping[str, float]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {test: at for at, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        give_up_after(self.seconds.get(nodeid, 0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            os._exit(KILLED)


def give_up_after(seconds: float) -> None:
    """End this process when a test that takes so long takes many times as long."""
    signal.alarm(int(_SECONDS_AT_LEAST + _TIMES_AS_LONG * seconds))
