"""The database schema as SQLAlchemy Core tables; ``migrations`` builds exactly these.

Three kinds of tables. *Immutable* (event, append_request, leaf, checkpoint, and tile as far as it is filled):
guarded by triggers, rows are only ever added. A row of event_payload goes when an event of the log says so, and
never changes. *Working rows* (stream_head, log_state, outbox, chain_transaction, chain_look,
identity, raw_batch, secret). *Views* (view_*): derived from events alone and rebuilt at will.

All instants are integer nanoseconds, all digests raw bytes, payloads RFC 8785 bytes: never a JSON column type,
whose key order or number format could change what was hashed.
"""

from ledger.store.tables.base import metadata
from ledger.store.tables.log import (
    append_request,
    checkpoint,
    event,
    event_payload,
    inbox,
    leaf,
    log_state,
    queue_metadata,
    stream_head,
    tile,
)
from ledger.store.tables.views import VIEW_TABLES, view_webhook
from ledger.store.tables.working import (
    api_key,
    chain_look,
    chain_transaction,
    follower,
    identity,
    identity_scope,
    outbox,
    raw_batch,
    secret,
    webhook_attempt,
)

__all__ = [
    "VIEW_TABLES",
    "api_key",
    "append_request",
    "chain_look",
    "chain_transaction",
    "checkpoint",
    "event",
    "event_payload",
    "follower",
    "identity",
    "identity_scope",
    "inbox",
    "leaf",
    "log_state",
    "metadata",
    "outbox",
    "queue_metadata",
    "raw_batch",
    "secret",
    "stream_head",
    "tile",
    "view_webhook",
    "webhook_attempt",
]
