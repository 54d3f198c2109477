"""A signer of transactions behind HTTP, as web3signer is one; it may be told to answer with something else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils import to_checksum_address

SECRET = "s1gner-s3cret"


class HttpSigner:
    """Signs for ``account``. ``change`` gets the fields asked for, ``shape`` what would be answered."""

    def __init__(self, account: LocalAccount) -> None:
        self.account = account
        self.change: Callable[[dict[str, Any]], object] = lambda fields: None
        self.shape: Callable[[str], Any] = lambda raw: {"result": raw}
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["method"] == "eth_signTransaction"
        (asked,) = request["params"]
        self.asked.append(dict(asked))
        if to_checksum_address(asked.pop("from")) != self.account.address:
            return {"error": {"code": -32000, "message": "unknown account"}}
        self.change(asked)
        asked.update({"to": to_checksum_address(asked["to"])} if "to" in asked else {})
        signed = self.account.sign_transaction(asked)
        shaped: dict[str, Any] = self.shape("0x" + bytes(signed.raw_transaction).hex())
        return shaped


@contextmanager
def http_signer(account: LocalAccount) -> Iterator[HttpSigner]:
    """A signer on a free port; its URL holds a secret, as those with a password do."""
    signer = HttpSigner(account)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **signer.answer(request)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signer.url = f"http://user:{SECRET}@127.0.0.1:{server.server_address[1]}/{SECRET}"
    try:
        yield signer
    finally:
        server.shutdown()
        server.server_close()


def other_account() -> LocalAccount:
    """Somebody else's."""
    account: LocalAccount = Account.from_key(b"\x66" * 32)
    return account
