"""A node that is asked may answer anything, also nothing, at any pace; whoever asks is told so and goes on."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ledger.attest.checks.json_rpc import HttpNode
from ledger.errors import ChainUnavailable

pytestmark = pytest.mark.slow

BODY = b'{"jsonrpc":"2.0","id":1,"result":"0x1"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def node(answer: bytes, *, pause_s: float = 0.0, forever: bytes = b"") -> Iterator[str]:
    """A node that says these bytes, one after the other with a pause between, and then more of the others for good."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            # Whoever asks may be gone at any moment, or never have come.
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    talk(connection)

        def talk(connection: socket.socket) -> None:
            connection.recv(65536)
            for piece in [answer] if not pause_s else (bytes([each]) for each in answer):
                connection.sendall(piece)
                if over.wait(pause_s):
                    return
            while forever and not over.wait(pause_s):
                connection.sendall(forever)
            # What is closed with something unread is reset.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            # Closing alone does not wake who waits for a connection.
            server.shutdown(socket.SHUT_RDWR)
            serving.join(5)
            assert not serving.is_alive(), "the connection is still open"


def test_an_answer_is_its_result() -> None:
    with node(HEAD % len(BODY) + BODY) as url:
        assert HttpNode(url).ask("eth_chainId") == "0x1"


@pytest.mark.parametrize(
    ("answer", "forever"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Patience: ", b"a"),
        (HEAD % 1000, b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["a header without end", "a body a byte at a time", "one interim answer after the other"],
)
def test_a_node_that_never_comes_to_an_end_is_waited_for_no_longer_than_the_deadline(
    answer: bytes, forever: bytes
) -> None:
    with node(answer, pause_s=0.02, forever=forever) as url:
        asked = HttpNode(url, timeout_s=5, deadline_s=0.5)
        started = time.monotonic()
        with pytest.raises(ChainUnavailable, match=r"has not come to the end of its answer after 0\.5 s"):
            asked.ask("eth_chainId")
        assert time.monotonic() - started < 4


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # Decoded, this takes the process down: libraries raise the interpreter's limit past what the stack holds.
        (b"[" * 1_000_000, "no answer to it"),
        (b"\xff", "something that is no JSON"),
        (b"[]", "no answer to it"),
        (b'{"jsonrpc":"2.0","id":2,"result":"0x1"}', "no answer to it"),
        (b'{"jsonrpc":"2.0","id":1}', "no answer to it"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}', "refuses eth_chainId: no"),
        (b" " * (4 * 1024 * 1024 + 1), "with more than 4194304 bytes"),
    ],
)
def test_what_is_no_answer_is_named(body: bytes, said: str) -> None:
    with node(HEAD % len(body) + body) as url, pytest.raises(ChainUnavailable, match=said):
        HttpNode(url).ask("eth_chainId")


def test_why_nothing_answers_is_said_in_the_systems_words() -> None:
    said = r"^the node at 127\.0\.0\.1:9 does not answer \(Connection refused\)$"
    with pytest.raises(ChainUnavailable, match=said):
        HttpNode("http://user:secret@127.0.0.1:9/key").ask("eth_chainId")


def test_a_question_stays_with_the_node_that_was_named() -> None:
    with (
        node(HEAD % len(BODY) + BODY) as elsewhere,
        node(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % elsewhere.encode()) as url,
        pytest.raises(ChainUnavailable, match="HTTP 302"),
    ):
        HttpNode(url).ask("eth_chainId")
