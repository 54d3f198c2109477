"""docs/attestation-format.md is enough to write a verifier: ``outsider`` accepts the example bundles and no lie."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from ledger.attest.poseidon import poseidon
from tests.support import examples
from tests.support.forging import Forger
from tests.support.lies import Lies, bumped, change, flipped, issued, logged, put
from tests.vectors import outsider, outsider_hashes

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def test_it_shares_nothing_with_this_package() -> None:
    text = "\n".join((HERE / f"{name}.py").read_text() for name in ("outsider_hashes", "outsider"))
    tree = ast.parse(text.replace("from __future__ import annotations", ""))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name.partition(".")[0] for name in names}
    assert not outside & {"ledger", "api", "web3", "eth_utils", "eth_abi", "eth_account"}
    assert {name for name in names if name.startswith("tests")} == {"tests.vectors.outsider_hashes"}


@pytest.mark.parametrize("name", ["bundle", "bundle_next_day"])
def test_the_example_bundles_verify(name: str) -> None:
    outsider.Bundle((HERE / f"{name}.json").read_bytes()).verify()


def test_what_was_signed_again_verifies() -> None:
    outsider.Bundle(examples.forger().agree().collect().log().transact().sign()).verify()


def terms(path: str, value: object) -> Callable[[Forger], None]:
    """Other terms, signed by both parties."""

    def lie(forged: Forger) -> None:
        put(f"agreement.{path}", value)(forged)
        forged.agree()

    return lie


LIES: Lies = {
    "a lower base": (terms("compensation.base", "80.00"), {"signatures"}),
    "a lower floor": (terms("coverage_floor", "98"), {"signatures"}),
    "a state": (issued("objectives.0.state", "met"), {"verdict"}),
    "a count": (issued("objectives.0.good", 72), {"verdict"}),
    "a credit": (issued("credit.minor_units", "1"), {"verdict"}),
    "idle hours": (issued("idle", 1), {"verdict"}),
    "an hour excluded": (issued("excluded", 1), {"verdict"}),
    "a payload that is not logged": (change("statement.payload.objectives.1.good", lambda n: n - 1), {"log"}),
    "a path": (change("statement.inclusion.0", flipped), {"log"}),
    "another place in the log": (change("statement.seq", lambda seq: seq + 1), {"log"}),
    "another stream": (logged(put("statement.header.stream", "elsewhere")), {"log"}),
    "a checkpoint": (change("log.checkpoint", lambda note: note.replace("\n87\n", "\n88\n")), {"log"}),
    "another root": (change("telemetry.root", bumped), {"telemetry"}),
    "another block": (change("telemetry.blocks.0", bumped), {"telemetry"}),
    "the collector's signature": (change("telemetry.signature.s", bumped), {"telemetry"}),
    "another chain": (put("context.chain_id", "1"), {"context"}),
    "another salt of the base": (change("base.salt", bumped), {"context"}),
    "another proof": (lambda f: f.proof.update(proof=examples.bundle("bundle_next_day")["proof"]["proof"]), {"proof"}),
    "a changed signal": (change("proof.signals.1", bumped), {"verdict", "proof"}),
    "a point of the key": (change("proof.verification_key.IC.1.0", bumped), {"proof"}),
    "delta equal to gamma": (
        lambda f: put("proof.verification_key.vk_delta_2", f.proof["verification_key"]["vk_gamma_2"])(f),
        {"proof"},
    ),
    "another transaction": (put("anchor", dict(examples.bundle("bundle_next_day")["anchor"])), {"anchor"}),
    "a stranger's transaction": (lambda f: f.transact(by="deployer-evm"), {"anchor"}),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_in_a_step_of_its_own(name: str) -> None:
    """The issuer signs again, so that its signature masks nothing."""
    lie, named = LIES[name]
    forged = examples.forger()
    lie(forged)
    bundle = outsider.Bundle(forged.sign())
    for step in named:
        with pytest.raises((AssertionError, InvalidSignature, LookupError, TypeError, ValueError)):
            getattr(bundle, step)()


def test_a_byte_that_the_issuer_did_not_sign_fails() -> None:
    document: dict[str, Any] = json.loads((HERE / "bundle.json").read_bytes())
    document["anchor"]["block_number"] += 1
    with pytest.raises(InvalidSignature):
        outsider.Bundle(outsider_hashes.jcs(document)).verify()


@pytest.mark.parametrize("arity", [4, 5, 16])
def test_its_poseidon_is_ours(arity: int) -> None:
    assert outsider_hashes.poseidon(*range(arity)) == poseidon(list(range(arity)))
