"""Batch roots: statements under one root for each chain, published there in the issuer's name, until they stand.

Every target, the home chain and each further one, has batches of its own, one after the other and without a gap: what
a chain missed while it was away goes into its next batch, and no chain waits for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.chain.anchoring import recording_of
from ledger.app.chain.batch_trail import published_since, since_formed, to_publish
from ledger.app.ports.evidence import Attestor, RootPublisher
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import proved
from ledger.app.work.outbox import Stage
from ledger.app.work.retrying import pause_s
from ledger.domain.events.batch_events import BATCH_FORMED, BATCH_PUBLISHED, HOME, MAX_LEAVES
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import batches_stream
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import NotFound, NotYet, VersionConflict
from ledger.merkle.checkpoint import Checkpoint, parse_checkpoint
from ledger.merkle.note import parse_note

_BATCH = ("target", "number", "from_seq", "until_seq", "origin", "size", "root", "batch_root", "node")


@dataclass(frozen=True, slots=True)
class RootPolicy:
    """When a batch is formed: once ``most`` statements wait for one, or the first of them waited for ``after_s``."""

    after_s: int
    most: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """What goes into the next batch of a target, with its place in the target's stream."""

    version: int
    number: int
    from_seq: int
    until_seq: int
    checkpoint: Checkpoint
    waiting: Sequence[Mapping[str, Any]]
    waits_since_ns: int


@dataclass(slots=True)
class Batches:
    """Forms the batches of all targets; ``database`` sees every tenant.

    Two at a time do no harm, since a batch has one place in its stream.
    """

    database: Database
    attestor: Attestor
    clock: Clock
    targets: Sequence[str]
    policy: RootPolicy

    def form_due(self, *, at_once: bool = False) -> int:
        """Form what is due, or with ``at_once`` what there is, and queue its publication; how many batches were formed.

        A batch reaches up to the newest signed checkpoint. A target whose last batch is not published yet gets none.
        """
        return sum(self._form(target, at_once=at_once) for target in self.targets)

    def _form(self, target: str, *, at_once: bool) -> bool:
        with self.database.read() as tx:
            batch = self._next(tx, target)
        if batch is None or not (at_once or self._due(batch)):
            return False
        leaves = sorted({self._leaf(row) for row in batch.waiting if row["proved"]})
        checkpoint, root = batch.checkpoint, self.attestor.batch_root(leaves)
        payload = {
            "target": target,
            "number": batch.number,
            "from_seq": batch.from_seq,
            "until_seq": batch.until_seq,
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "batch_root": "0x" + root.hex(),
            "node": "0x" + self.attestor.batch_node(checkpoint, root).hex(),
            "leaves": ["0x" + leaf.hex() for leaf in leaves],
        }
        event = NewEvent(BATCH_FORMED, payload, occurred_at_ns=self.clock.now_ns())
        try:
            with self.database.begin() as tx:
                (receipt,) = tx.events.append(batches_stream(target), [event], expected_version=batch.version)
                tx.outbox.add(receipt.event_id, Stage.PUBLISH if target == HOME else Stage.PUBLISH_FURTHER)
        except VersionConflict:
            # Another worker formed it.
            return False
        return True

    def _next(self, tx: Transaction, target: str) -> _Batch | None:
        """The next batch of a target, due or not; None where there is nothing to put into it."""
        trail = since_formed(tx, batches_stream(target))
        if to_publish(trail):
            return None
        last = trail[0].payload if trail else {"until_seq": 0, "number": -1}
        start, number, version = last["until_seq"], last["number"] + 1, trail[-1].version + 1 if trail else 0
        size = tx.log.checkpoint_size()
        note = None if size is None else tx.log.checkpoint(size)
        if note is None:
            return None
        checkpoint = parse_checkpoint(parse_note(note.encode()).text)
        waiting = tx.views.unbatched(start, checkpoint.size, MAX_LEAVES + 1)
        proofs = [row["seq"] for row in waiting if row["proved"]]
        until = checkpoint.size if len(proofs) <= MAX_LEAVES else proofs[MAX_LEAVES]
        waiting = [row for row in waiting if row["seq"] < until]
        if not waiting:
            return None
        since_ns = tx.events.at(waiting[0]["seq"]).recorded_at_ns
        return _Batch(version, number, start, until, checkpoint, waiting, since_ns)

    def _due(self, batch: _Batch) -> bool:
        waited_ns = self.clock.now_ns() - batch.waits_since_ns
        return len(batch.waiting) >= self.policy.most or waited_ns >= self.policy.after_s * SECOND_NS

    def _leaf(self, row: Mapping[str, Any]) -> bytes:
        with self.database.of_tenant(row["tenant"]).read() as tx:
            proof = proved(tx, row["statement_id"])
            if proof is None:
                raise NotFound(f"the log holds no proof of {row['statement_id']}", statement_id=row["statement_id"])
            return self.attestor.leaf(recording_of(tx, proof.payload))


def publish_batch(
    database: Database, event_id: str, *, publisher: RootPublisher, confirmations: int, clock: Clock
) -> None:
    """Publish the batch of a ``batch_formed`` or ``batch_undone`` event, and log where it stands once it has so many
    ``confirmations``.

    Raises ``NotYet`` until then, or while one before it is to be published, and ``AnchorRefused`` where the registry
    knows a larger checkpoint of the log, or another root of this size. What a reorganisation dropped meanwhile is sent
    again, byte for byte.
    """
    with database.read() as tx:
        event = tx.events.by_id(event_id)
        if published_since(tx, event):
            return
        _require_turn(tx, event, clock)
    batch = event.payload
    checkpoint = Checkpoint(batch["origin"], batch["size"], bytes.fromhex(batch["root"]))
    standing = publisher.publish(checkpoint, bytes.fromhex(batch["batch_root"][2:]))
    have = standing.confirmations
    if have < confirmations:
        raise NotYet(
            f"batch {batch['number']} for {batch['target']} has {have} of {confirmations} confirmations",
            confirmations=have,
            retry_after_s=pause_s(event.recorded_at_ns, clock.now_ns(), least_s=max(confirmations - have, 1)),
        )
    payload = {
        **{name: batch[name] for name in _BATCH},
        "batch_event": batch.get("batch_event", event.id),
        "chain_id": str(publisher.chain_id),
        "registry": publisher.registry,
        "issuer": publisher.issuer,
        "tx_hash": standing.placed.tx_hash,
        "block_number": standing.placed.block_number,
        "block_hash": standing.placed.block_hash,
        "confirmations": have,
    }
    published = NewEvent(BATCH_PUBLISHED, payload, occurred_at_ns=clock.now_ns())
    try:
        with database.begin() as tx:
            # Before the look: what others say between the two is a conflict then, and is not missed.
            version = tx.events.length(event.stream)
            if not published_since(tx, event):
                tx.events.append(event.stream, [published], expected_version=version)
    except VersionConflict:
        with database.read() as tx:
            if not published_since(tx, event):
                raise


def _require_turn(tx: Transaction, event: StoredEvent, clock: Clock) -> None:
    """Raises ``NotYet`` while a batch before that of an event is to be published: the registry would refuse it then."""
    first, number = min(to_publish(since_formed(tx, event.stream, at=event.version))), event.payload["number"]
    if first < number:
        raise NotYet(
            f"batch {first} for {event.payload['target']} is published before batch {number}",
            waits_for=first,
            retry_after_s=pause_s(event.recorded_at_ns, clock.now_ns(), least_s=1),
        )
