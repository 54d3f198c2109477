"""Unpacking gzip in bounds: a body of a few kilobytes can unfold to gigabytes."""

from __future__ import annotations

import zlib

from ledger.domain.rows.telemetry import Doubt
from ledger.errors import BodyTooLarge, MediaTypeUnsupported
from ledger.ingest.reading import unusable

MAX_RATIO = 200
"""What is unpacked may be this many times as large as what came. Request logs shrink about tenfold; JSON of equal rows
a hundredfold."""

RATIO_FROM_BYTES = 1_000_000
"""Below this size the ratio does not matter."""

ENCODINGS = ("identity", "gzip")
_STEP_BYTES = 1 << 18
_GZIP = 31


def unpack(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its Content-Encoding, which is ``identity`` or ``gzip``.

    Raises ``MediaTypeUnsupported``, ``TelemetryUnusable`` for what is no gzip, and ``BodyTooLarge`` for what unfolds to
    more than ``max_bytes`` or ``MAX_RATIO`` times its size.
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise MediaTypeUnsupported(
            f"Content-Encoding: {encoding[:40]!r} is not read here; send gzip or nothing",
            field="Content-Encoding",
            encodings=list(ENCODINGS),
        )
    limit = min(max_bytes, max(RATIO_FROM_BYTES, len(body) * MAX_RATIO))
    parts: list[bytes] = []
    size = 0
    rest = body
    try:
        # Several members one after the other are one body (RFC 1952, section 2.2).
        while rest:
            member = zlib.decompressobj(_GZIP)
            while not member.eof:
                part = member.decompress(rest, _STEP_BYTES)
                rest = member.unconsumed_tail
                size += len(part)
                if size > limit:
                    raise BodyTooLarge(
                        f"the body unfolds to more than {limit} bytes; send it in parts",
                        field="body",
                        limit=limit,
                    )
                parts.append(part)
                if not rest and not part and not member.eof:
                    raise unusable("body", "the gzip data is cut off", Doubt.MALFORMED)
            rest = member.unused_data
    except zlib.error as error:
        raise unusable("body", f"is no gzip: {error}") from None
    return b"".join(parts)
