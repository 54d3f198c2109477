"""The log as third parties download it: checkpoint, tiles, entry bundles (C2SP tlog-tiles) and proofs in files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ledger.app.log.log_keys import LogIdentity, log_keys
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.statements import issued_event
from ledger.errors import LogInconsistent, NotFound, TilePathInvalid
from ledger.merkle.entry_bundle import encode_bundle
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.key_history import LogKey
from ledger.merkle.tile import BundleId, TileId, is_covered, parse_log_path
from ledger.merkle.tlog_proof import TlogProof

_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class LogDescription:
    """How to find and check a log; ``size`` is that of the newest checkpoint, 0 before the first."""

    origin: str
    log_id: str
    size: int
    keys: tuple[LogKey, ...]


class PublicLog:
    """What is published of a log. Nothing beyond the newest signed checkpoint ever leaves here."""

    def __init__(self, database: Database, identity: LogIdentity) -> None:
        self._database = database
        self._identity = identity
        self.log_id = hashlib.sha256(identity.origin.encode()).hexdigest()[:_ID_DIGITS]
        """Names the log in its URLs: what is cached under one log's address is never another log's."""

    def of_tenant(self, tenant: str) -> PublicLog:
        """The same log; ``statement_proof`` finds the statements of this tenant."""
        return PublicLog(self._database.of_tenant(tenant), self._identity)

    def describe(self) -> LogDescription:
        """Origin, address, signed size and keys."""
        with self._database.read() as tx:
            size = tx.log.checkpoint_size() or 0
            return LogDescription(self._identity.origin, self.log_id, size, log_keys(tx, self._identity))

    def checkpoint(self) -> bytes:
        """The newest signed note; raises ``NotFound`` before the first."""
        with self._database.read() as tx:
            note = tx.log.checkpoint()
        if note is None:
            raise NotFound("no checkpoint was signed yet")
        return note.encode()

    def resource(self, path: str) -> bytes:
        """A tile or entry bundle by its exact path, ``tile/...``, in any width that the signed tree has.

        Raises ``NotFound`` for every other path, and for what no checkpoint covers.
        """
        try:
            wanted = parse_log_path(path)
        except TilePathInvalid as error:
            raise NotFound(error.message, path=path[:80]) from error
        with self._database.read() as tx:
            signed = tx.log.checkpoint_size() or 0
            if not is_covered(wanted, signed):
                raise NotFound(f"the signed tree of {signed} leaves has no {path}", path=path, size=signed)
            if isinstance(wanted, TileId):
                return tx.log.tile(wanted.level, wanted.index, wanted.width)
            return _entries(tx, wanted)

    def statement_proof(self, statement_id: str) -> bytes:
        """The tlog-proof of the event that issued a statement; raises ``NotFound``."""
        with self._database.read() as tx:
            return _proof(tx, issued_event(tx, statement_id).place)

    def proof(self, seq: int) -> bytes:
        """The tlog-proof of the entry at ``seq``; raises ``NotFound``, also where no checkpoint covers it yet."""
        with self._database.read() as tx:
            return _proof(tx, seq)


def _proof(tx: Transaction, seq: int) -> bytes:
    event = tx.events.at(seq)
    size = tx.log.checkpoint_size() or 0
    note = tx.log.checkpoint(size)
    if note is None or size <= seq:
        raise NotFound(f"no signed checkpoint covers entry {seq} yet; sign the log first", seq=seq, size=size)
    # The entry travels along as extra data: its hash is the leaf, so the path authenticates it.
    return TlogProof(seq, tx.log.inclusion_proof(seq, size), note.encode(), event.entry).to_bytes()


def _entries(tx: Transaction, bundle: BundleId) -> bytes:
    """The bundle, whose every entry is the leaf that the tree has there: a false one would be cached for a year."""
    entries = [event.entry for event in tx.events.since(bundle.first, limit=bundle.width)]
    if b"".join(leaf_hash(entry) for entry in entries) != tx.log.tile(0, bundle.index, bundle.width):
        raise LogInconsistent(
            f"the events from {bundle.first} on are not those that the tree holds; run fsck", seq=bundle.first
        )
    return encode_bundle(entries)
