"""A port that is a test's own from its first moment to its last, whether its server runs just then or not."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_port() -> Iterator[int]:
    """A port of 127.0.0.1 that the system gives to nobody else before the end of the block.

    A socket that is bound to it and never listens keeps it: who connects there is refused, and a server that is told
    the number may bind it too, because both allow that (SO_REUSEADDR), and may go down and come back. A port that is
    only looked up can be somebody else's before the server has it, and that somebody's server would answer for it.
    """
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        number = int(kept.getsockname()[1])
        if sys.platform != "linux":
            kept.close()  # elsewhere no two may bind the same port
        yield number
