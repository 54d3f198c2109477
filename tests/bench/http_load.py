"""A small load of HTTP GETs over kept-alive connections: as little work a request as Python allows, so that the
server is what is measured."""

from __future__ import annotations

import asyncio
import re
import time

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


def requests_per_second(host: str, port: int, path: str, *, headers: str = "", seconds: float, clients: int) -> float:
    """Complete answers a second over ``clients`` connections; anything but a 200 ends the measurement."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}\r\n".encode()

    async def client(until: float) -> int:
        reader, writer = await asyncio.open_connection(host, port)
        count = 0
        while time.perf_counter() < until:
            writer.write(request)
            await _read_answer(reader)
            count += 1
        writer.close()
        return count

    async def load() -> float:
        started = time.perf_counter()
        counts = await asyncio.gather(*(client(started + seconds) for _ in range(clients)))
        return sum(counts) / (time.perf_counter() - started)

    return asyncio.run(load())


def get(host: str, port: int, path: str, *, headers: str = "") -> bytes:
    """The body of one answer."""

    async def once() -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}\r\n".encode())
        body = await _read_answer(reader)
        writer.close()
        return body

    return asyncio.run(once())


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not head.startswith(b"HTTP/1.1 200 ") or length is None:
        raise SystemExit(f"the server answered {head[:200]!r}; the figure would mean nothing")
    return await reader.readexactly(int(length[1]))
