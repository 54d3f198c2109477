"""The machine's own time and randomness."""

from __future__ import annotations

import os
import time


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.time_ns()


class SystemRandomness:
    """The operating system's randomness."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)
