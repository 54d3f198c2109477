"""Sending webhooks over HTTP: signed, to public addresses alone, bounded in time and size."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

from standardwebhooks import Webhook

from ledger.app.webhooks.delivery import Answer
from ledger.errors import WebhookUnreachable

CONNECT_TIMEOUT_S = 5
DEADLINE_S = 15
"""For the whole exchange: a receiver that answers a byte at a time would hold a worker for hours."""

_MAX_RETRY_AFTER_DIGITS = 6
_NAT64, _NAT64_OWN = ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48")
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")


def sign(secrets: Sequence[bytes], message_id: str, timestamp_s: int, body: bytes) -> str:
    """One ``v1,...`` signature a secret, separated by spaces (Standard Webhooks, "webhook-signature")."""
    at = datetime.fromtimestamp(timestamp_s, UTC)
    return " ".join(Webhook(secret).sign(message_id, at, body.decode()) for secret in secrets)


class WebhookClient:
    """``ledger.app.webhooks.delivery.Post``.

    The name is resolved once and exactly the address that was checked is asked: an endpoint that resolves to a
    machine of the operator's own network (loopback, private, link-local) would make the server ask it on somebody's
    behalf. ``allow_private`` lifts that, and allows plain http, for tests and closed networks. Nothing is followed.
    """

    def __init__(self, *, allow_private: bool = False, deadline_s: float = DEADLINE_S) -> None:
        self._allow_private = allow_private
        self._deadline_s = deadline_s
        self._tls = ssl.create_default_context()

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Raises ``WebhookUnreachable``."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not self._allow_private:
            raise WebhookUnreachable("its address is not https, which this server requires")
        try:
            return self._exchange(parts, headers, body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise WebhookUnreachable(f"it did not answer: {str(error) or type(error).__name__}") from error

    def _exchange(self, parts: SplitResult, headers: Mapping[str, str], body: bytes) -> Answer:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        family, address = self._resolve(host, port)
        connection = http.client.HTTPConnection(host, port)
        connection.sock = socket.socket(family, socket.SOCK_STREAM)
        # Shutting the socket down from outside ends whatever the exchange waits for.
        watch = threading.Timer(self._deadline_s, _shut, (connection,))
        watch.daemon = True
        watch.start()
        try:
            connection.sock.settimeout(CONNECT_TIMEOUT_S)
            connection.sock.connect(address)
            if parts.scheme == "https":
                connection.sock = self._tls.wrap_socket(connection.sock, server_hostname=host)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, _seconds(answer.getheader("retry-after")))
        finally:
            watch.cancel()
            connection.close()

    def _resolve(self, host: str, port: int) -> tuple[int, tuple[object, ...]]:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if self._allow_private or is_public(str(address[0]).partition("%")[0]):
                return family, address
        raise WebhookUnreachable(f"{host} is no public address, and this server asks no others")


def is_public(text: str) -> bool:
    """Whether an address belongs to nobody's own network, in whichever form it stands.

    Of those of IPv6 that lead to one of IPv4 (6to4, NAT64: RFC 3056, 6052, 8215) that one counts; addresses of a site
    (RFC 3879) are private, although the library calls them global.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address.sixtofour
        if address.is_site_local or address in _NAT64_OWN or address in _V4_COMPATIBLE:
            return False
        if inner is not None and not inner.is_global:
            return False
    return address.is_global and not address.is_multicast


def _shut(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError):  # not connected, or closed already
        connection.sock.shutdown(socket.SHUT_RDWR)


def _seconds(text: str | None) -> int | None:
    """Retry-After in seconds; its other form, a date, is as good as none."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _MAX_RETRY_AFTER_DIGITS):
        return None
    return int(text)
