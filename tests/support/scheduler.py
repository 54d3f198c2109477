"""The scheduler of pytest-xdist that hands out the units of ``tests.support.sharing``."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.sharing import unit_of


class ByUnit(LoadScopeScheduling):
    """Hands out units in the order of the tests, not by how many tests they have."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)  # type: ignore[arg-type]

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
