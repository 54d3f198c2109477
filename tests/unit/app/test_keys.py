"""API keys: made once, checked, limited, expired, revoked."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from ledger.app.access import ROLE_SCOPES, Role, Scope
from ledger.app.keys import check_key, key_principal, make_key
from ledger.app.ports.keys import ApiKey
from ledger.domain.record.naming import agreement_stream
from ledger.errors import NotFound, QueryInvalid, Unauthenticated
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import OTHER_SLA_ID, SLA_ID, SeededRandomness, StepClock, agreement

NOW_NS = 10**18
RANDOM = SeededRandomness(1)


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase(StepClock(), SeededRandomness(1)).of_tenant("alice")


def made(database: MemoryDatabase, role: Role = Role.CUSTOMER_ADMIN, **options: object) -> tuple[ApiKey, str]:
    with database.begin() as tx:
        return make_key(tx, tenant="alice", role=role, now_ns=NOW_NS, randomness=RANDOM, **options)  # type: ignore[arg-type]


def test_a_key_is_found_by_its_text_from_any_tenant_s_database(database: MemoryDatabase) -> None:
    key, text = made(database)
    assert check_key(database.of_tenant("bob"), text, NOW_NS) == key
    principal = key_principal(key)
    assert (principal.tenant, principal.scopes) == ("alice", ROLE_SCOPES[Role.CUSTOMER_ADMIN])
    assert principal.sla_ids is None


def test_the_secret_is_kept_nowhere(database: MemoryDatabase) -> None:
    key, text = made(database)
    secret = text.rpartition("_")[2] if text.count("_") == 2 else text[21:]
    assert len(text) == len("slk_") + 16 + 1 + 43
    assert secret not in repr(key)
    assert key.secret_digest != hashlib.sha256(secret.encode()).digest()
    assert len({made(database)[1] for _ in range(20)}) == 20


def test_texts_that_are_no_key(database: MemoryDatabase) -> None:
    key, text = made(database)
    _, other = made(database)
    forged = [
        "",
        "slk_",
        text[:-1],
        text + "A",
        text.upper(),
        text.replace(key.key_id, "0" * 16),
        text[:21] + other[21:],
        text[:-1] + ("A" if text[-1] != "A" else "E"),
        "\n" + text,
        text + "\n",
        text.replace("slk_", "slk-"),
    ]
    for each in forged:
        with pytest.raises(Unauthenticated) as caught:
            check_key(database, each, NOW_NS)
        # Neither error nor data repeat what was presented.
        assert text[21:] not in str(caught.value) + str(caught.value.data)


def test_a_key_ends_at_its_instant(database: MemoryDatabase) -> None:
    key, text = made(database, expires_at_ns=NOW_NS + 5)
    assert check_key(database, text, NOW_NS + 4) == key
    with pytest.raises(Unauthenticated, match="expired"):
        check_key(database, text, NOW_NS + 5)
    with pytest.raises(QueryInvalid):
        made(database, expires_at_ns=NOW_NS)


def test_a_revoked_key_is_refused(database: MemoryDatabase) -> None:
    key, text = made(database)
    with database.begin() as tx:
        tx.keys.revoke(key.key_id, NOW_NS + 1)
    with pytest.raises(Unauthenticated, match="revoked"):
        check_key(database, text, NOW_NS + 2)


def test_a_key_for_some_agreements_reads_them_and_does_nothing_else(database: MemoryDatabase) -> None:
    with database.begin() as tx:
        tx.events.append(agreement_stream(SLA_ID), [agreement()], expected_version=0)
    for role in Role:
        key, _ = made(database, role, sla_ids=[SLA_ID, SLA_ID])
        principal = key_principal(key)
        assert key.sla_ids == (SLA_ID,)
        assert principal.sla_ids == {SLA_ID}
        assert all(scope == Scope.EMBED or ":read:" in scope for scope in principal.scopes)
        assert Scope.READ_LOG not in principal.scopes
        assert principal.scopes <= ROLE_SCOPES[role]
    with pytest.raises(NotFound):
        made(database, sla_ids=[SLA_ID, OTHER_SLA_ID])


@pytest.mark.parametrize("label", ["x" * 121, "two\nlines", "\x1b[31m"])
def test_labels_that_cannot_be_used(database: MemoryDatabase, label: str) -> None:
    with pytest.raises(QueryInvalid):
        made(database, label=label)


def test_the_role_is_read_when_the_key_is_used(database: MemoryDatabase) -> None:
    key, _ = made(database, Role.OPERATIONS_VIEWER)
    assert key_principal(replace(key, role="operator")).scopes == frozenset(Scope)
