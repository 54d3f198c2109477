"""Ports to what is stored of chains: signed transactions with their states, and who looks at a chain and how far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from ledger.app.ports.evidence import Standing

TransactionState: TypeAlias = Literal["submitted", "included", "safe", "finalized", "failed"]
"""How far a transaction has come on its chain. ``failed``: it reverted, or another has its nonce."""

Among: TypeAlias = Callable[[Collection[str]], Collection[str]]
"""Those of some names, 0x and hex digits in lower case, that it knows."""


@dataclass(frozen=True, slots=True)
class StoredTransaction:
    """A signed EVM transaction, stored before it is sent, so that the same bytes can be sent again.

    ``ordinal`` counts from 0 per chain in the order of signing. ``sender`` is in EIP-55 form, ``tx_hash`` and
    ``block_hash`` are ``0x`` and 64 hex digits. ``purpose`` is for people. ``effect`` names what the transaction
    brings about, so that the same work done twice sends one transaction. ``attempt`` counts from 0 those that share a
    nonce, of which a chain can hold one: each later one offers more for it. ``signed_at_block`` is the chain's newest
    block at signing, ``signed_at_s`` the time (Unix seconds) at which its effect was first signed for, each None where
    nobody noted it. ``block_timestamp_s`` is the block time asked for on the embedded chain, None on a chain that sets
    its own. Block number and hash are None until it was seen in a block, and again once a reorganisation dropped it.
    """

    ordinal: int
    chain_id: int
    sender: str
    nonce: int
    purpose: str
    effect: str
    tx_hash: str
    raw: bytes
    block_timestamp_s: int | None = None
    block_number: int | None = None
    block_hash: str | None = None
    attempt: int = 0
    signed_at_block: int | None = None
    signed_at_s: int | None = None
    state: TransactionState = "submitted"

    @property
    def failed(self) -> bool:
        """Whether it cannot have its effect: it reverted, or another has its nonce."""
        return self.state == "failed"


@dataclass(frozen=True, slots=True)
class StateTally:
    """Transactions of one chain in one state. ``oldest_s``: when the first of them was signed, Unix seconds."""

    chain_id: int
    state: TransactionState
    count: int
    oldest_s: int | None


@dataclass(frozen=True, slots=True)
class ChainLook:
    """What the last look at a contract's chain found.

    ``next_block`` is the first block whose logs may still change or were not read. ``latest``, ``safe`` and
    ``finalized`` are block numbers, None where no look succeeded or the node does not name them. ``error`` says why the
    last look failed. ``unread`` are the first and the last block whose logs no node gave; None: all were read.
    ``of_others`` counts the events that were logged because somebody else's doing concerns this ledger.
    """

    chain_id: int
    contract: str
    next_block: int = 0
    latest: int | None = None
    safe: int | None = None
    finalized: int | None = None
    looked_at_ns: int = 0
    error: str | None = None
    unread: tuple[int, int] | None = None
    of_others: int = 0


class ChainTransactions(Protocol):
    """Signed transactions by chain, in the order of signing.

    (chain, ordinal) and (chain, sender, nonce, attempt) are unique.
    """

    def reserve(self, chain_id: int) -> None:
        """Keep others from taking ordinals and nonces of a chain until this transaction ends."""
        ...

    def add(self, transaction: StoredTransaction) -> None:
        """Adding the same again is a no-op. Raises ``VersionConflict`` where its ordinal, place or hash is taken."""
        ...

    def included(
        self, tx_hash: str, *, block_number: int, block_hash: str, state: TransactionState = "included"
    ) -> None:
        """Note the block that holds a transaction, which a reorganisation may change. Raises ``NotFound``.

        The others of its nonce are noted as failed: no block beside it can hold them.
        """
        ...

    def reached(self, tx_hash: str, state: TransactionState, *, block_hash: str) -> None:
        """Note how final the block of a transaction is; nothing where another block is noted for it by now."""
        ...

    def dropped(self, tx_hash: str, *, block_hash: str) -> None:
        """Note that no block holds a transaction any more; nothing where another block is noted for it by now.

        It waits for a block again, and so do the others of its nonce.
        """
        ...

    def superseded(self, tx_hash: str) -> None:
        """Note that a transaction not stored here has the nonce of this one and of its other attempts.

        None of them can ever be included. Raises ``NotFound``.
        """
        ...

    def by_hash(self, tx_hash: str) -> StoredTransaction:
        """Raises ``NotFound``."""
        ...

    def of_effect(self, chain_id: int, effect: str) -> StoredTransaction | None:
        """The newest transaction with an effect, of those that did not fail."""
        ...

    def next_place(self, chain_id: int, sender: str) -> tuple[int, int]:
        """The next free (ordinal, nonce) as far as is stored here."""
        ...

    def from_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        """A sender's transactions with this nonce or a later one, by nonce and attempt."""
        ...

    def at_nonce(self, chain_id: int, sender: str, nonce: int) -> Sequence[StoredTransaction]:
        """All attempts at a nonce of a sender, the first of them first."""
        ...

    def not_included(self, chain_id: int) -> Sequence[StoredTransaction]:
        """Those that no block is noted for and that did not fail, by ordinal."""
        ...

    def unsettled(self, chain_id: int, *, above: int, limit: int | None = None) -> Sequence[StoredTransaction]:
        """Those a reorganisation may still change, by ordinal: all, or the first ``limit``.

        They are neither finalized nor failed, or they failed in a block after number ``above``.
        """
        ...

    def since_block(self, chain_id: int) -> int | None:
        """The first block at which one was signed, or that holds one; None where there is none, or it is not known."""
        ...

    def states(self, tx_hashes: Collection[str]) -> Mapping[str, TransactionState]:
        """The states of those that are stored, by hash."""
        ...

    def tallies(self) -> Sequence[StateTally]:
        """How many transactions are in which state, by chain and state."""
        ...

    def of_chain(self, chain_id: int, *, newest: int | None = None) -> Sequence[StoredTransaction]:
        """The transactions of a chain by ordinal: all, or the ``newest`` so many."""
        ...

    def count(self, chain_id: int) -> int:
        """How many transactions of a chain are stored."""
        ...


class ChainLooks(Protocol):
    """Who looks at which contract's chain: one process at a time, and any other once that one is gone."""

    def take(
        self, chain_id: int, contract: str, *, holder: str, now_ns: int, until_ns: int, due_ns: int
    ) -> ChainLook | None:
        """The last look, for whoever makes the next one, which keeps others away until ``until_ns``.

        None where another ``holder`` has it, or where the last look is not older than ``due_ns``.
        """
        ...

    def note(self, look: ChainLook, *, holder: str) -> bool:
        """Keep a look; False where another holder has taken it over meanwhile, and then nothing is kept."""
        ...

    def all(self) -> Sequence[ChainLook]:
        """The last look at every contract, by chain and contract."""
        ...


@dataclass(frozen=True, slots=True)
class Heights:
    """Numbers of the newest blocks of a chain; ``safe`` and ``finalized`` None where the node does not name them."""

    latest: int
    safe: int | None
    finalized: int | None

    def state(self, block_number: int | None, confirmations: int) -> TransactionState:
        """Of a transaction in this block of the canonical chain, or in none.

        Without the node's word one that has the ``confirmations`` counts as finalized, and none as safe.
        """
        if block_number is None:
            return "submitted"
        if block_number <= self.final(confirmations):
            return "finalized"
        return "safe" if self.safe is not None and block_number <= self.safe else "included"

    def final(self, confirmations: int) -> int:
        """The newest block that is final; -1 where none is."""
        return self.latest - confirmations + 1 if self.finalized is None else self.finalized


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a registry. ``arguments`` are plain values: bytes as 0x and hex digits, numbers as digits.

    ``own`` says that a transaction stored here made it. ``concerns`` says what an event that is not own means for this
    ledger: ``statement`` and ``registration`` are about one of its agreements, ``registry`` about all who use the
    contract, None about others alone.
    """

    name: str
    arguments: Mapping[str, Any]
    tx_hash: str
    block_number: int
    block_hash: str
    log_index: int
    own: bool
    concerns: str | None


class WatchedChain(Protocol):
    """A contract on the chain of a node, as a watcher asks for it. Every method raises ``ChainUnavailable``."""

    @property
    def chain_id(self) -> int: ...

    @property
    def contract(self) -> str: ...

    @property
    def confirmations(self) -> int:
        """Blocks that must stand before an anchor counts as confirmed."""
        ...

    def heights(self) -> Heights: ...

    def block_hash(self, number: int) -> str | None:
        """Of the canonical chain; None where the node has no such block."""
        ...

    def held(self, tx_hash: str) -> bool:
        """Whether a block holds a stored transaction or another attempt at its nonce; which one is noted."""
        ...

    def standing(self, tx_hash: str) -> Standing | None:
        """See ``ledger.app.ports.evidence.Anchor``."""
        ...

    def resend(self, *, signed_before_s: int) -> None:
        """Send again what is stored, was signed before a time (Unix seconds) and is in no block."""
        ...

    def events(self, first: int, last: int, *, own: Among, known: Among) -> Sequence[Seen]:
        """What the contract emitted in these blocks, both ends included, each once.

        ``own`` tells which of some transactions are stored here, ``known`` which of some agreements are this ledger's;
        each is asked once. The error says ``answered`` where the node refuses even the logs of a single block.
        """
        ...
