"""Formats of a statement. Expected bytes are built a second time here, by eth_abi or by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, astuple, replace
from hashlib import sha256
from typing import Any

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.commitments.statement import (
    Context,
    Signals,
    State,
    Summary,
    base_commit,
    credit_commit,
    proof_hash,
    sla_id,
)
from ledger.attest.crypto.keccak import keccak256, keccak_text
from ledger.attest.crypto.pair import OneProof, pair_id, statement_name
from ledger.attest.crypto.poseidon import poseidon, tag
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

ISSUER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
CUSTOMER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
REGISTRY = "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"
NONCE = bytes(range(32))
DAY_NS = 86_400 * 10**9
CONTEXT = Context(31337, REGISTRY, sla_id(ISSUER, CUSTOMER, NONCE), 19_000 * DAY_NS, 19_001 * DAY_NS, 1, 1)
SIGNALS = Signals(2**40 + 1, 80_000, CONTEXT.value(), 11, 12, 13)


def test_sla_id_is_the_abi_encoding_of_parties_and_nonce() -> None:
    expected = keccak256(encode(["address", "address", "bytes32"], [ISSUER, CUSTOMER, NONCE]))
    assert sla_id(ISSUER, CUSTOMER, NONCE) == expected
    assert sla_id(CUSTOMER, ISSUER, NONCE) != expected


def test_context_is_248_bits_of_its_abi_encoding() -> None:
    types = ["bytes32", "uint256", "address", "bytes32", "uint64", "uint64", "uint32", "uint32", "uint256"]
    encoded = encode(types, [keccak_text("sla-ledger/ctx/v1"), *astuple(CONTEXT)])
    assert CONTEXT.value() == int.from_bytes(keccak256(encoded)[:31], "big")


CONTEXTS = {
    "chain": replace(CONTEXT, chain_id=1),
    "registry": replace(CONTEXT, registry=ISSUER),
    "agreement": replace(CONTEXT, sla_id=bytes(32)),
    "start": replace(CONTEXT, start_ns=CONTEXT.start_ns + 1),
    "end": replace(CONTEXT, end_ns=CONTEXT.end_ns + 1),
    "terms_version": replace(CONTEXT, terms_version=2),
    "statement_version": replace(CONTEXT, statement_version=2),
    "previous": replace(CONTEXT, previous=1),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_every_part_of_a_context_counts(name: str) -> None:
    assert CONTEXTS[name].value() != CONTEXT.value()


@pytest.mark.parametrize(
    "changes",
    [
        {"end_ns": CONTEXT.start_ns},
        {"end_ns": 2**64},
        {"start_ns": -1},
        {"terms_version": 0},
        {"statement_version": 0},
        {"statement_version": 2**32},
        {"registry": REGISTRY.lower()},
        {"sla_id": bytes(31)},
        {"previous": -1},
        {"chain_id": 2**256},
    ],
    ids=str,
)
def test_a_context_outside_its_types_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(AttestationValueInvalid):
        replace(CONTEXT, **changes).value()  # type: ignore[arg-type]


def test_commitments_are_poseidon_of_tag_scope_value_salt() -> None:
    assert base_commit(5, 800_000, 7) == poseidon([tag("base"), 5, 800_000, 7])
    assert credit_commit(5, 80_000, 7) == poseidon([tag("credit"), 5, 80_000, 7])


@pytest.mark.parametrize("commit", [base_commit, credit_commit])
@pytest.mark.parametrize("amount", [-1, 2**64, 10_000 * pow(7, -1, SCALAR_ORDER) % SCALAR_ORDER])
def test_only_64_bit_amounts_are_committed_to(commit: object, amount: int) -> None:
    with pytest.raises(AttestationValueInvalid):
        commit(1, amount, 2)  # type: ignore[operator]


def test_summary_puts_each_number_in_its_bits() -> None:
    summary = Summary((State.MET, State.BREACHED, State.NO_DATA, State.UNUSED), 750, 700, 40, 3)
    assert summary.encode() == 0b00_01_11_10 + (750 << 8) + (700 << 18) + (40 << 28) + (3 << 38)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    windows = draw(st.integers(1, 1023))
    observed = draw(st.integers(0, windows))
    excluded = draw(st.integers(0, windows - observed))
    states = draw(st.tuples(*[st.sampled_from(State)] * 4))
    return Summary(states, windows, observed, excluded, draw(st.integers(0, observed)))


@given(summaries())
def test_a_summary_survives_its_encoding(summary: Summary) -> None:
    assert Summary.decode(summary.encode()) == summary


@given(st.integers(0, 2**48 - 1))
def test_what_decodes_has_one_encoding(signal: int) -> None:
    try:
        summary = Summary.decode(signal)
    except AttestationValueInvalid:
        return
    assert summary.encode() == signal


@pytest.mark.parametrize(
    "signal",
    [
        -1,
        1 << 48,
        SCALAR_ORDER,
        0,
        1 << 18,
        (1 << 8) + (2 << 18),
        (2 << 8) + (1 << 18) + (2 << 28),
        (1 << 8) + (1 << 38),
    ],
    ids=["negative", "49_bits", "r", "no_windows", "windows_0", "observed", "excluded", "idle"],
)
def test_a_summary_no_circuit_gives_is_refused(signal: int) -> None:
    with pytest.raises(AttestationValueInvalid):
        Summary.decode(signal)


@pytest.mark.parametrize("position", range(6))
@pytest.mark.parametrize("value", [-1, SCALAR_ORDER, True, "1"])
def test_signals_are_canonical_elements(position: int, value: object) -> None:
    values: list[object] = [*SIGNALS.as_tuple()]
    values[position] = value
    with pytest.raises(AttestationValueInvalid):
        Signals(*values)  # type: ignore[arg-type]


def test_signals_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        SIGNALS.credit = 1  # type: ignore[misc]


def test_leaf_is_hashed_twice_over_context_signals_proof_and_circuit() -> None:
    proof, circuit = bytes(range(256)), sha256(b"circuit").digest()
    digest = keccak256(encode(["uint256[6]"], [SIGNALS.as_tuple()]))
    encoded = encode(
        ["bytes32"] * 5,
        [keccak_text("sla-ledger/leaf/v1"), SIGNALS.ctx.to_bytes(32, "big"), digest, keccak256(proof), circuit],
    )
    assert statement_name(OneProof(circuit, SIGNALS.as_tuple(), proof)).leaf(SIGNALS.ctx) == keccak256(
        keccak256(encoded)
    )


@pytest.mark.parametrize("length", [0, 255, 257])
def test_a_proof_hash_is_of_256_bytes(length: int) -> None:
    with pytest.raises(AttestationValueInvalid):
        proof_hash(bytes(length))


def test_two_proofs_have_a_leaf_that_binds_both() -> None:
    first = OneProof(b"\x11" * 32, SIGNALS.as_tuple(), bytes(range(256)))
    second = OneProof(b"\x12" * 32, (3, 4, SIGNALS.ctx, SIGNALS.credit, SIGNALS.terms_hash, 5), bytes(256))
    words = b"".join(signal.to_bytes(32, "big") for signal in (*first.signals, *second.signals))
    pair = keccak256(keccak_text("sla-ledger/circuit-pair/v1") + first.circuit_id + second.circuit_id)
    encoded = b"".join(
        [
            keccak_text("sla-ledger/leaf/v1"),
            SIGNALS.ctx.to_bytes(32, "big"),
            keccak256(words),
            keccak256(first.proof + second.proof),
            pair,
        ],
    )
    assert pair_id(first.circuit_id, second.circuit_id) == pair != pair_id(second.circuit_id, first.circuit_id)
    both = statement_name(first, second).leaf(SIGNALS.ctx)
    assert both == keccak256(keccak256(encoded))
    assert len({both, *(statement_name(each).leaf(SIGNALS.ctx) for each in (first, second))}) == 3


@pytest.mark.parametrize(
    "wrong", [{"signals": (1,) * 5}, {"signals": (SCALAR_ORDER, *[1] * 5)}, {"proof": bytes(255)}], ids=str
)
def test_a_proof_has_six_field_elements_and_256_bytes(wrong: dict[str, Any]) -> None:
    with pytest.raises(AttestationValueInvalid):
        OneProof(**{"circuit_id": bytes(32), "signals": (1,) * 6, "proof": bytes(256), **wrong})
