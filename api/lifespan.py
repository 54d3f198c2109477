"""What a server is told when it starts and stops an application: nothing here does either with it."""

from __future__ import annotations

from typing import Any


async def acknowledge(receive: Any, send: Any) -> None:
    """Answer the messages of ASGI's lifespan protocol until the last of them."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
