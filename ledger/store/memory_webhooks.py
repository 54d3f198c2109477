"""Followers of the log and the log of webhook deliveries, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ledger.app.ports.store import DeliveryAttempt
from ledger.store.deliveries import MAX_ERROR_CHARS
from ledger.store.followers import moved_on
from ledger.store.projections import RowChange


class WebhookRows(Protocol):
    """Where followers stand, what was sent, and the views that name the endpoints."""

    followers: dict[str, int]
    attempts: list[tuple[str, DeliveryAttempt]]

    @property
    def views(self) -> Mapping[tuple[str, ...], RowChange]: ...


class Handle(Protocol):
    """The state of a database transaction; ``changing`` refuses where it only reads."""

    @property
    def state(self) -> WebhookRows: ...

    @property
    def changing(self) -> WebhookRows: ...


@dataclass(frozen=True, slots=True)
class MemoryFollowers:
    """``ledger.app.ports.store.Followers``."""

    handle: Handle

    def position(self, name: str) -> int:
        return self.handle.state.followers.get(name, 0)

    def advance(self, name: str, *, before: int, now: int) -> None:
        if self.position(name) != before:
            raise moved_on(name, before)
        self.handle.changing.followers[name] = now


@dataclass(frozen=True, slots=True)
class MemoryDeliveries:
    """``ledger.app.ports.store.Deliveries`` of one tenant."""

    handle: Handle
    tenant: str

    def listeners(self) -> Sequence[tuple[str, str, frozenset[str]]]:
        rows = self.handle.state.views.items()
        return sorted(
            (key[1], key[2], frozenset(change.body["types"]))
            for key, change in rows
            if key[0] == "view_webhook" and change.columns["state"] == "active"
        )

    def record(self, attempt: DeliveryAttempt) -> None:
        short = replace(attempt, error=attempt.error and attempt.error[:MAX_ERROR_CHARS])
        self.handle.changing.attempts.append((self.tenant, short))

    def last(self, endpoint_id: str, event_id: str) -> DeliveryAttempt | None:
        wanted = (self.tenant, endpoint_id, event_id)
        found = [
            each for tenant, each in self.handle.state.attempts if (tenant, each.endpoint_id, each.event_id) == wanted
        ]
        return max(found, key=lambda each: each.attempt, default=None)

    def of_endpoint(self, endpoint_id: str, *, after: int | None, limit: int) -> Sequence[tuple[int, DeliveryAttempt]]:
        found = [
            (ordinal, each)
            for ordinal, (tenant, each) in enumerate(self.handle.state.attempts, 1)
            if (tenant, each.endpoint_id) == (self.tenant, endpoint_id) and (after is None or ordinal < after)
        ]
        return found[::-1][:limit]
