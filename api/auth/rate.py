"""How often one principal may ask, and one address try credentials: a bucket of tokens each, in this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from api.problems import RateLimited
from ledger.domain.time.instant import SECOND_NS

_MAX_BUCKETS = 10_000
_BURST_S = 10
_MINUTE_NS = 60 * SECOND_NS


class RateLimit:
    """``per_minute`` requests a minute for each key, ten seconds' worth of them at once; 0: no limit.

    A token is worth one request; a bucket is kept as the instant at which it would be full again, so that an
    idle bucket and one that was never used are the same.
    """

    def __init__(self, per_minute: int, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._cost_ns = _MINUTE_NS // per_minute if per_minute else 0
        self._burst_ns = max(_BURST_S * SECOND_NS, self._cost_ns)
        self._full_at_ns: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> None:
        """Raises ``RateLimited``, whose ``retry_after_s`` is enough for one more request."""
        self._ask(key, take=True)

    def check(self, key: Hashable) -> None:
        """Raises ``RateLimited`` where ``take`` would, and takes nothing."""
        self._ask(key, take=False)

    def _ask(self, key: Hashable, *, take: bool) -> None:
        if not self._cost_ns:
            return
        with self._lock:
            now_ns = self._now_ns()
            full_at_ns = max(self._full_at_ns.get(key, 0), now_ns) + self._cost_ns
            wait_ns = full_at_ns - now_ns - self._burst_ns
            if wait_ns <= 0:
                if take:
                    self._full_at_ns[key] = full_at_ns
                    self._full_at_ns.move_to_end(key)
                    self._forget(now_ns)
                return
        wait_s = -(-wait_ns // SECOND_NS)
        raise RateLimited(f"too many requests; ask again in {wait_s} s", retry_after_s=wait_s)

    def _forget(self, now_ns: int) -> None:
        """Buckets that are full again say nothing. The oldest go when there are too many all the same."""
        while self._full_at_ns:
            key, full_at_ns = next(iter(self._full_at_ns.items()))
            if full_at_ns > now_ns and len(self._full_at_ns) <= _MAX_BUCKETS:
                return
            del self._full_at_ns[key]
