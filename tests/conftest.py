"""What every test may ask for: the vector files, and a way to say that something outside is missing."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from tests.support.postgres import Server, ServerMissing, running_server
from tests.support.redis import RedisMissing, RedisServer, running_redis
from tests.support.sharing import longest_first, processes

ROOT = Path(__file__).resolve().parents[1]
_DEFAULT_FIXTURES = ROOT.parent / "shared" / "fixtures"

# A failure must be repeatable from the output alone, and a busy machine is no reason to fail.
settings.register_profile("sla-ledger", print_blob=True, deadline=None)
# For the inner loop (`make test-fast`).
settings.register_profile("fast", parent=settings.get_profile("sla-ledger"), max_examples=10)
settings.load_profile("sla-ledger")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first; but what takes longest where several processes share them out."""
    if config.getoption("--hypothesis-profile") == "fast":
        for item in items:
            few_examples(item)
    if hasattr(config, "workerinput"):
        longest_first(items)
    else:
        items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never again among what stays to the end: modules and tests.

    A quarter of the time went there: applications and ledgers are made for each test, and hang together in circles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def few_examples(item: pytest.Item) -> None:
    """No more than the profile has, for a property that names a number of examples, too."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    named = getattr(test, "_hypothesis_internal_use_settings", None)
    if named is not None and named.max_examples > settings().max_examples:
        test._hypothesis_internal_use_settings = settings(named, max_examples=settings().max_examples)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """For ``-n auto``."""
    return processes(os.cpu_count() or 1, fast="not slow" in config.option.markexpr)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Files as a whole, longest first."""
    from tests.support.scheduler import ByUnit

    return ByUnit(config, log)


def _absent(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and with CI=true nothing may be skipped")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def absent() -> Callable[[str], NoReturn]:
    """``absent("what")`` ends a test that needs a server or file not there: skipped, or failed with CI=true."""
    return _absent


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL: the one of $DATABASE_URL, or one from a wheel for this session."""
    try:
        with running_server() as server:
            yield server
    except ServerMissing as error:
        _absent(str(error))


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """A database with the newest schema and nothing in it."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A Redis from a wheel for one test, which may kill it."""
    try:
        with running_redis() as server:
            yield server
    except RedisMissing as error:
        _absent(str(error))


@pytest.fixture
def logs_put_back() -> Iterator[None]:
    """For a test that makes this process log as a service does: afterwards it logs as before."""
    names = (None, "urllib3", "web3", "eth", "asyncio")
    root, before = logging.getLogger(), [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = root.handlers[:]
    yield
    root.handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.fixture(scope="session")
def sla_fixtures() -> Path:
    """The folder of outside test vectors: $SLA_FIXTURES, or ``../shared/fixtures`` beside the repository."""
    folder = Path(os.environ.get("SLA_FIXTURES") or _DEFAULT_FIXTURES)
    if not folder.is_dir():
        _absent(f"the fixture folder {folder} (set SLA_FIXTURES)")
    return folder


@pytest.fixture(scope="session")
def key_cache() -> Path:
    """Where proving keys are kept between runs: $SLA_LEDGER_KEY_CACHE, or ``var/keys`` in the repository."""
    return Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or ROOT / "var" / "keys")
