"""`make compose-check` in the test suite: the compose file's command lines settle a period."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.compose.check import check
from tests.support.anvil import AnvilMissing, installed
from tests.support.postgres import Server


@pytest.mark.slow
def test_the_compose_file_settles_a_period(
    tmp_path: Path, postgres_server: Server, key_cache: Path, absent: Callable[[str], NoReturn]
) -> None:
    try:
        installed()
    except AnvilMissing as error:
        absent(str(error))
    report = check(postgres_server, tmp_path, key_cache)
    assert len(report.steps) >= 13
