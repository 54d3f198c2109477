"""Forged proofs: what whoever ran a key's setup can do.

A Groth16 setup draws alpha, beta, gamma, delta and the circuit's secret point. Who keeps them needs no
witness and no circuit: choose A = a G1 and B = b G2 freely and solve the pairing equation for C. The contract
tests use that to put any six signals before a verifier within milliseconds. It is also exactly why a
locally made key is marked dev-unsafe and refused on every chain but the test chains: its maker holds these
numbers, and every "proof" under it may be one of these.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from py_ecc.optimized_bn128 import G1, G2, curve_order, field_modulus, multiply, neg, normalize

SIGNALS = 6


def g1_words(point: Any) -> list[int]:
    x, y = normalize(point)
    return [int(x), int(y)]


def g2_words(point: Any) -> list[int]:
    """x1, x0, y1, y0: the order of the EVM."""
    (x0, x1), (y0, y1) = (coordinate.coeffs for coordinate in normalize(point))
    return [int(x1), int(x0), int(y1), int(y0)]


def _scalar(seed: str, name: str) -> int:
    return int.from_bytes(hashlib.sha512(f"{seed}/{name}".encode()).digest(), "big") % curve_order


@dataclass(frozen=True)
class Trapdoor:
    """A verification key together with the secrets behind it, all drawn from a seed."""

    seed: str = "trapdoor"
    delta_is_gamma: bool = False
    delta_is_generator: bool = False

    def secret(self, name: str) -> int:
        if name == "delta" and self.delta_is_gamma:
            return self.secret("gamma")
        if name == "delta" and self.delta_is_generator:
            return 1
        return _scalar(self.seed, name)

    @property
    def words(self) -> list[int]:
        """The constructor words of the verifier contract."""
        return list(_words(self))

    @property
    def verification_key(self) -> dict[str, Any]:
        """The key in the JSON shape of snarkjs."""
        w = [str(word) for word in self.words]

        def g1(i: int) -> list[str]:
            return [w[i], w[i + 1], "1"]

        def g2(i: int) -> list[list[str]]:
            return [[w[i + 1], w[i]], [w[i + 3], w[i + 2]], ["1", "0"]]

        return {
            "protocol": "groth16",
            "curve": "bn128",
            "nPublic": SIGNALS,
            "vk_alpha_1": g1(0),
            "vk_beta_2": g2(2),
            "vk_gamma_2": g2(6),
            "vk_delta_2": g2(10),
            "IC": [g1(14 + 2 * i) for i in range(SIGNALS + 1)],
        }

    def forge(self, signals: tuple[int, ...], *, randomness: str = "0") -> bytes:
        """A proof of 256 bytes that verifies for any signals; another ``randomness`` gives other bytes."""
        a, b = (_scalar(self.seed, f"{name}/{randomness}") for name in "ab")
        public = self.secret("ic0") + sum(s * self.secret(f"ic{i + 1}") for i, s in enumerate(signals))
        rest = a * b - self.secret("alpha") * self.secret("beta") - public * self.secret("gamma")
        c = rest * pow(self.secret("delta"), -1, curve_order) % curve_order
        words = [*_free_points(a, b), *g1_words(multiply(G1, c))]
        return b"".join(word.to_bytes(32, "big") for word in words)

    def forge_without_secrets(self, signals: tuple[int, ...]) -> bytes:
        """What anyone can do where delta is gamma: A = alpha, B = beta, C = -vk_x. Uses the public key only."""
        from py_ecc.optimized_bn128 import FQ, add

        def ic(i: int) -> Any:
            return (FQ(self.words[14 + 2 * i]), FQ(self.words[15 + 2 * i]), FQ(1))

        public = ic(0)
        for i, signal in enumerate(signals):
            public = add(public, multiply(ic(i + 1), signal))
        words = self.words[0:2] + self.words[2:6] + g1_words(neg(public))
        return b"".join(word.to_bytes(32, "big") for word in words)


@cache
def _free_points(a: int, b: int) -> tuple[int, ...]:
    """A and B, which are the same in all proofs of a key and a randomness: four fifths of the work."""
    return (*g1_words(multiply(G1, a)), *g2_words(multiply(G2, b)))


@cache
def _words(key: Trapdoor) -> tuple[int, ...]:
    """Made once for each key: a quarter of a second."""
    words = g1_words(multiply(G1, key.secret("alpha")))
    for name in ("beta", "gamma", "delta"):
        words += g2_words(multiply(G2, key.secret(name)))
    for i in range(SIGNALS + 1):
        words += g1_words(multiply(G1, key.secret(f"ic{i}")))
    return tuple(words)


def rerandomise(proof: bytes, factor: int) -> bytes:
    """Another proof of the same statement, made by anyone from the proof alone: (A / k, k B, C)."""
    from py_ecc.optimized_bn128 import FQ, FQ2

    w = [int.from_bytes(proof[i : i + 32], "big") for i in range(0, 256, 32)]
    a = (FQ(w[0]), FQ(w[1]), FQ(1))
    b = (FQ2((w[3], w[2])), FQ2((w[5], w[4])), FQ2.one())
    words = g1_words(multiply(a, pow(factor, -1, curve_order))) + g2_words(multiply(b, factor)) + w[6:8]
    return b"".join(word.to_bytes(32, "big") for word in words)


__all__ = ["SIGNALS", "Trapdoor", "curve_order", "field_modulus", "g1_words", "g2_words", "rerandomise"]
