"""Errors of contracts as people read them, and the committed build."""

from __future__ import annotations

import json
from typing import Any

import pytest
from eth_abi import encode
from eth_utils import keccak
from web3.exceptions import ContractCustomError

from ledger.anchor.abi import ContractName, contract_build
from ledger.anchor.reverts import refusal, revert_data
from ledger.attest.crypto.evm_tx import RECORD_SIGNATURE
from ledger.resources import resource_dir

NOT_PARTY = keccak(text="NotParty(bytes32,address)")[:4] + encode(
    ["bytes32", "address"], [b"\x0a" * 32, "0x" + "bb" * 20]
)


@pytest.mark.parametrize(
    "error",
    [
        ContractCustomError("0x" + NOT_PARTY.hex(), data="0x" + NOT_PARTY.hex()),
        Exception(f"execution reverted: {NOT_PARTY!r}"),
    ],
    ids=["node", "embedded"],
)
def test_a_custom_error_is_named_with_its_arguments(error: Exception) -> None:
    assert revert_data(error) == NOT_PARTY
    refused = refusal(error, "record the statement")
    assert "refuses to record the statement: NotParty (slaId 0x0a0a" in refused.message
    assert refused.data["error"] == "NotParty"
    assert refused.data["arguments"] == {"slaId": "0x" + "0a" * 32, "sender": "0x" + "bb" * 20}


@pytest.mark.parametrize("quote", [b"'", b'"', b"'\"", b"\\'", b"\n"])
def test_error_data_with_quotes_in_it_is_read_whole(quote: bytes) -> None:
    data = NOT_PARTY[:4] + quote.ljust(32, b"\x00") + NOT_PARTY[36:]
    assert revert_data(Exception(f"execution reverted: {data!r}")) == data


@pytest.mark.parametrize(
    "text", ["execution reverted", "execution reverted: b''", "Out of gas", "b'no end", "execution: b'\\xff\\"]
)
def test_an_error_without_data_keeps_its_text(text: str) -> None:
    refused = refusal(Exception(text), "add the verifier")
    assert text in refused.message
    assert refused.data["error"] is None


@pytest.mark.parametrize("data", [b"\x01\x02\x03\x04", NOT_PARTY[:20]], ids=["unknown", "cut off"])
def test_error_data_nobody_knows_is_shown_as_it_is(data: bytes) -> None:
    refused = refusal(Exception(f"execution reverted: {data!r}"), "add the verifier")
    assert data.hex() in refused.message
    assert refused.data["error"] is None


def _type(entry: dict[str, Any]) -> str:
    if not entry["type"].startswith("tuple"):
        return str(entry["type"])
    inner = ",".join(_type(component) for component in entry["components"])
    return f"({inner}){entry['type'].removeprefix('tuple')}"


def test_the_offline_reader_knows_the_function_as_it_was_compiled() -> None:
    (entry,) = (e for e in contract_build("SlaAnchor").abi if e.get("name") == "verifyAndRecord")
    assert f"verifyAndRecord({','.join(_type(field) for field in entry['inputs'])})" == RECORD_SIGNATURE


@pytest.mark.parametrize("name", ["SlaAnchor", "Groth16Verifier"])
def test_the_committed_build_fits_every_chain(name: ContractName) -> None:
    build = contract_build(name)
    assert build.compiler.startswith("0.8.37+")
    assert 0 < len(build.bytecode) <= 2 * 24_576, "EIP-3860"
    path = resource_dir("contracts") / "generated" / "bytecode" / f"{name}.json"
    deployed = json.loads(path.read_text())["deployedBytecode"]
    assert 0 < len(deployed) // 2 - 1 <= 24_576, "EIP-170"


def test_the_committed_input_is_for_prague_without_ir() -> None:
    path = resource_dir("contracts") / "generated" / "standard-json" / "input.json"
    document = json.loads(path.read_text())
    assert document["settings"]["evmVersion"] == "prague"
    assert document["settings"]["viaIR"] is False
    for name in ("SlaAnchor", "Groth16Verifier"):
        source = (resource_dir("contracts") / "src" / f"{name}.sol").read_text()
        assert document["sources"][f"src/{name}.sol"]["content"] == source
