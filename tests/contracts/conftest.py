"""One chain for all contract tests: each test takes an agreement of its own, so they do not meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from ledger.errors import AnchorRefused
from tests.contracts.ground import Ground

Refuses = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def ground() -> Ground:
    return Ground()


@pytest.fixture(scope="session")
def refuses() -> Refuses:
    """``with refuses("NotParty"):`` expects that custom error of the contract and no other."""

    @contextmanager
    def expecting(error: str) -> Iterator[None]:
        with pytest.raises(AnchorRefused) as caught:
            yield
        assert caught.value.data["error"] == error, caught.value.message

    return expecting
