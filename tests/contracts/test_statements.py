"""Recording statements: what is recorded, and every lie about it that we could think of.

Proofs come from a trapdoor (see ``trapdoor.py``): each lie is told with a proof that verifies for its signals,
so that what refuses it is the rule under test and not the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount
from eth_utils import keccak

from ledger.anchor.chain import Statement, signals_hash
from ledger.errors import AnchorRefused
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
    ZERO,
    Ground,
    word,
)
from tests.contracts.trapdoor import Trapdoor, curve_order, rerandomise

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(ground: Ground) -> Statement:
    """Version 1 of the first day of an agreement, recorded."""
    s = ground.statement(ground.agreement())
    assert ground.record(s).recorded is not None
    return s


@pytest.fixture(scope="module")
def restated(ground: Ground) -> tuple[Statement, Statement]:
    """Versions 1 and 2 of the first day of another agreement, recorded."""
    first = ground.statement(ground.agreement())
    second = ground.statement(first.sla_id, replaces=first)
    for s in (first, second):
        assert ground.record(s).recorded is not None
    return first, second


# --- what is recorded --------------------------------------------------------------------------


def test_a_statement_is_recorded_as_the_format_says(ground: Ground) -> None:
    s = ground.statement(ground.agreement())
    outcome = ground.record(s)
    event = outcome.recorded
    assert event is not None
    hashed = keccak(b"".join(word(x) for x in s.signals))
    proof_hash = keccak(s.proof)
    inner = [keccak(text="sla-ledger/leaf/v1"), s.signals[2], hashed, proof_hash, s.circuit_id]
    assert event.leaf == keccak(keccak(b"".join(word(x) for x in inner)))
    assert (event.sla_id, event.ctx, event.start_ns, event.end_ns) == (
        s.sla_id,
        ground.ctx(s),
        s.start_ns,
        s.end_ns,
    )
    assert (event.terms_version, event.statement_version, event.circuit_id) == (1, 1, s.circuit_id)
    assert (event.signals_hash, event.proof_hash) == (hashed, proof_hash)
    assert event.verifier == ground.verifier.address
    assert ground.anchor.is_recorded(s)
    assert ground.anchor.sla_state(s.sla_id).next_start_ns == s.end_ns
    block = outcome.block_number
    assert ground.anchor.recorded(s.sla_id, from_block=block, to_block=block) == (event,)
    expected = keccak(word(s.sla_id) + word(proof_hash) + word(event.verifier))
    assert slot_of(ground, s) == int.from_bytes(expected, "big") & ~1


def slot_of(ground: Ground, s: Statement) -> int:
    """The slot of a recorded statement: its lowest bit says that it was replaced."""
    key = (s.sla_id, s.start_ns, s.end_ns, s.statement_version, s.signals[2], signals_hash(s.signals))
    return int.from_bytes(ground.anchor._read("recordOf", *key), "big")


def test_recording_costs_at_most_315_000_gas(ground: Ground) -> None:
    def full_width(signals: list[int]) -> None:
        signals[1] = curve_order - 11

    sla = ground.agreement()
    first = ground.statement(sla, alter_signals=full_width)
    second = ground.statement(sla, replaces=first, alter_signals=full_width)
    third = ground.statement(sla, replaces=second, alter_signals=full_width)
    following = ground.statement(sla, start=FIRST_START + DAY, alter_signals=full_width)
    gas = [ground.record(s).gas_used for s in (first, second, third, following)]
    assert max(gas) <= 315_000, gas


def test_the_customer_records_too_and_periods_follow_each_other(ground: Ground) -> None:
    sla = ground.agreement()
    assert ground.record(ground.statement(sla), sender=CUSTOMER).recorded
    assert ground.record(ground.statement(sla, start=FIRST_START + DAY, hours=1)).recorded


def test_a_restatement_names_what_it_replaces(ground: Ground, restated: tuple[Statement, Statement]) -> None:
    first, second = restated
    third = ground.statement(first.sla_id, replaces=second)
    event = ground.record(third).recorded
    assert event is not None
    assert event.statement_version == 3
    assert all(ground.anchor.is_recorded(s) for s in (first, second, third))
    assert [slot_of(ground, s) & 1 for s in (first, second, third)] == [1, 1, 0]


# --- the same again ----------------------------------------------------------------------------


def test_the_same_signals_again_change_nothing(ground: Ground, recorded: Statement) -> None:
    assert ground.record(recorded, sender=CUSTOMER).recorded is None


def test_a_rerandomised_proof_is_not_another_statement(ground: Ground, recorded: Statement) -> None:
    other = replace(recorded, proof=rerandomise(recorded.proof, 3))
    assert other.proof != recorded.proof
    assert ground.verifies(other.proof, other.signals)
    outcome = ground.record(other)
    assert outcome.recorded is None
    block = outcome.block_number
    everything = ground.anchor.recorded(recorded.sla_id, from_block=0, to_block=block)
    assert [event.proof_hash for event in everything] == [keccak(recorded.proof)]


def test_a_rerandomised_proof_does_not_hold_for_another_period(
    ground: Ground, recorded: Statement, refuses: Refuses
) -> None:
    following = ground.statement(recorded.sla_id, start=recorded.end_ns, proved=False)
    with refuses("ProofInvalid"):
        ground.record(replace(following, proof=rerandomise(recorded.proof, 5)))


# --- who ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", [STRANGER, DEPLOYER], ids=["stranger", "admin"])
def test_only_parties_record(ground: Ground, refuses: Refuses, sender: LocalAccount) -> None:
    s = ground.statement(ground.agreement(), proved=False)
    with refuses("NotParty"):
        ground.record(s, sender=sender)


# --- ctx ---------------------------------------------------------------------------------------

CTX_LIES: dict[str, Callable[[Ground, Statement], int]] = {
    "another chain": lambda g, s: g.ctx(s, chain_id=1),
    "another registry": lambda g, s: g.ctx(s, registry=STRANGER.address),
    "another agreement": lambda g, s: g.ctx(replace(s, sla_id=keccak(s.sla_id))),
    "another start": lambda g, s: g.ctx(replace(s, start_ns=s.start_ns - HOUR)),
    "another end": lambda g, s: g.ctx(replace(s, end_ns=s.end_ns + HOUR)),
    "other terms": lambda g, s: g.ctx(replace(s, terms_version=2)),
    "another version": lambda g, s: g.ctx(replace(s, statement_version=2)),
    "another previous statement": lambda g, s: g.ctx(replace(s, prev_ctx=1)),
    "not shifted": lambda g, s: g.ctx(s) << 1,
}


@pytest.mark.parametrize("lie", CTX_LIES.values(), ids=CTX_LIES.keys())
def test_a_proof_made_for_something_else_is_refused(
    ground: Ground, refuses: Refuses, lie: Callable[[Ground, Statement], int]
) -> None:
    honest = ground.statement(ground.agreement(), proved=False)
    with refuses("CtxMismatch"):
        ground.record(ground.statement(honest.sla_id, ctx=lie(ground, honest)))


# --- signals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("lie", ["plus r", "r", "2^256-1"])
def test_signals_outside_the_field_are_refused(
    ground: Ground, recorded: Statement, refuses: Refuses, index: int, lie: str
) -> None:
    signals = list(recorded.signals)
    signals[index] = {"plus r": signals[index] + curve_order, "r": curve_order, "2^256-1": 2**256 - 1}[lie]
    with refuses("SignalOutOfField"):
        ground.record(replace(recorded, signals=tuple(signals)))


# --- terms -------------------------------------------------------------------------------------


def test_a_proof_under_other_terms_is_refused(ground: Ground, refuses: Refuses) -> None:
    def other_terms(signals: list[int]) -> None:
        signals[4] = TERMS_HASH + 1

    with refuses("TermsHashMismatch"):
        ground.record(ground.statement(ground.agreement(), alter_signals=other_terms))


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_terms_that_were_never_registered_are_refused(ground: Ground, refuses: Refuses, version: int) -> None:
    with refuses("TermsNotInForce"):
        ground.record(ground.statement(ground.agreement(), terms_version=version, proved=False))


def test_each_period_is_judged_by_the_terms_in_force_at_its_start(ground: Ground, refuses: Refuses) -> None:
    terms = ground.terms()
    sla = ground.register(terms)
    change = (ground.clock_s * SECOND // DAY + 1) * DAY
    ground.register(replace(terms, terms_version=2, terms_hash=TERMS_HASH + 1, effective_from_ns=change))
    before = ground.statement(sla, terms_version=2, proved=False)
    with refuses("TermsNotInForce"):
        ground.record(before)
    after = ground.statement(sla, start=change, proved=False)
    with refuses("TermsNotInForce"):
        ground.record(after)
    assert ground.record(ground.statement(sla)).recorded


def test_no_statement_reaches_beyond_the_start_of_the_next_terms(ground: Ground, refuses: Refuses) -> None:
    """A change inside a period splits it: the whole of it, recorded by the old terms, would leave no place for the part
    under the new ones."""
    terms = ground.terms()
    sla = ground.register(terms)
    change = (ground.clock_s * SECOND // DAY + 1) * DAY
    ground.register(replace(terms, terms_version=2, terms_hash=TERMS_HASH + 1, effective_from_ns=change))
    whole = (change - FIRST_START) // HOUR
    ground.clock_s = change // SECOND + 3 * 3600
    for more in (1, 2):
        with refuses("TermsNotInForce"):
            ground.record(ground.statement(sla, hours=whole + more))
    assert ground.record(ground.statement(sla, hours=whole)).recorded

    def by_the_new_terms(signals: list[int]) -> None:
        signals[4] = TERMS_HASH + 1

    later = ground.statement(sla, start=change, hours=2, terms_version=2, alter_signals=by_the_new_terms)
    assert ground.record(later).recorded


# --- periods -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-DAY, -HOUR, -1, 1, HOUR, DAY], ids=str)
def test_gaps_and_overlaps_are_refused(ground: Ground, recorded: Statement, refuses: Refuses, shift: int) -> None:
    s = ground.statement(recorded.sla_id, start=recorded.end_ns + shift, proved=False)
    if s.start_ns == recorded.start_ns:
        s = ground.statement(recorded.sla_id, start=s.start_ns, hours=23, proved=False)
    with refuses("PeriodNotContiguous"):
        ground.record(s)


def test_the_first_period_starts_where_the_terms_say(ground: Ground, refuses: Refuses) -> None:
    sla = ground.agreement(effective_from_ns=FIRST_START - DAY)
    for start in (FIRST_START - DAY, FIRST_START + DAY):
        with refuses("PeriodNotContiguous"):
            ground.record(ground.statement(sla, start=start, proved=False))


def test_one_start_has_one_end(ground: Ground, recorded: Statement, refuses: Refuses) -> None:
    longer = ground.statement(recorded.sla_id, hours=25, proved=False)
    with refuses("PeriodNotContiguous"):
        ground.record(longer)
    with refuses("PreviousStatementUnknown"):
        ground.record(ground.statement(recorded.sla_id, hours=25, replaces=recorded, proved=False))


@pytest.mark.parametrize(
    ("hours", "end"),
    [
        (24, FIRST_START + DAY + 1),
        (24, FIRST_START + DAY - 1),
        (24, FIRST_START + 25 * HOUR),
        (25, FIRST_START + DAY),
        (0, FIRST_START),
        (24, FIRST_START),
        (1, FIRST_START - HOUR),
    ],
    ids=["+1ns", "-1ns", "too long", "too many windows", "nothing", "empty", "backwards"],
)
def test_the_period_is_as_many_whole_windows_as_the_proof_says(
    ground: Ground, refuses: Refuses, hours: int, end: int
) -> None:
    with refuses("PeriodLengthInvalid"):
        ground.record(ground.statement(ground.agreement(), hours=hours, end=end, proved=False))


def test_a_period_that_has_not_ended_is_refused(ground: Ground, refuses: Refuses) -> None:
    this_hour = ground.clock_s * SECOND // HOUR * HOUR
    sla = ground.agreement(first_start_ns=this_hour)
    with refuses("PeriodNotOver"):
        ground.record(ground.statement(sla, start=this_hour, hours=1, proved=False))


# --- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2, 3])
def test_the_first_statement_of_a_period_is_version_one(
    ground: Ground, recorded: Statement, refuses: Refuses, version: int
) -> None:
    s = ground.statement(recorded.sla_id, start=recorded.end_ns, statement_version=version, proved=False)
    with refuses("StatementVersionInvalid"):
        ground.record(s)


@pytest.mark.parametrize("version", [3, 4, 2**32 - 1])
def test_no_version_is_skipped(ground: Ground, recorded: Statement, refuses: Refuses, version: int) -> None:
    s = ground.statement(recorded.sla_id, replaces=recorded, statement_version=version, proved=False)
    with refuses("PreviousStatementUnknown"):
        ground.record(s)


def test_there_is_no_version_zero(ground: Ground, recorded: Statement, refuses: Refuses) -> None:
    s = ground.statement(recorded.sla_id, replaces=recorded, statement_version=0, proved=False)
    with refuses("StatementVersionInvalid"):
        ground.record(s)


def test_a_second_version_two_is_refused(
    ground: Ground, restated: tuple[Statement, Statement], refuses: Refuses
) -> None:
    def other_credit(signals: list[int]) -> None:
        signals[1] += 1

    first, _ = restated
    with refuses("PreviousStatementReplaced"):
        ground.record(ground.statement(first.sla_id, replaces=first, alter_signals=other_credit))


def test_version_one_with_another_credit_is_refused(ground: Ground, recorded: Statement, refuses: Refuses) -> None:
    def other_credit(signals: list[int]) -> None:
        signals[1] += 1

    with refuses("PeriodNotContiguous"):
        ground.record(ground.statement(recorded.sla_id, alter_signals=other_credit))


@pytest.mark.parametrize(
    "changes",
    [{"prev_ctx": 0}, {"prev_ctx": 1}, {"prev_signals_hash": ZERO}, {"prev_signals_hash": b"\x01" * 32}],
    ids=str,
)
def test_a_restatement_of_something_else_is_refused(
    ground: Ground, recorded: Statement, refuses: Refuses, changes: dict[str, Any]
) -> None:
    s = ground.statement(recorded.sla_id, replaces=recorded, proved=False, **changes)
    with refuses("PreviousStatementUnknown"):
        ground.record(s)


def test_a_version_three_does_not_replace_version_one(
    ground: Ground, restated: tuple[Statement, Statement], refuses: Refuses
) -> None:
    first, second = restated
    s = ground.statement(first.sla_id, replaces=first, statement_version=3, proved=False)
    with refuses("PreviousStatementUnknown"):
        ground.record(s)
    assert second.prev_ctx == first.signals[2]


def test_a_restatement_of_part_of_a_recorded_period_is_refused(
    ground: Ground, recorded: Statement, refuses: Refuses
) -> None:
    start = recorded.start_ns + HOUR
    s = ground.statement(recorded.sla_id, start=start, hours=23, replaces=recorded, proved=False)
    with refuses("PreviousStatementUnknown"):
        ground.record(s)


def test_the_first_version_replaces_nothing(ground: Ground, refuses: Refuses) -> None:
    sla = ground.agreement()
    for changes in ({"prev_ctx": 1}, {"prev_signals_hash": b"\x01" * 32}):
        with refuses("PreviousStatementUnknown"):
            ground.record(ground.statement(sla, proved=False, **changes))


# --- proofs and circuits -----------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 1, 3, 5])
def test_a_proof_does_not_hold_for_altered_signals(ground: Ground, refuses: Refuses, index: int) -> None:
    s = ground.statement(ground.agreement())
    # Lowest bits of the summary are the objectives' states; N stays what the period says.
    signals = tuple(x ^ 1 if i == index else x for i, x in enumerate(s.signals))
    with refuses("ProofInvalid"):
        ground.record(replace(s, signals=signals))


@pytest.mark.parametrize("position", [31, 63, 95, 255])
def test_a_tampered_proof_is_refused(ground: Ground, refuses: Refuses, position: int) -> None:
    s = ground.statement(ground.agreement())
    proof = bytearray(s.proof)
    proof[position] ^= 1
    with refuses("ProofInvalid"):
        ground.record(replace(s, proof=bytes(proof)))
    assert not ground.anchor.is_recorded(s)


def test_a_circuit_the_terms_do_not_name_is_refused(ground: Ground, refuses: Refuses) -> None:
    sla = ground.agreement(circuit_ids=())
    with refuses("CircuitNotAccepted"):
        ground.record(ground.statement(sla, proved=False))


def test_a_circuit_without_verifier_is_refused(ground: Ground, refuses: Refuses) -> None:
    unknown = b"\x07" * 32
    sla = ground.agreement(circuit_ids=(unknown,))
    with refuses("UnknownCircuit"):
        ground.record(ground.statement(sla, circuit_id=unknown, proved=False))


def test_a_proof_under_another_key_is_refused(ground: Ground, refuses: Refuses) -> None:
    s = ground.statement(ground.agreement())
    with refuses("ProofInvalid"):
        ground.record(replace(s, proof=Trapdoor("another setup").forge(s.signals)))


# --- gas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gas", [60_000, 120_000, 200_000, 290_000, 320_000, 330_000])
def test_too_little_gas_reverts_and_records_nothing(ground: Ground, gas: int) -> None:
    s = ground.statement(ground.agreement())
    call = replace(ground.anchor.record_call(s), gas_limit=gas)
    with pytest.raises(AnchorRefused) as caught:
        ground.sender.send(ISSUER, call, now_s=ground.tick())
    assert caught.value.data["error"] in (None, "NotEnoughGas")
    assert not ground.anchor.is_recorded(s)


def test_a_limit_just_above_the_verifiers_demand_suffices(ground: Ground) -> None:
    s = ground.statement(ground.agreement())
    call = replace(ground.anchor.record_call(s), gas_limit=360_000)
    ground.sender.send(ISSUER, call, now_s=ground.tick())
    assert ground.anchor.is_recorded(s)
