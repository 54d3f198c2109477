"""Raw fact batches by digest, compressed; what comes out is checked against the digest it was stored under."""

from __future__ import annotations

import hashlib
import zlib

from sqlalchemy import Connection, select

from ledger.errors import NotFound, StorageDamaged
from ledger.store import tables
from ledger.store.dialects import insert_for

# Request logs shrink about tenfold; the fastest level is within a fifth of the best one at a third of its time.
_LEVEL = 1


class SqlBatches:
    """``ledger.app.ports.RawBatches`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).digest()
        columns = tables.raw_batch.c
        known = self._connection.execute(
            select(columns.size).where(columns.tenant == self._tenant, columns.digest == digest)
        ).first()
        if known is None:
            row = {"tenant": self._tenant, "digest": digest, "size": len(data), "zlib": zlib.compress(data, _LEVEL)}
            statement = insert_for(self._connection, tables.raw_batch).values(row)
            self._connection.execute(statement.on_conflict_do_nothing())
        return digest.hex()

    def get(self, digest: str) -> bytes:
        """Raises ``NotFound``, or ``StorageDamaged`` where the stored bytes are not those of the digest."""
        columns = tables.raw_batch.c
        row = self._connection.execute(
            select(columns.size, columns.zlib).where(
                columns.tenant == self._tenant, columns.digest == digest_bytes(digest)
            )
        ).one_or_none()
        if row is None:
            raise no_batch(digest)
        size, compressed = row
        try:
            # Bounded by the recorded size, so that a damaged row cannot unfold without end.
            data = zlib.decompressobj().decompress(compressed, size + 1)
        except zlib.error as error:
            raise _damaged(digest) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(digest)
        return data


def digest_bytes(digest: str) -> bytes:
    """The bytes of a lowercase hex SHA-256; a text that is none names no batch and raises ``NotFound``."""
    try:
        value = bytes.fromhex(digest)
    except ValueError:
        raise no_batch(digest) from None
    if value.hex() != digest:
        raise no_batch(digest)
    return value


def no_batch(digest: str) -> NotFound:
    """The error for a digest under which nothing is stored."""
    return NotFound(f"no raw batch has the digest {digest[:64]}", digest=digest[:64])


def _damaged(digest: str) -> StorageDamaged:
    return StorageDamaged(
        f"the raw batch {digest} no longer has this digest; restore it from the collector or a backup", digest=digest
    )
