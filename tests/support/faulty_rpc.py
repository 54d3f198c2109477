"""A node that answers badly: stands before a real one and, by a seed, answers late, wrongly, twice or not at all."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

Fault = str
"""Name of one way to answer badly; see ``_FAULTS``."""

SECRET = "k3y-0f-the-node"
LATE_S = 1.5
"""Longer than the tests' clients wait."""


def _late(forward: Callable[[], Any]) -> bytes | int:
    answer = forward()
    time.sleep(LATE_S)
    return json.dumps(answer).encode()


def _lost(forward: Callable[[], Any]) -> bytes | int:
    """The node did it, and nobody hears of it."""
    forward()
    return 0


def _twice(forward: Callable[[], Any]) -> bytes | int:
    """Done two times; the second answer is the one that arrives."""
    forward()
    return json.dumps(forward()).encode()


def _overloaded(forward: Callable[[], Any]) -> bytes | int:
    return 503


def _garbage(forward: Callable[[], Any]) -> bytes | int:
    return b"<html>the proxy is being repaired</html>"


def _another(forward: Callable[[], Any]) -> bytes | int:
    """The answer to another request."""
    return json.dumps({**forward(), "id": 987_654_321}).encode()


def _shapeless(forward: Callable[[], Any]) -> bytes | int:
    answer = forward()
    return json.dumps({"jsonrpc": "2.0", "id": answer["id"], "error": "out of order"}).encode()


def _refusal(forward: Callable[[], Any]) -> bytes | int:
    answer = forward()
    error = {"code": -32005, "message": "too many requests"}
    return json.dumps({"jsonrpc": "2.0", "id": answer["id"], "error": error}).encode()


_FAULTS: dict[Fault, Callable[[Callable[[], Any]], bytes | int]] = {
    "late": _late,
    "lost": _lost,
    "twice": _twice,
    "overloaded": _overloaded,
    "garbage": _garbage,
    "another": _another,
    "shapeless": _shapeless,
    "refusal": _refusal,
}
FAULTS = tuple(_FAULTS)


class FaultyRpc:
    """Answers a share of all requests by one of ``faults``, drawn by a seed; ``share`` may be set at any time.

    ``reshape`` gets each request and its answer and gives what is answered instead.
    """

    def __init__(self, target: str, seed: int, faults: Sequence[Fault] = FAULTS) -> None:
        self.share = 0.0
        self.committed: list[Fault] = []
        self.target = target
        self._random = random.Random(seed)
        self._faults = faults
        self._drawing = threading.Lock()
        self.url = ""
        self.reshape: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda request, answer: answer

    def answer(self, body: bytes) -> bytes | int:
        def forward() -> Any:
            headers = {"Content-Type": "application/json"}
            answer = requests.post(self.target, data=body, headers=headers, timeout=30).json()
            return self.reshape(json.loads(body), answer)

        with self._drawing:
            fault = self._random.choice(self._faults) if self._random.random() < self.share else None
            if fault is not None:
                self.committed.append(fault)
        return json.dumps(forward()).encode() if fault is None else _FAULTS[fault](forward)


@contextmanager
def faulty_rpc(target: str, seed: int, faults: Sequence[Fault] = FAULTS) -> Iterator[FaultyRpc]:
    """A proxy before the node ``target`` on a free port; its URL holds a secret, as those of node operators do."""
    rpc = FaultyRpc(target, seed, faults)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = rpc.answer(self.rfile.read(int(self.headers["Content-Length"])))
            if answer == 0:
                self.close_connection = True
                return
            status, body = (answer, b"") if isinstance(answer, int) else (200, answer)
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rpc.url = f"http://user:{SECRET}@127.0.0.1:{server.server_address[1]}/v2/{SECRET}"
    try:
        yield rpc
    finally:
        server.shutdown()
        server.server_close()
