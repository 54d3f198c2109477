"""Telling webhook endpoints: a follower of the log queues one delivery an event and endpoint, a stage sends it.

Messages are signed as Standard Webhooks says. A message keeps its id through every attempt, so a receiver that sees
it twice knows. Attempts are logged, and go on for about three days with growing pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.app.access import Principal
from ledger.app.outbox import Stage
from ledger.app.ports import Database, DeliveryAttempt, Transaction
from ledger.app.webhook_messages import message, message_type_of
from ledger.app.webhooks import Endpoint, load_endpoint, secret_of, set_state
from ledger.domain.canonical import canonical_bytes
from ledger.domain.instant import SECOND_NS, Clock
from ledger.errors import DeliveryFailed, NotFound, NotYet, VersionConflict, WebhookUnreachable

FOLLOWER = "webhooks"
PAGE = 1000

PAUSES_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""After the first failure, the second ...: the schedule that Standard Webhooks proposes."""

MAX_PAUSE_S = 86_400
_GONE = 410


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


def delivery_stage(endpoint_id: str) -> str:
    """The outbox stage that tells this endpoint."""
    return f"{Stage.DELIVER}:{endpoint_id}"


def queue_deliveries(database: Database) -> int:
    """Queue a delivery for each endpoint that wants to be told of an event of its tenant; how many events were read.

    One transaction moves the follower and queues, so each pair is queued once. Where another process does the same at
    the same time, one of them does it and the other finds nothing.
    """
    try:
        with database.begin() as tx:
            return _queue(tx)
    except VersionConflict:
        return 0


def deliver(database: Database, event_id: str, endpoint_id: str, *, post: Post, sign: Sign, clock: Clock) -> None:
    """Send one message and log the attempt.

    Raises ``NotYet`` where it is to be tried again, ``DeliveryFailed`` where it was tried often enough. An endpoint
    that is not active any more, or may not be told of this, gets nothing. One that answers 410 is disabled.
    """
    now_ns = clock.now_ns()
    with database.read() as tx:
        try:
            endpoint = load_endpoint(tx, endpoint_id)
        except NotFound:
            return
        event = tx.events.by_id(event_id)
        body = message(event, Principal(endpoint.by, event.tenant, endpoint.scopes))
        if endpoint.state != "active" or body is None:
            return
        secrets = [secret_of(tx, endpoint_id, number) for number in endpoint.signing_secrets(now_ns)]
        attempt = tx.deliveries.attempts(endpoint_id, event_id) + 1
    data = canonical_bytes(body)
    message_id = f"msg_{event_id}"
    seconds = now_ns // SECOND_NS
    headers = {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(secrets, message_id, seconds, data),
    }
    answer, error = _try(post, endpoint, headers, data)
    logged = DeliveryAttempt(
        endpoint_id=endpoint_id,
        event_id=event_id,
        attempt=attempt,
        at_ns=now_ns,
        duration_ms=max(0, clock.now_ns() - now_ns) // (SECOND_NS // 1000),
        status=None if answer is None else answer.status,
        error=error,
    )
    with database.begin() as tx:
        tx.deliveries.record(logged)
        if answer is not None and answer.status == _GONE:
            set_state(
                tx,
                endpoint_id,
                "disabled",
                reason="it answered 410 Gone",
                by="sla-ledger",
                now_ns=clock.now_ns(),
            )
    if error is not None:
        _go_on(attempt, answer, error)


def _queue(tx: Transaction) -> int:
    before = tx.followers.position(FOLLOWER)
    events = tx.events.since(before, limit=PAGE)
    if not events:
        return 0
    listeners = tx.deliveries.listeners()
    for event in events:
        name = message_type_of(event)
        for tenant, endpoint_id, types in listeners:
            if event.tenant == tenant and name in types:
                tx.outbox.add(event.id, delivery_stage(endpoint_id))
    tx.followers.advance(FOLLOWER, before=before, now=events[-1].place + 1)
    return len(events)


def _try(post: Post, endpoint: Endpoint, headers: Mapping[str, str], data: bytes) -> tuple[Answer | None, str | None]:
    try:
        answer = post(endpoint.url, headers, data)
    except WebhookUnreachable as unreachable:
        return None, unreachable.message
    accepted = 200 <= answer.status < 300
    return answer, None if accepted else f"it answered {answer.status}"


def _go_on(attempt: int, answer: Answer | None, error: str) -> None:
    if answer is not None and answer.status == _GONE:
        raise DeliveryFailed(f"the endpoint is gone: {error}; it is disabled", attempts=attempt)
    if attempt > len(PAUSES_S):
        raise DeliveryFailed(f"given up after {attempt} attempts: {error}", attempts=attempt)
    wish = 0 if answer is None or answer.retry_after_s is None else min(answer.retry_after_s, MAX_PAUSE_S)
    raise NotYet(f"{error}; it will be tried again", retry_after_s=max(PAUSES_S[attempt - 1], wish))
