"""EdDSA with Poseidon over Baby Jubjub: the collector's signature under a telemetry root.

Source: EIP-2494 for the curve; the equation is circomlib's EdDSAPoseidonVerifier. Verification is
stricter than circomlibjs: both points must lie in the prime-order subgroup and the key must not be
the identity. Signing is not constant-time; a collector signs on its own machine, not for strangers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ledger.attest.crypto.field import require_bytes, require_element
from ledger.attest.crypto.poseidon import poseidon
from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid

Point = tuple[int, int]

_A: Final = 168700
_D: Final = 168696
SUBGROUP_ORDER: Final = 2736030358979909402780800718157159386076813972158567259200215660948447373041
BASE: Final[Point] = (
    5299619240641551281634865583518297030282874472190772894086521144482721001553,
    16950150798460657717958625567821834550301663161624707787222815936182638968203,
)
"""B8, the generator of the prime-order subgroup."""
IDENTITY: Final[Point] = (0, 1)

Digest = Callable[[bytes], bytes]


def sha512(data: bytes) -> bytes:
    """The digest of sla-ledger's own keys. circomlibjs uses BLAKE-512; only key and nonce derivation
    differ, and a verifier sees neither."""
    return hashlib.sha512(data).digest()


@dataclass(frozen=True, slots=True)
class Signature:
    """R8 and S of an EdDSA-Poseidon signature."""

    r8: Point
    s: int


def public_key(seed: bytes, digest: Digest = sha512) -> Point:
    """The public key of a 32-byte secret seed. Raises AttestationValueInvalid on another length."""
    return _multiply(_expand(seed, digest)[0] >> 3, BASE)


def sign(seed: bytes, message: int, digest: Digest = sha512) -> Signature:
    """Sign one field element, deterministically.

    Raises AttestationValueInvalid if the seed is not 32 bytes or the message is not in [0, r).
    """
    require_element(message, "message")
    secret, prefix = _expand(seed, digest)
    key = _multiply(secret >> 3, BASE)
    nonce = int.from_bytes(digest(prefix + message.to_bytes(32, "little")), "little") % SUBGROUP_ORDER
    r8 = _multiply(nonce, BASE)
    challenge = poseidon([*r8, *key, message])
    return Signature(r8, (nonce + challenge * secret) % SUBGROUP_ORDER)


def verify(key: Point, message: int, signature: Signature) -> bool:
    """Whether ``signature`` is valid: S * B8 == R8 + 8 * h * key, with h = Poseidon(R8, key, message).

    False, never an exception, for anything malformed: coordinates outside the field, points off the
    curve or outside the subgroup, an identity key, S not below the subgroup order.
    """
    r8, s = signature.r8, signature.s
    if not (is_public_key(key) and _in_subgroup(r8)):
        return False
    if type(message) is not int or not 0 <= message < SCALAR_ORDER:
        return False
    if type(s) is not int or not 0 <= s < SUBGROUP_ORDER:
        return False
    challenge = poseidon([*r8, *key, message])
    right = _add((*r8, 1), (*_multiply(8 * challenge % SUBGROUP_ORDER, key), 1))
    return _multiply(s, BASE) == _affine(right)


def is_public_key(point: Point) -> bool:
    """Whether ``point`` may be a public key: canonical, on the curve, in the subgroup, not the identity."""
    return _in_subgroup(point) and point != IDENTITY


def require_public_key(point: Point, name: str) -> Point:
    """``point`` if it may be a public key. Raises AttestationValueInvalid naming ``name``."""
    if not is_public_key(point):
        raise AttestationValueInvalid(
            f"{name} is not a Baby Jubjub public key: it must be two coordinates below r, on the curve, "
            "in the prime-order subgroup and not the identity",
            field=name,
        )
    return point


def _expand(seed: bytes, digest: Digest) -> tuple[int, bytes]:
    """Secret scalar and nonce prefix (RFC 8032, 5.1.5, with ``digest``)."""
    expanded = bytearray(digest(require_bytes(seed, 32, "seed")))
    expanded[0] &= 0xF8
    expanded[31] = expanded[31] & 0x7F | 0x40
    return int.from_bytes(expanded[:32], "little"), bytes(expanded[32:])


def _in_subgroup(point: Point) -> bool:
    if type(point) is not tuple or len(point) != 2:
        return False
    x, y = point
    if any(type(c) is not int or not 0 <= c < SCALAR_ORDER for c in point):
        return False
    xx, yy = x * x, y * y
    if (_A * xx + yy - 1 - _D * xx * yy) % SCALAR_ORDER:
        return False
    return _of_subgroup_order(point)


@lru_cache(maxsize=64)
def _of_subgroup_order(point: Point) -> bool:
    """The last answers are kept: a collector's key is asked for again with each of its signatures."""
    return _multiply(SUBGROUP_ORDER, point) == IDENTITY


def _add(p: tuple[int, int, int], q: tuple[int, int, int]) -> tuple[int, int, int]:
    """Complete projective addition on a twisted Edwards curve (add-2008-bbjlp)."""
    x1, y1, z1 = p
    x2, y2, z2 = q
    a = z1 * z2 % SCALAR_ORDER
    b = a * a % SCALAR_ORDER
    c = x1 * x2 % SCALAR_ORDER
    d = y1 * y2 % SCALAR_ORDER
    e = _D * c * d % SCALAR_ORDER
    f, g = b - e, b + e
    cross = (x1 + y1) * (x2 + y2) - c - d
    return a * f * cross % SCALAR_ORDER, a * g * (d - _A * c) % SCALAR_ORDER, f * g % SCALAR_ORDER


def _multiply(scalar: int, point: Point) -> Point:
    result, power = (0, 1, 1), (*point, 1)
    while scalar:
        if scalar & 1:
            result = _add(result, power)
        power = _add(power, power)
        scalar >>= 1
    return _affine(result)


def _affine(p: tuple[int, int, int]) -> Point:
    inverse = pow(p[2], -1, SCALAR_ORDER)
    return p[0] * inverse % SCALAR_ORDER, p[1] * inverse % SCALAR_ORDER
