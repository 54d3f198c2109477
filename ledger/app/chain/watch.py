"""Looking at a chain again and again: how far transactions have come, whether anchors still stand, what others did.

One process looks at a contract at a time (``ledger.app.ports.chain.ChainLooks``), and it sends nothing but stored
bytes. What can be taken back, such as a state, is noted at once. What cannot, such as an event of the log, follows
from two looks in a row that say the same: one wrong answer of a node changes nothing for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from ledger.app.chain.anchors import finalize, undo
from ledger.app.chain.batches import BatchWatch
from ledger.app.chain.blocks import Blocks, Look
from ledger.app.chain.events import EventLog
from ledger.app.ports.chain import ChainLook, Heights, StoredTransaction, WatchedChain
from ledger.app.ports.store import Database, Transaction
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import SlaLedgerError

RARE: Final = 4
"""How many times longer the pause is while nothing is on its way."""
SOON_NS: Final = 2 * SECOND_NS
"""The pause where a look left something open that the next one decides."""
SPARE_NS: Final = 30 * SECOND_NS
"""How late a look may be before another process takes over."""
OLD_S: Final = 60
"""A transaction that waits for a block as long as this is sent again here; before, those are at it who signed it."""
MAX_TRANSACTIONS: Final = 500
_PAGE: Final = 500

Notify: TypeAlias = Callable[[str], None]
Open: TypeAlias = Callable[[], WatchedChain]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A confirmed anchor that is not final."""

    tenant: str
    statement_id: str
    tx_hash: str
    block_number: int
    block_hash: str


@dataclass(slots=True)
class _Left:
    """What one look leaves to the next: anchors that are not where they were confirmed, and whether any is open."""

    missing: frozenset[Anchor] = frozenset()
    anchors: bool = True


@dataclass(frozen=True, slots=True)
class _Opened:
    """A chain that is watched, with what reads its logs and what follows the batches there."""

    chain: WatchedChain
    events: EventLog
    batches: BatchWatch


@dataclass(slots=True)
class ChainWatch:
    """Looks at one contract every ``every_s`` seconds while something is on its way, and a quarter as often otherwise.

    ``database`` sees every tenant. ``open_chain`` is called when a look is due and may fail. ``holder`` names this
    process among those that would look.
    """

    database: Database
    open_chain: Open
    clock: Clock
    holder: str
    every_s: int
    notify: Notify
    _opened: _Opened | None = None
    _left: _Left = field(default_factory=_Left)
    _told: str | None = None
    _not_before_ns: int = 0

    def look(self) -> bool:
        """Make a look if one is due here. Always False: there is no hurry after one.

        What a node does wrong is told once, kept with the look, and tried again by the next one.
        """
        now_ns = self.clock.now_ns()
        if now_ns < self._not_before_ns:
            return False
        try:
            opened = self._open()
        except SlaLedgerError as error:
            self._not_before_ns = now_ns + self.every_s * SECOND_NS
            self._tell(error.message)
            return False
        before = self._turn(opened.chain, now_ns)
        if before is None:
            return False
        found, said = self._looked(opened, replace(before, looked_at_ns=now_ns))
        with self.database.begin() as tx:
            tx.chain_looks.note(replace(found, error=said), holder=self.holder)
        self._tell(said)
        return False

    def _open(self) -> _Opened:
        if self._opened is None:
            chain = self.open_chain()
            events = EventLog(self.database, chain, self.clock, self.notify)
            self._opened = _Opened(chain, events, BatchWatch(self.database, chain, self.clock, self.notify))
        return self._opened

    def _turn(self, chain: WatchedChain, now_ns: int) -> ChainLook | None:
        """The last look, if the next one is due and this process's."""
        place = (chain.chain_id, chain.contract)
        with self.database.read() as tx:
            known = next((each for each in tx.chain_looks.all() if (each.chain_id, each.contract) == place), None)
            due_ns = now_ns if known is None else now_ns - self._pause_ns(tx, known)
        if known is not None and known.looked_at_ns > due_ns:
            return None
        with self.database.begin() as tx:
            return tx.chain_looks.take(
                *place, holder=self.holder, now_ns=now_ns, until_ns=now_ns + self._lease_ns, due_ns=due_ns
            )

    @property
    def _lease_ns(self) -> int:
        """Longer than every pause: what a look remembers is for the next one of the same process."""
        return RARE * self.every_s * SECOND_NS + SPARE_NS

    def _pause_ns(self, tx: Transaction, known: ChainLook) -> int:
        every_ns = self.every_s * SECOND_NS
        events, batches = (None, None) if self._opened is None else (self._opened.events, self._opened.batches)
        if self._left.missing or (events is not None and events.behind) or (batches is not None and batches.missing):
            return min(every_ns, SOON_NS)
        above = -1 if known.finalized is None else known.finalized
        left = self._left.anchors or batches is None or batches.left
        busy = left or tx.chain.unsettled(known.chain_id, above=above, limit=1)
        return every_ns if busy else RARE * every_ns

    def _looked(self, opened: _Opened, look: ChainLook) -> tuple[ChainLook, str | None]:
        """What is found, and what went wrong. Where one part fails the others are done all the same."""
        chain = opened.chain
        try:
            heights = chain.heights()
        except SlaLedgerError as error:
            return look, error.message
        final = heights.final(chain.confirmations)
        if look.latest is None:
            final = -1
        else:
            final = min(final, Heights(look.latest, look.safe, look.finalized).final(chain.confirmations))
        now = Look(chain, heights, final, Blocks(chain))
        found = replace(look, latest=heights.latest, safe=heights.safe, finalized=heights.finalized)
        said: list[str] = []
        for part in (self._move_transactions, self._check_anchors, opened.batches.check):
            try:
                part(now)
            except SlaLedgerError as error:
                said.append(error.message)
        try:
            found = opened.events.read(found, heights, final)
        except SlaLedgerError as error:
            said.append(error.message)
        return found, said[0] if said else None

    def _move_transactions(self, now: Look) -> None:
        """Note how far the transactions have come, forward and back, and send again what lies in no block for long."""
        chain = now.chain
        with self.database.read() as tx:
            stored = tx.chain.unsettled(chain.chain_id, above=now.final, limit=MAX_TRANSACTIONS)
        changes: list[Callable[[Transaction], None]] = []
        old_s = self.clock.now_ns() // SECOND_NS - OLD_S
        lost = [each for each in stored if each.block_number is None and (each.signed_at_s or 0) < old_s]
        for each in stored:
            if each.block_number is None or each.block_hash is None:
                continue
            if not now.blocks.hold(each.block_number, each.block_hash):
                if not chain.held(each.tx_hash):
                    changes.append(_dropped(each))
                    lost.append(each)
            elif not each.failed and (change := _progress(each, now)) is not None:
                changes.append(change)
        if changes:
            with self.database.begin() as tx:
                for change in changes:
                    change(tx)
        if lost:
            chain.resend(signed_before_s=old_s)

    def _check_anchors(self, now: Look) -> None:
        """Log which anchors are final, and have those confirmed again that a deep reorganisation undid."""
        missing: set[Anchor] = set()
        final: list[Anchor] = []
        left = False
        for anchor in self._open_anchors(now.chain):
            left = True
            if now.blocks.hold(anchor.block_number, anchor.block_hash):
                if anchor.block_number <= now.final:
                    final.append(anchor)
            elif now.lost(anchor.tx_hash, anchor.block_number, anchor.block_hash):
                missing.add(anchor)
        for anchor in final:
            finalize(self.database.of_tenant(anchor.tenant), anchor, now.heights.latest, self.clock)
        undone = missing & self._left.missing
        self._left = _Left(frozenset(missing - undone), left)
        if undone:
            self._undo(undone, missing)

    def _undo(self, undone: set[Anchor], missing: set[Anchor]) -> None:
        """What one agreement lost is logged together and in its order, so that it is recorded again in that order."""
        for tenant in sorted({anchor.tenant for anchor in undone}):
            database = self.database.of_tenant(tenant)
            lost = [anchor for anchor in missing if anchor.tenant == tenant]
            for statement_id in undo(database, undone, lost, self.clock):
                self.notify(f"a deep reorganisation undid the anchor of {statement_id}; it is confirmed again")

    def _open_anchors(self, chain: WatchedChain) -> Iterator[Anchor]:
        with self.database.read() as tx:
            tenants: Sequence[str] = tx.views.tenants()
        for tenant in tenants:
            after: str | None = None
            while True:
                with self.database.of_tenant(tenant).read() as tx:
                    page = tx.views.open_anchors(chain.chain_id, after=after, limit=_PAGE)
                for row in page:
                    place = row["tx_hash"], row["block_number"], row["block_hash"]
                    yield Anchor(tenant, row["statement_id"], *place)
                if len(page) < _PAGE:
                    break
                after = page[-1]["statement_id"]

    def _tell(self, error: str | None) -> None:
        if error != self._told:
            self.notify("the chain is watched again" if error is None else f"watching the chain: {error}")
        self._told = error


def _dropped(transaction: StoredTransaction) -> Callable[[Transaction], None]:
    return lambda tx: tx.chain.dropped(transaction.tx_hash, block_hash=str(transaction.block_hash))


def _progress(transaction: StoredTransaction, now: Look) -> Callable[[Transaction], None] | None:
    """What is to be noted of a transaction whose block stands; None where that is noted already."""
    state = now.heights.state(transaction.block_number, now.chain.confirmations)
    if state == "finalized" and (transaction.block_number or 0) > now.final:
        state = "included" if now.heights.safe is None else "safe"
    if state == transaction.state:
        return None
    return lambda tx: tx.chain.reached(transaction.tx_hash, state, block_hash=str(transaction.block_hash))
