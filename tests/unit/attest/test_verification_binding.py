"""Every value of a bundle is bound: one after the other is changed, and the changed bundle is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.attest.checks import statement_checks as checks
from ledger.attest.checks import verification
from ledger.attest.checks.case import Case
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BadInput, BundleCheckFailed
from tests.support import examples
from tests.support.forging import Forger
from tests.support.secrets import Secrets

pytestmark = pytest.mark.slow

BUNDLES = ("bundle", "bundle_withheld")

FOR_THE_CHAIN_TO_SAY = {"anchor.block_number", "anchor.block_hash"}
"""What the issuer's signature alone binds (docs/attestation-format.md, section 12)."""

Path = tuple[str | int, ...]


def leaves(node: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no container, an empty container, or a container that may be null, with its path."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*at, key))
    elif isinstance(node, list) and node:
        for index, value in enumerate(node):
            yield from leaves(value, (*at, index))
    else:
        yield at, node


def variants(value: Any) -> Iterator[Any]:
    """Values near a value, most of them of the same shape, so that more than the schema has to refuse them."""
    if isinstance(value, bool):
        yield not value
        yield int(value)
    elif isinstance(value, int):
        yield value + 1
        yield value - 1
    elif isinstance(value, str):
        yield value[:-1] + near(value[-1])
        yield near(value[0]) + value[1:]
        yield None
    else:
        yield "tampered"
        yield "7"


def near(character: str) -> str:
    if character.isdigit():
        return str((int(character) + 1) % 10)
    return "b" if character == "a" else "a"


def with_value(bundle: Any, path: Path, value: Any) -> dict[str, Any]:
    changed: dict[str, Any] = copy.deepcopy(dict(bundle))
    node: Any = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", BUNDLES)
def test_without_the_issuers_key_no_value_can_be_changed(name: str) -> None:
    bundle, tried = examples.bundle(name), 0
    for path, value in leaves(bundle):
        for other in variants(value):
            tried += 1
            data = canonical_bytes(with_value(bundle, path, other))
            try:
                changed = verification.read_bundle(data)
            except BadInput:
                continue
            with pytest.raises((BundleCheckFailed, BadInput)):
                checks.issuer_signature(Case(changed))
    assert tried > 300


@pytest.mark.parametrize("name", BUNDLES)
def test_with_the_issuers_key_only_the_block_can_be_changed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change is signed by the issuer again; another check, or a pin, still refuses it."""
    examples.remember_pairings(monkeypatch)
    bundle, accepted, refused = examples.bundle(name), set(), set()
    for path, value in leaves(bundle):
        if path == ("issuer_signature",):
            continue
        forged = Forger(with_value(bundle, path, next(variants(value))), Secrets.of_vectors())
        try:
            report = examples.verified(forged)
        except BadInput:
            refused.add(path)
            continue
        (refused if examples.failed(report) else accepted).add(path)
    names = {".".join(map(str, path)) for path in accepted}
    assert names == (FOR_THE_CHAIN_TO_SAY if bundle["anchor"] else set())
    assert len(refused) > 120
