"""``sla-ledger health`` over a SQLite file and over a server."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ledger.cli.main import main
from ledger.store.database import SqliteDatabase
from ledger.store.migrate import SCHEMA_REVISION
from tests.conformance.samples import SeededRandomness, StepClock, windows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory whose events were recorded long ago and wait to be proved."""
    database = SqliteDatabase(tmp_path / "ledger.db", StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        (receipt,) = tx.events.append("windows/a", windows(1), expected_version=None)
        tx.outbox.add(receipt.event_id, "prove")
    database.close()
    return tmp_path


def test_names_what_stands_still(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--data", str(data), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["healthy"] is False
    assert [fault.partition(":")[0] for fault in document["faults"][:2]] == ["prove", "prove"]
    assert document["faults"][2].startswith("the log is not signed since")
    assert document["schema"] == SCHEMA_REVISION
    assert document["stages"]["prove"]["worked"] == 0


def test_looks_at_what_it_is_asked_for_alone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--data", str(data), "--for", "worker", "--stage", "anchor"]) == 0
    assert capsys.readouterr().out == "healthy\n"
    assert main(["health", "--data", str(data), "--for", "worker", "--stage", "prove"]) == 1
    assert capsys.readouterr().out.startswith("prove: no worker takes work that waits since")


def test_leaves_a_database_of_another_version_as_it_is(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(data / "ledger.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    assert main(["health", "--data", str(data)]) == 1
    assert "the database is at schema 0001" in capsys.readouterr().out
    with sqlite3.connect(data / "ledger.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)


def test_makes_no_database_where_there_is_none(tmp_path: Path) -> None:
    assert main(["health", "--data", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://ledger:secret-password@127.0.0.1:1/ledger"
    assert main(["health", "--data", str(tmp_path), "--database", url, "--json"]) == 1
    said = capsys.readouterr().out
    assert json.loads(said)["healthy"] is False
    assert "secret-password" not in said


def test_needs_something_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLA_LEDGER_DATA", raising=False)
    assert main(["health"]) == 2
    assert main(["health", "--url", "file:///etc/passwd"]) == 2


@pytest.fixture(params=[(200, b'{"ready": true}', 0), (503, b'{"ready": false}', 1), (200, b"no JSON", 1)])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A server that answers one way, and the exit code for it."""
    status, body, code = request.param

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    listening = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}", code
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_asks_a_server_whether_it_is_ready(server: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    url, code = server
    assert main(["health", "--url", url, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["healthy"] is (code == 0)


def test_a_server_that_is_not_there() -> None:
    assert main(["health", "--url", "http://127.0.0.1:1"]) == 1
