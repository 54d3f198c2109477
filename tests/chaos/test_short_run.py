"""Two periods, one claimed and restated, while workers, relay and Redis go down: ``make chaos`` does it at length."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

from tests.chaos.faults import SHORT
from tests.chaos.main import SHORT_COURSES, Trial, run
from tests.support.anvil import AnvilMissing
from tests.support.postgres import ServerMissing
from tests.support.redis import RedisMissing


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice(capsys: pytest.CaptureFixture[str], absent: Callable[[str], NoReturn]) -> None:
    try:
        status = run(Trial(4, SHORT_COURSES, SHORT))
    except (AnvilMissing, RedisMissing, ServerMissing) as error:
        absent(str(error))
    printed = capsys.readouterr().out
    assert (status, printed.splitlines()[-1]) == (0, "lost=0 duplicated=0 unfinished=0"), printed
