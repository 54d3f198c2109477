"""Verification keys: the exact shape, and keys under which anyone could forge."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.bn254 import g2_generator
from ledger.attest.crypto.verification_key import MAX_JSON_BYTES, load_verification_key, parse_verification_key
from ledger.domain.attested import BASE_ORDER
from ledger.errors import VerificationKeyInvalid
from tests.circuits.curve_tricks import point_outside_the_subgroup

VECTOR = json.loads((Path(__file__).resolve().parents[2] / "vectors" / "groth16.json").read_text())
Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(VECTOR["verification_key"])
    change(document)
    return document


def refusal(document: object) -> str:
    with pytest.raises(VerificationKeyInvalid) as caught:
        parse_verification_key(document)
    return str(caught.value.data["reason"])


def g2_document(point: tuple[tuple[int, int], tuple[int, int]]) -> list[list[str]]:
    return [[str(c) for c in point[0]], [str(c) for c in point[1]], ["1", "0"]]


def negative(document: list[list[str]]) -> list[list[str]]:
    return [document[0], [str(BASE_ORDER - int(c)) for c in document[1]], document[2]]


def test_a_key_survives_its_document() -> None:
    key = load_verification_key(json.dumps(VECTOR["verification_key"]))
    assert key.document() == VECTOR["verification_key"]
    assert parse_verification_key(key.document()) == key


def test_canonical_bytes_are_prefix_count_and_coordinates() -> None:
    key = parse_verification_key(VECTOR["verification_key"])
    data = key.canonical_bytes()
    assert data[:16] == b"sla-ledger/vk/v1"
    assert data[16:20] == bytes([0, 0, 0, 6])
    assert len(data) == 20 + 32 * (2 + 3 * 4 + 7 * 2)
    assert int.from_bytes(data[20 + 64 : 20 + 96], "big") == int(VECTOR["verification_key"]["vk_beta_2"][0][1])


FORGEABLE: dict[str, tuple[str, Change]] = {
    "delta_is_gamma": ("delta_equals_gamma", lambda d: d.update(vk_delta_2=d["vk_gamma_2"])),
    "delta_is_minus_gamma": ("delta_equals_gamma", lambda d: d.update(vk_delta_2=negative(d["vk_gamma_2"]))),
    "delta_is_g2": ("delta_is_generator", lambda d: d.update(vk_delta_2=g2_document(g2_generator()))),
    "delta_is_minus_g2": (
        "delta_is_generator",
        lambda d: d.update(vk_delta_2=negative(g2_document(g2_generator()))),
    ),
}


@pytest.mark.parametrize("name", FORGEABLE)
def test_a_key_under_which_anyone_forges_is_refused(name: str) -> None:
    reason, change = FORGEABLE[name]
    assert refusal(changed(change)) == reason


MALFORMED: dict[str, tuple[str, Change]] = {
    "member_missing": ("members", lambda d: d.pop("IC")),
    "member_more": ("members", lambda d: d.update(vk_alphabeta_12=[])),
    "plonk": ("protocol", lambda d: d.update(protocol="plonk")),
    "other_curve": ("protocol", lambda d: d.update(curve="bls12381")),
    "count_as_text": ("nPublic", lambda d: d.update(nPublic="6")),
    "count_as_bool": ("nPublic", lambda d: d.update(nPublic=True, IC=d["IC"][:2])),
    "count_zero": ("nPublic", lambda d: d.update(nPublic=0, IC=d["IC"][:1])),
    "count_beyond_bound": ("nPublic", lambda d: d.update(nPublic=65, IC=d["IC"][:1] * 66)),
    "ic_missing_one": ("IC", lambda d: d["IC"].pop()),
    "ic_one_more": ("IC", lambda d: d["IC"].append(d["IC"][0])),
    "ic_no_list": ("IC", lambda d: d.update(IC="123456a")),
    "coordinate_plus_q": (
        "coordinate",
        lambda d: d["vk_alpha_1"].__setitem__(0, str(int(d["vk_alpha_1"][0]) + BASE_ORDER)),
    ),
    "coordinate_with_zero": ("coordinate", lambda d: d["IC"][2].__setitem__(0, "0" + d["IC"][2][0])),
    "coordinate_signed": ("coordinate", lambda d: d["IC"][2].__setitem__(0, "+" + d["IC"][2][0])),
    "coordinate_other_digits": ("coordinate", lambda d: d["IC"][2].__setitem__(0, "١٢")),
    "coordinate_number": ("coordinate", lambda d: d["IC"][2].__setitem__(0, int(d["IC"][2][0]))),
    "g1_off_curve": ("off_curve", lambda d: d["vk_alpha_1"].__setitem__(0, "1")),
    "g1_infinity": ("point_shape", lambda d: d["IC"].__setitem__(1, ["0", "1", "0"])),
    "g1_not_affine": ("point_shape", lambda d: d["IC"][1].__setitem__(2, "2")),
    "g2_off_curve": ("off_curve", lambda d: d["vk_beta_2"][0].__setitem__(0, "1")),
    "g2_off_subgroup": ("off_curve", lambda d: d.update(vk_beta_2=g2_document(point_outside_the_subgroup()))),
    "g2_shape": ("point_shape", lambda d: d["vk_beta_2"][0].append("1")),
    "g2_not_affine": ("point_shape", lambda d: d["vk_beta_2"].__setitem__(2, ["0", "0"])),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_another_shape_is_refused(name: str) -> None:
    reason, change = MALFORMED[name]
    assert refusal(changed(change)) == reason


@pytest.mark.parametrize("document", [None, [], "key", 5], ids=repr)
def test_only_an_object_is_a_key(document: object) -> None:
    assert refusal(document) == "members"


@pytest.mark.parametrize("text", [b"{", b"", b"[" * 60_000, b"\xff"], ids=["open", "empty", "deep", "not_utf8"])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(VerificationKeyInvalid) as caught:
        load_verification_key(text)
    assert caught.value.data["reason"] in {"json", "members"}


def test_a_long_text_is_refused_unread() -> None:
    with pytest.raises(VerificationKeyInvalid) as caught:
        load_verification_key(b" " * (MAX_JSON_BYTES + 1))
    assert caught.value.data["reason"] == "size"
