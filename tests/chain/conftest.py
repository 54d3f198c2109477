"""Nodes of the tests' own, and ledgers that anchor on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from eth_account import Account

from ledger.app.ports.store import Database
from ledger.settings import ChainSettings
from ledger.wiring.chain import ChainAccounts, RpcChain
from tests.conformance.samples import StepClock
from tests.support.anvil import Anvil, AnvilMissing, recorded_logs, running_anvil
from tests.support.settled import DEPLOYER, Settled
from tests.support.stored import memory_database
from tests.unit.app.conftest import ISSUER

ACCOUNTS = ChainAccounts.from_secrets(deployer=DEPLOYER, issuer=ISSUER)


@pytest.fixture
def node(absent: Callable[[str], NoReturn]) -> Iterator[Anvil]:
    """A fresh chain 31337 that makes a block for every transaction, with money for deployer and issuer."""
    try:
        with running_anvil() as node:
            node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
            yield node
    except AnvilMissing as error:
        absent(str(error))


@pytest.fixture
def settled() -> Settled:
    return Settled(memory_database())


def chain_of(node: Anvil, database: Database, *, url: str | None = None, **settings: object) -> RpcChain:
    """The chain as one process opens it."""
    return RpcChain(database, ACCOUNTS, ChainSettings(url or node.url, **settings), StepClock())  # type: ignore[arg-type]


def recordings(node: Anvil, registry: str) -> list[str]:
    """The ctx of every statement that the registry recorded, from the chain's logs alone."""
    return [log["topics"][2] for log in recorded_logs(node, registry)]


def sent(node: Anvil) -> int:
    """How many transactions the issuer's key has on chain."""
    return int(node.call("eth_getTransactionCount", str(Account.from_key(ISSUER).address), "latest"), 16)
