"""A verification key in the form that ``Groth16Verifier`` takes, and the guard of development keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from ledger.domain.attested import BASE_ORDER, SIGNAL_COUNT, TEST_CHAIN_IDS
from ledger.errors import DevKeyRefused, VerificationKeyInvalid

_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,77}")
_G2_GENERATOR_X: Final = (
    11559732032986387107991004021392285783925812861821192530917403151452391805634,
    10857046999023057135944570762232829481370756359578518086990519993285655852781,
)


def refuse_dev_key(chain_id: int, *, dev_unsafe: bool) -> None:
    """Raise DevKeyRefused for a locally made key off the test chains: its maker can forge proofs."""
    if dev_unsafe and chain_id not in TEST_CHAIN_IDS:
        raise DevKeyRefused(
            f"this key is marked dev-unsafe: whoever made it can forge proofs, so it is refused on chain "
            f"{chain_id}. Use a key from a ceremony (docs/ceremony.md)",
            chain_id=chain_id,
        )


def constructor_words(key: Mapping[str, Any]) -> tuple[int, ...]:
    """The 28 constructor words of a key in the snarkjs JSON shape.

    alpha(x, y), beta(x1, x0, y1, y0), gamma, delta, IC_0(x, y) .. IC_6; curve membership is left to the
    constructor. Raises VerificationKeyInvalid for another shape or number of signals, coordinates outside the
    base field, and keys under which anyone can forge (delta is plus or minus gamma or the G2 generator).
    """
    if key.get("protocol") != "groth16" or key.get("curve") != "bn128" or key.get("nPublic") != SIGNAL_COUNT:
        raise _invalid(f"must say protocol groth16, curve bn128, nPublic {SIGNAL_COUNT}")
    points = key.get("IC")
    if not isinstance(points, list) or len(points) != SIGNAL_COUNT + 1:
        raise _invalid(f"must have {SIGNAL_COUNT + 1} points in IC")
    gamma, delta = _g2(key, "vk_gamma_2"), _g2(key, "vk_delta_2")
    if delta[:2] in (gamma[:2], _G2_GENERATOR_X):
        raise _invalid("has a delta that is gamma or the generator, up to sign: anyone can forge proofs under it")
    words = [*_g1(key.get("vk_alpha_1"), "vk_alpha_1"), *_g2(key, "vk_beta_2"), *gamma, *delta]
    for i, point in enumerate(points):
        words += _g1(point, f"IC[{i}]")
    return tuple(words)


def circuit_id(words: tuple[int, ...]) -> bytes:
    """sha256("sla-ledger/vk/v1" || uint32be 6 || the 28 words), as ``Groth16Verifier.circuitId`` says it."""
    coordinates = b"".join(word.to_bytes(32, "big") for word in words)
    return hashlib.sha256(b"sla-ledger/vk/v1" + SIGNAL_COUNT.to_bytes(4, "big") + coordinates).digest()


def _g1(point: object, name: str) -> tuple[int, int]:
    if not isinstance(point, list) or len(point) != 3 or point[2] != "1":
        raise _invalid(f'must give {name} as [x, y, "1"]')
    return _coordinate(point[0], name), _coordinate(point[1], name)


def _g2(key: Mapping[str, Any], name: str) -> tuple[int, int, int, int]:
    point = key.get(name)
    if not isinstance(point, list) or len(point) != 3 or point[2] != ["1", "0"]:
        raise _invalid(f'must give {name} as [[x0, x1], [y0, y1], ["1", "0"]]')
    try:
        (x0, x1), (y0, y1) = point[0], point[1]
    except (TypeError, ValueError):
        raise _invalid(f"must give two coordinates for x and y of {name}") from None
    return _coordinate(x1, name), _coordinate(x0, name), _coordinate(y1, name), _coordinate(y0, name)


def _coordinate(text: object, name: str) -> int:
    if not isinstance(text, str) or _DECIMAL.fullmatch(text) is None:
        raise _invalid(f"must give the coordinates of {name} as decimal strings")
    if int(text) >= BASE_ORDER:
        raise _invalid(f"has a coordinate of {name} outside the base field")
    return int(text)


def _invalid(what: str) -> VerificationKeyInvalid:
    return VerificationKeyInvalid(f"the verification key {what}")
