"""Fetching one exposition over HTTP, bounded in size and time."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from ledger.errors import TargetUnavailable
from ledger.ingest.prometheus import OPENMETRICS, TEXT

MAX_BYTES = 16_000_000
TIMEOUT_S = 10.0
ACCEPT = f"{OPENMETRICS};version=1.0.0,{TEXT};version=0.0.4;q=0.5"
_PART_BYTES = 1 << 16
_OK = 200


@dataclass(frozen=True, slots=True)
class Exposition:
    """What an endpoint answered; ``media_type`` without parameters, in lowercase."""

    media_type: str
    data: bytes


def fetch(url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES) -> Exposition:
    """GET a metrics endpoint. Redirects are not followed: the address that was named is the one that is asked.

    Raises ``TargetUnavailable`` for anything but a whole answer 200 within size and time.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _unavailable(url, f"is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _unavailable(url, "is no http or https URL")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    deadline = time.monotonic() + timeout_s
    connection = kind(host, port, timeout=timeout_s)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"Accept": ACCEPT, "Accept-Encoding": "identity"})
        answer = connection.getresponse()
        if answer.status != _OK:
            raise _unavailable(url, f"answered {answer.status}")
        media_type = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        data = bytearray()
        # ``read1`` comes back with what is there: an endpoint that drips a byte a second must not hold us.
        while part := answer.read1(_PART_BYTES):
            data += part
            if len(data) > max_bytes:
                raise _unavailable(url, f"answered more than {max_bytes} bytes")
            if time.monotonic() > deadline:
                raise _unavailable(url, f"did not answer whole within {timeout_s:g} s")
        if answer.length:
            raise _unavailable(url, "broke its answer off")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unavailable(url, f"cannot be read: {str(error) or type(error).__name__}") from None
    finally:
        connection.close()
    return Exposition(media_type, bytes(data))


def _unavailable(url: str, message: str) -> TargetUnavailable:
    shown = url.partition("?")[0].rpartition("@")[2][:200]
    return TargetUnavailable(f"the target {shown} {message}", field="target", target=shown)
