"""``sla-ledger keys api``: shown once, listed without secrets, revoked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ledger.app.keys import check_key
from ledger.cli.main import main
from ledger.errors import Unauthenticated
from ledger.wiring import create_data
from ledger.wiring.data_directory import open_data_directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    create_data(tmp_path / "data", key_cache=tmp_path / "cache", notify=lambda _: None).close()
    return tmp_path / "data"


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert main(["keys", "api", *arguments, "--json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.err if code else captured.out)


def test_a_key_is_made_listed_and_revoked(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data", str(data), "--tenant", "alice"]
    made = run(capsys, "create", *where, "--role", "operations_viewer", "--label", "wall screen")
    text = made.pop("key")
    assert made["scopes"] == ["sla:read:agreements", "sla:read:latency", "sla:read:uptime", "sla:read:violations"]
    with open_data_directory(data) as opened:
        assert check_key(opened.database, text, time.time_ns()).tenant == "alice"
    assert run(capsys, "list", *where) == [made]
    assert run(capsys, "list", "--data", str(data)) == []
    assert run(capsys, "revoke", "--data", str(data), made["key_id"], code=1)["code"] == "not_found"
    revoked = run(capsys, "revoke", *where, made["key_id"])
    assert (revoked["state"], made["state"]) == ("revoked", "valid")
    assert run(capsys, "revoke", *where, made["key_id"]) == revoked
    assert run(capsys, "list", *where) == [revoked]
    with open_data_directory(data) as opened, pytest.raises(Unauthenticated):
        check_key(opened.database, text, time.time_ns())


def test_the_text_of_a_key_goes_to_stdout_alone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "api", "create", "--data", str(data), "--role", "operator"]) == 0
    captured = capsys.readouterr()
    text = captured.out.strip()
    assert text.startswith("slk_")
    assert text[21:] not in captured.err
    assert main(["keys", "api", "list", "--data", str(data)]) == 0
    assert text[21:] not in capsys.readouterr().out
    stored = b"".join(path.read_bytes() for path in data.iterdir() if path.is_file())
    assert text[21:].encode() not in stored


@pytest.mark.parametrize(
    "options",
    [
        ["--role", "operator", "--expires", "2020-01-01T00:00:00Z"],
        ["--role", "operator", "--expires", "tomorrow"],
        ["--role", "operator", "--tenant", "a b"],
        ["--role", "operator", "--label", "two\nlines"],
        ["--role", "root"],
        [],
    ],
)
def test_keys_that_cannot_be_made(data: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["keys", "api", "create", "--data", str(data), *options]) == 2
    assert capsys.readouterr().out == ""
    assert run(capsys, "list", "--data", str(data)) == []


def test_an_agreement_that_is_not_there(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = run(capsys, "create", "--data", str(data), "--role", "finance", "--sla-id", "0x" + "0" * 64, code=1)
    assert error["code"] == "not_found"
