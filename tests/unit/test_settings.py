"""Arguments before the environment, the environment before the defaults, and nothing but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import SettingInvalid
from ledger.settings import (
    AuthMode,
    AuthSettings,
    ChainSettings,
    IngestSettings,
    ServerSettings,
    WorkerSettings,
    read_auth_settings,
    read_chain_settings,
    read_settings,
)

JWKS = {"SLA_LEDGER_AUTH_ISSUER": "https://id.example", "SLA_LEDGER_AUTH_AUDIENCE": "sla"}


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


def test_without_a_word_requests_need_no_credentials_on_loopback() -> None:
    assert read_auth_settings({}) == AuthSettings(AuthMode.LOCAL, rate_per_minute=0)


def test_other_addresses_where_credentials_are_required() -> None:
    environ = {"SLA_LEDGER_AUTH": "required", "SLA_LEDGER_HOSTS": "sla.example, SLA2.example,"}
    settings = read_settings(environ, data_dir="d", host="0.0.0.0")
    assert settings.auth.mode is AuthMode.REQUIRED
    assert settings.auth.hosts == {"127.0.0.1", "localhost", "[::1]", "sla.example", "sla2.example"}
    assert settings.auth.rate_per_minute == 6000
    # The argument wins.
    with pytest.raises(SettingInvalid, match="loopback"):
        read_settings(environ, data_dir="d", host="0.0.0.0", auth="local")


@pytest.mark.parametrize(
    ("environ", "setting"),
    [
        ({"SLA_LEDGER_AUTH": "none"}, "auth"),
        ({"SLA_LEDGER_AUTH": "Required"}, "auth"),
        ({"SLA_LEDGER_HOSTS": "https://sla.example"}, "hosts"),
        ({"SLA_LEDGER_HOSTS": "sla.example:443"}, "hosts"),
        ({"SLA_LEDGER_HOSTS": "*.example"}, "hosts"),
        ({"SLA_LEDGER_HOSTS": "ü.example"}, "hosts"),
        ({"SLA_LEDGER_RATE_LIMIT": "-1"}, "rate_limit"),
        ({"SLA_LEDGER_RATE_LIMIT": "1e3"}, "rate_limit"),
        ({"SLA_LEDGER_RATE_LIMIT": "99999999"}, "rate_limit"),
        ({"SLA_LEDGER_AUTH_ISSUER": "https://id.example"}, "auth"),
        ({"SLA_LEDGER_AUTH_JWKS": "keys.json"}, "auth"),
        (JWKS | {"SLA_LEDGER_AUTH_JWKS": "http://id.example/keys"}, "auth_jwks"),
        (JWKS | {"SLA_LEDGER_AUTH_JWKS": "file:///etc/passwd"}, "auth_jwks"),
        (JWKS | {"SLA_LEDGER_AUTH_JWKS": "https://"}, "auth_jwks"),
    ],
)
def test_access_settings_that_cannot_be_used(environ: dict[str, str], setting: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        read_auth_settings(environ)
    assert caught.value.data == {"setting": setting}


@pytest.mark.parametrize("jwks", ["https://id.example/keys", "http://127.0.0.1:8080/keys", "keys.json"])
def test_places_of_an_issuer_s_keys(jwks: str) -> None:
    assert read_auth_settings(JWKS | {"SLA_LEDGER_AUTH_JWKS": jwks}).jwks == jwks


def test_a_server_that_nobody_can_name_is_a_mistake() -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_HOSTS"):
        read_settings({"SLA_LEDGER_AUTH": "required"}, data_dir="d", host="0.0.0.0")
    with pytest.raises(SettingInvalid, match="IP address"):
        read_settings({"SLA_LEDGER_AUTH": "required"}, data_dir="d", host="sla.example")


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


@pytest.mark.parametrize("name", ["SLA_LEDGER_MAX_FEE_GWEI", "SLA_LEDGER_REPLACE_AFTER_BLOCKS"])
def test_limits_of_what_transactions_offer(name: str) -> None:
    node = {"SLA_LEDGER_CHAIN_RPC": "http://node"}
    assert (read_chain_settings(node).max_fee_gwei, read_chain_settings(node).replace_after_blocks) == (500, 12)
    settings = read_chain_settings({**node, name: "7"})
    assert 7 in (settings.max_fee_gwei, settings.replace_after_blocks)
    for wanted in ("0", "-1", "1.5", "9999999"):
        with pytest.raises(SettingInvalid, match=name):
            read_chain_settings({**node, name: wanted})


@pytest.mark.parametrize(
    "name",
    [
        "SLA_LEDGER_REGISTRY",
        "SLA_LEDGER_CONFIRMATIONS",
        "SLA_LEDGER_MAX_FEE_GWEI",
        "SLA_LEDGER_REPLACE_AFTER_BLOCKS",
    ],
)
def test_a_nodes_settings_without_a_node(name: str) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_CHAIN_RPC"):
        read_chain_settings({name: "0x" + "ab" * 20 if name.endswith("REGISTRY") else "3"})


class TestWorkers:
    def test_without_a_broker_the_server_does_the_work(self) -> None:
        assert WorkerSettings.read({}) == WorkerSettings(broker_url=None, lease_s=30, ring_again_s=15, schedule_s=5)

    def test_are_read_from_the_environment(self) -> None:
        environ = {
            "SLA_LEDGER_BROKER": "rediss://user:secret@redis.example:6380/2",
            "SLA_LEDGER_LEASE_S": "60",
            "SLA_LEDGER_RING_AGAIN_S": "5",
            "SLA_LEDGER_SCHEDULE_S": "1",
        }
        assert WorkerSettings.read(environ) == WorkerSettings("rediss://user:secret@redis.example:6380/2", 60, 5, 1)

    @pytest.mark.parametrize("url", ["amqp://user:secret@host", "localhost:6379", "http://user:secret@host"])
    def test_another_broker_is_refused_and_its_password_not_repeated(self, url: str) -> None:
        with pytest.raises(SettingInvalid) as refused:
            WorkerSettings.read({"SLA_LEDGER_BROKER": url})
        assert refused.value.data["setting"] == "broker"
        assert "secret" not in refused.value.message

    @pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "99999", "", "２"])
    def test_a_time_that_cannot_be_used_is_refused(self, text: str) -> None:
        with pytest.raises(SettingInvalid, match="SLA_LEDGER_LEASE_S"):
            WorkerSettings.read({"SLA_LEDGER_LEASE_S": text})


def test_bounds_of_what_comes_in() -> None:
    assert IngestSettings.read({}) == IngestSettings()
    assert IngestSettings.read({"SLA_LEDGER_MAX_TELEMETRY_BYTES": "5"}).max_telemetry_bytes == 5
    for text in ("0", "-1", "x", "9" * 30, "1.5"):
        with pytest.raises(SettingInvalid) as raised:
            IngestSettings.read({"SLA_LEDGER_BODY_TIMEOUT_S": text})
        assert raised.value.data["setting"] == "SLA_LEDGER_BODY_TIMEOUT_S"
