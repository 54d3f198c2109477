"""Telling webhook endpoints: a follower of the log queues one stage an event, which tells every endpoint that asked.

Messages are signed as Standard Webhooks says. A message keeps its id through every attempt, so a receiver that sees
it twice knows. Attempts are logged, and go on for about three days with growing pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.app.access import Principal
from ledger.app.ports.store import Database, DeliveryAttempt, Transaction
from ledger.app.webhooks.endpoints import Endpoint, load_endpoint, secret_of, set_state
from ledger.app.webhooks.messages import message, message_type_of
from ledger.app.work.outbox import Stage
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import StoredEvent
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import NotFound, NotYet, VersionConflict, WebhookUnreachable

FOLLOWER = "webhooks"
PAGE = 1000

PAUSES_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""After the first failure, the second ...: the schedule that Standard Webhooks proposes."""

MAX_PAUSE_S = 86_400
BUDGET_S = 30
"""How long one run of the stage begins new attempts; endpoints that answer late wait for its next run."""
GO_ON_S = 1
_GONE = 410
_MS_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver answered; ``retry_after_s`` is its wish."""

    status: int
    retry_after_s: int | None = None


class Post(Protocol):
    """Sends one request. Raises ``WebhookUnreachable`` where no answer came or the address is not allowed."""

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer: ...


Sign = Callable[[Sequence[bytes], str, int, bytes], str]
"""The signatures of (secrets, message id, Unix seconds, body) as one header value."""


def queue_deliveries(database: Database) -> int:
    """Queue the deliveries of events that an endpoint of their tenant wants to be told of; how many events were read.

    ``database`` sees every tenant. One transaction moves the follower and queues, so each event is queued once. Where
    another process does the same at the same time, one of them does it and the other finds nothing.
    """
    with database.read() as tx:
        if tx.followers.position(FOLLOWER) >= tx.log.size():
            return 0
    try:
        with database.begin() as tx:
            return _queue(tx)
    except VersionConflict:
        return 0


@dataclass(frozen=True, slots=True)
class Courier:
    """Tells endpoints of events."""

    post: Post
    sign: Sign
    clock: Clock

    def deliver(self, database: Database, event_id: str) -> None:
        """Tell every active endpoint of the tenant that wants to know of an event, and was not told yet.

        Raises ``NotYet`` where an endpoint is to be tried again; those that were told are not told again.
        """
        with database.read() as tx:
            event = tx.events.by_id(event_id)
            name = message_type_of(event)
            wanted = [row["id"] for row in tx.views.webhooks() if row["state"] == "active" and name in row["types"]]
        until_ns = self.clock.now_ns() + BUDGET_S * SECOND_NS
        waits_s: list[float] = []
        for endpoint_id in wanted:
            if self.clock.now_ns() > until_ns:
                waits_s.append(GO_ON_S)
                break
            wait_s = self._tell(database, event, endpoint_id)
            if wait_s is not None:
                waits_s.append(wait_s)
        if waits_s:
            raise NotYet(f"{len(waits_s)} endpoint(s) were not told yet", retry_after_s=min(waits_s))

    def _tell(self, database: Database, event: StoredEvent, endpoint_id: str) -> float | None:
        """Make one attempt if it is due; after how many seconds the next one is, None where there is none."""
        now_ns = self.clock.now_ns()
        with database.read() as tx:
            try:
                endpoint = load_endpoint(tx, endpoint_id)
            except NotFound:
                # Removed since the look at who wants to know.
                return None
            last = tx.deliveries.last(endpoint_id, event.id)
            secrets = [secret_of(tx, endpoint_id, number) for number in endpoint.signing_secrets(now_ns)]
        if endpoint.state != "active":
            return None
        if last is not None and (last.retry_at_ns is None or now_ns < last.retry_at_ns):
            return None if last.retry_at_ns is None else (last.retry_at_ns - now_ns) / SECOND_NS
        body = message(event, Principal(endpoint.by, event.tenant, endpoint.scopes))
        if body is None:
            return None
        headers, data = self._signed(event, canonical_bytes(body), secrets, now_ns)
        answer, error = self._try(endpoint, headers, data)
        number = 1 if last is None else last.attempt + 1
        pause_s = None if error is None else _pause_s(number, answer)
        attempt = DeliveryAttempt(
            endpoint_id=endpoint_id,
            event_id=event.id,
            attempt=number,
            at_ns=now_ns,
            duration_ms=max(0, self.clock.now_ns() - now_ns) // _MS_NS,
            status=None if answer is None else answer.status,
            error=error,
            retry_at_ns=None if pause_s is None else now_ns + pause_s * SECOND_NS,
        )
        with database.begin() as tx:
            tx.deliveries.record(attempt)
            if answer is not None and answer.status == _GONE:
                set_state(tx, endpoint_id, "disabled", reason="it answered 410 Gone", by="sla-ledger", now_ns=now_ns)
        return pause_s

    def _signed(
        self, event: StoredEvent, data: bytes, secrets: Sequence[bytes], now_ns: int
    ) -> tuple[dict[str, str], bytes]:
        message_id, seconds = f"msg_{event.id}", now_ns // SECOND_NS
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": self.sign(secrets, message_id, seconds, data),
        }
        return headers, data

    def _try(self, endpoint: Endpoint, headers: Mapping[str, str], data: bytes) -> tuple[Answer | None, str | None]:
        try:
            answer = self.post(endpoint.url, headers, data)
        except WebhookUnreachable as unreachable:
            return None, unreachable.message
        accepted = 200 <= answer.status < 300
        return answer, None if accepted else f"it answered {answer.status}"


def _queue(tx: Transaction) -> int:
    # The end first: what comes into the log after that look, listeners and events, is left to the next one.
    end, before = tx.log.size(), tx.followers.position(FOLLOWER)
    wanted = {(tenant, name) for tenant, _, types in tx.deliveries.listeners() for name in types}
    # Where nobody listens a log of millions is not read to find that out.
    events = tx.events.since(before, limit=min(PAGE, max(end - before, 0))) if wanted else ()
    for event in events:
        if (event.tenant, message_type_of(event)) in wanted:
            tx.outbox.add(event.id, Stage.DELIVER)
    after = events[-1].place + 1 if events else end
    if after > before:
        tx.followers.advance(FOLLOWER, before=before, now=after)
    return after - before


def _pause_s(attempt: int, answer: Answer | None) -> int | None:
    """How long to wait after a failed attempt; None where it was the last."""
    if attempt > len(PAUSES_S) or (answer is not None and answer.status == _GONE):
        return None
    wish_s = 0 if answer is None or answer.retry_after_s is None else min(answer.retry_after_s, MAX_PAUSE_S)
    return max(PAUSES_S[attempt - 1], wish_s)
