"""Pages of other origins (CORS, Fetch standard): one may read what is answered to a guest token made for it.

Nothing is ever readable by any other origin, and cookies play no part. A preflight only lets a browser send a GET with
an ``Authorization`` header; what comes back is decided by the token that it carries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "/v1/"
MAX_AGE_S: Final = 600
_ORIGIN: Final = re.compile(rb"https?://[a-z0-9.:\[\]-]{1,280}")
_ASKED: Final = frozenset({"authorization", "if-none-match", "x-request-id"})

Headers = list[tuple[bytes, bytes]]


def preflight(path: str, origin: Sequence[bytes], method: Sequence[bytes], headers: Sequence[bytes]) -> Headers | None:
    """What permits a page to send a GET with credentials; None where this is no such question.

    ``origin``, ``method`` and ``headers`` are the values of ``Origin`` and of ``Access-Control-Request-Method`` and
    ``-Headers``.
    """
    asked = {name.strip().lower() for name in b",".join(headers).decode("latin-1").split(",") if name.strip()}
    if len(origin) != 1 or not _ORIGIN.fullmatch(origin[0]) or list(method) != [b"GET"]:
        return None
    if not path.startswith(PREFIX) or "authorization" not in asked or not asked <= _ASKED:
        return None
    return [
        (b"access-control-allow-origin", origin[0]),
        (b"access-control-allow-methods", b"GET"),
        (b"access-control-allow-headers", ", ".join(sorted(_ASKED)).encode()),
        (b"access-control-max-age", b"%d" % MAX_AGE_S),
        (b"vary", b"Origin"),
    ]


def readable(origin: Sequence[bytes], guest_origin: str | None) -> Headers:
    """What lets the page of ``guest_origin`` read the answer, where it is the one that asks."""
    if guest_origin is None:
        return []
    if list(origin) != [guest_origin.encode()]:
        return [(b"vary", b"Origin")]
    return [
        (b"access-control-allow-origin", origin[0]),
        (b"access-control-expose-headers", b"ETag, Retry-After, WWW-Authenticate, X-Request-ID"),
        (b"vary", b"Origin"),
    ]
