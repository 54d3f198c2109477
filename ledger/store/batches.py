"""Raw fact batches by digest, compressed; what comes out is checked against the digest it was stored under."""

from __future__ import annotations

import hashlib
import zlib
from threading import Thread

from sqlalchemy import Connection, select

from ledger.errors import NotFound, StorageDamaged
from ledger.store import tables
from ledger.store.dialects import insert_for

# Request logs shrink about tenfold; the fastest level is within a fifth of the best one at a third of its time.
_LEVEL = 1
_ASIDE_BYTES = 100_000


class SqlBatches:
    """``ledger.app.ports.store.RawBatches`` of one tenant. ``finish`` is called before the transaction commits."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._started: dict[bytes, _Compressing] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).digest()
        columns = tables.raw_batch.c
        known = self._connection.execute(
            select(columns.size).where(columns.tenant == self._tenant, columns.digest == digest)
        ).first()
        if known is None and digest not in self._started:
            if len(data) < _ASIDE_BYTES:
                self._insert(digest, len(data), zlib.compress(data, _LEVEL))
            else:
                self._started[digest] = _Compressing(data)
        return digest.hex()

    def finish(self) -> None:
        """Write what was put and is not written yet."""
        for digest, compressing in self._started.items():
            self._insert(digest, len(compressing.data), compressing.result())
        self._started.clear()

    def _insert(self, digest: bytes, size: int, compressed: bytes) -> None:
        row = {"tenant": self._tenant, "digest": digest, "size": size, "zlib": compressed}
        statement = insert_for(self._connection, tables.raw_batch).values(row)
        self._connection.execute(statement.on_conflict_do_nothing())

    def get(self, digest: str) -> bytes:
        """Raises ``NotFound``, or ``StorageDamaged`` where the stored bytes are not those of the digest."""
        self.finish()
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


class _Compressing:
    """Compresses in a thread while the rows of the batch are read: zlib needs no interpreter. No pool, whose threads
    would be missing in a process that was forked after it was used."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._found: bytes | None = None
        self._thread = Thread(target=self._compress, name="compress a batch", daemon=True)
        self._thread.start()

    def result(self) -> bytes:
        self._thread.join()
        # Where the thread failed, for want of memory say, its error is raised here.
        return zlib.compress(self.data, _LEVEL) if self._found is None else self._found

    def _compress(self) -> None:
        self._found = zlib.compress(self.data, _LEVEL)


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
