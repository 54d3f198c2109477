"""Many proofs at once: as many hold as hold one by one, and errors that cancel do not pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from py_ecc.optimized_bn128 import FQ, G1, add, multiply, neg, normalize

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit
from ledger.attest.crypto.groth16 import check_proof, check_proofs
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import ProofInvalid
from tests.conformance.samples import SeededRandomness
from tests.contracts.trapdoor import Trapdoor
from tests.support import examples

pytestmark = pytest.mark.slow

TRAPDOOR = Trapdoor("batch")
KEY = parse_verification_key(TRAPDOOR.verification_key)
SIGNALS = [tuple(range(n, n + 6)) for n in (1, 10, 100)]
PROOFS = [TRAPDOOR.forge(signals, randomness=str(n)) for n, signals in enumerate(SIGNALS)]
CLAIMS = list(zip(SIGNALS, PROOFS, strict=True))


@dataclass
class Powers:
    """Coefficients that were foreseen."""

    values: list[int]
    drawn: list[int] = field(default_factory=list)

    def bytes(self, count: int) -> bytes:
        self.drawn.append(count)
        return self.values[len(self.drawn) - 1].to_bytes(count, "big")


def shifted(proof: bytes, error: Any) -> bytes:
    """The proof with ``error`` added to its C, and so with that error, paired with delta, in its equation."""
    x, y = (int.from_bytes(proof[at : at + 32], "big") for at in (192, 224))
    x, y = map(int, normalize(add((FQ(x), FQ(y), FQ(1)), error)))
    return proof[:192] + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def refusal(claims: Any, randomness: Any) -> str:
    with pytest.raises(ProofInvalid) as caught:
        check_proofs(KEY, claims, randomness)
    return str(caught.value.data["reason"])


def test_true_proofs_hold_together() -> None:
    check_proofs(KEY, CLAIMS, SeededRandomness(1))


def test_of_none_nothing_is_false() -> None:
    check_proofs(KEY, [], SeededRandomness(1))


def test_one_false_proof_among_true_ones() -> None:
    wrong = [*CLAIMS[:2], (SIGNALS[2], PROOFS[0])]
    assert refusal(wrong, SeededRandomness(2)) == "pairing"


ERROR = multiply(G1, 7)
CANCELLING = [(SIGNALS[0], shifted(PROOFS[0], ERROR)), (SIGNALS[1], shifted(PROOFS[1], neg(ERROR)))]


def test_errors_that_cancel_pass_only_under_powers_that_were_foreseen() -> None:
    """Both are false. Multiplied as they are, they cancel; so it is the powers that find them out."""
    for signals, proof in CANCELLING:
        with pytest.raises(ProofInvalid):
            check_proof(KEY, signals, proof)
    foreseen = Powers([1, 1])
    check_proofs(KEY, CANCELLING, foreseen)
    assert foreseen.drawn == [16, 16], "each power has 128 bits"
    for seed in range(3):
        assert refusal(CANCELLING, SeededRandomness(seed)) == "pairing"


def test_errors_made_for_other_powers_do_not_cancel() -> None:
    other = shifted(PROOFS[1], neg(multiply(ERROR, pow(2, -1, SCALAR_ORDER))))
    made_for = [CANCELLING[0], (SIGNALS[1], other)]
    check_proofs(KEY, made_for, Powers([1, 2]))
    assert refusal(made_for, Powers([1, 3])) == "pairing"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ((SIGNALS[0][:5], PROOFS[0]), "signal_count"),
        (((SIGNALS[0][0] + SCALAR_ORDER, *SIGNALS[0][1:]), PROOFS[0]), "signal_range"),
        ((SIGNALS[0], PROOFS[0] + b"\0"), "proof_length"),
        ((SIGNALS[0], bytes(256)), "off_curve"),
    ],
)
def test_what_is_no_proof_is_none_among_others(claim: Any, reason: str) -> None:
    assert refusal([CLAIMS[1], claim], SeededRandomness(3)) == reason


def test_several_bundles_are_verified_together_and_the_false_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    good, next_day = examples.bundle(), examples.bundle("bundle_next_day")
    together = []
    real = verification.check_proofs

    def counted(key: Any, claims: Any, randomness: Any) -> None:
        together.append(len(claims))
        real(key, claims, randomness)

    monkeypatch.setattr(verification, "check_proofs", counted)
    withheld = examples.bundle("bundle_withheld")
    reports = verification.verify_bundles([good, next_day, withheld], examples.trust(), SeededRandomness(1))
    assert [report.exit_code(accept_dev=True) for report in reports] == [Exit.HOLDS] * 3
    forged = examples.forger("bundle_next_day")
    forged.proof["proof"] = good["proof"]["proof"]
    forged.transact().sign()
    reports = verification.verify_bundles([good, forged.bundle], examples.trust(), SeededRandomness(1))
    assert [examples.failed(report) for report in reports] == [set(), {"proof"}]
    assert together == [2, 2]
