"""Arguments before the environment, the environment before the defaults, and nothing but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import SettingInvalid
from ledger.settings import ChainSettings, ServerSettings, read_chain_settings, read_settings


def test_defaults() -> None:
    assert read_settings({}, data_dir="d") == ServerSettings(Path("d"), "127.0.0.1", 8000)


def test_environment_then_arguments() -> None:
    environ = {"SLA_LEDGER_DATA": "e", "SLA_LEDGER_HOST": "::1", "SLA_LEDGER_PORT": "9000"}
    assert read_settings(environ) == ServerSettings(Path("e"), "::1", 9000)
    assert read_settings(environ, data_dir="a", host="127.0.0.2", port=0) == ServerSettings(Path("a"), "127.0.0.2", 0)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "localhost", "example.org", "", "127.0.0.1 ", "127.1"]
)
def test_hosts_that_others_may_reach(host: str) -> None:
    with pytest.raises(SettingInvalid, match="loopback") as caught:
        read_settings({}, data_dir="d", host=host)
    assert caught.value.data == {"setting": "host"}


@pytest.mark.parametrize("port", ["", "x", "-1", "65536", "8000.0", "٣", "1_0", "+1", " 1", "999999999999"])
def test_ports_of_the_environment_that_are_none(port: str) -> None:
    with pytest.raises(SettingInvalid):
        read_settings({"SLA_LEDGER_PORT": port}, data_dir="d")


@pytest.mark.parametrize("environ", [{}, {"SLA_LEDGER_DATA": ""}])
def test_no_data_directory(environ: dict[str, str]) -> None:
    with pytest.raises(SettingInvalid, match="--data"):
        read_settings(environ)


def test_authority_of_a_url() -> None:
    assert ServerSettings(Path("d")).authority == "127.0.0.1:8000"
    assert ServerSettings(Path("d"), "::1").authority == "[::1]:8000"


# --- the chain -----------------------------------------------------------------------------------


def test_the_chain_is_the_embedded_one_unless_a_node_is_named() -> None:
    assert read_chain_settings({"SLA_LEDGER_CHAIN_RPC": ""}) == ChainSettings(None, None, None)


def test_a_node_with_its_registry_and_confirmations() -> None:
    registry = "0x" + "Ab" * 20
    environ = {
        "SLA_LEDGER_CHAIN_RPC": "https://node.example/v2/secret",
        "SLA_LEDGER_REGISTRY": registry,
        "SLA_LEDGER_CONFIRMATIONS": "3",
    }
    settings = read_chain_settings(environ)
    assert settings == ChainSettings("https://node.example/v2/secret", registry, 3)
    assert settings.confirmations_on(1) == 3
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(("chain_id", "blocks"), [(31337, 1), (1, 12), (137, 12)])
def test_confirmations_that_nobody_set(chain_id: int, blocks: int) -> None:
    assert ChainSettings("http://node").confirmations_on(chain_id) == blocks


@pytest.mark.parametrize(
    "url",
    [
        "node:8545",
        "ws://node",
        "file:///etc/passwd",
        "http://?k=s3cret",
        "http://node:x",
        "http://no\nde",
        "https:/s3cret",
    ],
)
def test_urls_that_name_no_node_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        read_chain_settings({"SLA_LEDGER_CHAIN_RPC": url})
    assert caught.value.data == {"setting": "SLA_LEDGER_CHAIN_RPC"}
    assert url not in caught.value.message


@pytest.mark.parametrize("registry", ["0x12", "ab" * 20, "0x" + "zz" * 20, "0x" + "ab" * 21])
def test_registries_that_are_no_address(registry: str) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_REGISTRY"):
        read_chain_settings({"SLA_LEDGER_CHAIN_RPC": "http://node", "SLA_LEDGER_REGISTRY": registry})


@pytest.mark.parametrize("wanted", ["0", "-1", "10001", "x", "1.0", "٣", "99999999"])
def test_confirmations_that_are_no_number(wanted: str) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_CONFIRMATIONS"):
        read_chain_settings({"SLA_LEDGER_CHAIN_RPC": "http://node", "SLA_LEDGER_CONFIRMATIONS": wanted})


@pytest.mark.parametrize("name", ["SLA_LEDGER_REGISTRY", "SLA_LEDGER_CONFIRMATIONS"])
def test_a_nodes_settings_without_a_node(name: str) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_CHAIN_RPC"):
        read_chain_settings({name: "0x" + "ab" * 20 if name.endswith("REGISTRY") else "3"})
