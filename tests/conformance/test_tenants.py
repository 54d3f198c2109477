"""One log, many tenants: what is one tenant's, another one neither sees nor meets."""

from __future__ import annotations

import pytest

from ledger.errors import NotFound
from tests.conformance.conftest import AnyDatabase
from tests.conformance.samples import SLA_ID, windows


def test_each_tenant_has_streams_batches_secrets_and_views_of_its_own(database: AnyDatabase) -> None:
    alice, bob = database.of_tenant("alice"), database.of_tenant("bob")
    for tenant in (alice, bob):
        with tenant.begin() as tx:
            # The same stream, version and key: they meet nobody else's.
            tx.events.append("windows/a", windows(1), expected_version=0, idempotency_key="same")
    with alice.begin() as tx:
        digest = tx.batches.put(b"rows of alice")
        tx.secrets.put("salt", b"of alice")
    with bob.read() as tx:
        assert [event.tenant for event in tx.events.stream("windows/a")] == ["bob"]
        with pytest.raises(NotFound):
            tx.batches.get(digest)
        with pytest.raises(NotFound):
            tx.secrets.get("salt")
        period = next(tx.events.stream("windows/a")).payload["period"]
        assert len(tx.views.windows(SLA_ID, period)) == 1
    with database.read() as tx:
        assert list(tx.events.stream("windows/a")) == []
        assert tx.log.size() == 2


def test_what_one_tenant_commits_the_others_see_in_the_log(database: AnyDatabase) -> None:
    with database.of_tenant("alice").begin() as tx:
        tx.events.append("windows/a", windows(3), expected_version=0)
    with database.of_tenant("bob").read() as tx:
        assert tx.log.size() == 3
