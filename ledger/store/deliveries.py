"""The log of webhook deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from ledger.app.ports.store import DeliveryAttempt
from ledger.store import tables

MAX_ERROR_CHARS = 300

_row = tables.webhook_attempt.c
_endpoint = tables.view_webhook.c
_MEMBERS = [_row[name] for name in DeliveryAttempt.__dataclass_fields__]


class SqlDeliveries:
    """``ledger.app.ports.store.Deliveries``; attempts are those of one tenant."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    def listeners(self) -> Sequence[tuple[str, str, frozenset[str]]]:
        active = select(_endpoint.tenant, _endpoint.endpoint_id, _endpoint.body).where(_endpoint.state == "active")
        rows = self._connection.execute(active.order_by(_endpoint.tenant, _endpoint.endpoint_id))
        return [(tenant, name, frozenset(msgspec.json.decode(body)["types"])) for tenant, name, body in rows]

    def record(self, attempt: DeliveryAttempt) -> None:
        values: dict[str, Any] = {name: getattr(attempt, name) for name in DeliveryAttempt.__dataclass_fields__}
        values["error"] = attempt.error and attempt.error[:MAX_ERROR_CHARS]
        self._connection.execute(insert(tables.webhook_attempt).values(tenant=self._tenant, **values))

    def last(self, endpoint_id: str, event_id: str) -> DeliveryAttempt | None:
        found = select(*_MEMBERS).where(
            _row.tenant == self._tenant, _row.endpoint_id == endpoint_id, _row.event_id == event_id
        )
        row = self._connection.execute(found.order_by(_row.attempt.desc()).limit(1)).one_or_none()
        return None if row is None else DeliveryAttempt(*row)

    def of_endpoint(self, endpoint_id: str, *, after: int | None, limit: int) -> Sequence[tuple[int, DeliveryAttempt]]:
        found = select(_row.ordinal, *_MEMBERS).where(_row.tenant == self._tenant, _row.endpoint_id == endpoint_id)
        if after is not None:
            found = found.where(_row.ordinal < after)
        rows = self._connection.execute(found.order_by(_row.ordinal.desc()).limit(limit))
        return [(ordinal, DeliveryAttempt(*values)) for ordinal, *values in rows]
