"""The embedded chain asks py-evm for equal pairings once; nobody on the chain can tell."""

from __future__ import annotations

import pytest
from eth_tester.exceptions import TransactionFailed
from py_ecc.optimized_bn128 import G1, G2, neg
from web3 import Web3

from ledger.anchor.embedded import EmbeddedChain, Genesis
from tests.contracts.trapdoor import g1_words, g2_words

SOMEONE = Web3.to_checksum_address("0x" + "11" * 20)
ECPAIRING = Web3.to_checksum_address(f"0x{8:040x}")
ONE = b"".join(word.to_bytes(32, "big") for g1 in (G1, neg(G1)) for word in g1_words(g1) + g2_words(G2))
NOT_ONE = ONE[:192]
OFF_CURVE = ONE[:63] + b"\x01" + ONE[64:]


def asked(data: bytes, gas: int = 1_000_000) -> int:
    eth = EmbeddedChain(Genesis(0, {SOMEONE: 10**18})).w3.eth
    return int.from_bytes(eth.call({"to": ECPAIRING, "data": data, "gas": gas}), "big")


@pytest.mark.parametrize(("data", "answer", "fee"), [(ONE, 1, 113_000), (NOT_ONE, 0, 79_000)])
def test_what_was_asked_before_has_the_same_answer_for_the_same_gas(data: bytes, answer: int, fee: int) -> None:
    for _ in range(2):
        with pytest.raises(TransactionFailed, match=f"Needed {fee} "):  # EIP-1108
            asked(data, gas=60_000)
        assert asked(data) == answer


def test_what_is_no_point_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(TransactionFailed, match="Invalid"):
            asked(OFF_CURVE)
