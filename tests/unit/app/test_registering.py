"""Versions of terms come to the registry in their order, in whatever order the stages that bring them are worked: an
amendment that comes too late for its own date can never be registered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from eth_account import Account

from ledger.app.agreements.registering import register_agreement, registration_of
from ledger.app.chain.anchoring import register_on_chain
from ledger.attest.crypto.signing import verify
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from tests.unit.app.conftest import CUSTOMER, signed_agreement
from tests.unit.app.test_roots import Ledger

pytestmark = pytest.mark.slow

LAST = "2031-01-01"


def versions() -> list[Agreement]:
    """Terms of today and those of two later years."""
    changes: list[dict[str, Any]] = [
        {"effective": {"from": "2023-01-01", "until": LAST}},
        {"effective": {"from": "2029-01-01", "until": LAST}},
        {"effective": {"from": "2030-01-01", "until": LAST}},
    ]
    return [Agreement.from_document(signed_agreement(**each)) for each in changes]


def registered(ledger: Ledger) -> list[str]:
    """The events of all versions, each with the customer's consent to its registration."""
    start = versions()[0].period_starting(versions()[0].effective_from)
    return [_register(ledger, agreement, number, start) for number, agreement in enumerate(versions(), 1)]


def _register(ledger: Ledger, agreement: Agreement, version: int, start: Period) -> str:
    attestor, anchor = ledger.settled.attestor, ledger.chain.anchor
    first = agreement.period_starting(agreement.effective_from)
    registration = registration_of(
        agreement, attestor, first, terms_version=version, first_start_ns=start.interval.start_ns
    )
    assert registration is not None
    digest = anchor.registration_digest(registration)
    with ledger.database.begin() as tx:
        return register_agreement(
            tx,
            agreement,
            attestor=attestor,
            verify=verify,
            terms_version=version,
            registration=registration,
            customer_signature=bytes(Account.unsafe_sign_hash(digest, CUSTOMER).signature),
            now_ns=ledger.settled.clock.now_ns(),
        ).event_id


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1, 2)])
def test_an_amendment_comes_after_the_terms_before_it_though_its_stage_is_worked_first(
    order: Sequence[int],
) -> None:
    ledger = Ledger()
    events = registered(ledger)
    for at in order:
        register_on_chain(ledger.database, events[at], attestor=ledger.settled.attestor, anchor=ledger.chain.anchor)
    sla_id = ledger.settled.attestor.sla_id(versions()[0])
    chain: Any = ledger.chain.anchor
    assert chain._chain.sla_state(bytes.fromhex(sla_id[2:])).terms_version == 3
