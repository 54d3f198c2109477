"""Batch roots: what publishing says, in whose name, in which order, and what a path shows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import count

import pytest
from eth_account.signers.local import LocalAccount
from eth_utils import keccak
from web3.types import TxReceipt

from ledger.attest.crypto.batch import NO_STATEMENTS, Batch, batch_node, batch_root, log_id
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.hasher import leaf_hash, node_hash
from tests.contracts.conftest import Refuses
from tests.contracts.ground import CUSTOMER, ISSUER, STRANGER, Ground, word
from tests.support.batches import AnchoredBatch

_logs = count()


@pytest.fixture
def origin() -> str:
    """A log of the test's own: sizes of one log never fall."""
    return f"ledger.example/log-{next(_logs)}"


def leaves(number: int, seed: str = "") -> list[bytes]:
    return [keccak(text=f"statement {seed} {n}") for n in range(number)]


def checkpoint(origin: str, size: int = 7, root: bytes = b"\x05" * 32) -> Checkpoint:
    return Checkpoint(origin, size, root)


def publish(ground: Ground, state: Checkpoint, root: bytes, sender: LocalAccount = ISSUER) -> TxReceipt:
    return ground.batches.anchor(sender, state, root, now_s=ground.tick())


def published(ground: Ground, state: Checkpoint, root: bytes, sender: LocalAccount = ISSUER) -> list[AnchoredBatch]:
    return list(ground.batches.events_of(publish(ground, state, root, sender)))


# --- what is published ---------------------------------------------------------------------------


def test_a_batch_is_published_as_the_format_says(ground: Ground, origin: str) -> None:
    batch, state = Batch.of(leaves(5)), checkpoint(origin)
    receipt = publish(ground, state, batch.root)
    (event,) = ground.batches.events_of(receipt)
    named = [keccak(text="sla-ledger/batch/v1"), keccak(text=origin), state.size, state.root, batch.root]
    assert event.node == keccak(b"".join(word(x) for x in named)) == batch_node(state, batch.root)
    assert (event.issuer, event.log_id, event.batch_root) == (ISSUER.address, log_id(origin), batch.root)
    assert (event.size, event.root) == (state.size, state.root)
    block = receipt["blockNumber"]
    assert ground.batches.anchored(ISSUER.address, from_block=block, to_block=block) == (event,)
    assert ground.batches.anchored(CUSTOMER.address, from_block=block, to_block=block) == ()
    assert ground.batches.anchored_at(ISSUER.address, event.node) == ground.clock_s
    assert ground.batches.latest_size(ISSUER.address, origin) == state.size


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7, 8, 9, 33])
def test_each_statement_of_a_batch_has_a_path(ground: Ground, origin: str, number: int) -> None:
    batch, state = Batch.of(leaves(number, origin)), checkpoint(origin)
    publish(ground, state, batch.root)
    for leaf in leaves(number, origin):
        path = batch.path(leaf)
        assert batch_root(leaf, path) == batch.root
        assert ground.batches.is_root_anchored(ISSUER.address, leaf, state, path)


def test_what_was_not_published_has_none(ground: Ground, origin: str) -> None:
    batch, state = Batch.of(leaves(6, origin)), checkpoint(origin)
    publish(ground, state, batch.root)
    leaf = leaves(6, origin)[2]
    path = batch.path(leaf)

    def anchored(
        issuer: str = ISSUER.address, leaf: bytes = leaf, state: Checkpoint = state, path: tuple[bytes, ...] = path
    ) -> bool:
        return ground.batches.is_root_anchored(issuer, leaf, state, path)

    assert anchored()
    assert not anchored(issuer=CUSTOMER.address)
    assert not anchored(leaf=keccak(leaf))
    assert not anchored(state=replace(state, size=state.size + 1))
    assert not anchored(state=replace(state, root=b"\x06" * 32))
    assert not anchored(state=replace(state, origin=origin + "x"))
    assert not anchored(path=path[:-1])
    assert not anchored(path=(*path, path[0]))
    assert not anchored(path=path[::-1])
    assert not anchored(path=(keccak(path[0]), *path[1:]))


def test_the_order_of_leaves_and_doubles_do_not_matter() -> None:
    given = leaves(9)
    assert Batch.of(given) == Batch.of(given[::-1]) == Batch.of(given + given[:4])


# --- the same again, and by others ---------------------------------------------------------------


def test_the_same_batch_again_changes_nothing(ground: Ground, origin: str) -> None:
    root, state = Batch.of(leaves(3, origin)).root, checkpoint(origin)
    assert len(published(ground, state, root)) == 1
    at = ground.batches.anchored_at(ISSUER.address, batch_node(state, root))
    assert published(ground, state, root) == []
    # Nor after the log has grown: a late repetition is no older checkpoint.
    assert len(published(ground, checkpoint(origin, 8), root)) == 1
    assert published(ground, state, root) == []
    assert ground.batches.anchored_at(ISSUER.address, batch_node(state, root)) == at


def test_nobody_publishes_in_another_name(ground: Ground, origin: str) -> None:
    """A stranger sees the batch first, sends it himself and uses up the largest size: neither touches the issuer."""
    batch, state = Batch.of(leaves(3, origin)), checkpoint(origin)
    published(ground, state, batch.root, STRANGER)
    published(ground, checkpoint(origin, 2**63 - 1, b"\x09" * 32), batch.root, STRANGER)
    leaf = leaves(3, origin)[0]
    assert not ground.batches.is_root_anchored(ISSUER.address, leaf, state, batch.path(leaf))
    assert len(published(ground, state, batch.root)) == 1
    assert ground.batches.is_root_anchored(ISSUER.address, leaf, state, batch.path(leaf))


# --- the log -------------------------------------------------------------------------------------


def test_a_log_does_not_shrink(ground: Ground, origin: str, refuses: Refuses) -> None:
    publish(ground, checkpoint(origin, 7), b"\x01" * 32)
    with refuses("CheckpointOlder"):
        publish(ground, checkpoint(origin, 6), b"\x02" * 32)
    assert ground.batches.latest_size(ISSUER.address, origin) == 7
    publish(ground, checkpoint(origin, 8, b"\x06" * 32), b"\x02" * 32)


@pytest.mark.parametrize("byte", [0, 23], ids=["first byte", "last byte that is kept"])
def test_one_size_has_one_root(ground: Ground, origin: str, refuses: Refuses, byte: int) -> None:
    state = checkpoint(origin)
    publish(ground, state, b"\x01" * 32)
    other = bytearray(state.root)
    other[byte] ^= 1
    with refuses("CheckpointForked"):
        publish(ground, replace(state, root=bytes(other)), b"\x02" * 32)


def test_several_batches_stand_beside_one_checkpoint(ground: Ground, origin: str) -> None:
    state = checkpoint(origin)
    assert all(published(ground, state, bytes([n]) * 32) for n in (1, 2, 3))


def test_logs_do_not_meet(ground: Ground, origin: str) -> None:
    publish(ground, checkpoint(origin, 100), b"\x01" * 32)
    assert published(ground, checkpoint(origin + "/other", 2), b"\x01" * 32)


def test_an_empty_log_is_not_published(ground: Ground, origin: str, refuses: Refuses) -> None:
    for state in (Checkpoint(origin, 0, hashlib.sha256().digest()), checkpoint(origin, 7, bytes(32))):
        with refuses("CheckpointEmpty"):
            publish(ground, state, b"\x01" * 32)


def test_a_checkpoint_alone_publishes_no_statement(ground: Ground, origin: str) -> None:
    state = checkpoint(origin)
    assert len(published(ground, state, NO_STATEMENTS)) == 1
    assert ground.batches.latest_size(ISSUER.address, origin) == state.size
    assert not ground.batches.is_root_anchored(ISSUER.address, NO_STATEMENTS, state, ())


# --- entries of the ledger -----------------------------------------------------------------------


def root_of(hashes: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word by word."""
    if len(hashes) == 1:
        return hashes[0]
    split = 1 << (len(hashes) - 1).bit_length() - 1
    return node_hash(root_of(hashes[:split]), root_of(hashes[split:]))


def audit_path(hashes: list[bytes], index: int) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1."""
    if len(hashes) == 1:
        return []
    split = 1 << (len(hashes) - 1).bit_length() - 1
    if index < split:
        return [*audit_path(hashes[:split], index), root_of(hashes[split:])]
    return [*audit_path(hashes[split:], index - split), root_of(hashes[:split])]


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 13])
def test_an_entry_is_shown_under_the_anchored_checkpoint(ground: Ground, origin: str, size: int) -> None:
    hashes = [leaf_hash(f"entry {n}".encode()) for n in range(size)]
    state, root = checkpoint(origin, size, root_of(hashes)), b"\x01" * 32
    publish(ground, state, root)

    def shown(entry: bytes, index: int, audit: list[bytes], state: Checkpoint = state) -> bool:
        return ground.batches.is_entry_anchored(ISSUER.address, entry, state, root, index=index, audit=audit)

    for index, entry in enumerate(hashes):
        audit = audit_path(hashes, index)
        assert shown(entry, index, audit)
        assert not shown(leaf_hash(b"another"), index, audit)
        assert not shown(entry, index, [*audit, b"\x01" * 32])
        assert not shown(entry, size, audit)
        assert not shown(entry, index, audit, replace(state, size=size + 1))
        if audit:
            assert not shown(entry, index, audit[:-1])
            assert not shown(entry, index, [audit[0][::-1], *audit[1:]])
            assert not shown(entry, (index + 1) % size, audit)


# --- gas -----------------------------------------------------------------------------------------


def test_a_thousand_statements_cost_at_most_75_gas_each(ground: Ground, origin: str) -> None:
    """Also the first batch of a log, which fills a slot that later ones change."""
    for size in (10**6, 10**6 + 2000):
        batch = Batch.of(leaves(1000, f"{origin} {size}"))
        receipt = publish(ground, checkpoint(origin, size, keccak(text=f"{size}")), batch.root)
        assert receipt["gasUsed"] / 1000 <= 75
