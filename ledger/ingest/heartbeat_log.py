"""Heartbeat logs: NDJSON (``ledger.ingest.ndjson``), one heartbeat a line.

A row needs ``heartbeat_id`` and ``service`` (text), ``at`` (RFC 3339 with a zone) and ``covers_s``, a whole number of
seconds from 1 to 86,400: that long before ``at`` the collector was alive and recording. Other keys are free and part
of the row's body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import BinaryIO

from ledger.domain.rows.observation import DIGEST_BYTES, HeartbeatRow, Reason, RowRejection
from ledger.domain.terms.agreement import MAX_HEARTBEAT_S
from ledger.ingest.bulk_rows import MAX_ID_CHARS
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, shown, text_of


class HeartbeatLog(NdjsonLog[HeartbeatRow, HeartbeatRow]):
    """The rows of one heartbeat log."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name, _row_reader(), lambda _first, _lines: None)

    def __iter__(self) -> Iterator[HeartbeatRow | RowRejection]:
        return self.in_bulk()


def _row_reader() -> Callable[[int, bytes], HeartbeatRow]:
    """Reads one line; raises ``RowUnusable``."""
    decode, read_instant = object_reader(), instant_reader("at")

    def read(number: int, line: bytes) -> HeartbeatRow:
        body, canonical = decode(line)
        for field in ("heartbeat_id", "at", "service", "covers_s"):
            if field not in body:
                raise RowUnusable(Reason.FIELD_MISSING, field, "is missing")
        covers_s = body["covers_s"]
        if type(covers_s) is not int or not 0 < covers_s <= MAX_HEARTBEAT_S:
            message = f"must be a whole number from 1 to {MAX_HEARTBEAT_S}, not {shown(covers_s)}"
            raise RowUnusable(Reason.FIELD_INVALID, "covers_s", message)
        return HeartbeatRow(
            line=number,
            heartbeat_id=text_of(body, "heartbeat_id", MAX_ID_CHARS),
            body_digest=blake2b(canonical, digest_size=DIGEST_BYTES).digest(),
            service=text_of(body, "service", MAX_ID_CHARS),
            at_ns=read_instant(body["at"]),
            covers_s=covers_s,
        )

    return read
