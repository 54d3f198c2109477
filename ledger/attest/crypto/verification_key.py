"""Groth16 verification keys over BN254: strict parsing, refusals, canonical form, circuit id.

The JSON shape is snarkjs' (so that ``snarkjs groth16 verify`` reads the same document), held
strictly: exactly these members, affine points, canonical decimals. A key with delta = +-gamma, or
with delta = +- the G2 generator as unfinished ceremonies leave it, lets anyone forge proofs
and is refused here, which is where every verifier, export and deployment gets its key from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledger.attest.crypto.bn254 import G1Point, G2Point, g2_generator, in_g2, on_g1
from ledger.domain.attested import BASE_ORDER
from ledger.domain.terms.nesting import MAX_DEPTH, too_deep
from ledger.errors import VerificationKeyInvalid

MAX_PUBLIC_SIGNALS: Final = 64
MAX_JSON_BYTES: Final = 64 * 1024
_MEMBERS: Final = frozenset(
    {"protocol", "curve", "nPublic", "vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2", "IC"}
)
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,77}")
_ID_PREFIX: Final = b"sla-ledger/vk/v1"


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key that passed every check of :func:`parse_verification_key`; make it there only."""

    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta: G2Point
    ic: tuple[G1Point, ...]

    @property
    def public_signals(self) -> int:
        """How many public signals a proof under this key has."""
        return len(self.ic) - 1

    def canonical_bytes(self) -> bytes:
        """Prefix, uint32be nPublic, alpha, beta, gamma, delta, IC; 32-byte big-endian coordinates."""
        coordinates = [*self.alpha, *_evm_order(self.beta), *_evm_order(self.gamma), *_evm_order(self.delta)]
        for point in self.ic:
            coordinates += point
        body = b"".join(value.to_bytes(32, "big") for value in coordinates)
        return _ID_PREFIX + self.public_signals.to_bytes(4, "big") + body

    def circuit_id(self) -> bytes:
        """sha256 of the canonical bytes: what trust files, the registry and leaves name."""
        return hashlib.sha256(self.canonical_bytes()).digest()

    def document(self) -> dict[str, Any]:
        """The snarkjs JSON document of this key."""
        return {
            "protocol": "groth16",
            "curve": "bn128",
            "nPublic": self.public_signals,
            "vk_alpha_1": _g1_document(self.alpha),
            "vk_beta_2": _g2_document(self.beta),
            "vk_gamma_2": _g2_document(self.gamma),
            "vk_delta_2": _g2_document(self.delta),
            "IC": [_g1_document(point) for point in self.ic],
        }


def load_verification_key(text: bytes | str) -> VerificationKey:
    """The key in a JSON text of at most 64 KiB. Raises VerificationKeyInvalid."""
    if len(text) > MAX_JSON_BYTES:
        raise _refusal("size", f"is longer than {MAX_JSON_BYTES} bytes")
    if too_deep(text if isinstance(text, bytes) else text.encode()):
        raise _refusal("json", f"nests deeper than {MAX_DEPTH} levels")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _refusal("json", f"is not JSON ({error})") from error
    return parse_verification_key(document)


def parse_verification_key(document: object) -> VerificationKey:
    """The key in a parsed snarkjs document.

    Raises VerificationKeyInvalid on any other shape, a coordinate not below q, a point off its curve
    or outside its group, a wrong number of IC points, or a forgeable delta; ``data["reason"]`` tells.
    """
    if not isinstance(document, Mapping) or set(document) != _MEMBERS:
        raise _refusal("members", f"must have exactly the members {', '.join(sorted(_MEMBERS))}")
    if document["protocol"] != "groth16" or document["curve"] != "bn128":
        raise _refusal("protocol", "must say protocol groth16 and curve bn128")
    count, ic = document["nPublic"], document["IC"]
    if type(count) is not int or not 1 <= count <= MAX_PUBLIC_SIGNALS:
        raise _refusal("nPublic", f"must have nPublic from 1 to {MAX_PUBLIC_SIGNALS}")
    if not isinstance(ic, list) or len(ic) != count + 1:
        raise _refusal("IC", "must have nPublic + 1 points in IC")
    key = VerificationKey(
        alpha=_read_g1(document["vk_alpha_1"], "vk_alpha_1"),
        beta=_read_g2(document["vk_beta_2"], "vk_beta_2"),
        gamma=_read_g2(document["vk_gamma_2"], "vk_gamma_2"),
        delta=_read_g2(document["vk_delta_2"], "vk_delta_2"),
        ic=tuple(_read_g1(point, f"IC[{i}]") for i, point in enumerate(ic)),
    )
    # Equal x means equal up to sign. Under either sign, and where delta is the generator whose
    # discrete logarithm everybody knows, C can be solved for and any statement "proved".
    if key.delta[0] == key.gamma[0]:
        raise _refusal("delta_equals_gamma", "has delta equal to gamma: anyone can forge proofs under it")
    if key.delta[0] == g2_generator()[0]:
        raise _refusal(
            "delta_is_generator",
            "has the G2 generator as delta: its ceremony was never finished, anyone can forge",
        )
    return key


def _refusal(reason: str, sentence: str) -> VerificationKeyInvalid:
    return VerificationKeyInvalid(f"the verification key {sentence}", reason=reason)


def _evm_order(point: G2Point) -> Iterator[int]:
    for c0, c1 in point:
        yield from (c1, c0)


def _read_coordinate(value: Any, where: str) -> int:
    if type(value) is not str or not _DECIMAL.fullmatch(value) or int(value) >= BASE_ORDER:
        raise _refusal("coordinate", f"has a coordinate in {where} that is not a canonical decimal below q")
    return int(value)


def _read_g1(value: Any, where: str) -> G1Point:
    if not isinstance(value, list) or len(value) != 3 or value[2] != "1":
        raise _refusal("point_shape", f'must give {where} as [x, y, "1"]')
    point = _read_coordinate(value[0], where), _read_coordinate(value[1], where)
    if not on_g1(point):
        raise _refusal("off_curve", f"has {where} off the curve")
    return point


def _read_g2(value: Any, where: str) -> G2Point:
    pairs = value[:2] if isinstance(value, list) and len(value) == 3 and value[2] == ["1", "0"] else []
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise _refusal("point_shape", f'must give {where} as [[x0, x1], [y0, y1], ["1", "0"]]')
    x, y = ((_read_coordinate(pair[0], where), _read_coordinate(pair[1], where)) for pair in pairs)
    point = x, y
    if not in_g2(point):
        raise _refusal("off_curve", f"has {where} off the curve or outside the group")
    return point


def _g1_document(point: G1Point) -> list[str]:
    return [str(point[0]), str(point[1]), "1"]


def _g2_document(point: G2Point) -> list[list[str]]:
    return [[str(c) for c in point[0]], [str(c) for c in point[1]], ["1", "0"]]
