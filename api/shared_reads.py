"""One read for all who ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Reads in a thread, once for everybody who asked before the read began.

    So whoever asks gets a value that was read after they asked, and a thousand who ask at once cost two reads. Used
    by one event loop.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Raises what ``read`` raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
        # Somebody who goes away does not take the read from the others.
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[T] | None) -> T:
        if running is not None:
            await asyncio.wait([running])
        # From here on whoever asks waits for another read.
        self._running, self._next = self._next, None
        return await asyncio.to_thread(self._read)
