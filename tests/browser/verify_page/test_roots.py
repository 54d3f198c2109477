"""Batch roots in a bundle: the page gives the command's lines on honest ones and on lies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eth_account import Account

from ledger.attest.checks.case import Case
from ledger.attest.checks.verification import Exit
from ledger.attest.crypto.batch import Batch, log_id
from ledger.attest.crypto.evm_tx import PUBLISH_SIGNATURE
from ledger.attest.crypto.keccak import keccak256, keccak_text, uint_word
from ledger.domain.record.canonical import canonical_bytes
from ledger.merkle.checkpoint import parse_checkpoint
from tests.browser.verify_page.conftest import Checker, Given
from tests.browser.verify_page.test_verdicts import ours
from tests.support import examples
from tests.support.forging import Forger

pytestmark = pytest.mark.slow

FURTHER = {"chain_id": "131277322940999", "registry": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


def rooted(name: str = "bundle", **changes: Any) -> Forger:
    """The example under a root on its own chain and on a further one; ``changes`` are fields of the transactions."""
    forged = examples.forger(name)
    checkpoint = parse_checkpoint(forged.bundle["log"]["checkpoint"].partition("\n\n")[0] + "\n")
    case = Case(forged.bundle)
    batch = Batch.of([b"\x01" * 32, b"\xfe" * 32, *([case.name.leaf(case.ctx)] if forged.bundle["proof"] else [])])
    siblings = ["0x" + node.hex() for node in batch.path(case.name.leaf(case.ctx))] if forged.bundle["proof"] else None
    words = [log_id(checkpoint.origin), uint_word(checkpoint.size, 64, "size"), checkpoint.root, batch.root]
    data = keccak_text(PUBLISH_SIGNATURE)[:4] + b"".join(words)
    home = {name: examples.trust()[name] for name in ("chain_id", "registry")}
    forged.bundle["roots"] = []
    for place in (home, FURTHER):
        fields = {"chainId": int(place["chain_id"]), "to": place["registry"], "nonce": 1, "gas": 90_000, "value": 0}
        fields |= {"maxFeePerGas": 3, "maxPriorityFeePerGas": 1, "type": 2, "data": data} | changes
        raw = bytes(Account.from_key(forged.secrets["issuer-evm"]).sign_transaction(fields).raw_transaction)
        forged.bundle["roots"].append(
            {
                **place,
                "issuer": case.agreement.issuer.evm_address,
                "size": checkpoint.size,
                "root": checkpoint.root.hex(),
                "inclusion": forged.bundle["statement"]["inclusion"],
                "batch_root": "0x" + batch.root.hex(),
                "siblings": siblings,
                "raw_transaction": raw.hex(),
                "tx_hash": "0x" + keccak256(raw).hex(),
                "block_number": 7,
                "block_hash": "0x" + "07" * 32,
            }
        )
    return forged


def trusting(**members: Any) -> bytes:
    return canonical_bytes({**examples.trust(), **members})


NAMED = trusting(root_chains=[FURTHER])
TRUSTS: dict[str, bytes | None] = {
    "both chains": NAMED,
    "its own chain alone": trusting(),
    "nothing": None,
    "another registry": trusting(root_chains=[{**FURTHER, "registry": examples.trust()["registry"]}]),
    "another issuer": trusting(root_chains=[{**FURTHER, "issuer": examples.trust()["registry"]}]),
}


@pytest.mark.parametrize("name", ["bundle", "bundle_withheld"])
def test_roots_have_the_lines_of_the_command(name: str, checker: Checker) -> None:
    data = rooted(name).sign()
    given = [Given(data, trust) for trust in TRUSTS.values()]
    for said, case, found in zip(TRUSTS, given, checker.reports(given), strict=True):
        assert found == ours(case), said
    assert checker.report(given[0]).exit_code == Exit.HOLDS


def other(path: str, value: Any) -> Callable[[Any], None]:
    def lie(root: Any) -> None:
        root[path] = value

    return lie


LIES: dict[str, Callable[[Any], None]] = {
    "another size": lambda root: root.update(size=root["size"] + 1),
    "another root of the same size": other("root", "ab" * 32),
    "another path": lambda root: root["inclusion"].reverse(),
    "another batch": other("batch_root", "0x" + "ab" * 32),
    "no path in the batch": other("siblings", []),
    "no leaf": other("siblings", None),
    "another issuer": other("issuer", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
    "another hash": other("tx_hash", "0x" + "ab" * 32),
    "another registry": other("registry", "0x" + "00" * 20),
    "another chain": other("chain_id", "1"),
    "no transaction": other("raw_transaction", "02"),
}


def test_lies_about_roots_fail(checker: Checker) -> None:
    given, names = [], []
    for name, lie in LIES.items():
        forged = rooted()
        forged.bundle["roots"] = copy.deepcopy(forged.bundle["roots"])
        lie(forged.bundle["roots"][1])
        given.append(Given(forged.sign(), NAMED))
        names.append(name)
    for name, changes in {"with value": {"value": 1}, "another call": {"data": b"\x00" * 132}}.items():
        given.append(Given(rooted(**changes).sign(), NAMED))
        names.append(name)
    twice = rooted()
    twice.bundle["roots"] = [twice.bundle["roots"][0]] * 2
    given.append(Given(twice.sign(), NAMED))
    for name, case, found in zip([*names, "twice"], given, checker.reports(given), strict=True):
        assert found.outcomes == ours(case).outcomes, name
        assert found.exit_code == Exit.FAILED, name
