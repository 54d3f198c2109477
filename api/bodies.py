"""Bodies of requests, bounded: those that come too slowly, and JSON that would take a parser that recurses down."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from litestar import Request

from ledger.domain.record.canonical import require_shallow
from ledger.errors import BodyTooSlow
from ledger.settings import BODY_TIMEOUT_S


class BoundedRequest(Request[Any, Any, Any]):
    """The request class of every handler."""

    body_timeout_s: ClassVar[float] = BODY_TIMEOUT_S

    async def body(self) -> bytes:
        """The body as a whole. Raises ``BodyTooSlow``."""
        try:
            async with asyncio.timeout(self.body_timeout_s):
                return await super().body()
        except TimeoutError:
            raise too_slow(self.body_timeout_s) from None

    async def json(self) -> Any:
        """The body as JSON. Raises ``BodyTooSlow``, or ``NotCanonical`` for what is nested too deeply."""
        require_shallow(await self.body())
        return await super().json()


def bounded_by(timeout_s: float) -> type[BoundedRequest]:
    """The request class whose bodies have this time to come in."""
    return type("TimedRequest", (BoundedRequest,), {"body_timeout_s": timeout_s})


def too_slow(timeout_s: float) -> BodyTooSlow:
    """The refusal of a body that did not come in its time."""
    return BodyTooSlow(
        f"the body did not come whole within {timeout_s:g} s; send smaller bodies", field="body", timeout_s=timeout_s
    )
