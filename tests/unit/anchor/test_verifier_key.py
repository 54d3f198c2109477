"""Keys on their way into a verifier contract, and where forgeable ones may go."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from py_ecc.optimized_bn128 import G2, field_modulus

from ledger.anchor.verifier_key import circuit_id, constructor_words, refuse_dev_key
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.errors import DevKeyRefused, VerificationKeyInvalid
from tests.contracts.trapdoor import Trapdoor, g2_words


@pytest.fixture(scope="module")
def trapdoor() -> Trapdoor:
    return Trapdoor("verifier key")


def test_a_key_becomes_its_words_in_evm_order(trapdoor: Trapdoor) -> None:
    assert list(constructor_words(trapdoor.verification_key)) == trapdoor.words


def test_other_keys_have_other_ids(trapdoor: Trapdoor) -> None:
    other = Trapdoor("another")
    assert circuit_id(tuple(trapdoor.words)) != circuit_id(tuple(other.words))


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    *way, last, value = path

    def change(key: dict[str, Any]) -> None:
        target: Any = key
        for step in way:
            target = target[step]
        target[last] = value

    return change


def _delta_is(words: list[int]) -> Callable[[dict[str, Any]], None]:
    x1, x0, y1, y0 = (str(word) for word in words)
    return _set("vk_delta_2", [[x0, x1], [y0, y1], ["1", "0"]])


LIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "another protocol": _set("protocol", "plonk"),
    "another curve": _set("curve", "bls12381"),
    "five signals": _set("nPublic", 5),
    "six signals as text": _set("nPublic", "6"),
    "a missing point": lambda key: key["IC"].pop(),
    "an extra point": lambda key: key["IC"].append(key["IC"][0]),
    "no points": _set("IC", None),
    "no delta": lambda key: key.pop("vk_delta_2"),
    "projective": _set("vk_alpha_1", 2, "2"),
    "projective in G2": _set("vk_beta_2", 2, ["1", "1"]),
    "one coordinate in G2": _set("vk_beta_2", 0, ["1"]),
    "a number in G2": _set("vk_beta_2", 0, 5),
    "an int": _set("IC", 0, 0, 5),
    "a sign": _set("IC", 0, 0, "-1"),
    "leading zero": _set("IC", 0, 0, "01"),
    "hexadecimal": _set("IC", 0, 0, "0x1"),
    "digits of another script": _set("IC", 0, 0, "\u0661"),
    "endless digits": _set("IC", 0, 0, "9" * 10_000),
    "beyond the field": _set("vk_gamma_2", 1, 1, str(field_modulus)),
    "delta is the generator": _delta_is(g2_words(G2)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_key_of_another_shape_is_refused(trapdoor: Trapdoor, lie: Callable[[dict[str, Any]], None]) -> None:
    key = copy.deepcopy(trapdoor.verification_key)
    lie(key)
    with pytest.raises(VerificationKeyInvalid):
        constructor_words(key)


def test_delta_equal_to_gamma_is_refused_with_either_sign(trapdoor: Trapdoor) -> None:
    with pytest.raises(VerificationKeyInvalid, match="anyone can forge"):
        constructor_words(Trapdoor("unlucky", delta_is_gamma=True).verification_key)
    x1, x0, y1, y0 = trapdoor.words[6:10]
    key = copy.deepcopy(trapdoor.verification_key)
    _delta_is([x1, x0, field_modulus - y1, field_modulus - y0])(key)
    with pytest.raises(VerificationKeyInvalid, match="anyone can forge"):
        constructor_words(key)


@pytest.mark.parametrize("chain_id", [EMBEDDED_CHAIN_ID, 31337])
def test_dev_keys_stand_on_test_chains(chain_id: int) -> None:
    refuse_dev_key(chain_id, dev_unsafe=True)


@pytest.mark.parametrize("chain_id", [1, 10, 1337, 11155111, 0, EMBEDDED_CHAIN_ID + 1])
def test_dev_keys_are_refused_everywhere_else(chain_id: int) -> None:
    with pytest.raises(DevKeyRefused) as caught:
        refuse_dev_key(chain_id, dev_unsafe=True)
    assert caught.value.data["chain_id"] == chain_id
    refuse_dev_key(chain_id, dev_unsafe=False)
