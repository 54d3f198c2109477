"""Payloads of the event that configures a webhook endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.domain.schema import Integer, ListOf, Nullable, OneOf, Shape, Text

WEBHOOK_CONFIGURED = "webhook_configured"
"""The type of the event that says how an endpoint stands from now on. Each one says everything about it."""

ENDPOINT_ID = Text(r"wh_[0-9a-f]{24}", "an endpoint id (wh_ and 24 hex digits)", 27)
MESSAGE_TYPE = Text(r"[a-z]{1,20}\.[a-z]{1,20}", "a message type such as violation.opened", 41)
MAX_SECRETS = 10_000

WEBHOOK_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    WEBHOOK_CONFIGURED: {
        "endpoint_id": ENDPOINT_ID,
        "url": Text(max_length=2000, what="an https address", visible=True),
        "types": ListOf(MESSAGE_TYPE, 1, 50),
        # What its messages may say: the scopes of whoever made it, or fewer.
        "scopes": ListOf(Text(r"sla:[a-z]{1,20}(?::[a-z]{1,20})?", "a scope", 60), 0, 50),
        # How many secrets it has had; the newest signs, the one before as well until ``old_secret_until_ns``.
        "secrets": Integer(1, MAX_SECRETS),
        "old_secret_until_ns": Nullable(Text(r"0|[1-9]\d{0,18}", "nanoseconds as a decimal string", 19)),
        "state": OneOf(("active", "disabled", "removed")),
        "reason": Nullable(Text(max_length=300, what="why it stands so", visible=True)),
        "by": Text(max_length=200, what="who configured it", visible=True),
    },
}
