"""Arguments before the environment, the environment before the defaults, and nothing but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import SettingInvalid
from ledger.settings import IngestSettings, ServerSettings, read_settings


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


def test_bounds_of_what_comes_in() -> None:
    assert IngestSettings.read({}) == IngestSettings()
    assert IngestSettings.read({"SLA_LEDGER_MAX_TELEMETRY_BYTES": "5"}).max_telemetry_bytes == 5
    for text in ("0", "-1", "x", "9" * 30, "1.5"):
        with pytest.raises(SettingInvalid) as raised:
            IngestSettings.read({"SLA_LEDGER_BODY_TIMEOUT_S": text})
        assert raised.value.data["setting"] == "SLA_LEDGER_BODY_TIMEOUT_S"
