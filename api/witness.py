"""The witness's one route (C2SP tlog-witness): a small ASGI application of its own.

Errors are plain text: clients are programs that look at the status, and people who read a log.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

from api.lifespan import acknowledge
from ledger.app.log.witness import Witness
from ledger.errors import (
    BadInput,
    NoteInvalid,
    NoteUnverified,
    NotFound,
    SlaLedgerError,
    TreeProofInvalid,
    Unavailable,
    WitnessConflict,
)
from ledger.merkle.witness import MAX_REQUEST_BYTES

PATH: Final = "/add-checkpoint"
TEXT: Final = "text/plain; charset=utf-8"
SIZE_TYPE: Final = "text/x.tlog.size"

_LOG = logging.getLogger(__name__)
# Most special first: NoteUnverified is a NoteInvalid.
_STATUS: Final[tuple[tuple[type[SlaLedgerError], int], ...]] = (
    (NotFound, 404),
    (NoteUnverified, 403),
    (NoteInvalid, 400),
    (BadInput, 400),
    (TreeProofInvalid, 422),
    (Unavailable, 503),
)


class WitnessApp:
    """``POST /add-checkpoint`` and nothing else."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await acknowledge(receive, send)
        elif scope["type"] == "http":
            status, media_type, body = await self._answer(scope, receive)
            headers = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body))]
            headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
            if status == HTTPStatus.METHOD_NOT_ALLOWED:
                headers.append((b"allow", b"POST"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, str, bytes]:
        if scope["path"] != PATH:
            return _text(404, f"a witness serves POST {PATH} only")
        if scope["method"] != "POST":
            return _text(405, f"a witness serves POST {PATH} only")
        body = await _read(receive)
        if body is None:
            return _text(413, f"the request has more than {MAX_REQUEST_BYTES} bytes")
        try:
            # The disk is waited for in a thread: a slow one must not stop other requests from being refused.
            return 200, TEXT, await asyncio.to_thread(self._witness.add_checkpoint, body)
        except WitnessConflict as error:
            return 409, SIZE_TYPE, b"%d\n" % error.data["size"]
        except SlaLedgerError as error:
            status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
            _LOG.warning("%d %s", status, error.message)
            return _text(status, error.message)


async def _read(receive: Any) -> bytes | None:
    """The request's body; None where it is too long, of which no more is read than that."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MAX_REQUEST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _text(status: int, message: str) -> tuple[int, str, bytes]:
    return status, TEXT, f"{message}\n".encode()
