"""Batch roots of one ledger on two chains: published once on each whatever happens, and found there by a verifier."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from eth_utils import keccak

from ledger.app.bundles.building import build_bundle
from ledger.app.chain.roots import Batches, RootPolicy, publish_batch
from ledger.app.ports.store import Database
from ledger.attest.checks.case import Case
from ledger.attest.checks.json_rpc import HttpNode
from ledger.attest.checks.report import Outcome
from ledger.attest.checks.root_checks import roots_on_chain, routed
from ledger.attest.checks.verification import read_bundle
from ledger.attest.crypto.signing import SigningKey
from ledger.domain.record.naming import batches_stream
from ledger.errors import ChainUnavailable, NotYet, SettingInvalid
from ledger.store.database import SqliteDatabase
from ledger.wiring.chain import RpcChain
from ledger.wiring.further_chain import FurtherChain
from ledger.wiring.root_chains import open_root_chains
from tests.chain.conftest import ACCOUNTS, chain_of
from tests.conformance.samples import LOG_KEY, SeededRandomness, StepClock, signed_checkpoint, unproved
from tests.support.anvil import Anvil, AnvilMissing, running_anvil
from tests.support.chain_processes import ended, in_child
from tests.support.settled import Settled

pytestmark = pytest.mark.slow

ANCHORED = "0x" + keccak(text="BatchAnchored(address,bytes32,bytes32,bytes32,uint64,bytes32)").hex()
AT_ONCE = RootPolicy(after_s=0, most=1)


@pytest.fixture
def further(absent: Callable[[str], NoReturn]) -> Iterator[Anvil]:
    """Another chain than the home chain, with a registry of the same deployer."""
    try:
        with running_anvil("--chain-id", "10") as node:
            node.fund(ACCOUNTS.deployer.address, ACCOUNTS.issuer.address)
            yield node
    except AnvilMissing as error:
        absent(str(error))


def named(further: str, folder: Path, database: Database, **members: Any) -> FurtherChain:
    """Chain 10 as a process reads it from its file."""
    chains = [{"chain_id": "10", "rpc": further, "confirmations": 1, **members}]
    (folder / "root-chains.json").write_text(json.dumps({"format": "sla-ledger/root-chains/v1", "chains": chains}))
    return open_root_chains(folder, database, StepClock(), lambda: ACCOUNTS, {})["10"]


def sign(database: Database) -> None:
    with database.begin() as tx:
        size = tx.log.size()
        if tx.log.checkpoint(size) is None:
            tx.log.save_checkpoint(size, tx.log.root(size), signed_checkpoint(size, tx.log.root(size)))


def form(settled: Settled, database: Database, *targets: str) -> int:
    return Batches(database, settled.attestor, settled.clock, targets, AT_ONCE).form_due()


def publish(database: Database, target: str, chain: RpcChain | FurtherChain, confirmations: int = 1) -> None:
    """The stage of the last batch of a target."""
    with database.read() as tx:
        formed = [event for event in tx.events.stream(batches_stream(target)) if event.type == "batch_formed"][-1]
    publish_batch(database, formed.id, publisher=chain.roots, confirmations=confirmations, clock=StepClock())


def anchored(node: Anvil) -> list[str]:
    """The nodes that are published, from the chain's logs alone."""
    logs = node.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "topics": [ANCHORED]})
    return [log["data"][2:66] for log in logs]


def nonce(node: Anvil) -> int:
    return int(node.call("eth_getTransactionCount", ACCOUNTS.issuer.address, "latest"), 16)


def test_workers_publish_one_root_on_each_chain_and_a_verifier_finds_both(
    node: Anvil, further: Anvil, settled: Settled, tmp_path: Path
) -> None:
    chain = chain_of(node, settled.database)
    other = named(further.url, tmp_path, settled.database)
    with pytest.raises(SettingInvalid, match="no contract is at"):
        _ = other.roots
    other.registrar.deploy()
    proofs = [settled.prove(n, chain.anchor) for n in range(3)]
    settled.anchor(proofs[0], chain.anchor)
    sign(settled.database)
    assert form(settled, settled.database, "home", "10") == 2

    def work(opened: tuple[str, RpcChain | FurtherChain]) -> None:
        for _ in range(2):
            publish(settled.database, *opened)

    homes = [("home", chain_of(node, settled.database)) for _ in range(3)]
    others = [("10", named(further.url, tmp_path, settled.database)) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, [*homes, *others]))
    assert (len(anchored(node)), len(anchored(further))) == (1, 1)
    assert (nonce(node), nonce(further)) == (3, 1), "a registration, a recording and a root at home; a root elsewhere"
    sign(settled.database)
    case = bundle_of(settled, proofs[0])
    assert [root["chain_id"] for root in case.bundle["roots"]] == ["10", "31337"]
    for each in (node, further):
        each.mine(70)
    asks = [HttpNode(each.url).ask for each in (further, node)]
    home, nodes, elsewhere = routed(case, asks)
    assert (home, elsewhere) == (asks[1], ()), "the chain that a node names decides what it is asked"
    lines = list(roots_on_chain(case, nodes))
    assert {line.outcome for line in lines} == {Outcome.PASS}, lines
    assert len(lines) == 8
    assert sum("every block was sealed no later than 202" in line.detail for line in lines) == 2
    # A node of another chain knows nothing of it, whatever it is asked as.
    wrong = list(roots_on_chain(case, {10: asks[1], 31337: asks[0]}))
    assert {line.outcome for line in wrong if line.check.endswith(": root's block")} == {Outcome.FAIL}
    away = HttpNode("http://127.0.0.1:9").ask
    lost, none, unasked = routed(case, [away])
    assert (lost, none, unasked) == (away, {}, ())
    # Where others are asked, one that is away, or asked for nothing, is not passed over in silence.
    home, _, unasked = routed(case, [asks[1], away, HttpNode(node.url).ask])
    assert home == asks[1]
    assert [(line.check, line.outcome) for line in unasked] == [
        ("chain 31337: root", Outcome.NOT_CHECKED),
        ("chain: node", Outcome.NOT_CHECKED),
    ]
    assert "127.0.0.1:9 does not answer" in unasked[1].detail
    assert len(routed(case, [away], recorded=False)[2]) == 1


def test_what_a_reorganisation_drops_is_sent_again_and_what_never_stood_is_not_found(
    node: Anvil, further: Anvil, settled: Settled, tmp_path: Path
) -> None:
    chain = chain_of(node, settled.database)
    other = named(further.url, tmp_path, settled.database)
    other.registrar.deploy()
    proof = settled.prove(1, chain.anchor)
    sign(settled.database)
    form(settled, settled.database, "home", "10")
    with pytest.raises(NotYet, match="1 of 2 confirmations"):
        publish(settled.database, "10", other, 2)
    further.call("anvil_reorg", 1, [])
    further.call("anvil_dropAllTransactions")
    assert anchored(further) == []
    with pytest.raises(NotYet):
        publish(settled.database, "10", other, 2)
    further.mine()
    publish(settled.database, "10", other, 2)
    assert (len(anchored(further)), nonce(further)) == (1, 1)
    sign(settled.database)
    case = bundle_of(settled, proof)
    (root,) = case.bundle["roots"]
    asked = {10: HttpNode(further.url).ask}
    assert [line.outcome for line in roots_on_chain(case, asked)][:2] == [Outcome.PASS, Outcome.PASS]
    # Of another checkpoint, batch or sender the registry knows nothing.
    for lie in ({"size": root["size"] - 1}, {"batch_root": "0x" + "77" * 32}, {"issuer": ACCOUNTS.deployer.address}):
        lying = Case({**case.bundle, "roots": [{**root, **lie}]})
        assert next(iter(roots_on_chain(lying, asked))).outcome is Outcome.FAIL, lie
    # A chain that never had the registry has one line for it.
    anew = Case({**case.bundle, "roots": [{**root, "registry": ACCOUNTS.issuer.address}]})
    (line,) = roots_on_chain(anew, asked)
    assert (line.check, line.outcome) == ("chain 10: root", Outcome.FAIL)
    assert "no contract is at the registry's address" in line.detail
    depth = further.height() - root["block_number"] + 1
    further.call("anvil_reorg", depth, [])
    further.call("anvil_dropAllTransactions")
    assert [line.outcome for line in roots_on_chain(case, asked)] == [Outcome.FAIL] * 4


def test_a_chain_that_is_away_or_another_one_waits_by_itself(
    node: Anvil, settled: Settled, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = chain_of(node, settled.database)
    settled.prove(1, chain.anchor)
    sign(settled.database)
    form(settled, settled.database, "home", "10")
    secret = "k3y-0f-the-n0de"
    away = named(f"http://127.0.0.1:9/{secret}", tmp_path, settled.database)
    with pytest.raises(ChainUnavailable) as silence:
        publish(settled.database, "10", away)
    mistaken = named(f"{node.url}/?key={secret}", tmp_path, settled.database)
    with pytest.raises(SettingInvalid, match="is on chain 31337") as mistake:
        publish(settled.database, "10", mistaken)
    publish(settled.database, "home", chain)
    assert len(anchored(node)) == 1
    assert secret not in f"{silence.value} {mistake.value} {silence.value.data} {mistake.value.data} {caplog.text}"


def test_a_worker_may_die_at_any_step_of_a_batch(node: Anvil, settled: Settled, tmp_path: Path) -> None:
    """A worker dies at its first step, the next at its second, ...; each time another one does the rest."""

    def open_database() -> Database:
        return SqliteDatabase(tmp_path / "ledger.db", StepClock(), SeededRandomness(random.randrange(2**32)))

    database = open_database()
    chain_of(node, database).deploy()

    def work(database: Database) -> None:
        form(settled, database, "home")
        publish(database, "home", chain_of(node, database))

    died, n = 0, 0
    while died == n:
        n += 1
        with database.begin() as tx:
            tx.events.append("any", [unproved(n)], expected_version=None)
        sign(database)
        died += ended(in_child(open_database, work, dies_at=n)) == signal.SIGKILL
        work(database)
    print(f"killed at each of {died} steps")
    assert died > 30
    found = anchored(node)
    assert len(found) == len(set(found)) == n
    assert nonce(node) == n, "one root of each batch, and nothing else"
    with database.read() as tx:
        kinds = [event.type for event in tx.events.stream(batches_stream("home"))]
    assert kinds == ["batch_formed", "batch_published"] * n


def bundle_of(settled: Settled, proof: str) -> Case:
    with settled.database.read() as tx:
        name = tx.events.by_id(proof).payload["statement_id"]
        made = build_bundle(
            tx, name, vkey=LOG_KEY.key.vkey(), sign=SigningKey(b"\x06" * 32).sign, attestor=settled.attestor
        )
    return Case(read_bundle(made))
