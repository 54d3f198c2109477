"""docs/webhooks.md on a real server: an endpoint is registered, a period settled, and the example receiver told."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.app.access import Scope
from ledger.app.webhooks.messages import MESSAGE_TYPES
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import create_data
from tests.support.deployment import example_terms, request_log

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "webhooks.md"
DAY = date(2023, 6, 14)
WAIT_S = 60


@dataclass
class Inbox:
    """The example receiver behind one that fails first: every message is answered 500 once."""

    receiver: Any = None
    failed: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    raw: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def take(self, headers: dict[str, str], body: bytes) -> int:
        name = headers["webhook-id"]
        if name not in self.failed:
            self.failed.append(name)
            return 500
        status, message = self.receiver.take(headers, body)
        self.statuses.append(status)
        self.raw.append((headers, body))
        if message is not None:
            self.messages[name] = message
        return int(status)


@contextmanager
def listening(inbox: Inbox) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(inbox.take({name.lower(): value for name, value in self.headers.items()}, body))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/sla"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving(data: Path, key_cache: Path) -> Iterator[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLA_LEDGER_")}
    environ = {**kept, "SLA_LEDGER_KEY_CACHE": str(key_cache), "SLA_LEDGER_WEBHOOKS_PRIVATE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ledger.cli.main", "up", "--data", str(data), "--port", "0", "--json"],
        env=environ,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


def documented(start: str) -> tuple[str, dict[str, str], bytes | None]:
    """The curl command of the document that begins so: path and query, headers, body."""
    text = DOCUMENT.read_text().replace("\\\n", " ")
    command = next(line for line in text.splitlines() if line.startswith(start))
    words = iter(shlex.split(command)[1:])
    path, headers, body = "", {}, None
    for word in words:
        if word == "-X":
            next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        else:
            path = word.removeprefix("https://sla.example")
    # The server of the test asks nobody for a key.
    return path, {name: value for name, value in headers.items() if name != "Authorization"}, body


def example_receiver(secret: str) -> Any:
    spec = importlib.util.spec_from_file_location("webhook_receiver", ROOT / "examples" / "webhook_receiver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Receiver(secret)


def client_of(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=WAIT_S)


def until(met: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < end_s, "it did not come about in time"
        time.sleep(0.1)


@pytest.mark.slow
def test_an_endpoint_is_told_what_happens(tmp_path: Path, key_cache: Path) -> None:
    services = create_data(tmp_path / "data", key_cache=key_cache, notify=lambda _: None)
    parties = DemoParties(services.keyring)
    terms = {**parties.with_keys(example_terms()), "nonce": "0x" + "5a" * 32}
    document = parties.signed(terms)
    services.close()
    inbox = Inbox()
    with listening(inbox) as hook, serving(tmp_path / "data", key_cache) as url, client_of(url) as client:
        path, headers, body = documented("curl -X POST https://sla.example/v1/webhooks")
        assert body is not None
        asked = json.loads(body) | {"url": hook}
        endpoint = client.post(path, json=asked, headers=headers).raise_for_status().json()
        assert client.post(path, json=asked, headers=headers).json() == endpoint
        other = client.post(path, json=asked | {"types": ["credit.issued"]}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        inbox.receiver = example_receiver(endpoint["secret"])

        sla_id = client.post("/v1/agreements", json={"document": document}).raise_for_status().json()["sla_id"]
        span = {"sla_id": sla_id, "from": f"{DAY}T00:00:00Z", "to": "2023-06-15T00:00:00Z"}
        log = request_log(document["service"]["name"], DAY)
        client.post(
            "/v1/observations", params=span, content=log, headers={"content-type": "application/x-ndjson"}
        ).raise_for_status()
        client.post(f"/v1/agreements/{sla_id}/periods/{DAY}/close").raise_for_status()

        # The statement with its lines, then its proof; each once it was answered 500.
        lines = lambda: client.get("/v1/credit-lines", params={"sla_id": sla_id, "limit": 100}).json()["items"]  # noqa: E731
        until(lambda: {"statement.issued", "proof.recorded"} <= {each["type"] for each in inbox.messages.values()})
        until(lambda: sum(each["type"] == "credit.issued" for each in inbox.messages.values()) == len(lines()) > 0)
        assert set(inbox.statuses) == {204}
        assert set(inbox.messages) == set(inbox.failed)

        (issued,) = (each for each in inbox.messages.values() if each["type"] == "statement.issued")
        shown = client.get(f"/v1/statements/{issued['data']['statement_id']}").json()["statement"]
        assert issued["data"]["credit"]["minor_units"] == shown["credit"]["minor_units"]
        told = {
            each["data"]["line"]["line_id"]: each["data"]["line"]["minor_units"]
            for each in inbox.messages.values()
            if each["type"] == "credit.issued"
        }
        assert told == {line["id"]: line["credit"]["minor_units"] for line in lines()}

        # What was taken is refused with another body, and not acted on again.
        sent, body = inbox.raw[0]
        assert inbox.receiver.take(sent, body + b" ")[0] == 401
        assert inbox.receiver.take(sent, body) == (200, None)

        path, _, _ = documented('curl -H "Authorization')
        path = path.replace("$ENDPOINT", endpoint["id"]).replace("limit=10", "limit=100")
        until(lambda: len(client.get(path).json()["items"]) == 2 * len(inbox.messages))
        attempts: dict[str, list[tuple[int, int, bool]]] = {}
        for each in client.get(path).json()["items"]:
            attempts.setdefault(each["message_id"], []).append((each["attempt"], each["status"], each["error"] is None))
        assert attempts == {name: [(2, 204, True), (1, 500, False)] for name in inbox.messages}
        (listed,) = client.get("/v1/webhooks").json()["items"]
        assert listed == {name: value for name, value in endpoint.items() if name != "secret"}


def test_the_document_names_every_type_and_its_scope() -> None:
    rows = re.findall(r"^\| (`[a-z]+\.[^|]*) \| `([a-z:]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    documented_scopes = {name: scope for names, scope in rows for name in re.findall(r"`([a-z.]+)`", names)}
    assert documented_scopes == {name: str(kind.scopes[0]) for name, kind in MESSAGE_TYPES.items()}
    assert all(len(kind.scopes) == 1 for kind in MESSAGE_TYPES.values())
    assert Scope.ADMIN_WEBHOOKS in DOCUMENT.read_text()
