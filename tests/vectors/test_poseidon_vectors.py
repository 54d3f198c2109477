"""Poseidon and EdDSA-Poseidon against circomlibjs (fixtures/poseidon) and against vectors of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.babyjub import Point, Signature, public_key, sign, verify
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.domain.attested import SCALAR_ORDER
from tests.vectors.blake512 import blake512

OWN: dict[str, Any] = json.loads(Path(__file__).with_name("poseidon_own.json").read_text())


@pytest.fixture(scope="module")
def vectors(sla_fixtures: Path) -> dict[str, Any]:
    return json.loads((sla_fixtures / "poseidon" / "vectors.json").read_text())  # type: ignore[no-any-return]


def point(texts: list[str]) -> Point:
    x, y = texts
    return int(x), int(y)


@pytest.mark.parametrize("arity", range(1, 17))
def test_poseidon_is_circomlibs(vectors: dict[str, Any], arity: int) -> None:
    cases = vectors["pos"][str(arity)]
    assert cases
    for inputs, expected in cases:
        assert poseidon([int(value) for value in inputs]) == int(expected)


def test_signatures_of_circomlibjs_verify_and_nothing_near_them_does(vectors: dict[str, Any]) -> None:
    assert len(vectors["edd"]) == 5
    for case in vectors["edd"]:
        key, message = point(case["A"]), int(case["m"])
        signature = Signature(point(case["R8"]), int(case["S"]))
        assert verify(key, message, signature) is case["ok"] is True
        assert not verify(key, message ^ 1, signature)
        assert not verify(key, message, Signature(signature.r8, signature.s ^ 1))


def test_with_its_digest_we_sign_exactly_as_circomlibjs(vectors: dict[str, Any]) -> None:
    for case in vectors["edd"]:
        seed = bytes.fromhex(case["k"])
        assert public_key(seed, blake512) == point(case["A"])
        assert sign(seed, int(case["m"]), blake512) == Signature(point(case["R8"]), int(case["S"]))


@pytest.mark.parametrize("name", OWN["tags"])
def test_tags_do_not_change(name: str) -> None:
    assert tag(name) == int(OWN["tags"][name])


@pytest.mark.parametrize("case", OWN["sponge"], ids=lambda case: f"{case['count']}_values")
def test_sponge_does_not_change(case: dict[str, Any]) -> None:
    values = [(i * i * 7919 - 1) % SCALAR_ORDER for i in range(case["count"])]
    assert sponge(tag(case["tag"]), values) == int(case["hash"])


@pytest.mark.parametrize("case", OWN["signatures"], ids=lambda case: case["seed"][:8])
def test_our_own_signatures_do_not_change(case: dict[str, Any]) -> None:
    seed = bytes.fromhex(case["seed"])
    signature = Signature(point(case["r8"]), int(case["s"]))
    assert public_key(seed) == point(case["key"])
    assert sign(seed, int(case["message"])) == signature
    assert verify(point(case["key"]), int(case["message"]), signature)
