"""What others did at a registry that concerns this ledger, read from the chain's logs and logged once.

Logs are read in ranges of a bounded length, from a stored block on. Those of blocks that are not final are read again
at every look: a reorganisation may have put others in their place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ledger.app.ports.chain import ChainLook, Heights, Seen, WatchedChain
from ledger.app.ports.store import Database
from ledger.domain.events.anchor_events import MAX_ARGUMENT, REGISTRY_EVENT_SEEN
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import registry_stream
from ledger.domain.time.instant import Clock
from ledger.errors import ChainUnavailable, NotFound

SPAN: Final = 20_000
"""Blocks whose logs one look reads at most."""
REFUSALS: Final = 3
"""Looks in a row that a node refuses a range at before it is left out: nodes that keep no old logs never give them."""

_ASKED: Final = 1000
"""Transactions that the store is asked for at once: below every database's limit of parameters."""


class EventLog:
    """Logs the events of one registry; ``behind`` where more blocks wait to be read."""

    def __init__(self, database: Database, chain: WatchedChain, clock: Clock, notify: Callable[[str], None]) -> None:
        self._database = database
        self._chain = chain
        self._clock = clock
        self._notify = notify
        self._stream = registry_stream(chain.chain_id, chain.contract)
        self._logged: set[tuple[str, int]] = set()
        self._refusals = 0
        self.behind = False

    def read(self, look: ChainLook, heights: Heights, final: int) -> ChainLook:
        """Read on from where ``look`` is, up to the newest block that counts as confirmed, and log what concerns us.

        Blocks up to ``final`` will not change any more. Raises ``ChainUnavailable``.
        """
        newest = heights.latest - self._chain.confirmations + 1
        first = look.next_block or self._start(newest)
        if newest + 1 < first:
            # The node is far behind, or the chain is another than before: a local one that was started anew.
            first = max(heights.final(self._chain.confirmations) + 1, 0)
        last = min(newest, first + SPAN - 1)
        self.behind = False
        if last < first:
            return look
        if self._chain.block_hash(last) is None:
            raise ChainUnavailable(
                f"the node names block {heights.latest} as its newest and has no block {last}", retry_after_s=1
            )
        try:
            found = self._chain.events(first, last, own=self._own, known=self._known)
        except ChainUnavailable as error:
            return self._refused(error, look, first, final)
        self._refusals = 0
        self.behind = last < newest
        look = replace(look, next_block=max(first, min(last, final) + 1))
        new = [event for event in found if event.concerns and (event.block_hash, event.log_index) not in self._logged]
        for event in new:
            self._log(event)
        return replace(look, of_others=self._count()) if new else look

    def _start(self, newest: int) -> int:
        """Before this ledger signed its first transaction nothing on the chain was about it."""
        with self._database.read() as tx:
            since = tx.chain.since_block(self._chain.chain_id)
        return max(newest if since is None else min(since, newest), 0)

    def _refused(self, error: ChainUnavailable, look: ChainLook, first: int, final: int) -> ChainLook:
        """Leave out what the node refused several times, as far as it is final: it would stop here for good."""
        if not error.data.get("answered"):
            raise error
        self._refusals += 1
        if self._refusals < REFUSALS or final < first:
            raise error
        self._refusals = 0
        self._notify(
            f"no logs of blocks {first} to {final} are to be had from the node, and they are left out; read them from "
            f"another one: sla-ledger chain watch --from-block {first}"
        )
        since = first if look.unread is None else min(look.unread[0], first)
        return replace(look, next_block=final + 1, unread=(since, final))

    def _log(self, event: Seen) -> None:
        payload = self._payload(event)
        for tenant in self._tenants(event):
            # The same event again gives the first one's receipt.
            self._database.of_tenant(tenant).append(
                self._stream,
                [NewEvent(REGISTRY_EVENT_SEEN, payload, occurred_at_ns=self._clock.now_ns())],
                expected_version=None,
                idempotency_key=f"{self._stream}/{event.block_hash}/{event.log_index}",
            )
        self._logged.add((event.block_hash, event.log_index))
        self._notify(
            f"somebody else's transaction {event.tx_hash} at the registry concerns this ledger: {event.name} in block "
            f"{event.block_number}"
        )

    def _payload(self, event: Seen) -> dict[str, Any]:
        return {
            "chain_id": str(self._chain.chain_id),
            "registry": self._chain.contract,
            "tx_hash": event.tx_hash,
            "block_number": event.block_number,
            "block_hash": event.block_hash,
            "log_index": event.log_index,
            "name": event.name,
            "concerns": event.concerns,
            "sla_id": None if event.concerns == "registry" else event.arguments["slaId"],
            "arguments": {name: text for name, text in _texts(event).items() if len(text) <= MAX_ARGUMENT},
        }

    def _tenants(self, event: Seen) -> list[str]:
        """Whose agreement it is about; what concerns the registry concerns every tenant."""
        with self._database.read() as tx:
            tenants = list(tx.views.tenants())
        if event.concerns == "registry":
            return tenants
        return [tenant for tenant in tenants if self._kept(tenant, [event.arguments["slaId"]])]

    def _own(self, tx_hashes: Collection[str]) -> set[str]:
        names, found = list(tx_hashes), set[str]()
        with self._database.read() as tx:
            for start in range(0, len(names), _ASKED):
                found |= tx.chain.states(names[start : start + _ASKED]).keys()
        return found

    def _known(self, sla_ids: Collection[str]) -> set[str]:
        if not sla_ids:
            return set()
        with self._database.read() as tx:
            tenants = tx.views.tenants()
        return set[str]().union(*(self._kept(tenant, sla_ids) for tenant in tenants))

    def _kept(self, tenant: str, sla_ids: Collection[str]) -> set[str]:
        """Those of some agreements that a tenant has."""
        found = set[str]()
        with self._database.of_tenant(tenant).read() as tx:
            for sla_id in sla_ids:
                with suppress(NotFound):
                    tx.views.agreement(sla_id)
                    found.add(sla_id)
        return found

    def _count(self) -> int:
        """All that was logged of others, of every tenant."""
        with self._database.read() as tx:
            tenants = tx.views.tenants()
        count = 0
        for tenant in tenants:
            with self._database.of_tenant(tenant).read() as tx:
                count += tx.events.length(self._stream)
        return count


def _texts(event: Seen) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in event.arguments.items()}
