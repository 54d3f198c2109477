"""What every test may ask for: the vector files, and a way to say that something outside is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

_DEFAULT_FIXTURES = Path(__file__).resolve().parents[2] / "shared" / "fixtures"


def _absent(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and with CI=true nothing may be skipped")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def absent() -> Callable[[str], NoReturn]:
    """``absent("what")`` ends a test that needs a server or file not there: skipped, or failed with CI=true."""
    return _absent


@pytest.fixture(scope="session")
def sla_fixtures() -> Path:
    """The folder of outside test vectors: $SLA_FIXTURES, or ``../shared/fixtures`` beside the repository."""
    folder = Path(os.environ.get("SLA_FIXTURES") or _DEFAULT_FIXTURES)
    if not folder.is_dir():
        _absent(f"the fixture folder {folder} (set SLA_FIXTURES)")
    return folder
