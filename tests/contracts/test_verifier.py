"""The Groth16 verifier: true for proofs that hold, false for those that do not, and no third meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.optimized_bn128 import FQ12, G1, G2, add, b2, curve_order, is_on_curve, multiply, neg, pairing

from ledger.errors import AnchorRefused
from tests.contracts.conftest import Refuses
from tests.contracts.ground import Ground
from tests.contracts.trapdoor import Trapdoor, field_modulus, g1_words, g2_words

SIGNALS = (0x18AA, 5, 2**247, curve_order - 1, 7, 0)
ALPHA, BETA, GAMMA, DELTA = 0, 2, 6, 10
IC = range(14, 28, 2)


@pytest.fixture(scope="module")
def proof(ground: Ground) -> bytes:
    return ground.trapdoor.forge(SIGNALS)


def _with_word(proof: bytes, index: int, value: int) -> bytes:
    return proof[: 32 * index] + value.to_bytes(32, "big") + proof[32 * index + 32 :]


def _word(proof: bytes, index: int) -> int:
    return int.from_bytes(proof[32 * index : 32 * index + 32], "big")


def outside_the_subgroup() -> list[int]:
    """A point of the twist that is not in G2: almost every point is such, for the cofactor is huge."""
    for i in range(1, 100):
        x = FQ2((i, 1))
        y = _sqrt(x * x * x + b2)
        if y is not None:
            point = (x, y, FQ2.one())
            assert is_on_curve(point, b2)
            assert multiply(point, curve_order)[2] != FQ2.zero()
            return g2_words(point)
    raise AssertionError("no x below 100 is on the twist")


def _sqrt(a: FQ2) -> FQ2 | None:
    """A square root in Fq[i]/(i^2 + 1) through the norm; q = 3 mod 4."""
    q, (a0, a1) = field_modulus, (int(c) for c in a.coeffs)

    def root(n: int) -> int:
        return pow(n, (q + 1) // 4, q)

    norm = root((a0 * a0 + a1 * a1) % q)
    for sign in (1, -1):
        half = (a0 + sign * norm) * pow(2, -1, q) % q
        real = root(half)
        if real and real * real % q == half:
            candidate = FQ2((real, a1 * pow(2 * real, -1, q) % q))
            if candidate * candidate == a:
                return candidate
    return None


# --- proofs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_proof_that_holds(ground: Ground, proof: bytes) -> None:
    assert ground.verifies(proof, SIGNALS) is True


@pytest.mark.slow
@pytest.mark.parametrize("index", range(6))
def test_every_signal_is_bound(ground: Ground, proof: bytes, index: int) -> None:
    other = tuple((s + 1) % curve_order if i == index else s for i, s in enumerate(SIGNALS))
    assert ground.verifies(proof, other) is False


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_signal_outside_the_field_reverts(
    ground: Ground, proof: bytes, refuses: Refuses, index: int, beyond: int
) -> None:
    signals = tuple(curve_order + beyond if i == index else s for i, s in enumerate(SIGNALS))
    with refuses("SignalOutOfField"):
        ground.verifies(proof, signals)


@pytest.mark.parametrize("index", range(8))
def test_another_spelling_of_a_coordinate_is_no_proof(ground: Ground, proof: bytes, index: int) -> None:
    assert ground.verifies(_with_word(proof, index, _word(proof, index) + field_modulus), SIGNALS) is False


@pytest.mark.parametrize("index", range(8))
def test_a_point_off_its_curve_is_no_proof(ground: Ground, proof: bytes, index: int) -> None:
    assert ground.verifies(_with_word(proof, index, _word(proof, index) ^ 2), SIGNALS) is False


def test_b_outside_the_subgroup_is_no_proof(ground: Ground, proof: bytes) -> None:
    b = b"".join(word.to_bytes(32, "big") for word in outside_the_subgroup())
    assert ground.verifies(proof[:64] + b + proof[192:], SIGNALS) is False


@pytest.mark.slow
@pytest.mark.parametrize("zero", [range(8), range(2), range(2, 6), range(6, 8)], ids=["all", "A", "B", "C"])
def test_points_at_infinity_are_no_proof(ground: Ground, proof: bytes, zero: range) -> None:
    for index in zero:
        proof = _with_word(proof, index, 0)
    assert ground.verifies(proof, SIGNALS) is False


@pytest.mark.slow
@pytest.mark.parametrize("gas", [40_000, 70_000, 100_000, 180_000, 230_000, 240_000, 245_000, 250_000])
def test_too_little_gas_never_looks_like_a_wrong_proof(ground: Ground, proof: bytes, gas: int) -> None:
    answer: object
    try:
        answer = ground.verifies(proof, SIGNALS, gas=gas)
    except AnchorRefused as refused:
        answer = refused.data["error"]
    assert answer in (True, None, "NotEnoughGas")


# --- keys --------------------------------------------------------------------------------------


def test_the_contract_names_its_key(ground: Ground) -> None:
    preimage = b"sla-ledger/vk/v1" + (6).to_bytes(4, "big")
    preimage += b"".join(word.to_bytes(32, "big") for word in ground.trapdoor.words)
    expected = hashlib.sha256(preimage).digest()
    assert ground.verifier.circuit_id == expected
    assert ground.anchor.verifier_of(expected).address == ground.verifier.address


def _replace(words: list[int], at: int, new: list[int]) -> list[int]:
    return words[:at] + new + words[at + len(new) :]


def _negated(words: list[int], at: int) -> list[int]:
    return [*words[at : at + 2], *(field_modulus - y for y in words[at + 2 : at + 4])]


FORGEABLE: dict[str, Callable[[list[int]], list[int]]] = {
    "delta is gamma": lambda w: _replace(w, DELTA, w[GAMMA : GAMMA + 4]),
    "delta is minus gamma": lambda w: _replace(w, DELTA, _negated(w, GAMMA)),
    "delta is the generator": lambda w: _replace(w, DELTA, g2_words(G2)),
    "delta is minus the generator": lambda w: _replace(w, DELTA, g2_words(neg(G2))),
    "both are the generator": lambda w: _replace(_replace(w, DELTA, g2_words(G2)), GAMMA, g2_words(G2)),
}


@pytest.mark.parametrize("spoil", FORGEABLE.values(), ids=FORGEABLE.keys())
def test_a_key_under_which_anyone_forges_is_refused(
    ground: Ground, refuses: Refuses, spoil: Callable[[list[int]], list[int]]
) -> None:
    with refuses("ForgeableKey"):
        ground.deploy_words(spoil(ground.trapdoor.words))


@pytest.mark.slow
def test_why_delta_must_not_be_gamma() -> None:
    """With the public key alone, a proof of any six signals satisfies the pairing equation."""
    key = Trapdoor("unlucky", delta_is_gamma=True)
    secret = key.secret
    alpha, beta, gamma = (
        multiply(G1, secret("alpha")),
        multiply(G2, secret("beta")),
        multiply(G2, secret("gamma")),
    )
    public = multiply(G1, secret("ic0"))
    for i, signal in enumerate(SIGNALS):
        public = add(public, multiply(multiply(G1, secret(f"ic{i + 1}")), signal))
    a, b, c = alpha, beta, neg(public)
    assert key.forge_without_secrets(SIGNALS) == b"".join(
        word.to_bytes(32, "big") for word in g1_words(a) + g2_words(b) + g1_words(c)
    )
    product = pairing(b, neg(a)) * pairing(beta, alpha) * pairing(gamma, public) * pairing(gamma, c)
    assert product == FQ12.one()


@pytest.mark.parametrize("index", range(28))
def test_coordinates_outside_the_field_are_refused(ground: Ground, refuses: Refuses, index: int) -> None:
    words = list(ground.trapdoor.words)
    words[index] += field_modulus
    with refuses("CoordinateOutOfField"):
        ground.deploy_words(words)


@pytest.mark.parametrize("at", [ALPHA, *IC])
@pytest.mark.parametrize("point", [[0, 0], [1, 3]], ids=["infinity", "off the curve"])
def test_points_that_are_not_in_g1_are_refused(ground: Ground, refuses: Refuses, at: int, point: list[int]) -> None:
    with refuses("PointNotOnG1"):
        ground.deploy_words(_replace(ground.trapdoor.words, at, point))


@pytest.mark.parametrize("at", [BETA, GAMMA, DELTA])
@pytest.mark.parametrize(
    "point", [[0, 0, 0, 0], [1, 2, 3, 4], outside_the_subgroup()], ids=["infinity", "off", "subgroup"]
)
def test_points_that_are_not_in_g2_are_refused(ground: Ground, refuses: Refuses, at: int, point: list[int]) -> None:
    with refuses("PointNotOnG2"):
        ground.deploy_words(_replace(ground.trapdoor.words, at, point))


def test_gamma_may_be_the_generator(ground: Ground) -> None:
    """Ceremonies leave gamma there; only delta must have moved."""
    ground.deploy_words(_replace(ground.trapdoor.words, GAMMA, g2_words(G2)))
