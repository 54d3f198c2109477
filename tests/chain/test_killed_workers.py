"""kill -9 at any step of anchoring: between signing, storing, sending, receipt and the log. Counted from the chain."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ledger.anchor.signers import RemoteAccount
from ledger.app.ports.store import Database
from ledger.errors import NotYet
from ledger.settings import ChainSettings
from ledger.store.database import SqliteDatabase
from ledger.store.postgres import PostgresDatabase
from ledger.wiring.chain import ChainAccounts, RpcChain
from tests.chain.conftest import ACCOUNTS, chain_of, recordings, sent
from tests.conformance.samples import SeededRandomness, StepClock
from tests.support.anvil import Anvil
from tests.support.chain_processes import ended, work_in_child
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.support.settled import Settled
from tests.support.signer import http_signer
from tests.support.stuck import attempts, base_fee, by_hand, hurried, too_dear

pytestmark = pytest.mark.slow


@pytest.fixture
def sequenced(postgres_url: str) -> Iterator[SequencedAfterCommit]:
    database = SequencedAfterCommit(postgres_url, StepClock(), SeededRandomness(1), role_prefix=ROLE_PREFIX)
    yield database
    database.close()


def test_a_worker_may_die_at_any_step(node: Anvil, tmp_path: Path) -> None:
    """A worker dies at its first step, the next at its second, ...; each time another one does the rest."""
    path = tmp_path / "ledger.db"

    def open_database() -> Database:
        return SqliteDatabase(path, StepClock(), SeededRandomness(random.randrange(2**32)))

    settled = Settled(open_database())
    chain = chain_of(node, settled.database)
    died, n = 0, 0
    while died == n:
        proof = settled.prove(n, chain.anchor)
        n += 1
        worker = work_in_child(
            open_database, lambda database: chain_of(node, database), [proof], confirmations=1, dies_at=n
        )
        died += ended(worker) == signal.SIGKILL
        settled.anchor(proof, chain.anchor)
        settled.confirm(proof, chain.anchor, 1)
        assert len(settled.events(proof, "anchor_confirmed")) == 1
    print(f"killed at each of {died} steps")
    assert died > 40
    found = recordings(node, chain.anchor.registry)
    assert len(found) == len(set(found)) == n
    assert sent(node) == 2 * n, "one registration and one recording of each"


def test_a_worker_may_die_at_any_step_of_a_replacement(node: Anvil, tmp_path: Path) -> None:
    """A worker finds a recording stuck and dies before, between and after storing a dearer one and sending it."""
    path = tmp_path / "ledger.db"

    def open_database() -> Database:
        return SqliteDatabase(path, StepClock(), SeededRandomness(random.randrange(2**32)))

    settled = Settled(open_database())
    chain = hurried(chain_of(node, settled.database), settled.database)
    died_with: Counter[str] = Counter()
    steps = range(43, 73, 6)
    for n, dies_at in enumerate(steps):
        node.call("evm_setAutomine", True)
        base_fee(node, 1)
        proof = settled.prove(n, chain.anchor)
        settled.anchor(proof, chain.anchor)
        by_hand(node)
        node.call("anvil_reorg", 1, [])
        too_dear(node)
        worker = work_in_child(
            open_database,
            lambda database: hurried(chain_of(node, database), database),
            [proof],
            confirmations=1,
            dies_at=dies_at,
        )
        assert ended(worker) == signal.SIGKILL
        stored = attempts(settled.database, ACCOUNTS.issuer.address, 2 * n + 1)
        in_pool = node.call("eth_getTransactionByHash", stored[-1].tx_hash) is not None
        died_with["first" if len(stored) == 1 else "sent" if in_pool else "stored"] += 1
        while not settled.events(proof, "anchor_confirmed"):
            with suppress(NotYet):
                settled.confirm(proof, chain.anchor, 1)
            node.mine()
        assert len(attempts(settled.database, ACCOUNTS.issuer.address, 2 * n + 1)) <= 3
    print(f"killed with {dict(died_with)}")
    assert set(died_with) == {"first", "stored", "sent"}
    found = recordings(node, chain.anchor.registry)
    assert len(found) == len(set(found)) == len(steps)
    assert sent(node) == 2 * len(steps), "one registration and one recording of each"


def test_a_worker_may_die_between_asking_a_signer_and_its_answer(node: Anvil, tmp_path: Path) -> None:
    """What was signed for it is nowhere; the next one signs for the same nonce."""
    path = tmp_path / "ledger.db"
    asking: list[int] = []

    def open_database() -> Database:
        return SqliteDatabase(path, StepClock(), SeededRandomness(random.randrange(2**32)))

    with http_signer(ACCOUNTS.issuer) as signer:
        shape = signer.shape

        def kill(raw: str) -> object:
            if asking:
                os.kill(asking.pop(), signal.SIGKILL)
            return shape(raw)

        def open_chain(database: Database) -> RpcChain:
            accounts = ChainAccounts(ACCOUNTS.deployer, RemoteAccount(signer.url, ACCOUNTS.issuer.address))
            return RpcChain(database, accounts, ChainSettings(node.url), StepClock())

        settled = Settled(open_database())
        chain = open_chain(settled.database)
        proof = settled.prove(0, chain.anchor)
        asking.append(work_in_child(open_database, open_chain, [proof], confirmations=1, dies_at=None))
        worker = asking[0]
        signer.shape = kill
        assert ended(worker) == signal.SIGKILL
        settled.anchor(proof, chain.anchor)
        assert [int(each["nonce"], 16) for each in signer.asked] == [0, 0, 1]
    assert len(recordings(node, chain.anchor.registry)) == 1
    assert sent(node) == 2


@pytest.mark.parametrize("seed", range(2))
def test_many_workers_die_and_every_statement_is_recorded_once(
    node: Anvil, sequenced: SequencedAfterCommit, postgres_url: str, seed: int
) -> None:
    """Four workers at a time on PostgreSQL, all with the same ten statements in an order of their own."""
    dice = random.Random(seed)
    settled = Settled(sequenced)
    chain = chain_of(node, sequenced)
    proofs = [settled.prove(n, chain.anchor) for n in range(10)]
    registry = chain.anchor.registry
    sequenced.close()

    def start(*, mortal: bool) -> int:
        ids = dice.randrange(2**32)

        def open_database() -> Database:
            return PostgresDatabase(postgres_url, StepClock(), SeededRandomness(ids), role_prefix=ROLE_PREFIX)

        return work_in_child(
            open_database,
            lambda database: chain_of(node, database),
            dice.sample(proofs, len(proofs)),
            confirmations=1,
            dies_at=dice.randrange(1, 250) if mortal else None,
        )

    killed = 0
    for _ in range(6):
        killed += sum(ended(worker) == signal.SIGKILL for worker in [start(mortal=True) for _ in range(4)])
    for worker in [start(mortal=False) for _ in range(4)]:
        assert ended(worker) == 0
    print(f"seed {seed}: {killed} workers killed")
    assert killed > 5
    found = recordings(node, registry)
    assert len(found) == len(set(found)) == 10
    assert sent(node) == 20
    with sequenced.read() as tx:
        effects = [transaction.effect for transaction in tx.chain.of_chain(31337)]
        waiting = tx.chain.not_included(31337)
    assert (len(effects), len(set(effects)), waiting) == (23, 23, [])
    for proof in proofs:
        assert len(settled.events(proof, "anchor_recorded")) == len(settled.events(proof, "anchor_confirmed")) == 1
