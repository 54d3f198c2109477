from __future__ import annotations

import pytest

from ledger.app.access import FIELD_SCOPES, ROLE_SCOPES, Principal, Role, Scope, redact, require
from ledger.errors import AccessDenied


def principal(role: Role) -> Principal:
    return Principal(f"key of a {role}", "alice", ROLE_SCOPES[role])


MONEY = {Scope.READ_CREDITS, Scope.READ_THRESHOLDS, Scope.READ_PROOFS, Scope.EXPORT}


def test_a_viewer_reads_live_figures_and_nothing_about_money_or_terms() -> None:
    viewer = principal(Role.OPERATIONS_VIEWER)
    assert viewer.holds(Scope.READ_UPTIME, Scope.READ_LATENCY)
    assert not viewer.scopes & MONEY
    assert all(":read:" in scope for scope in viewer.scopes)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
def test_only_the_operator_writes_agreements_facts_and_keys(role: Role) -> None:
    writes = {Scope.WRITE_AGREEMENTS, Scope.WRITE_OBSERVATIONS, Scope.WRITE_PERIODS, Scope.ADMIN_KEYS}
    assert not principal(role).scopes & writes
    assert principal(Role.OPERATOR).scopes >= writes


def test_a_lacking_scope_is_named() -> None:
    with pytest.raises(AccessDenied, match="sla:read:credits") as caught:
        require(principal(Role.OPERATIONS_VIEWER), Scope.READ_UPTIME, Scope.READ_CREDITS)
    assert caught.value.data == {"scope": "sla:read:credits"}
    require(principal(Role.FINANCE), Scope.READ_CREDITS)


@pytest.mark.parametrize("resource", sorted(FIELD_SCOPES))
def test_a_withheld_member_reads_null_and_is_named(resource: str) -> None:
    row = {"id": "s", **dict.fromkeys(FIELD_SCOPES[resource], "secret figure")}
    seen, withheld = redact(resource, row, Principal("nothing", "default", frozenset()))
    assert "secret figure" not in seen.values()
    assert sorted(withheld) == sorted(FIELD_SCOPES[resource])
    assert seen["id"] == "s"
    assert redact(resource, row, principal(Role.OPERATOR)) == (row, [])


def test_a_guest_sees_the_agreements_it_was_made_for() -> None:
    guest = Principal("guest", "alice", frozenset(), frozenset({"0x01"}))
    assert guest.may_see("0x01")
    assert not guest.may_see("0x02")
    assert principal(Role.OPERATOR).may_see("0x02")
