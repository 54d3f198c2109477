"""Statements with two proofs: what is recorded, and every way to pass off one proof, or the wrong two, as a credit.

Proofs come from trapdoors: every lie is told with proofs that verify, so that a rule refuses it and not a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from eth_utils import keccak
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ledger.anchor.chain import Statement, signals_hash
from ledger.app.ports.evidence import IncidentProof
from ledger.errors import AnchorRefused
from tests.contracts.conftest import Refuses
from tests.contracts.ground import CUSTOMER, DEPLOYER, STRANGER, TERMS_HASH, Ground, word
from tests.contracts.pairs import Pairs, pair_of
from tests.contracts.trapdoor import Trapdoor, curve_order, rerandomise

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pairs(ground: Ground) -> Pairs:
    """An agreement whose first day is recorded."""
    found = Pairs(ground)
    assert ground.record(found.statement()).recorded is not None
    return found


@pytest.fixture(scope="module")
def lied(ground: Ground) -> Pairs:
    """An agreement of which nothing is ever recorded: all that is said about it is refused."""
    return Pairs(ground)


@pytest.fixture
def fresh(ground: Ground) -> Pairs:
    return Pairs(ground)


def second_of(s: Statement) -> IncidentProof:
    assert s.incident_proof is not None
    return s.incident_proof


# --- what is recorded --------------------------------------------------------------------------


def test_both_proofs_are_in_slot_event_and_leaf(ground: Ground, fresh: Pairs) -> None:
    s = fresh.statement()
    second = second_of(s)
    outcome = ground.record(s)
    event = outcome.recorded
    assert event is not None
    hashed = keccak(b"".join(word(x) for x in (*s.signals, *second.signals)))
    proof_hash, pair = keccak(s.proof + second.proof), pair_of(s.circuit_id, second.circuit_id)
    inner = [keccak(text="sla-ledger/leaf/v1"), s.signals[2], hashed, proof_hash, pair]
    assert event.leaf == keccak(keccak(b"".join(word(x) for x in inner)))
    assert (event.circuit_id, event.signals_hash, event.proof_hash) == (pair, hashed, proof_hash)
    assert event.verifier == ground.verifier.address
    key = (s.sla_id, s.start_ns, s.end_ns, 1, s.signals[2], hashed)
    slot = keccak(b"".join(word(x) for x in (s.sla_id, proof_hash, event.verifier, fresh.verifier.address)))
    assert int.from_bytes(ground.anchor._read("recordOf", *key), "big") == int.from_bytes(slot, "big") & ~1
    assert ground.anchor.is_recorded(s)
    assert ground.anchor.recorded(s.sla_id, from_block=outcome.block_number, to_block=outcome.block_number) == (event,)
    receipt = ground.anchor.receipt("0x" + outcome.tx_hash.hex())
    assert receipt is not None
    credit = [keccak(text="IncidentCreditRecorded(bytes32,uint256,uint256,bytes32,bytes32,address)")]
    credit += [word(x) for x in (s.sla_id, s.signals[2], second.signals[1])]
    assert [bytes(topic) for topic in receipt["logs"][1]["topics"]] == credit
    said = b"".join(word(x) for x in (s.circuit_id, second.circuit_id, fresh.verifier.address))
    assert bytes(receipt["logs"][1]["data"]) == said


def test_a_restatement_names_the_signals_of_both_proofs(ground: Ground, refuses: Refuses, fresh: Pairs) -> None:
    first = fresh.statement()
    ground.record(first)
    half = fresh.statement(replaces=replace(first, incident_proof=None))
    with refuses("PreviousStatementUnknown"):
        ground.record(half)
    assert ground.record(fresh.statement(replaces=first)).recorded is not None
    with refuses("PreviousStatementReplaced"):
        ground.record(fresh.statement(replaces=first, alter_second=lambda signals: signals.__setitem__(1, 7)))


# --- the same again, and observers ---------------------------------------------------------------


def test_rerandomised_proofs_are_not_another_statement(ground: Ground, pairs: Pairs) -> None:
    s = pairs.statement()
    other = replace(
        s,
        proof=rerandomise(s.proof, 3),
        incident_proof=replace(second_of(s), proof=rerandomise(second_of(s).proof, 5)),
    )
    assert ground.verifies(other.proof, other.signals)
    assert ground.record(other, sender=CUSTOMER).recorded is None


@pytest.mark.parametrize("sender", [STRANGER, DEPLOYER], ids=["observer", "admin"])
def test_an_observer_cannot_be_first(ground: Ground, refuses: Refuses, fresh: Pairs, sender: object) -> None:
    s = fresh.statement()
    seen = replace(s, proof=rerandomise(s.proof, 3))
    with refuses("NotParty"):
        ground.record(seen, sender=sender)  # type: ignore[arg-type]
    assert ground.record(s).recorded is not None


# --- one proof is no credit ----------------------------------------------------------------------


def test_the_first_proof_alone_is_refused(ground: Ground, refuses: Refuses, lied: Pairs) -> None:
    with refuses("CircuitNotAccepted"):
        ground.record(replace(lied.statement(), incident_proof=None))


def test_the_second_proof_alone_is_refused(ground: Ground, refuses: Refuses, lied: Pairs) -> None:
    def as_second(signals: list[int]) -> None:
        signals[:] = [24 << 8, 5, signals[2], 4, TERMS_HASH, 3]

    s = lied.statement(alter_first=as_second)
    alone = replace(s, circuit_id=lied.verifier.circuit_id, proof=lied.trapdoor.forge(s.signals), incident_proof=None)
    with refuses("CircuitNotAccepted"):
        ground.record(alone)


def test_a_pair_is_refused_where_one_proof_was_agreed_on(ground: Ground, refuses: Refuses) -> None:
    pairs = Pairs(ground, registered=(ground.verifier.circuit_id, Pairs(ground).verifier.circuit_id))
    with refuses("CircuitNotAccepted"):
        ground.record(pairs.statement())


def test_swapped_circuits_are_refused(ground: Ground, refuses: Refuses, lied: Pairs) -> None:
    s = lied.statement()
    second = second_of(s)
    swapped = replace(
        s,
        circuit_id=second.circuit_id,
        proof=lied.trapdoor.forge(s.signals),
        incident_proof=replace(second, circuit_id=s.circuit_id, proof=ground.trapdoor.forge(second.signals)),
    )
    with refuses("CircuitNotAccepted"):
        ground.record(swapped)


def test_a_circuit_that_nobody_agreed_to_is_refused(ground: Ground, refuses: Refuses, lied: Pairs) -> None:
    other = Pairs(ground, Trapdoor("another circuit of incidents"))
    with refuses("CircuitNotAccepted"):
        ground.record(foreign(lied, other))


def foreign(lied: Pairs, other: Pairs) -> Statement:
    """A statement of one agreement whose second proof is of the circuit of another one."""
    s = lied.statement()
    signals = second_of(s).signals
    proof = replace(second_of(s), circuit_id=other.verifier.circuit_id, proof=other.trapdoor.forge(signals))
    return replace(s, incident_proof=proof)


# --- two proofs that do not belong together --------------------------------------------------------

LIES: dict[str, tuple[str, Callable[[list[int]], None]]] = {
    "another ctx": ("CtxMismatch", lambda signals: signals.__setitem__(2, signals[2] + 1)),
    "another amount of the tiers": ("TierCreditMismatch", lambda signals: signals.__setitem__(3, signals[3] + 1)),
    "no tiers": ("TierCreditMismatch", lambda signals: signals.__setitem__(3, 0)),
    "other terms": ("TermsHashMismatch", lambda signals: signals.__setitem__(4, TERMS_HASH + 1)),
    "a credit outside the field": (
        "SignalOutOfField",
        lambda signals: signals.__setitem__(1, signals[1] + curve_order),
    ),
    "a root outside the field": ("SignalOutOfField", lambda signals: signals.__setitem__(5, 2**256 - 1)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_second_proof_about_something_else_is_refused(
    ground: Ground, refuses: Refuses, lied: Pairs, name: str
) -> None:
    error, alter = LIES[name]
    s = lied.statement()
    signals = list(second_of(s).signals)
    alter(signals)
    proof = lied.trapdoor.forge(tuple(signal % curve_order for signal in signals))
    lie = replace(s, incident_proof=replace(second_of(s), signals=tuple(signals), proof=proof))
    with refuses(error):
        ground.record(lie)


def test_a_second_proof_of_another_period_is_refused(ground: Ground, refuses: Refuses, pairs: Pairs) -> None:
    first = pairs.statement()
    following = pairs.statement(start=first.end_ns)
    with refuses("CtxMismatch"):
        ground.record(replace(following, incident_proof=first.incident_proof))


@pytest.mark.parametrize("which", ["first", "second"])
def test_each_proof_is_checked(ground: Ground, refuses: Refuses, lied: Pairs, which: str) -> None:
    s = lied.statement()
    forged = Trapdoor("nobody's").forge(s.signals if which == "first" else second_of(s).signals)
    lie = (
        replace(s, proof=forged) if which == "first" else replace(s, incident_proof=replace(second_of(s), proof=forged))
    )
    with refuses("ProofInvalid"):
        ground.record(lie)


def test_both_terms_hashes_are_those_registered(ground: Ground, refuses: Refuses, lied: Pairs) -> None:
    def other(signals: list[int]) -> None:
        signals[4] = TERMS_HASH + 1

    with refuses("TermsHashMismatch"):
        ground.record(lied.statement(alter_first=other, alter_second=other))


# --- any sequence ----------------------------------------------------------------------------------

STEPS = st.lists(
    st.sampled_from(["next", "restate", "again", "half", "swapped", "another ctx", "no tiers"]), min_size=1, max_size=6
)


@hypothesis_settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_in_any_sequence_only_whole_statements_are_recorded(ground: Ground, steps: list[str]) -> None:
    pairs = Pairs(ground)
    newest: Statement | None = None
    recorded: list[Statement] = []
    for step in steps:
        if step == "restate" and newest is not None:
            s = pairs.statement(start=newest.start_ns, replaces=newest)
        elif step == "again" and newest is not None:
            s = newest
        else:
            s = pairs.statement(**({} if newest is None else {"start": newest.end_ns}))
        lie = _lie(step, s, pairs)
        if lie is not None:
            with pytest.raises(AnchorRefused):
                ground.record(lie)
            continue
        outcome = ground.record(s)
        assert (outcome.recorded is None) == (s in recorded)
        recorded += [s] if outcome.recorded is not None else []
        newest = s
    assert all(ground.anchor.is_recorded(s) for s in recorded)
    expected = [(s.start_ns, s.statement_version, signals_hash(s.all_signals)) for s in recorded]
    events = ground.anchor.recorded(pairs.sla, from_block=0, to_block=ground.anchor.latest_block())
    assert [(e.start_ns, e.statement_version, e.signals_hash) for e in events] == expected


def _lie(step: str, s: Statement, pairs: Pairs) -> Statement | None:
    second = second_of(s)
    if step == "half":
        return replace(s, incident_proof=None)
    if step == "swapped":
        return replace(s, circuit_id=second.circuit_id, incident_proof=replace(second, circuit_id=s.circuit_id))
    if step not in LIES:
        return None
    signals = list(second.signals)
    LIES[step][1](signals)
    return replace(
        s, incident_proof=replace(second, signals=tuple(signals), proof=pairs.trapdoor.forge(tuple(signals)))
    )
