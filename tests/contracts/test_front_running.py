"""Whoever sees a transaction before its block may send something of its own first. It gains nothing by that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_account.signers.local import LocalAccount
from eth_utils import keccak

from tests.contracts.conftest import Refuses
from tests.contracts.ground import CUSTOMER, DEPLOYER, ISSUER, STRANGER, Ground
from tests.contracts.trapdoor import rerandomise

pytestmark = pytest.mark.slow


def test_an_observer_takes_no_period(ground: Ground, refuses: Refuses) -> None:
    """Neither with a proof of its own for (slaId, period, 1) nor under an agreement that names it as a party."""
    sla = ground.agreement()
    squatted = ground.statement(sla)
    for observer in (STRANGER, DEPLOYER):
        with refuses("NotParty"):
            ground.record(squatted, sender=observer)
    own = ground.register(ground.terms(issuer=STRANGER.address), sender=STRANGER)
    assert own != sla
    with refuses("CtxMismatch"):
        ground.record(replace(squatted, sla_id=own), sender=STRANGER)
    honest = ground.statement(sla)
    outcome = ground.record(honest)
    assert outcome.recorded is not None
    assert (outcome.recorded.sla_id, outcome.recorded.statement_version) == (sla, 1)


def test_an_observer_who_is_faster_gains_nothing(ground: Ground, refuses: Refuses) -> None:
    pending = ground.statement(ground.agreement())
    copied = replace(pending, proof=rerandomise(pending.proof, 7))
    assert ground.verifies(copied.proof, copied.signals), "to the verifier it is as good a proof"
    with refuses("NotParty"):
        ground.record(copied, sender=STRANGER)
    outcome = ground.record(pending)
    assert outcome.recorded is not None
    assert outcome.recorded.proof_hash == keccak(pending.proof)


@pytest.mark.parametrize(("first", "second"), [(CUSTOMER, ISSUER), (ISSUER, CUSTOMER)], ids=["customer", "issuer"])
def test_a_party_that_is_faster_records_the_same_statement_once(
    ground: Ground, first: LocalAccount, second: LocalAccount
) -> None:
    """With other proof bytes, which identify nothing; the slower one changes nothing and does not fail."""
    pending = ground.statement(ground.agreement())
    copied = replace(pending, proof=rerandomise(pending.proof, 11))
    faster = ground.record(copied, sender=first)
    slower = ground.record(pending, sender=second)
    assert faster.recorded is not None
    assert slower.recorded is None
    events = ground.anchor.recorded(pending.sla_id, from_block=0, to_block=slower.block_number)
    assert [(event.ctx, event.proof_hash) for event in events] == [(pending.signals[2], keccak(copied.proof))]
