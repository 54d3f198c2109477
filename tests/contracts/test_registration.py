"""Registering terms: who may, with whose signature, in which order, from when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.anchor.registration import abi_value, registration_digest, sign_registration, sla_id
from ledger.errors import NotFound
from tests.contracts.conftest import Refuses
from tests.contracts.ground import (
    CUSTOMER,
    DAY,
    DEPLOYER,
    FIRST_START,
    HOUR,
    ISSUER,
    SECOND,
    STRANGER,
    TERMS_HASH,
    Ground,
)
from tests.contracts.trapdoor import curve_order


def test_registered_terms_can_be_read_back(ground: Ground) -> None:
    sla = ground.agreement()
    state = ground.anchor.sla_state(sla)
    assert (state.issuer, state.customer) == (ISSUER.address, CUSTOMER.address)
    assert (state.terms_version, state.first_start_ns, state.next_start_ns) == (1, FIRST_START, FIRST_START)
    terms = ground.terms_state(sla, 1)
    assert (terms.terms_hash, terms.effective_from_ns, terms.window_seconds) == (TERMS_HASH, FIRST_START, 3600)


@pytest.mark.parametrize("circuits", [0, 1, 3])
def test_what_the_customer_signs_is_what_the_contract_checks(ground: Ground, circuits: int) -> None:
    terms = ground.terms(circuit_ids=tuple(bytes([i]) * 32 for i in range(circuits)))
    ours = registration_digest(terms, ground.anchor.chain_id, ground.anchor.registry)
    contract = ground.anchor._contract
    assert bytes(contract.functions.registrationDigest(abi_value(terms)).call()) == ours
    ours_id = sla_id(terms.issuer, terms.customer, terms.nonce)
    assert bytes(contract.functions.slaIdOf(terms.issuer, terms.customer, terms.nonce).call()) == ours_id


def test_only_the_issuer_registers(ground: Ground, refuses: Refuses) -> None:
    for sender in (CUSTOMER, STRANGER):
        with refuses("NotIssuer"):
            ground.register(ground.terms(), sender=sender)


@pytest.mark.parametrize("signer", [ISSUER, STRANGER], ids=["issuer", "stranger"])
def test_another_hand_than_the_customers_is_refused(ground: Ground, refuses: Refuses, signer: Any) -> None:
    terms = ground.terms()
    signature = sign_registration(terms, ground.anchor.chain_id, ground.anchor.registry, signer)
    with refuses("CustomerSignatureInvalid"):
        ground.register(terms, signature=signature)


@pytest.mark.parametrize(
    "changes",
    [
        {"terms_hash": TERMS_HASH + 1},
        {"effective_from_ns": FIRST_START - HOUR},
        {"first_start_ns": FIRST_START + HOUR},
        {"window_seconds": 1800},
        {"circuit_ids": ()},
        {"nonce": bytes(32)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_signature_holds_for_no_other_terms(ground: Ground, refuses: Refuses, changes: dict[str, Any]) -> None:
    terms = ground.terms()
    signature = sign_registration(terms, ground.anchor.chain_id, ground.anchor.registry, CUSTOMER)
    with refuses("CustomerSignatureInvalid"):
        ground.register(replace(terms, **changes), signature=signature)


def test_a_signature_holds_on_no_other_chain_or_registry(ground: Ground, refuses: Refuses) -> None:
    terms = ground.terms()
    elsewhere = [(1, ground.anchor.registry), (ground.anchor.chain_id, STRANGER.address)]
    for chain_id, registry in elsewhere:
        with refuses("CustomerSignatureInvalid"):
            ground.register(terms, signature=sign_registration(terms, chain_id, registry, CUSTOMER))


@pytest.mark.parametrize("signature", [b"", bytes(65), b"\xff" * 65, bytes(64)], ids=len)
def test_bytes_that_are_no_signature_are_refused(ground: Ground, refuses: Refuses, signature: bytes) -> None:
    with refuses("CustomerSignatureInvalid"):
        ground.register(ground.terms(), signature=signature)


def test_nobody_agrees_with_himself(ground: Ground, refuses: Refuses) -> None:
    terms = ground.terms(customer=ISSUER.address)
    signature = sign_registration(terms, ground.anchor.chain_id, ground.anchor.registry, ISSUER)
    with refuses("InvalidParties"):
        ground.register(terms, signature=signature)


@pytest.mark.parametrize(
    "changes",
    [{"terms_hash": 0}, {"terms_hash": curve_order}, {"terms_hash": 2**256 - 1}, {"window_seconds": 0}],
    ids=str,
)
def test_terms_no_proof_can_name_are_refused(ground: Ground, refuses: Refuses, changes: Any) -> None:
    with refuses("InvalidTerms"):
        ground.agreement(**changes)


def test_versions_start_at_one(ground: Ground, refuses: Refuses) -> None:
    for version in (0, 2):
        with refuses("TermsVersionNotNext"):
            ground.agreement(terms_version=version)


def test_the_first_version_must_cover_the_first_period(ground: Ground, refuses: Refuses) -> None:
    with refuses("FirstTermsTooLate"):
        ground.agreement(effective_from_ns=FIRST_START + 1)


def _amendable(ground: Ground) -> Any:
    terms = ground.terms()
    ground.register(terms)
    tomorrow = ground.clock_s * SECOND + DAY
    return replace(terms, terms_version=2, terms_hash=TERMS_HASH + 1, effective_from_ns=tomorrow)


def test_amendments_follow_without_gaps(ground: Ground, refuses: Refuses) -> None:
    second = _amendable(ground)
    for version in (1, 3):
        with refuses("TermsVersionNotNext"):
            ground.register(replace(second, terms_version=version))
    sla = ground.register(second)
    assert ground.anchor.sla_state(sla).terms_version == 2
    assert ground.terms_state(sla, 1).terms_hash == TERMS_HASH
    assert ground.terms_state(sla, 2).terms_hash == TERMS_HASH + 1


def test_an_amendment_reaches_no_time_that_has_begun(ground: Ground, refuses: Refuses) -> None:
    second = _amendable(ground)
    block_time = (ground.clock_s + 1) * SECOND
    with refuses("AmendmentNotInFuture"):
        ground.register(replace(second, effective_from_ns=block_time))
    block_time = (ground.clock_s + 1) * SECOND
    ground.register(replace(second, effective_from_ns=block_time + 1))


def test_an_amendment_does_not_overtake_the_one_before(ground: Ground, refuses: Refuses) -> None:
    second = _amendable(ground)
    ground.register(second)
    third = replace(second, terms_version=3)
    with refuses("AmendmentNotInFuture"):
        ground.register(third)
    ground.register(replace(third, effective_from_ns=second.effective_from_ns + 1))


def test_the_first_start_cannot_be_amended(ground: Ground, refuses: Refuses) -> None:
    second = _amendable(ground)
    with refuses("FirstStartChanged"):
        ground.register(replace(second, first_start_ns=FIRST_START + DAY))


def test_an_agreement_nobody_registered_has_no_statements(ground: Ground, refuses: Refuses) -> None:
    with refuses("UnknownSla"):
        ground.record(ground.statement(bytes(32), proved=False))


def test_only_the_registrar_adds_verifiers(ground: Ground, refuses: Refuses) -> None:
    with refuses("AccessControlUnauthorizedAccount"):
        ground.anchor.add_verifier(ISSUER, ground.verifier, dev_unsafe=True, now_s=ground.tick())


def test_a_verifier_is_never_replaced(ground: Ground, refuses: Refuses) -> None:
    again = ground.deploy_verifier(ground.trapdoor)
    assert again.address != ground.verifier.address
    with refuses("VerifierExists"):
        ground.anchor.add_verifier(DEPLOYER, again, dev_unsafe=True, now_s=ground.tick())


def test_the_registry_keeps_the_hash_of_the_verifiers_code(ground: Ground) -> None:
    assert ground.anchor.verifier_of(ground.verifier.circuit_id) == ground.verifier


def test_an_address_without_code_is_no_verifier(ground: Ground, refuses: Refuses) -> None:
    empty = replace(ground.verifier, address=STRANGER.address)
    with refuses("NotAContract"):
        ground.anchor.add_verifier(DEPLOYER, empty, dev_unsafe=True, now_s=ground.tick())


def test_what_was_never_registered_or_added_is_not_found(ground: Ground) -> None:
    assert ground.terms_state(ground.agreement(), 2) == (0, 0, 0)
    for read in (
        lambda: ground.anchor.sla_state(bytes(32)),
        lambda: ground.anchor.verifier_of(bytes(32)),
    ):
        with pytest.raises(NotFound):
            read()


@pytest.mark.parametrize("changes", [{"signals": (1,) * 5}, {"proof": bytes(255)}, {"proof": bytes(288)}], ids=str)
def test_a_statement_of_another_size_is_no_call(ground: Ground, changes: dict[str, Any]) -> None:
    s = ground.statement(bytes(32), proved=False)
    with pytest.raises(ValueError, match="6 signals and a proof of 256 bytes"):
        ground.anchor.record_call(replace(s, **changes))
