"""Batches of statements: what goes into one, when, for which chain, and that nothing is published twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account

from ledger.app.bundles.building import build_bundle
from ledger.app.chain import roots
from ledger.app.chain.batch_trail import since_formed, standing, to_publish
from ledger.app.chain.roots import Batches, RootPolicy, publish_batch
from ledger.app.ports.evidence import RootPublisher, Standing
from ledger.app.work.outbox import Stage
from ledger.attest.checks.case import Case
from ledger.attest.checks.report import Line, Outcome
from ledger.attest.checks.root_checks import root_lines
from ledger.attest.checks.verification import read_bundle, verify_bundle
from ledger.attest.crypto.batch import Batch, log_id
from ledger.attest.crypto.evm_tx import PUBLISH_SIGNATURE
from ledger.attest.crypto.keccak import keccak_text
from ledger.attest.crypto.signing import SigningKey
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import batches_stream
from ledger.errors import NotYet
from ledger.merkle.checkpoint import Checkpoint
from ledger.wiring.chain import ChainAccounts, ReplayedChain, open_chain
from tests.conformance.samples import (
    LOG_KEY,
    StepClock,
    batch,
    batch_finalized,
    batch_undone,
    signed_checkpoint,
    unproved,
)
from tests.conformance.samples import (
    published as batch_published,
)
from tests.support.settled import DEPLOYER, Settled
from tests.support.stored import memory_database
from tests.unit.app.conftest import ISSUER

pytestmark = pytest.mark.slow

AT_ONCE = RootPolicy(after_s=0, most=1)
ACCOUNTS = ChainAccounts.from_secrets(deployer=DEPLOYER, issuer=ISSUER)


class Ledger:
    """A ledger on the embedded chain, whose log is signed by hand."""

    def __init__(self) -> None:
        self.settled = Settled(memory_database())
        self.database = self.settled.database
        self.chain: ReplayedChain = open_chain(self.database, ACCOUNTS, 1_702_944_000, StepClock())

    def prove(self, n: int) -> str:
        """Settle and prove the ``n``-th statement; its id."""
        event_id = self.settled.prove(n, self.chain.anchor)
        with self.database.read() as tx:
            return str(tx.events.by_id(event_id).payload["statement_id"])

    def sign(self) -> int:
        with self.database.begin() as tx:
            size = tx.log.size()
            tx.log.save_checkpoint(size, tx.log.root(size), signed_checkpoint(size, tx.log.root(size)))
        return size

    def batches(self, *targets: str, policy: RootPolicy = AT_ONCE) -> Batches:
        """As one process has them."""
        return Batches(self.database, self.settled.attestor, self.settled.clock, targets or ("home",), policy)

    def publish(self, target: str = "home", publisher: RootPublisher | None = None, confirmations: int = 0) -> None:
        """The stage of the target's last batch."""
        formed = [event for event in self.events(target) if event.type == "batch_formed"][-1]
        publish_batch(
            self.database,
            formed.id,
            publisher=publisher or self.chain.roots,
            confirmations=confirmations,
            clock=self.settled.clock,
        )

    def events(self, target: str = "home") -> list[Any]:
        with self.database.read() as tx:
            return list(tx.events.stream(batches_stream(target)))

    def queued(self) -> list[str]:
        with self.database.read() as tx:
            entries = tx.outbox.entries(states=["pending"], limit=100)
        return [entry.stage for entry in entries if entry.stage.startswith("publish")]

    def sent(self) -> int:
        with self.database.read() as tx:
            stored = tx.chain.of_chain(self.chain.anchor.chain_id)
        return sum("/batch/" in transaction.effect for transaction in stored)

    def bundle(self, statement_id: str) -> dict[str, Any]:
        with self.database.read() as tx:
            vkey, key = LOG_KEY.key.vkey(), SigningKey(ISSUER)
            made = build_bundle(tx, statement_id, vkey=vkey, sign=key.sign, attestor=self.settled.attestor)
        return dict(read_bundle(made))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_what_is_proved_under_the_newest_checkpoint_goes_into_one_batch(ledger: Ledger) -> None:
    first, second = ledger.prove(1), ledger.prove(2)
    size = ledger.sign()
    third = ledger.prove(3)
    batches = ledger.batches()
    assert (batches.form_due(), batches.form_due()) == (1, 0)
    (formed,) = ledger.events()
    assert (formed.payload["number"], formed.payload["from_seq"], formed.payload["until_seq"]) == (0, 0, size)
    assert len(formed.payload["leaves"]) == 2
    assert ledger.queued() == [Stage.PUBLISH]
    ledger.publish()
    published = ledger.events()[1].payload
    assert {name: published[name] for name in ("node", "batch_root", "size", "root")} == {
        name: formed.payload[name] for name in ("node", "batch_root", "size", "root")
    }
    assert (published["chain_id"], published["registry"]) == (
        str(ledger.chain.anchor.chain_id),
        ledger.chain.anchor.registry,
    )
    with ledger.database.read() as tx:
        rooted = [len(tx.views.statement(name)["roots"]) for name in (first, second, third)]
    assert rooted == [1, 1, 0]
    # What came later is in the next one, whose range begins where this one ended.
    ledger.sign()
    assert batches.form_due() == 1
    assert (ledger.events()[2].payload["from_seq"], ledger.events()[2].payload["number"]) == (size, 1)
    ledger.publish()
    assert ledger.sent() == 2


def test_it_waits_for_others_and_not_for_ever(ledger: Ledger) -> None:
    ledger.prove(1)
    ledger.sign()
    assert ledger.batches(policy=RootPolicy(after_s=10**9, most=2)).form_due() == 0
    assert ledger.batches(policy=RootPolicy(after_s=10**9, most=2)).form_due(at_once=True) == 1
    ledger.publish()
    ledger.prove(2)
    ledger.prove(3)
    ledger.sign()
    assert ledger.batches(policy=RootPolicy(after_s=10**9, most=3)).form_due() == 0
    assert ledger.batches(policy=RootPolicy(after_s=10**9, most=2)).form_due() == 1
    ledger.publish()
    ledger.prove(4)
    ledger.sign()
    # The clock moves on by a second at each look.
    waiting = ledger.batches(policy=RootPolicy(after_s=30, most=1000))
    looks = next(n for n in range(1000) if waiting.form_due())
    assert looks > 0


def test_nothing_new_is_no_batch(ledger: Ledger) -> None:
    batches = ledger.batches()
    assert batches.form_due(at_once=True) == 0
    ledger.prove(1)
    assert batches.form_due(at_once=True) == 0, "no checkpoint is signed"
    ledger.sign()
    assert batches.form_due() == 1
    ledger.publish()
    ledger.sign()
    assert batches.form_due(at_once=True) == 0


def test_two_workers_make_one_batch_and_one_transaction(ledger: Ledger) -> None:
    ledger.prove(1)
    ledger.sign()
    one, other = ledger.batches(), ledger.batches()
    # Both have looked, and then both write.
    with ledger.database.read() as tx:
        assert one._next(tx, "home") == other._next(tx, "home")
    original = roots.Batches._due
    formed = []

    def meanwhile(batches: Batches, batch: Any) -> bool:
        if batches is one:
            formed.append(other.form_due())
        return original(batches, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roots.Batches, "_due", meanwhile)
        assert one.form_due() == 0
    assert formed == [1]
    for _ in range(2):
        ledger.publish()
    assert [event.type for event in ledger.events()] == ["batch_formed", "batch_published"]
    assert (ledger.sent(), ledger.queued()) == (1, [Stage.PUBLISH])


def test_a_chain_that_is_away_holds_up_no_other_and_catches_up_with_one_batch(ledger: Ledger) -> None:
    batches = ledger.batches("home", "10")
    names = []
    for n in range(1, 4):
        names.append(ledger.prove(n))
        ledger.sign()
        batches.form_due()
        ledger.publish("home")
    assert [event.payload["number"] for event in ledger.events("home")] == [0, 0, 1, 1, 2, 2]
    assert [event.payload["number"] for event in ledger.events("10")] == [0]
    assert ledger.queued().count(Stage.PUBLISH_FURTHER) == 1

    class Elsewhere:
        """The same registry by another name: the embedded chain is one."""

        chain_id, registry, issuer = 10, ledger.chain.roots.registry, ledger.chain.roots.issuer

        def publish(self, checkpoint: Checkpoint, batch_root: bytes) -> Standing:
            return ledger.chain.roots.publish(replace(checkpoint, origin="elsewhere"), batch_root)

    ledger.publish("10", Elsewhere())
    assert batches.form_due() == 1
    ledger.publish("10", Elsewhere())
    assert [len(event.payload.get("leaves", ())) for event in ledger.events("10")] == [1, 0, 2, 0]
    with ledger.database.read() as tx:
        chains = [[root["chain_id"] for root in tx.views.statement(name)["roots"]] for name in names]
    assert chains == [["10", str(ledger.chain.anchor.chain_id)]] * 3


def test_a_batch_takes_so_many_statements_and_the_next_one_the_rest(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "MAX_LEAVES", 2)
    names = [ledger.prove(n) for n in range(1, 6)]
    size = ledger.sign()
    batches = ledger.batches()
    for _ in range(3):
        assert batches.form_due() == 1
        ledger.publish()
    assert batches.form_due() == 0
    formed = [event.payload for event in ledger.events() if event.type == "batch_formed"]
    assert [len(each["leaves"]) for each in formed] == [2, 2, 1]
    assert {each["size"] for each in formed} == {size} == {formed[-1]["until_seq"]}
    with ledger.database.read() as tx:
        assert [len(tx.views.statement(name)["roots"]) for name in names] == [1] * 5


def test_a_statement_without_a_proof_is_covered_by_the_checkpoint(ledger: Ledger) -> None:
    with ledger.database.begin() as tx:
        tx.events.append("any", [unproved()], expected_version=None)
    ledger.sign()
    assert ledger.batches().form_due() == 1
    (formed,) = ledger.events()
    assert (formed.payload["leaves"], formed.payload["batch_root"]) == ([], "0x" + "00" * 32)
    ledger.publish()
    assert ledger.sent() == 1


def test_it_is_published_once_its_block_has_stood(ledger: Ledger) -> None:
    ledger.prove(1)
    ledger.sign()
    ledger.batches().form_due()
    with pytest.raises(NotYet, match="1 of 2 confirmations"):
        ledger.publish(confirmations=2)
    assert len(ledger.events()) == 1
    ledger.settled.prove(2, ledger.chain.anchor)
    ledger.chain.anchor._chain._w3.provider.ethereum_tester.mine_blocks(1)  # type: ignore[attr-defined]
    ledger.publish(confirmations=2)
    assert (len(ledger.events()), ledger.sent()) == (2, 1)


def lines(bundle: dict[str, Any], trust: dict[str, Any] | None = None) -> dict[str, Line]:
    return {line.check: line for line in root_lines(Case(bundle), trust)}


def transaction_of(root: dict[str, Any], key: bytes = ISSUER, /, **changed: Any) -> dict[str, Any]:
    """The members of a transaction that publishes a root, or almost: of another sender, call, chain or target."""
    words = {
        "log_id": log_id(LOG_KEY.key.name),
        "size": root["size"].to_bytes(32, "big"),
        "root": bytes.fromhex(root["root"]),
        "batch_root": bytes.fromhex(root["batch_root"][2:]),
    }
    fields = {
        "type": 2,
        "chainId": int(root["chain_id"]),
        "nonce": 7,
        "gas": 120_000,
        "value": 0,
        "to": root["registry"],
        "maxFeePerGas": 10**9,
        "maxPriorityFeePerGas": 1,
    }
    data = keccak_text(changed.pop("call", PUBLISH_SIGNATURE))[:4]
    data += b"".join(changed.pop(name, word) for name, word in words.items()) + changed.pop("more", b"")
    signed = Account.sign_transaction({**fields, "data": data, **changed}, key)
    return {"raw_transaction": bytes(signed.raw_transaction).hex(), "tx_hash": "0x" + bytes(signed.hash).hex()}


@pytest.fixture
def published(ledger: Ledger) -> tuple[Ledger, dict[str, Any]]:
    """A bundle with a root over three statements."""
    names = [ledger.prove(n) for n in range(1, 4)]
    ledger.sign()
    ledger.batches().form_due()
    ledger.publish()
    ledger.sign()
    return ledger, ledger.bundle(names[0])


def test_a_bundle_shows_the_way_to_the_published_root(published: tuple[Ledger, dict[str, Any]]) -> None:
    ledger, bundle = published
    (root,) = bundle["roots"]
    assert len(root["siblings"]) in (1, 2)
    assert (root["issuer"], root["registry"]) == (ACCOUNTS.issuer.address, ledger.chain.anchor.registry)
    leaves = [bytes.fromhex(leaf[2:]) for leaf in ledger.events()[0].payload["leaves"]]
    assert "0x" + Batch.of(leaves).root.hex() == root["batch_root"]
    report = verify_bundle(bundle)
    found = {line.check: line.outcome for line in report.lines}
    assert found[f"root on chain {root['chain_id']}"] is Outcome.PASS
    assert found[f"pin: root on chain {root['chain_id']}"] is Outcome.ASSUMED
    assert f"whether its batch roots stand on chain {root['chain_id']}" in report.not_established


def test_a_root_that_is_not_as_it_says_does_not_hold(published: tuple[Ledger, dict[str, Any]]) -> None:
    _, bundle = published
    (root,) = bundle["roots"]
    one = (1).to_bytes(32, "big")
    lies: list[tuple[str, dict[str, Any]]] = [
        ("path does not lead", {"siblings": [*root["siblings"][:-1], "0x" + "11" * 32]}),
        ("path does not lead", {"siblings": root["siblings"][:-1]}),
        ("path does not lead", {"batch_root": "0x" + "ab" * 32}),
        ("exactly a statement with a proof", {"siblings": None}),
        ("", {"inclusion": root["inclusion"][1:]}),
        ("", {"inclusion": []}),
        ("", {"root": "ab" * 32}),
        ("", {"size": root["size"] - 1}),
        ("tx_hash is not", {"tx_hash": "0x" + "00" * 32}),
        ("is for chain", {"chain_id": "10"}),
        ("not to the registry", {"registry": "0x" + "11" * 20}),
        ("in the name of", {"issuer": ACCOUNTS.deployer.address}),
        ("is signed by", transaction_of(root, DEPLOYER)),
        ("is signed by", {"issuer": ACCOUNTS.issuer.address, **transaction_of(root, DEPLOYER)}),
        ("is for chain", transaction_of(root, chainId=10)),
        ("not to the registry", transaction_of(root, to="0x" + "11" * 20)),
        ("another size", transaction_of(root, size=one)),
        ("another root of the checkpoint", transaction_of(root, root=one)),
        ("another batch root", transaction_of(root, batch_root=one)),
        ("another log", transaction_of(root, log_id=one)),
        ("does not call anchorBatch", transaction_of(root, call="verifyAndRecord()")),
        ("does not call anchorBatch", transaction_of(root, more=one)),
        ("carries value", transaction_of(root, value=1)),
    ]
    assert (
        lines({**bundle, "roots": [{**root, **transaction_of(root)}]})[f"root on chain {root['chain_id']}"].outcome
        is Outcome.PASS
    ), "another transaction of the issuer with the same call is as good"
    for said, lie in lies:
        lying = {**root, **lie}
        found = lines({**bundle, "roots": [lying]})[f"root on chain {lying['chain_id']}"]
        assert (found.outcome, said in found.detail) == (Outcome.FAIL, True), (said, lie, found)
    assert lines({**bundle, "roots": [root, root]})[f"root on chain {root['chain_id']}"].outcome is Outcome.FAIL


def test_the_path_of_another_statement_does_not_lead_from_this_one(published: tuple[Ledger, dict[str, Any]]) -> None:
    ledger, bundle = published
    (root,) = bundle["roots"]
    leaves = [bytes.fromhex(leaf[2:]) for leaf in ledger.events()[0].payload["leaves"]]
    paths = [["0x" + node.hex() for node in Batch.of(leaves).path(leaf)] for leaf in leaves]
    held = [
        lines({**bundle, "roots": [{**root, "siblings": path}]})[f"root on chain {root['chain_id']}"].outcome
        for path in paths
    ]
    assert sorted(held) == [Outcome.FAIL, Outcome.FAIL, Outcome.PASS]


def test_pins_decide_which_chains_roots_count_and_who_publishes_there(
    published: tuple[Ledger, dict[str, Any]],
) -> None:
    _, bundle = published
    (root,) = bundle["roots"]
    # As if the root stood on a further chain, where the deployer's account publishes.
    further = {**root, "chain_id": "10"}
    by_issuer = {**bundle, "roots": [{**further, **transaction_of(further)}]}
    by_other = {
        **bundle,
        "roots": [{**further, "issuer": ACCOUNTS.deployer.address, **transaction_of(further, DEPLOYER)}],
    }
    pin = {"chain_id": "10", "registry": root["registry"]}
    trust = {"chain_id": root["chain_id"], "registry": root["registry"]}
    named = {**pin, "issuer": ACCOUNTS.deployer.address}
    for shown, pins, expected in (
        (by_issuer, trust, (Outcome.PASS, Outcome.NOT_CHECKED)),
        (by_issuer, {**trust, "root_chains": [pin]}, (Outcome.PASS, Outcome.PASS)),
        (by_issuer, {**trust, "root_chains": [{**pin, "registry": "0x" + "11" * 20}]}, (Outcome.PASS, Outcome.FAIL)),
        (by_issuer, {**trust, "root_chains": [named]}, (Outcome.FAIL, Outcome.PASS)),
        (by_other, {**trust, "root_chains": [pin]}, (Outcome.FAIL, Outcome.PASS)),
        (by_other, {**trust, "root_chains": [named]}, (Outcome.PASS, Outcome.PASS)),
        (bundle, trust, (Outcome.PASS, Outcome.PASS)),
        (bundle, {**trust, "registry": "0x" + "11" * 20}, (Outcome.PASS, Outcome.FAIL)),
    ):
        found = tuple(line.outcome for line in root_lines(Case(shown), pins))
        assert found == expected, pins


def test_without_a_recording_a_root_at_the_registry_is_enough_and_one_elsewhere_is_not(
    published: tuple[Ledger, dict[str, Any]],
) -> None:
    _, bundle = published
    (root,) = bundle["roots"]
    assert bundle["anchor"] is None, "nothing of this ledger is recorded"
    further = {**root, "chain_id": "10"}
    elsewhere = {**further, **transaction_of(further)}
    without = {name: value for name, value in bundle.items() if name != "roots"}
    for shown, expected in (
        (bundle, Outcome.NOT_CHECKED),
        ({**bundle, "roots": [elsewhere]}, Outcome.FAIL),
        ({**bundle, "roots": [{**root, "registry": "0x" + "11" * 20}]}, Outcome.FAIL),
        (without, Outcome.FAIL),
    ):
        (line,) = (line for line in verify_bundle(shown).lines if line.check == "anchor")
        assert line.outcome is expected, shown.get("roots")


# --- undone by a deep reorganisation --------------------------------------------------------------


def undo(ledger: Ledger, *numbers: int, target: str = "home") -> list[str]:
    """As the watcher says it; the ids of the events."""
    published = {event.payload["number"]: event.payload for event in ledger.events(target) if _is_placed(event)}
    said = [
        NewEvent("batch_undone", {k: v for k, v in published[number].items() if k != "confirmations"}, 1)
        for number in numbers
    ]
    with ledger.database.begin() as tx:
        stream = batches_stream(target)
        receipts = tx.events.append(stream, said, expected_version=tx.events.length(stream))
    return [receipt.event_id for receipt in receipts]


def _is_placed(event: Any) -> bool:
    return bool(event.type == "batch_published")


def again(ledger: Ledger, event_id: str, publisher: RootPublisher | None = None) -> None:
    publish_batch(
        ledger.database,
        event_id,
        publisher=publisher or ledger.chain.roots,
        confirmations=0,
        clock=ledger.settled.clock,
    )


def two_published(ledger: Ledger) -> list[str]:
    names = []
    for n in (1, 2):
        names.append(ledger.prove(n))
        ledger.sign()
        ledger.batches().form_due()
        ledger.publish()
    return names


def test_an_undone_batch_is_published_again_by_its_one_transaction(ledger: Ledger) -> None:
    first, second = two_published(ledger)
    (event_id,) = undo(ledger, 1)
    with ledger.database.read() as tx:
        assert [len(tx.views.statement(name)["roots"]) for name in (first, second)] == [1, 0]
    assert "roots" in ledger.bundle(first)
    assert "roots" not in ledger.bundle(second)
    for _ in range(2):
        again(ledger, event_id)
    kinds = ["batch_formed", "batch_published"]
    assert [event.type for event in ledger.events()] == [*kinds, *kinds, "batch_undone", "batch_published"]
    formed, before, _, after = ledger.events()[2:]
    assert after.payload == before.payload
    assert after.payload["batch_event"] == formed.id
    assert ledger.sent() == 2
    assert ledger.bundle(second)["roots"][0]["tx_hash"] == after.payload["tx_hash"]


def test_no_batch_is_formed_while_one_is_undone(ledger: Ledger) -> None:
    two_published(ledger)
    ledger.prove(3)
    ledger.sign()
    (event_id,) = undo(ledger, 0)
    assert ledger.batches().form_due() == 0
    again(ledger, event_id)
    assert ledger.batches().form_due() == 1
    assert [event.payload["number"] for event in ledger.events()] == [0, 0, 1, 1, 0, 0, 2]


def test_what_was_undone_together_is_published_in_its_order(ledger: Ledger) -> None:
    """A registry that has the later checkpoint would refuse the earlier one for good."""
    two_published(ledger)
    ledger.prove(3)
    ledger.sign()
    ledger.batches().form_due()
    formed = ledger.events()[-1]
    first, second = undo(ledger, 0, 1)
    for waiting in (second, formed.id):
        with pytest.raises(NotYet, match="batch 0 for home is published before"):
            again(ledger, waiting)
    again(ledger, first)
    with pytest.raises(NotYet, match="batch 1 for home is published before batch 2"):
        again(ledger, formed.id)
    again(ledger, second)
    again(ledger, formed.id)
    assert [event.payload["number"] for event in ledger.events() if _is_placed(event)] == [0, 1, 0, 1, 2]


def test_a_batch_may_be_undone_again_and_a_stage_that_is_late_says_nothing_twice(ledger: Ledger) -> None:
    two_published(ledger)
    (first,) = undo(ledger, 1)
    again(ledger, first)
    (second,) = undo(ledger, 1)
    # The first stage runs once more: what it was about is done.
    again(ledger, first)
    assert ledger.events()[-1].id == second
    again(ledger, second)
    assert [event.type for event in ledger.events()[4:]] == ["batch_undone", "batch_published"] * 2
    assert ledger.sent() == 2


def test_the_trail_is_read_from_its_end_however_long_it_is() -> None:
    database, stream = memory_database(), batches_stream("home")
    events = [event for n in range(40) for event in (batch(n), batch_published(n), batch_finalized(n))]
    events += [batch(40), batch_published(40), *(event for n in range(20, 41) for event in (batch_undone(n),))]
    database.append(stream, events, expected_version=0)
    with database.read() as tx:
        trail = since_formed(tx, stream)
        assert (trail[0].type, trail[0].payload["number"]) == ("batch_formed", 40)
        assert to_publish(trail) == set(range(20, 41))
        assert [event.payload["number"] for event in since_formed(tx, stream, at=59)][:2] == [19, 19]
        assert since_formed(tx, "batches/nobody") == []
        where = {"chain_id": 31337, "registry": "0x" + "11" * 20, "limit": 500}
        assert standing(tx, stream, **where) == []
    database.append(stream, [batch_published(n) for n in range(20, 41)], expected_version=len(events))
    with database.read() as tx:
        left = standing(tx, stream, **where)
        assert [event.payload["number"] for event in left] == list(range(20, 41))
        assert to_publish(since_formed(tx, stream)) == set()
        # The newest of them alone, and none of another chain.
        assert [event.payload["number"] for event in standing(tx, stream, **{**where, "limit": 1})][-1] == 40
        assert standing(tx, stream, **{**where, "chain_id": 1}) == []
