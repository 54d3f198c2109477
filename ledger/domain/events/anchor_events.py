"""Payloads of the events that say where statements are anchored, and what others did at the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledger.domain.record.event_values import CHAIN_ID, SHA256, STATEMENT_ID
from ledger.domain.schema import Integer, MapOf, Nullable, OneOf, Shape, Text
from ledger.domain.terms.agreement_schema import BYTES32, EVM_ADDRESS

ANCHOR_UNDONE: Final = "anchor_undone"
"""A confirmed anchor is not where it was confirmed any more: a deep reorganisation dropped or moved it."""
ANCHOR_FINALIZED: Final = "anchor_finalized"
"""The block of a confirmed anchor is final by the chain's own word; it is not looked at any more."""
REGISTRY_EVENT_SEEN: Final = "registry_event_seen"
"""Somebody else did something at the registry that concerns this ledger."""

MAX_ARGUMENT: Final = 1000
"""Characters of an argument of a registry's event; a longer one is left out, the transaction has it."""

_COUNT = Integer()
_STATEMENT: Mapping[str, Shape] = {"statement_id": STATEMENT_ID, "sla_id": BYTES32, "chain_id": CHAIN_ID}
_PLACE: Mapping[str, Shape] = {"tx_hash": BYTES32, "block_number": _COUNT, "block_hash": BYTES32}

ANCHOR_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    "anchor_recorded": {**_STATEMENT, "registry": EVM_ADDRESS, **_PLACE, "leaf": BYTES32},
    "anchor_confirmed": {**_STATEMENT, **_PLACE, "confirmations": Integer(1)},
    # Where it had been confirmed.
    ANCHOR_UNDONE: {**_STATEMENT, **_PLACE},
    ANCHOR_FINALIZED: {**_STATEMENT, **_PLACE, "confirmations": Integer(1)},
    REGISTRY_EVENT_SEEN: {
        "chain_id": CHAIN_ID,
        "registry": EVM_ADDRESS,
        **_PLACE,
        "log_index": _COUNT,
        "name": Text(r"[A-Za-z][A-Za-z0-9]{0,79}", "the name of an event of the contract", 80),
        "concerns": OneOf(("statement", "registration", "registry")),
        # Null for what concerns all who use the registry.
        "sla_id": Nullable(BYTES32),
        "arguments": MapOf(
            r"[A-Za-z][A-Za-z0-9]{0,79}", Text(max_length=MAX_ARGUMENT, min_length=0, what="an argument"), 40
        ),
    },
}

ANCHOR_ADDED: Mapping[str, Mapping[str, Shape]] = {
    name: {"raw_transaction": SHA256} for name in ("anchor_recorded", "anchor_confirmed")
}
"""What version 2 may hold: the kept bytes of what another party sent; own ones are in the store."""
