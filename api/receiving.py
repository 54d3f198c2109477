"""How a body comes in: its type first, then in its turn within a size and a time, unpacked in bounds, read off the
event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import anyio
from anyio import to_thread
from litestar import Request

from api.bodies import too_slow
from ledger.app.access import Principal
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.app.work.retrying import write
from ledger.domain.time.instant import Clock
from ledger.errors import (
    BodyTooLarge,
    MediaTypeUnsupported,
    QueryInvalid,
    SlaLedgerError,
)
from ledger.ingest.packed import unpack
from ledger.settings import IngestSettings

T = TypeVar("T")
AnyRequest: TypeAlias = Request[Any, Any, Any]

BODIES = 8
"""Bodies that are in memory as they came: received in part or whole and not yet done. This many times the largest is
what they take at most; those of other requests wait in the network until one is done or given up."""

PARSERS = 4
"""Bodies of these that are unpacked and worked on at a time. Each takes up to the largest once more, and what is made
of it, beside."""


class Outcomes:
    """How many bodies of each route came to what: ``recorded``, or the code of the error. For all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, route: str, outcome: str) -> None:
        with self._lock:
            self._counts[route, outcome] += 1

    def counts(self) -> Mapping[tuple[str, str], int]:
        """By (route, outcome)."""
        with self._lock:
            return dict(self._counts)


@dataclass(frozen=True)
class Intake:
    """What the routes that take facts stand on."""

    database: Database
    attestor: Attestor
    clock: Clock
    settings: IngestSettings
    outcomes: Outcomes = field(default_factory=Outcomes)
    bodies: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(BODIES))
    parsers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(PARSERS))

    def write(self, principal: Principal, work: Callable[[Transaction], T]) -> T:
        """``work`` in one transaction of the principal's tenant; again where another one was in its way."""
        return write(self.database.of_tenant(principal.tenant), work)

    async def take(
        self,
        request: AnyRequest,
        media_types: Sequence[str],
        max_bytes: int,
        work: Callable[[str, bytes], T],
    ) -> T:
        """Receive a body and work on it in a thread: ``work(media type, unpacked body)``. The outcome is counted.

        Of a body that has to wait for its turn nothing is read, and its time to come in has not begun.
        """
        route = request.url.path
        try:
            media_type = _media_type(request, media_types)
            encoding = request.headers.get("content-encoding", "").strip().lower()
            _check_length(request, max_bytes)
            async with self.bodies:
                body = await _receive(request, max_bytes, self.settings.body_timeout_s)
                found = await to_thread.run_sync(
                    lambda: work(media_type, unpack(body, encoding, max_bytes)), limiter=self.parsers
                )
        except SlaLedgerError as error:
            self.outcomes.count(route, error.code)
            raise
        self.outcomes.count(route, "recorded")
        return found


def _media_type(request: AnyRequest, media_types: Sequence[str]) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise MediaTypeUnsupported(
            f"Content-Type: {media_type[:80]!r} is not read here; send {', '.join(media_types)}",
            field="Content-Type",
            media_types=list(media_types),
        )
    return media_type


def _check_length(request: AnyRequest, max_bytes: int) -> None:
    declared = request.headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit() or int(declared[:20]) > max_bytes:
        raise _too_large(max_bytes)


async def _receive(request: AnyRequest, max_bytes: int, timeout_s: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > max_bytes:
                    raise _too_large(max_bytes)
                parts.append(part)
    except TimeoutError:
        raise too_slow(timeout_s) from None
    if not size:
        raise QueryInvalid("the body is empty", field="body", parameter="body")
    return b"".join(parts)


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is larger than the {max_bytes} bytes that this route takes; send it in parts",
        field="body",
        limit=max_bytes,
    )
