"""Check the outcome of a key ceremony: what the zkey file itself shows, and what snarkjs finds with the powers of tau.

From the file alone: curve, signals, that at least one person contributed, a beacon comes last, the transcript is one
chain, and delta is what the last step left. That every step follows from the one before and that the key is one of
this circuit takes the circuit's constraints and the powers of tau: ``snarkjs zkey verify`` (phase2verifyFromInit).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ledger.attest.crypto import bn254
from ledger.attest.crypto.bn254 import G1Point, G2Point
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.zkey import Contribution, Zkey
from ledger.errors import VerificationKeyInvalid

G1_GENERATOR: G1Point = (1, 2)


class Outcome(StrEnum):
    """What became of a check."""

    PASS = "PASS"  # noqa: S105 (no password)
    FAIL = "FAIL"
    NOT_CHECKED = "NOT CHECKED"
    ASSUMED = "ASSUMED"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``what`` is stable, ``detail`` is for people."""

    what: str
    outcome: Outcome
    detail: str


def contribution_hash(step: Contribution) -> bytes:
    """The hash that snarkjs showed whoever made this step: blake2b-512 over its public key and transcript."""
    return hashlib.blake2b(_step_bytes(step), digest_size=64).digest()


def check_file(zkey: Zkey, signals: int) -> Iterator[Finding]:
    """What the zkey shows by itself, for a circuit of so many public ``signals``."""
    yield _finding(
        "public signals",
        zkey.public_signals == signals,
        f"{zkey.public_signals}",
        f"the key is for {zkey.public_signals} public signals, the circuit has {signals}: name the circuit it is for",
    )
    yield _verification_key(zkey)
    people = [step for step in zkey.contributions if step.beacon is None]
    yield _finding(
        "contributions",
        bool(people),
        ", ".join(step.name or "without a name" for step in people),
        "nobody contributed, so anyone can forge proofs under this key: run `snarkjs zkey contribute` at least once, "
        "by somebody independent of the issuer, then `snarkjs zkey beacon`",
    )
    yield _finding(
        "beacon last",
        [step.beacon is not None for step in zkey.contributions] == [False] * len(people) + [True],
        zkey.contributions[-1].beacon.hex() if zkey.contributions and zkey.contributions[-1].beacon else "",
        "the ceremony does not end with one beacon, so its last contributor chose the key: run `snarkjs zkey beacon` "
        "with a value that nobody could know when contributions closed",
    )
    yield _finding(
        "transcript",
        _is_one_chain(zkey),
        f"{len(zkey.contributions)} steps, each bound to all before it",
        "a step does not name those before it: the history was changed; get the file again from who held the ceremony",
    )
    yield _finding(
        "delta",
        _delta_is_the_last(zkey),
        "the one that the last step left, the same in both groups",
        "the key's delta is not what the last step left: the file was put together from two; get it again",
    )


def _verification_key(zkey: Zkey) -> Finding:
    try:
        key = parse_verification_key(zkey.verification_key_document())
    except VerificationKeyInvalid as error:
        return Finding("verification key", Outcome.FAIL, error.message)
    return Finding("verification key", Outcome.PASS, f"circuit id {key.circuit_id().hex()}")


def _finding(what: str, holds: bool, good: str, bad: str) -> Finding:
    return Finding(what, Outcome.PASS, good) if holds else Finding(what, Outcome.FAIL, bad)


def _is_one_chain(zkey: Zkey) -> bool:
    so_far = hashlib.blake2b(zkey.circuit_hash, digest_size=64)
    for step in zkey.contributions:
        own = so_far.copy()
        own.update(_g1(step.g1_s) + _g1(step.g1_sx))
        if own.digest() != step.transcript:
            return False
        so_far.update(_step_bytes(step))
    return True


def _delta_is_the_last(zkey: Zkey) -> bool:
    last = zkey.contributions[-1].delta_after if zkey.contributions else G1_GENERATOR
    if zkey.delta_1 != last or not bn254.on_g1(last) or not bn254.in_g2(zkey.delta_2):
        return False
    # e(delta, G2) = e(G1, delta'): both groups hold the same secret.
    return bn254.pairing_product_is_one(
        [
            (bn254.projective(bn254.negated(last)), bn254.g2_generator()),
            (bn254.projective(G1_GENERATOR), zkey.delta_2),
        ]
    )


def _step_bytes(step: Contribution) -> bytes:
    return _g1(step.delta_after) + _g1(step.g1_s) + _g1(step.g1_sx) + _g2(step.g2_spx) + step.transcript


def _g1(point: G1Point) -> bytes:
    return b"".join(value.to_bytes(32, "big") for value in point)


def _g2(point: G2Point) -> bytes:
    return b"".join(value.to_bytes(32, "big") for c0, c1 in point for value in (c1, c0))
