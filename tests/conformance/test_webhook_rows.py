"""Followers of the log, and the log of webhook deliveries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.app.ports.store import DeliveryAttempt
from ledger.domain.record.events import NewEvent
from ledger.errors import VersionConflict
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import START_NS

ENDPOINT = "wh_" + "0a" * 12
EVENT = "01a22878-7aef-7583-81b5-2787d79009d8"
ATTEMPT = DeliveryAttempt(ENDPOINT, EVENT, 1, START_NS, 12, 503, "it answered 503", START_NS + 5)


def configured(endpoint_id: str, state: str = "active", types: tuple[str, ...] = ("credit.issued",)) -> NewEvent:
    payload = {
        "endpoint_id": endpoint_id,
        "url": "https://billing.example/hooks",
        "types": list(types),
        "scopes": ["sla:read:credits"],
        "secrets": 1,
        "old_secret_until_ns": None,
        "state": state,
        "reason": None,
        "by": "finance",
    }
    return NewEvent("webhook_configured", payload, START_NS)


class TestFollowers:
    def test_a_follower_starts_at_the_beginning_and_goes_on(self, database: AnyDatabase) -> None:
        for before, now in ((0, 7), (7, 7), (7, 20)):
            with database.begin() as tx:
                assert tx.followers.position("webhooks") == before
                tx.followers.advance("webhooks", before=before, now=now)
        with database.read() as tx:
            assert (tx.followers.position("webhooks"), tx.followers.position("other")) == (20, 0)

    @pytest.mark.parametrize("before", [0, 6, 8])
    def test_who_comes_second_is_refused(self, database: AnyDatabase, before: int) -> None:
        with database.begin() as tx:
            tx.followers.advance("webhooks", before=0, now=7)
        with pytest.raises(VersionConflict), database.begin() as tx:
            tx.followers.advance("webhooks", before=before, now=9)
        with database.read() as tx:
            assert tx.followers.position("webhooks") == 7


class TestDeliveries:
    def test_listeners_are_the_active_endpoints_of_every_tenant(self, database: AnyDatabase) -> None:
        names = ["wh_" + f"{number:024x}" for number in range(3)]
        for tenant, name, state in (
            ("alice", names[0], "active"),
            ("bob", names[1], "active"),
            ("bob", names[2], "disabled"),
        ):
            with database.of_tenant(tenant).begin() as tx:
                tx.events.append(f"webhook/{name}", [configured(name, state)], expected_version=0)
        with database.read() as tx:
            assert list(tx.deliveries.listeners()) == [
                ("alice", names[0], frozenset({"credit.issued"})),
                ("bob", names[1], frozenset({"credit.issued"})),
            ]

    def test_attempts_are_listed_newest_first_in_pages(self, database: AnyDatabase) -> None:
        attempts = [replace(ATTEMPT, attempt=number) for number in range(1, 6)]
        with database.begin() as tx:
            for attempt in attempts:
                tx.deliveries.record(attempt)
        with database.read() as tx:
            assert tx.deliveries.last(ENDPOINT, EVENT) == attempts[-1]
            first = tx.deliveries.of_endpoint(ENDPOINT, after=None, limit=3)
            rest = tx.deliveries.of_endpoint(ENDPOINT, after=first[-1][0], limit=3)
        assert [each for _, each in [*first, *rest]] == attempts[::-1]

    def test_one_tenants_deliveries_are_not_anothers(self, database: AnyDatabase) -> None:
        with database.of_tenant("alice").begin() as tx:
            tx.deliveries.record(ATTEMPT)
        with database.of_tenant("bob").read() as tx:
            assert tx.deliveries.last(ENDPOINT, EVENT) is None
            assert list(tx.deliveries.of_endpoint(ENDPOINT, after=None, limit=3)) == []

    def test_a_long_error_is_cut(self, database: AnyDatabase) -> None:
        with database.begin() as tx:
            tx.deliveries.record(replace(ATTEMPT, error="x" * 10_000))
        with database.read() as tx:
            ((_, attempt),) = tx.deliveries.of_endpoint(ENDPOINT, after=None, limit=3)
        assert attempt.error == "x" * 300
