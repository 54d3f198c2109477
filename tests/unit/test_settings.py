"""Arguments before the environment, the environment before the defaults, and nothing but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import SettingInvalid
from ledger.settings import ServerSettings, WorkerSettings, read_settings


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
