"""Every contract test runs on the embedded chain and on a real node, one of each for all tests.

Each test takes an agreement of its own, so they do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NoReturn

import pytest

from ledger.errors import AnchorRefused
from tests.contracts.ground import Ground, anvil
from tests.support.anvil import AnvilMissing

Refuses = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="session", params=["embedded", pytest.param("anvil", marks=pytest.mark.slow)])
def ground(request: pytest.FixtureRequest, absent: Callable[[str], NoReturn]) -> Iterator[Ground]:
    if request.param == "embedded":
        yield Ground()
        return
    try:
        with anvil() as chain:
            yield Ground(chain)
    except AnvilMissing as error:
        absent(str(error))


@pytest.fixture(scope="session")
def refuses() -> Refuses:
    """``with refuses("NotParty"):`` expects that custom error of the contract and no other."""

    @contextmanager
    def expecting(error: str) -> Iterator[None]:
        with pytest.raises(AnchorRefused) as caught:
            yield
        assert caught.value.data["error"] == error, caught.value.message

    return expecting
