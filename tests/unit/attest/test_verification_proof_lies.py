"""Lies about context, base, proof, key and anchor, by an issuer who holds the keys of all parties.

The issuer's signature is redone in every case, so it masks nothing; where a lie needs more, it goes on to sign with
the other keys, too. Each must fail in the check named beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ledger.attest.crypto.verification_key import VerificationKey, parse_verification_key
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import DocumentInvalid
from tests.contracts.trapdoor import Trapdoor, rerandomise
from tests.support import examples
from tests.support.forging import Forger
from tests.support.lies import Lie, Lies, bumped, change, flipped, put, require_caught, then

pytestmark = pytest.mark.slow

OTHER_ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


# --- context, base, credit ---------------------------------------------------------------------

CONTEXT: Lies = {
    "another chain": (put("context.chain_id", "1"), {"context", "verification key", "anchor", "pin: chain"}),
    "another test chain": (put("context.chain_id", "31337"), {"context", "anchor", "pin: chain"}),
    "another registry": (put("context.registry", OTHER_ADDRESS), {"context", "anchor", "pin: registry"}),
    "a registry in another spelling": (
        change("context.registry", lambda text: text.lower()),
        {"context", "anchor", "pin: registry"},
    ),
    "everything moved to the forger's registry": (
        then(put("context.registry", OTHER_ADDRESS), Forger.transact),
        {"context", "pin: registry"},
    ),
    "a previous context": (then(put("context.prev_ctx", "7"), Forger.transact), {"context"}),
    "no context": (put("context", None), {"context", "anchor"}),
    "another salt of the base": (change("base.salt", bumped), {"base"}),
    "the base not opened": (put("base", None), {"base"}),
    "a credit salt for a public credit": (put("credit_salt", "7"), {"credit"}),
}


# --- proof and key -----------------------------------------------------------------------------


def of_next_day(*members: str) -> Lie:
    """Members of the next day's proof, in place of this day's."""

    def lie(forged: Forger) -> None:
        for member in members:
            forged.proof[member] = examples.bundle("bundle_next_day")["proof"][member]

    return lie


def under(key_of: Callable[[Trapdoor], VerificationKey], trapdoor: Trapdoor, prove: Any = Trapdoor.forge) -> Lie:
    """Another verification key with a proof under it; manifest and transaction follow."""

    def lie(forged: Forger) -> None:
        key = key_of(trapdoor)
        forged.proof["verification_key"] = key.document()
        forged.proof["manifest"]["circuit_id"] = key.circuit_id().hex()
        signals = tuple(int(signal) for signal in forged.proof["signals"])
        forged.proof["proof"] = prove(trapdoor, signals).hex()
        forged.transact()

    return lie


def degenerate(trapdoor: Trapdoor) -> VerificationKey:
    """A key that no parser of ours gives, so that only the verifier's own refusal stands against it."""
    document = trapdoor.verification_key
    sound = parse_verification_key(Trapdoor(trapdoor.seed).verification_key)
    (x, y, _) = document["vk_delta_2"]
    delta = tuple((int(pair[0]), int(pair[1])) for pair in (x, y))
    return VerificationKey(sound.alpha, sound.beta, sound.gamma, (delta[0], delta[1]), sound.ic)


OWN_KEY = Trapdoor("the issuer's own setup")
DELTA_IS_GAMMA = Trapdoor("no secrets needed", delta_is_gamma=True)
DELTA_IS_GENERATOR = Trapdoor("an unfinished ceremony", delta_is_generator=True)

PROOF: dict[str, tuple[Lie, set[str]]] = {
    "a byte altered": (change("proof.proof", flipped), {"proof", "anchor"}),
    "all zero": (put("proof.proof", "00" * 256), {"proof", "anchor"}),
    "the proof of another day": (of_next_day("proof"), {"proof", "anchor"}),
    "proof and signals of another day": (of_next_day("proof", "signals"), {"context", "telemetry signal", "summary"}),
    "re-randomised": (
        change("proof.proof", lambda text: rerandomise(bytes.fromhex(text), 7).hex()),
        {"anchor"},
    ),
    "another circuit named": (
        then(put("proof.circuit", "compliance_750x4"), put("proof.manifest.circuit", "compliance_750x4")),
        {"verification key"},
    ),
    "another circuit in the manifest": (put("proof.manifest.circuit", "compliance_750x4"), {"verification key"}),
    "another circuit id": (put("proof.manifest.circuit_id", "ab" * 32), {"verification key", "pin: circuit"}),
    "a development key called sound": (put("proof.manifest.dev_unsafe", False), {"pin: circuit"}),
    "a point of the key altered": (change("proof.verification_key.IC.1.0", bumped), {"verification key", "proof"}),
    "a point of the key replaced": (
        lambda f: put("proof.verification_key.IC.1", f.proof["verification_key"]["IC"][2])(f),
        {"verification key", "proof", "anchor"},
    ),
    "a key of the issuer's own": (
        under(lambda own: parse_verification_key(own.verification_key), OWN_KEY),
        {"pin: circuit"},
    ),
    "delta equal to gamma": (
        under(degenerate, DELTA_IS_GAMMA, Trapdoor.forge_without_secrets),
        {"verification key", "proof", "pin: circuit"},
    ),
    "delta the generator": (
        under(degenerate, DELTA_IS_GENERATOR),
        {"verification key", "proof", "pin: circuit"},
    ),
    "the proof left out": (
        then(put("proof", None), put("anchor", None), put("context", None), put("base", None)),
        {"verdict"},
    ),
}

SIGNAL_CHECKS = ("summary", "credit", "context", "telemetry signal", "terms", "base")

for number, check in enumerate(SIGNAL_CHECKS):
    PROOF[f"signal {number} altered"] = (
        change(f"proof.signals.{number}", bumped),
        {check, "proof", "anchor"},
    )
    PROOF[f"signal {number} altered and recorded"] = (
        then(change(f"proof.signals.{number}", bumped), Forger.transact),
        {check, "proof"},
    )
    PROOF[f"signal {number} plus r"] = (
        change(f"proof.signals.{number}", lambda text: str(int(text) + SCALAR_ORDER)),
        {check, "proof", "anchor"},
    )


# --- anchor ------------------------------------------------------------------------------------


def raw(change_bytes: Callable[[bytes], bytes]) -> Lie:
    """The raw transaction altered, with its own hash beside it."""
    return lambda f: f.place(change_bytes(bytes.fromhex(f.bundle["anchor"]["raw_transaction"])))


ANCHOR: Lies = {
    "another hash": (change("anchor.tx_hash", flipped), {"anchor"}),
    "the transaction of another statement": (
        put("anchor", dict(examples.bundle("bundle_next_day")["anchor"])),
        {"anchor"},
    ),
    "sent to another contract": (lambda f: f.transact(to=OTHER_ADDRESS), {"anchor"}),
    "a contract creation": (lambda f: f.transact(to=""), {"anchor"}),
    "on another chain": (lambda f: f.transact(chainId=1), {"anchor"}),
    "sent by a stranger": (lambda f: f.transact(by="deployer-evm"), {"anchor"}),
    "with value": (lambda f: f.transact(value=1), {"anchor"}),
    "another call": (lambda f: f.transact(data=b"\x00" * 4 + f.calldata()[4:]), {"anchor"}),
    "a longer call": (lambda f: f.transact(data=f.calldata() + bytes(32)), {"anchor"}),
    "a legacy transaction for any chain": (lambda f: f.transact(type_=0, chainId=None), {"anchor"}),
    "cut off": (raw(lambda data: data[:-1]), {"anchor"}),
    "followed by a byte": (raw(lambda data: data + b"\x00"), {"anchor"}),
    "a signature altered": (raw(lambda data: data[:-1] + bytes([data[-1] ^ 1])), {"anchor"}),
    "nothing but its type": (raw(lambda data: b"\x02"), {"anchor"}),
    "left out": (put("anchor", None), {"anchor"}),
}

LIES: Lies = {
    f"{group}: {name}": case
    for group, cases in {
        "context": CONTEXT,
        "proof": PROOF,
        "anchor": ANCHOR,
    }.items()
    for name, case in cases.items()
}

ONLY = {
    "proof: re-randomised": {"anchor"},
    "proof: a development key called sound": {"pin: circuit"},
    "proof: a key of the issuer's own": {"pin: circuit"},
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_in_its_check(name: str) -> None:
    lie, named = LIES[name]
    forged = examples.forger()
    lie(forged)
    require_caught(forged, named)


@pytest.mark.parametrize("name", ONLY)
def test_nothing_but_one_check_stands_against_these(name: str) -> None:
    forged = examples.forger()
    LIES[name][0](forged)
    assert examples.failed(examples.verified(forged)) == ONLY[name]


@pytest.mark.parametrize(("count", "what"), [(5, "missing"), (7, "added")])
def test_a_signal_too_few_or_too_many_is_no_bundle(count: int, what: str) -> None:
    forged = examples.forger()
    forged.proof["signals"] = [*forged.proof["signals"], "0"][:count]
    with pytest.raises(DocumentInvalid, match=r"proof\.signals: must have 6 to 6 entries"):
        examples.verified(forged)


def test_a_rerandomised_proof_does_not_serve_another_period() -> None:
    """A proof can be made into another proof of the same signals; their ctx still names one period."""
    first, forged = examples.bundle()["proof"], examples.forger("bundle_next_day")
    forged.proof["proof"] = rerandomise(bytes.fromhex(first["proof"]), 11).hex()
    forged.proof["signals"] = list(first["signals"])
    forged.transact()
    found = examples.failed(examples.verified(forged))
    assert "context" in found
    assert "proof" not in found


def test_a_rerandomised_proof_that_a_party_recorded_is_as_good() -> None:
    """Proof bytes are malleable and identify nothing: this is the same statement, recorded with other bytes."""
    forged = examples.forger()
    forged.proof["proof"] = rerandomise(bytes.fromhex(forged.proof["proof"]), 13).hex()
    assert not examples.failed(examples.verified(forged.transact()))
