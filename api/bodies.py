"""Bodies that are JSON, refused before a parser that recurses sees what would take the process down."""

from __future__ import annotations

from typing import Any

from litestar import Request

from ledger.domain.canonical import require_shallow


class BoundedRequest(Request[Any, Any, Any]):
    """The request class of every handler. Its ``json`` raises ``NotCanonical`` for what is nested too deeply."""

    async def json(self) -> Any:
        require_shallow(await self.body())
        return await super().json()
