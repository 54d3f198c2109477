"""A chain's node as the offline verifier asks it: JSON-RPC over HTTP with the standard library alone.

It shares nothing with the code that anchors (``ledger.anchor``), so that a fault there is not repeated here. What a
node answers is somebody else's word: the shape is checked here, what it says in ``chain_checks``.
Reference: JSON-RPC 2.0, sections 4-5; execution-apis for encodings.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ledger.domain.terms.nesting import too_deep
from ledger.errors import ChainUnavailable, SettingInvalid

TIMEOUT_S: Final = 10.0
"""The longest silence."""
DEADLINE_S: Final = 60.0
"""The longest that one whole answer may take: a node that says a byte now and then is never silent."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
_RETRY_AFTER_S: Final = 5

Ask = Callable[..., Any]
"""``ask(method, *params)``: the result of a JSON-RPC method. Raises ChainUnavailable where there is none."""


class HttpNode:
    """The node at a URL. Of the URL only host and port are ever shown: operators put keys into the rest."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, deadline_s: float = DEADLINE_S) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in {"http", "https"} or not host:
            raise SettingInvalid("--rpc must be the http or https URL of a node", setting="--rpc")
        self.host = host if port is None else f"{host}:{port}"
        # urllib refuses a name and a password in the URL, and takes them in a header.
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._headers = {"Content-Type": "application/json"} | _authorization(parts.username, parts.password)
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._asked = 0
        self._opener = urllib.request.build_opener(_NoRedirect)

    def ask(self, method: str, *params: Any) -> Any:
        """The result of ``method``. Raises ChainUnavailable for everything but a well-formed answer to it."""
        self._asked += 1
        body = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": list(params)}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)  # noqa: S310
        data = self._answer_to(request)
        if len(data) > MAX_ANSWER_BYTES:
            raise self._unavailable(f"answers {method} with more than {MAX_ANSWER_BYTES} bytes")
        try:
            answer: Any = None if too_deep(data) else json.loads(data)
        except ValueError:
            raise self._unavailable("answers with something that is no JSON") from None
        fits = isinstance(answer, dict) and answer.get("jsonrpc") == "2.0" and answer.get("id") == self._asked
        if not fits or ("error" not in answer and "result" not in answer):
            raise self._unavailable(f"answers {method} with something that is no answer to it")
        if "error" in answer:
            refusal = answer["error"]
            said = str(refusal.get("message") if isinstance(refusal, dict) else refusal)[:200]
            raise self._unavailable(f"refuses {method}: {said}")
        return answer["result"]

    def _answer_to(self, request: urllib.request.Request) -> bytes:
        """What comes back in time. A socket only bounds how long nothing comes, so a thread waits for it."""
        found: list[bytes | Exception] = []

        def exchange() -> None:
            try:
                with self._opener.open(request, timeout=self._timeout_s) as response:
                    found.append(response.read(MAX_ANSWER_BYTES + 1))
            except urllib.error.HTTPError as error:
                # It holds the connection.
                error.close()
                found.append(error)
            except (OSError, http.client.HTTPException) as error:
                found.append(error)

        waiting = threading.Thread(target=exchange, name="json-rpc", daemon=True)
        waiting.start()
        waiting.join(self._deadline_s)
        if not found:
            raise self._unavailable(f"has not come to the end of its answer after {self._deadline_s:g} s")
        data = found[0]
        if isinstance(data, urllib.error.HTTPError):
            raise self._unavailable(f"answers with HTTP {data.code}")
        if isinstance(data, Exception):
            raise self._unavailable(f"does not answer ({_why(data)})")
        return data

    def _unavailable(self, what: str) -> ChainUnavailable:
        return ChainUnavailable(f"the node at {self.host} {what}", host=self.host, retry_after_s=_RETRY_AFTER_S)


def _why(error: Exception) -> str:
    """The system's words, such as "Connection refused"; not the error's own, which may show the URL."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return (reason.strerror if isinstance(reason, OSError) else None) or type(error).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A question stays with the node that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    both = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {"Authorization": f"Basic {b64encode(both).decode()}"}
