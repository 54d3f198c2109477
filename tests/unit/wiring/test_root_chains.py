"""The file of further chains: what it may say, what is refused, and that neither URL nor key is ever shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from ledger.anchor.addresses import registry_address
from ledger.errors import SettingInvalid
from ledger.settings import RootSettings
from ledger.wiring.chain import ChainAccounts
from ledger.wiring.further_chain import FurtherChain
from ledger.wiring.root_chains import open_root_chains
from tests.conformance.samples import StepClock
from tests.support.stored import memory_database

SECRET = "k3y-0f-the-n0de"
NODE = f"http://127.0.0.1:9/{SECRET}"
KEY = "5b" * 32
ACCOUNTS = ChainAccounts.from_secrets(deployer=b"\x04" * 32, issuer=b"\x05" * 32)
REGISTRY = registry_address(ACCOUNTS.deployer.address)
OTHER = "0x" + "11" * 20


def opened(folder: Path, *chains: dict[str, Any], **environ: str) -> dict[str, FurtherChain]:
    document = {"format": "sla-ledger/root-chains/v1", "chains": list(chains)}
    (folder / "root-chains.json").write_text(json.dumps(document))
    return dict(open_root_chains(folder, memory_database(), StepClock(), lambda: ACCOUNTS, environ))


def chain(chain_id: str = "10", **members: Any) -> dict[str, Any]:
    return {"chain_id": chain_id, "rpc": NODE, **members}


def test_without_the_file_there_are_none(tmp_path: Path) -> None:
    assert open_root_chains(tmp_path, memory_database(), StepClock(), lambda: ACCOUNTS, {}) == {}


def test_a_file_elsewhere_is_named_by_the_setting(tmp_path: Path) -> None:
    opened(tmp_path, chain())
    found = open_root_chains(
        tmp_path / "data",
        memory_database(),
        StepClock(),
        lambda: ACCOUNTS,
        {"SLA_LEDGER_ROOT_CHAINS": str(tmp_path / "root-chains.json")},
    )
    assert list(found) == ["10"]
    with pytest.raises(SettingInvalid, match="cannot be read"):
        open_root_chains(
            tmp_path, memory_database(), StepClock(), lambda: ACCOUNTS, {"SLA_LEDGER_ROOT_CHAINS": str(tmp_path / "x")}
        )


def test_confirmations_follow_the_chain_unless_they_are_given(tmp_path: Path) -> None:
    found = opened(tmp_path, chain(), chain("31337"), chain("8453", confirmations=3))
    assert {name: each.confirmations for name, each in found.items()} == {"10": 12, "31337": 1, "8453": 3}


def test_registry_and_issuer_are_those_of_the_home_chain_unless_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "issuer.key").write_text(KEY + "\n")
    found = opened(
        tmp_path,
        chain("1"),
        chain("2", registry=OTHER, key_file="issuer.key"),
        chain("3", key_variable="OTHER_KEY"),
        chain("4", signer={"rpc": "http://127.0.0.1:9", "address": OTHER}),
        OTHER_KEY="0x" + KEY,
    )
    other = str(Account.from_key(bytes.fromhex(KEY)).address)
    assert [each.pin() for each in found.values()] == [
        {"chain_id": "1", "registry": REGISTRY, "issuer": ACCOUNTS.issuer.address},
        {"chain_id": "2", "registry": OTHER, "issuer": other},
        {"chain_id": "3", "registry": REGISTRY, "issuer": other},
        {"chain_id": "4", "registry": REGISTRY, "issuer": OTHER},
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([chain("10"), chain("10")], "names chain 10 twice"),
        ([{**chain(), "rpc": f"ftp://{SECRET}"}], r"chains\[0\]\.rpc is no URL of a node"),
        ([chain(), chain("11", confirmations=0)], r"chains\[1\]\.confirmations"),
        ([chain(registry="0x12")], r"chains\[0\]\.registry"),
        ([chain("010")], r"chains\[0\]\.chain_id"),
        ([chain(key_file="a", key_variable="B")], "one account publishes"),
        ([chain(signer={"rpc": SECRET, "address": OTHER})], r"chains\[0\]\.signer\.rpc"),
        ([chain(key_variable=KEY)], r"key_variable is no name"),
        ([chain(colour="red")], "colour"),
        ([], "chains"),
    ],
)
def test_what_is_wrong_is_named_and_never_a_secret(tmp_path: Path, given: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SettingInvalid, match=said) as refused:
        opened(tmp_path, *given)
    assert "root-chains.json" in refused.value.message
    for secret in (SECRET, KEY):
        assert secret not in f"{refused.value.message} {refused.value.data}"


@pytest.mark.parametrize("held", [KEY[:-1], "0" * 64, ""])
def test_a_key_that_is_none_is_not_repeated(tmp_path: Path, held: str) -> None:
    (tmp_path / "issuer.key").write_text(held)
    found = opened(tmp_path, chain("1", key_file="issuer.key"), chain("2", key_variable="OTHER_KEY"), OTHER_KEY=held)
    for each in found.values():
        with pytest.raises(SettingInvalid, match="is no key") as refused:
            each.pin()
        assert len(held) < 8 or held not in f"{refused.value.message} {refused.value.data}"


def test_when_a_batch_is_formed_is_read_and_refused_by_name() -> None:
    assert RootSettings.read({}) == RootSettings(300, 1000)
    assert RootSettings.read({"SLA_LEDGER_ROOTS_AFTER_S": "60", "SLA_LEDGER_ROOTS_MOST": "10"}) == RootSettings(60, 10)
    for name in ("SLA_LEDGER_ROOTS_AFTER_S", "SLA_LEDGER_ROOTS_MOST"):
        with pytest.raises(SettingInvalid, match=name):
            RootSettings.read({name: "0"})
