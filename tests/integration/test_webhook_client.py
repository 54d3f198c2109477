"""Webhooks over real connections: the client against receivers that hold to the rules and such that do not."""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from ledger.app.webhooks.delivery import Answer
from ledger.errors import WebhookUnreachable
from ledger.wiring.webhook_client import WebhookClient, is_public, sign

SECRET, OTHER = b"\x01" * 32, b"\x02" * 32
SHOWN = "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
BODY = json.dumps({"type": "credit.issued", "timestamp": "2023-12-19T00:00:00Z", "data": {}}).encode()


def signed(
    body: bytes = BODY, *, secrets: tuple[bytes, ...] = (SECRET,), age_s: int = 0, name: str = "msg_1"
) -> dict[str, str]:
    at = int(time.time()) - age_s
    return {
        "content-type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(secrets, name, at, body),
    }


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "examples" / "webhook_receiver.py"
    spec = importlib.util.spec_from_file_location("webhook_receiver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestTheExampleReceiver:
    def test_takes_what_we_sign_and_acts_on_it_once(self, example: ModuleType) -> None:
        receiver = example.Receiver(SHOWN)
        assert receiver.take(signed(), BODY) == (204, json.loads(BODY))
        assert receiver.take(signed(), BODY) == (200, None)
        assert receiver.take(signed(name="msg_2"), BODY) == (204, json.loads(BODY))

    def test_takes_a_message_of_either_secret_while_they_change(self, example: ModuleType) -> None:
        assert example.Receiver(SHOWN).take(signed(secrets=(OTHER, SECRET)), BODY)[0] == 204

    @pytest.mark.parametrize("age_s", [301, 86_400, -330])
    def test_refuses_what_is_old_or_from_the_future(self, example: ModuleType, age_s: int) -> None:
        assert example.Receiver(SHOWN).take(signed(age_s=age_s), BODY) == (401, None)

    def test_refuses_what_another_secret_signed(self, example: ModuleType) -> None:
        assert example.Receiver(SHOWN).take(signed(secrets=(OTHER,)), BODY) == (401, None)

    @pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
    def test_refuses_a_message_with_a_header_changed_or_missing(self, example: ModuleType, header: str) -> None:
        headers = signed()
        changed = {**headers, header: headers[header][:-1] + ("0" if headers[header][-1] != "0" else "1")}
        assert example.Receiver(SHOWN).take(changed, BODY) == (401, None)
        without = {name: value for name, value in headers.items() if name != header}
        assert example.Receiver(SHOWN).take(without, BODY) == (401, None)

    def test_refuses_a_changed_body(self, example: ModuleType) -> None:
        headers = signed()
        for at in range(len(BODY)):
            changed = BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :]
            assert example.Receiver(SHOWN).take(headers, changed) == (401, None)


class Handler(BaseHTTPRequestHandler):
    status = 204
    retry_after: str | None = None

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        if self.retry_after is not None:
            self.send_header("Retry-After", self.retry_after)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def receiver(**answer: object) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answering", (Handler,), answer))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks?x=1"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def drip() -> Iterator[str]:
    """A receiver that answers one byte of its status line at a time, for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"H")
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        stop.set()
        listener.close()


class TestTheClient:
    post = WebhookClient(allow_private=True, deadline_s=20)

    @pytest.mark.parametrize(
        ("status", "retry_after", "wish"),
        [(204, None, None), (503, "120", 120), (429, "Wed, 21 Oct 2015 07:28:00 GMT", None), (503, "-1", None)],
    )
    def test_tells_the_answer(self, status: int, retry_after: str | None, wish: int | None) -> None:
        with receiver(status=status, retry_after=retry_after) as url:
            assert self.post(url, signed(), BODY) == Answer(status, wish)

    def test_follows_no_redirect(self) -> None:
        with receiver(status=307) as url:
            assert self.post(url, signed(), BODY).status == 307

    def test_a_receiver_that_drips_ends_at_the_deadline(self) -> None:
        post = WebhookClient(allow_private=True, deadline_s=1)
        started = time.monotonic()
        with drip() as url, pytest.raises(WebhookUnreachable):
            post(url, signed(), BODY)
        # It drips for ever; a busy machine may take its time to notice the end of a second.
        assert time.monotonic() - started < 30

    def test_nobody_there_is_said(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with pytest.raises(WebhookUnreachable):
            self.post(f"http://127.0.0.1:{port}/", signed(), BODY)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://10.1.2.3/",
        "https://[fec0::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::a00:1]/",
        "https://[2002:a00:1::1]/",
        "https://[::7f00:1]/",
        "https://[ff0e::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://192.168.0.1:8443/",
        "https://0.0.0.0/",
        "https://[::ffff:127.0.0.1]/",
        "http://example.org/",
    ],
)
def test_addresses_of_the_own_network_are_not_asked(url: str) -> None:
    with pytest.raises(WebhookUnreachable, match=r"public|https"):
        WebhookClient()(url, signed(), BODY)


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "2002:5db8:d822::1"])
def test_public_addresses_are_asked_in_whichever_form(text: str) -> None:
    assert is_public(text)
