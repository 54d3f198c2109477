"""A chain over JSON-RPC by HTTP: what its node answers is checked for shape, and its URL is never shown.

Nodes are asked through web3.py; this provider stands beneath it. Many URLs of node operators hold a key in their
path, and the errors of HTTP libraries quote them, so such errors end here. Reference: JSON-RPC 2.0, sections 4-5.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import requests
from eth_typing import URI
from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

from ledger.domain.terms.nesting import too_deep
from ledger.errors import ChainUnavailable

CONNECT_TIMEOUT_S: Final = 3.0
REQUEST_TIMEOUT_S: Final = 10.0
RETRY_AFTER_S: Final = 5
HOME_SETTING: Final = "SLA_LEDGER_CHAIN_RPC"

# Where an error may be what a contract or the pool of transactions says about what was asked.
_JUDGED: Final = frozenset({"eth_call", "eth_sendRawTransaction"})


class RpcProvider(HTTPProvider):
    """One node, or what is ``called`` otherwise and named by another ``setting``.

    Raises ChainUnavailable, naming its host alone, for everything but a well-formed answer.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        called: str = "the node",
        setting: str = HOME_SETTING,
    ) -> None:
        # Repeating is the outbox's business: what waits here would hold a worker.
        super().__init__(URI(url), {"timeout": (CONNECT_TIMEOUT_S, timeout_s)}, exception_retry_configuration=None)
        self.host = shown_host(url)
        self._called = called
        self._setting = setting

    def __str__(self) -> str:
        return f"RPC connection to {self.host}"

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        data = self.encode_rpc_request(method, params)
        try:
            raw = self._make_request(method, data)
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "an error"
            self._refuse(f"answers with HTTP {status}", answered=True)
        except (OSError, requests.RequestException) as error:
            self._refuse(f"does not answer ({type(error).__name__})")
        try:
            answer: Any = None if too_deep(raw) else json.loads(raw)
        except ValueError:
            self._refuse("answers with something that is no JSON")
        if not _fits(answer, json.loads(data)["id"]):
            self._refuse(f"answers {method} with something that is no answer to it")
        if "error" in answer and method not in _JUDGED:
            self._refuse(f"refuses {method}: {answer['error']['message']}", answered=True)
        return answer  # type: ignore[no-any-return]

    def _refuse(self, what: str, *, answered: bool = False) -> NoReturn:
        # Without its cause, which quotes the URL.
        raise ChainUnavailable(
            f"{self._called} at {self.host} {what}; check {self._setting} and {self._called}",
            host=self.host,
            answered=answered,
            retry_after_s=RETRY_AFTER_S,
        ) from None


def rpc_web3(url: str, *, timeout_s: float = REQUEST_TIMEOUT_S, setting: str = HOME_SETTING) -> Web3:
    """A web3 object over the node at ``url``, which ``setting`` names."""
    # At their lowest level these write whole URLs.
    for name in ("urllib3", "web3"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return Web3(RpcProvider(url, timeout_s=timeout_s, setting=setting))


def shown_host(url: str) -> str:
    """The part of a node's URL that may be shown: host and port."""
    parts = urlsplit(url)
    host = parts.hostname or "?"
    return host if parts.port is None else f"{host}:{parts.port}"


def _fits(answer: object, request_id: int) -> bool:
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0" or answer.get("id") != request_id:
        return False
    if "error" not in answer:
        return "result" in answer
    error = answer["error"]
    return isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
