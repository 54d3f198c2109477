"""What is asked and changed about one tenant's webhook endpoints, each time in a transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.app.access import DEFAULT_TENANT, Principal, Scope, require
from ledger.app.paging import Row
from ledger.app.ports.store import Database, DeliveryAttempt, Randomness
from ledger.app.webhooks.endpoints import Endpoint, load_endpoint, register_endpoint, rotate_secret, set_state
from ledger.domain.time.instant import Clock


class WebhookDesk:
    """Every method raises ``AccessDenied`` for who may not manage webhooks; those that name an endpoint raise
    ``NotFound``."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        randomness: Randomness,
        tenant: str = DEFAULT_TENANT,
        *,
        plain: bool = False,
    ) -> None:
        """``database`` is that of ``tenant``; ``plain``: endpoints may be asked over http."""
        self._database = database
        self._clock = clock
        self._randomness = randomness
        self.tenant = tenant
        self._plain = plain

    def of_tenant(self, tenant: str) -> WebhookDesk:
        """The same for another tenant's endpoints."""
        if tenant == self.tenant:
            return self
        return WebhookDesk(self._database.of_tenant(tenant), self._clock, self._randomness, tenant, plain=self._plain)

    def register(self, principal: Principal, *, url: str, types: Sequence[str], request: str) -> tuple[Endpoint, str]:
        """See ``ledger.app.webhooks.endpoints.register_endpoint``."""
        with self._database.begin() as tx:
            return register_endpoint(
                tx,
                principal,
                url=url,
                types=types,
                request=request,
                randomness=self._randomness,
                now_ns=self._clock.now_ns(),
                plain=self._plain,
            )

    def endpoints(self, principal: Principal) -> Sequence[Row]:
        """Those that were not removed, by id."""
        require(principal, Scope.ADMIN_WEBHOOKS)
        with self._database.read() as tx:
            return [row for row in tx.views.webhooks() if row["state"] != "removed"]

    def rotate(self, principal: Principal, endpoint_id: str, *, request: str) -> str:
        """See ``ledger.app.webhooks.endpoints.rotate_secret``."""
        with self._database.begin() as tx:
            return rotate_secret(
                tx,
                principal,
                endpoint_id,
                request=request,
                randomness=self._randomness,
                now_ns=self._clock.now_ns(),
            )

    def set_state(self, principal: Principal, endpoint_id: str, state: str) -> Endpoint:
        """Make an endpoint ``active``, ``disabled`` or ``removed``."""
        require(principal, Scope.ADMIN_WEBHOOKS)
        with self._database.begin() as tx:
            return set_state(tx, endpoint_id, state, reason=None, by=principal.subject, now_ns=self._clock.now_ns())

    def deliveries(
        self, principal: Principal, endpoint_id: str, *, after: int | None, limit: int
    ) -> Sequence[tuple[int, DeliveryAttempt]]:
        """(ordinal, attempt), newest first, those before the ordinal ``after``."""
        require(principal, Scope.ADMIN_WEBHOOKS)
        with self._database.read() as tx:
            load_endpoint(tx, endpoint_id)
            return tx.deliveries.of_endpoint(endpoint_id, after=after, limit=limit)
