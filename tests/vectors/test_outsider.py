"""docs/attestation-format.md is enough to write a verifier: ``outsider`` gives the verdicts of ours, and shares nothing
with it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.attest.checks.verification import Exit
from ledger.attest.crypto.poseidon import poseidon
from ledger.domain.record.canonical import canonical_bytes
from tests.support import examples
from tests.support.lies import Lies, bumped, change, issued
from tests.unit.attest import test_notice_checks, test_verification_lies, test_verification_proof_lies
from tests.vectors import outsider, outsider_hashes, outsider_shapes
from tests.vectors.verdicts import BAD_INPUT, TRUST, ours, theirs

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PARTS = sorted(HERE.glob("outsider*.py"))
OWN = {f"tests.vectors.{path.stem}" for path in PARTS} | {"tests.vectors"}


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_it_shares_nothing_with_this_package(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imported if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in names} & {"ledger", "api", "web3", "eth_utils", "eth_abi"}
    assert {name for name in names if name.startswith("tests")} <= OWN
    outside = {name.partition(".")[0] for name in names} - {"tests", "__future__"}
    assert outside - sys.stdlib_module_names <= {"cryptography", "py_ecc"}


@pytest.mark.parametrize("name", ["bundle", "bundle_next_day", "bundle_withheld"])
def test_the_example_bundles_hold(name: str) -> None:
    opening = HERE / name.replace("bundle", "opening")
    given = (HERE / f"{name}.json").read_bytes(), TRUST, opening.read_bytes() if opening.exists() else None
    assert ours(*given) == theirs(*given)
    assert theirs(*given).exits[1] == Exit.HOLDS


LIES: Lies = {**test_verification_lies.LIES, **test_verification_proof_lies.LIES}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_has_one_verdict(name: str) -> None:
    """Where one lie fails several steps, a step that others depend on may take them along in one verifier only."""
    forged = examples.forger()
    LIES[name][0](forged)
    data = forged.sign()
    mine, outside = ours(data, TRUST), theirs(data, TRUST)
    assert mine.exits == outside.exits == (Exit.FAILED, Exit.FAILED)
    assert mine.failed & outside.failed


@pytest.mark.parametrize("type_", [0, 2])
def test_a_party_may_record_by_transactions_of_several_types(type_: int) -> None:
    data = examples.forger().transact(by="customer-evm", type_=type_).sign()
    assert ours(data, TRUST) == theirs(data, TRUST)
    assert theirs(data, TRUST).exits[1] == Exit.HOLDS


def test_without_a_trust_file_nothing_is_more_than_assumed() -> None:
    data = (HERE / "bundle.json").read_bytes()
    assert ours(data, None) == theirs(data, None)
    assert theirs(data, None).exits == (Exit.NOT_PINNED, Exit.NOT_PINNED)


def test_an_opening_of_other_counts_has_one_verdict() -> None:
    opened = dict(examples.opening())
    forged = examples.forger()
    opened["salts"] = [bumped(opened["salts"][0])]
    given = forged.sign(), TRUST, canonical_bytes(opened)
    assert ours(*given) == theirs(*given)
    assert theirs(*given).failed == {0}
    change("statement.payload.objectives.1.good", lambda good: good - 1)(forged)
    issued("trace.tiers.1.good", forged.issued["objectives"][1]["good"])(forged)
    given = forged.sign(), TRUST, canonical_bytes(examples.opening())
    assert ours(*given) == theirs(*given)
    assert theirs(*given).failed == {0}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[" * 100,
        b'{"format":"sla-ledger/bundle/v1"}',
        (HERE / "bundle.json").read_bytes() + b"\n",
        (HERE / "bundle.json").read_bytes().replace(b'"credit_salt":null', b'"credit_salt":null,"credit_salt":null'),
        (HERE / "bundle.json").read_bytes().replace(b'"nPublic":6', b'"nPublic":6.0'),
        re.sub(rb'"seq":(\d+)', rb'"seq":-0', (HERE / "bundle.json").read_bytes()),
        (HERE / "bundle.json").read_bytes().replace(b"Example Provider", b"Example\\u0020Provider"),
        (HERE / "bundle.json").read_bytes().replace(b"Example Provider", b"\\ud800"),
    ],
)
def test_what_is_no_bundle_is_bad_input_to_both(data: bytes) -> None:
    assert ours(data, TRUST).exits == theirs(data, TRUST).exits == (BAD_INPUT, BAD_INPUT)


@pytest.mark.parametrize("arity", [4, 5, 16])
def test_its_poseidon_is_ours(arity: int) -> None:
    assert outsider_hashes.poseidon(*range(arity)) == poseidon(list(range(arity)))


def test_its_canonical_json_is_ours() -> None:
    value = {"\r": 1, "€": [True, None, -5], "\ufb33": '\u007f\\"/\b', "😀": {"": 2**53 - 1}}
    assert outsider_shapes.jcs(value) == canonical_bytes(value)
    with pytest.raises(outsider.BadInput):
        outsider_shapes.jcs([2**53])


@pytest.mark.parametrize("logged_after_ns", [None, -1, 0])
@pytest.mark.parametrize("signers", [("issuer",), ("issuer", "customer")])
def test_a_notice_has_one_verdict(signers: tuple[str, ...], logged_after_ns: int | None) -> None:
    forged = test_notice_checks.ended(*signers, logged_after_ns=logged_after_ns)
    test_notice_checks.signed(forged)
    given = forged.sign(), TRUST
    assert ours(*given) == theirs(*given)
    assert (4 in theirs(*given).not_checked) == (len(signers) == 1 and logged_after_ns != -1)


def test_the_entry_of_another_notice_has_one_verdict() -> None:
    other = {**test_notice_checks.ended("issuer").bundle["ended_by"], "effective": "2024-03-20"}
    forged = test_notice_checks.ended("issuer", notice=other)
    test_notice_checks.signed(forged)
    given = forged.sign(), TRUST
    assert 4 in ours(*given).failed & theirs(*given).failed
