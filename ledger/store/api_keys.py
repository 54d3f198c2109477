"""API keys in rows; see ``ledger.app.keys`` for what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Row, insert, select, update

from ledger.app.ports.keys import ApiKey
from ledger.errors import NotFound, VersionConflict
from ledger.store import tables

_key = tables.api_key.c


class SqlApiKeys:
    """``ledger.app.ports.store.ApiKeys`` of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def add(self, key: ApiKey) -> None:
        row = {**asdict(key), "tenant": self._tenant, "sla_ids": " ".join(key.sla_ids)}
        if self.find(key.key_id) is not None:
            raise key_taken(key.key_id)
        self._connection.execute(insert(tables.api_key).values(row))

    def find(self, key_id: str) -> ApiKey | None:
        row = self._connection.execute(select(tables.api_key).where(_key.key_id == key_id)).first()
        return None if row is None else _read(row)

    def all(self) -> Sequence[ApiKey]:
        own = select(tables.api_key).where(_key.tenant == self._tenant).order_by(_key.created_at_ns, _key.key_id)
        return [_read(row) for row in self._connection.execute(own)]

    def revoke(self, key_id: str, now_ns: int) -> ApiKey:
        own = (_key.key_id == key_id, _key.tenant == self._tenant)
        alive = update(tables.api_key).where(*own, _key.revoked_at_ns.is_(None))
        self._connection.execute(alive.values(revoked_at_ns=now_ns))
        row = self._connection.execute(select(tables.api_key).where(*own)).first()
        if row is None:
            raise no_key(key_id)
        return _read(row)


def key_taken(key_id: str) -> VersionConflict:
    """The error for an id that another key has."""
    return VersionConflict(f"there is a key {key_id} already", key=key_id)


def no_key(key_id: str) -> NotFound:
    """The error for a key that does not exist, or belongs to another tenant."""
    return NotFound(f"there is no API key {key_id}; `sla-ledger keys api list` names them", key=key_id)


def _read(row: Row[tuple[object, ...]]) -> ApiKey:
    columns = row._mapping
    return ApiKey(
        **{
            **columns,
            "sla_ids": tuple(columns["sla_ids"].split()),
            "secret_digest": bytes(columns["secret_digest"]),
        }
    )
