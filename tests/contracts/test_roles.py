"""What the roles may do over time, and what none of them may: hold up a party's recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount
from eth_utils import keccak
from web3 import Web3

from ledger.anchor.administration import Administration
from ledger.anchor.chain import DeployedVerifier, Statement
from ledger.anchor.registry import RegistryAnchor
from ledger.errors import AnchorRefused, NotFound
from ledger.merkle.checkpoint import Checkpoint
from tests.conformance.samples import StepClock
from tests.contracts.conftest import Refuses
from tests.contracts.ground import CUSTOMER, DEPLOYER, FIRST_START, ISSUER, SECOND, STRANGER, Ground, account
from tests.contracts.trapdoor import Trapdoor

pytestmark = pytest.mark.slow


def added(ground: Ground, seed: str) -> tuple[Trapdoor, DeployedVerifier]:
    """A circuit of the test's own, with a verifier that the registry asks."""
    trapdoor = Trapdoor(seed)
    verifier = ground.deploy_verifier(trapdoor)
    ground.anchor.add_verifier(DEPLOYER, verifier, dev_unsafe=True, now_s=ground.tick())
    return trapdoor, verifier


def under(ground: Ground, trapdoor: Trapdoor, verifier: DeployedVerifier, **changes: Any) -> Statement:
    """A statement of a new agreement whose proof holds under that verifier's key."""
    sla = changes.pop("sla", None) or ground.agreement(circuit_ids=(verifier.circuit_id,))
    s = ground.statement(sla, circuit_id=verifier.circuit_id, proved=False, **changes)
    return replace(s, proof=trapdoor.forge(s.signals))


# --- retirement ----------------------------------------------------------------------------------


def test_a_retired_circuit_records_nothing_more(ground: Ground, refuses: Refuses) -> None:
    trapdoor, verifier = added(ground, "to be retired")
    first = under(ground, trapdoor, verifier)
    assert ground.record(first).recorded
    ground.anchor.retire_verifier(DEPLOYER, verifier.circuit_id, now_s=ground.tick())
    next_day = under(ground, trapdoor, verifier, sla=first.sla_id, start=first.end_ns)
    restated = under(ground, trapdoor, verifier, sla=first.sla_id, replaces=first)
    for sender in (ISSUER, CUSTOMER):
        for s in (next_day, restated):
            with refuses("CircuitRetired"):
                ground.record(s, sender=sender)
    assert ground.anchor.is_recorded(first), "what is recorded stays"
    assert ground.record(first).recorded is None


def test_retirement_is_for_good(ground: Ground, refuses: Refuses) -> None:
    trapdoor, verifier = added(ground, "retired once")
    ground.anchor.retire_verifier(DEPLOYER, verifier.circuit_id, now_s=ground.tick())
    with refuses("CircuitRetired"):
        ground.anchor.retire_verifier(DEPLOYER, verifier.circuit_id, now_s=ground.tick())
    again = ground.deploy_verifier(trapdoor)
    for each in (verifier, again):
        with refuses("VerifierExists"):
            ground.anchor.add_verifier(DEPLOYER, each, dev_unsafe=True, now_s=ground.tick())


def test_only_the_registrar_retires_and_only_what_is_there(ground: Ground, refuses: Refuses) -> None:
    for sender in (ISSUER, CUSTOMER, STRANGER):
        with refuses("AccessControlUnauthorizedAccount"):
            ground.anchor.retire_verifier(sender, ground.verifier.circuit_id, now_s=ground.tick())
    with refuses("UnknownCircuit"):
        ground.anchor.retire_verifier(DEPLOYER, b"\x08" * 32, now_s=ground.tick())


# --- an operator's commands ------------------------------------------------------------------------


def administration(ground: Ground, account: LocalAccount = DEPLOYER) -> Administration:
    class Ticking:
        def now_ns(self) -> int:
            return ground.tick() * SECOND

    return Administration(ground.chain.w3, ground.sender, ground.anchor, account, Ticking())


def test_verifiers_are_listed_with_their_state_and_retired_once(ground: Ground) -> None:
    _, verifier = added(ground, "listed")
    operator = administration(ground)
    states = {each.circuit_id: each for each in operator.verifiers()}
    assert {*states} >= {verifier.circuit_id, ground.verifier.circuit_id}
    found = states[verifier.circuit_id]
    assert (found.verifier, found.retired_at_s, found.code_unchanged) == (verifier.address, None, True)
    assert operator.retire(verifier.circuit_id).tx_hash is not None
    retired_at_s = ground.clock_s
    assert operator.retire(verifier.circuit_id).tx_hash is None, "it is retired already"
    (retired,) = (each for each in operator.verifiers() if each.circuit_id == verifier.circuit_id)
    assert retired.retired_at_s == retired_at_s
    with pytest.raises(NotFound):
        operator.retire(b"\x08" * 32)


def test_under_a_retired_circuit_an_issuer_is_told_what_that_means(ground: Ground) -> None:
    trapdoor, verifier = added(ground, "told")
    administration(ground).retire(verifier.circuit_id)
    issuer = RegistryAnchor(ground.anchor, issuer=ISSUER, deployer=DEPLOYER, clock=StepClock())
    with pytest.raises(AnchorRefused, match="a retired circuit") as refused:
        issuer._ensure_verifier(verifier.circuit_id, trapdoor.verification_key, dev_unsafe=True)
    assert refused.value.data["error"] == "CircuitRetired"
    assert "what was recorded stays" in refused.value.message


def test_whoever_lacks_a_role_is_told_who_holds_it_before_anything_is_signed(ground: Ground) -> None:
    stranger = administration(ground, STRANGER)
    nonce = ground.chain.w3.eth.get_transaction_count(STRANGER.address)
    deeds: list[tuple[str, Callable[[], object]]] = [
        ("registrar", lambda: stranger.retire(ground.verifier.circuit_id)),
        ("pauser", stranger.pause),
        ("admin", lambda: stranger.grant("pauser", STRANGER.address)),
        ("admin", lambda: stranger.revoke("pauser", DEPLOYER.address)),
    ]
    for role, deed in deeds:
        with pytest.raises(AnchorRefused, match=f"takes the role {role}, held by {DEPLOYER.address}") as refused:
            deed()
        assert (refused.value.data["role"], refused.value.data["holders"]) == (role, [DEPLOYER.address])
    assert ground.chain.w3.eth.get_transaction_count(STRANGER.address) == nonce


def test_roles_change_hands_and_one_admin_is_left(ground: Ground) -> None:
    operator, other = administration(ground), account(7)
    assert operator.grant("pauser", other.address).tx_hash is not None
    assert operator.grant("pauser", other.address).tx_hash is None
    assert operator.holders()["pauser"] == (DEPLOYER.address, other.address)
    assert operator.revoke("pauser", other.address).tx_hash is not None
    assert operator.revoke("pauser", other.address).tx_hash is None
    assert operator.holders() == dict.fromkeys(("admin", "registrar", "pauser"), (DEPLOYER.address,))
    with pytest.raises(AnchorRefused, match="only admin"):
        operator.revoke("admin", DEPLOYER.address)


def test_a_pause_is_made_and_ended_once(ground: Ground, refuses: Refuses) -> None:
    operator = administration(ground)
    assert operator.unpause().tx_hash is None
    assert operator.pause().tx_hash is not None
    assert operator.pause().tx_hash is None
    assert operator.paused()
    with refuses("EnforcedPause"):
        ground.agreement()
    assert operator.unpause().tx_hash is not None
    assert not operator.paused()


# --- the verifier's code -------------------------------------------------------------------------


def delegate(ground: Ground, owner: LocalAccount, target: str) -> None:
    """Give an account the code of ``target``, as its owner may at any time (EIP-7702)."""
    w3 = ground.chain.w3
    nonce = w3.eth.get_transaction_count(owner.address)
    authorization = owner.sign_authorization(
        {"chainId": ground.anchor.chain_id, "address": bytes.fromhex(target[2:]), "nonce": nonce}
    )
    fields = {
        "type": 4,
        "chainId": ground.anchor.chain_id,
        "nonce": w3.eth.get_transaction_count(STRANGER.address),
        "to": owner.address,
        "value": 0,
        "gas": 500_000,
        "maxFeePerGas": 10**11,
        "maxPriorityFeePerGas": 10**9,
        "data": "0x",
        "accessList": [],
        "authorizationList": [authorization],
    }
    # The account's fallback is the target's, which has none: the call reverts, the delegation stands.
    ground.chain.pin_block_time(ground.tick())
    send_raw(w3, STRANGER.sign_transaction(fields).raw_transaction)
    assert bytes(w3.eth.get_code(owner.address)) == bytes.fromhex("ef0100" + target[2:])


def send_raw(w3: Web3, raw: bytes) -> None:
    w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw))


def test_a_verifier_whose_code_was_swapped_is_not_asked(ground: Ground, refuses: Refuses) -> None:
    """Its owner shows the registrar an honest verifier and puts another one in its place later."""
    honest, swapped = Trapdoor("honest"), Trapdoor("of a forger")
    verifiers = [ground.deploy_verifier(trapdoor) for trapdoor in (honest, swapped)]
    owner = account(100 + len(ground.chain.name))
    delegate(ground, owner, verifiers[0].address)
    shown = replace(verifiers[0], address=owner.address)
    ground.anchor.add_verifier(DEPLOYER, shown, dev_unsafe=True, now_s=ground.tick())
    first = under(ground, honest, shown)
    assert ground.record(first).recorded
    delegate(ground, owner, verifiers[1].address)
    for trapdoor in (swapped, honest):
        with refuses("VerifierCodeChanged"):
            ground.record(under(ground, trapdoor, shown, sla=first.sla_id, start=first.end_ns))
    delegate(ground, owner, verifiers[0].address)
    assert ground.record(under(ground, honest, shown, sla=first.sla_id, start=first.end_ns)).recorded


# --- pause ---------------------------------------------------------------------------------------


def test_a_pause_holds_up_terms_and_batches_and_no_recording(ground: Ground, refuses: Refuses) -> None:
    first = ground.statement(ground.agreement())
    terms, state = ground.terms(), Checkpoint(f"paused/{ground.chain.name}", 1, b"\x01" * 32)
    ground.send(DEPLOYER, "pause")
    try:
        with refuses("EnforcedPause"):
            ground.register(terms)
        with refuses("EnforcedPause"):
            ground.batches.anchor(ISSUER, state, b"\x01" * 32, now_s=ground.tick())
        assert ground.record(first, sender=CUSTOMER).recorded
        assert ground.record(ground.statement(first.sla_id, replaces=first), sender=CUSTOMER).recorded
    finally:
        ground.send(DEPLOYER, "unpause")
    ground.register(terms)
    ground.batches.anchor(ISSUER, state, b"\x01" * 32, now_s=ground.tick())


@pytest.mark.parametrize("function", ["pause", "unpause"])
def test_only_a_pauser_pauses(ground: Ground, refuses: Refuses, function: str) -> None:
    for sender in (ISSUER, CUSTOMER, STRANGER):
        with refuses("AccessControlUnauthorizedAccount"):
            ground.send(sender, function)


# --- roles ---------------------------------------------------------------------------------------


def test_the_admin_hands_roles_on_and_takes_them_back(ground: Ground, refuses: Refuses) -> None:
    role = keccak(text="REGISTRAR_ROLE")
    unknown = b"\x09" * 32
    ground.send(DEPLOYER, "grantRole", role, STRANGER.address)
    with refuses("UnknownCircuit"):
        ground.send(STRANGER, "retireVerifier", unknown)
    with refuses("AccessControlUnauthorizedAccount"):
        ground.send(STRANGER, "grantRole", role, ISSUER.address)
    ground.send(DEPLOYER, "revokeRole", role, STRANGER.address)
    with refuses("AccessControlUnauthorizedAccount"):
        ground.send(STRANGER, "retireVerifier", unknown)


def test_no_role_records_registers_or_publishes_for_a_party(ground: Ground, refuses: Refuses) -> None:
    with refuses("NotIssuer"):
        ground.register(ground.terms(), sender=DEPLOYER)
    s = ground.statement(ground.agreement(), proved=False)
    with refuses("NotParty"):
        ground.record(s, sender=DEPLOYER)
    assert s.start_ns == FIRST_START


@pytest.mark.parametrize("admin", [True, False], ids=["admin", "registrar"])
def test_a_registry_without_holders_of_its_roles_is_not_made(ground: Ground, refuses: Refuses, admin: bool) -> None:
    nobody = "0x" + "00" * 20
    with refuses("RoleWithoutHolder"):
        ground.deploy_registry(*((nobody, DEPLOYER.address) if admin else (DEPLOYER.address, nobody)))
