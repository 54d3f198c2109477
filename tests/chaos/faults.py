"""What goes wrong, in an order and at times that follow from the seed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import redis

from tests.support.deployment import Deployment

PLAN: Mapping[str, int] = {
    "kill -9 worker": 3,
    "kill -9 prove worker": 2,
    "kill -9 anchor worker": 2,
    "kill -9 relay": 2,
    "kill -9 api": 2,
    "kill -9 beat": 1,
    "FLUSHALL": 2,
    "deliver again": 4,
    "kill -9 redis": 1,
}
GAP_S = (1.0, 2.0)
DOWN_S = (0.0, 1.5)


@dataclass
class Faults:
    """Does ``PLAN`` in a thread; ``done`` says how often each came about."""

    deployment: Deployment
    seed: int
    say: Callable[[str], None]
    done: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, dict[bytes, None]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()
        self._over.set()

    def _run(self) -> None:
        draw = random.Random(self.seed)
        plan = [name for name, times in PLAN.items() for _ in range(times)]
        draw.shuffle(plan)
        for name in plan:
            time.sleep(draw.uniform(*GAP_S))
            self.say(name)
            self._do(name, draw.uniform(*DOWN_S))
            self.done[name] = self.done.get(name, 0) + 1

    def _do(self, name: str, down_s: float) -> None:
        if name == "FLUSHALL":
            self.deployment.redis.client().flushall()
        elif name == "deliver again":
            self._deliver_again()
        elif name == "kill -9 redis":
            self.deployment.redis.kill()
            time.sleep(3 + down_s)
            self.deployment.redis.start()
        else:
            role = name.removeprefix("kill -9 ")
            self.deployment.kill(role)
            time.sleep(down_s)
            self.deployment.start(role)

    def _deliver_again(self) -> None:
        """Put every message that was ever seen into its queue once more, twice."""
        client = self.deployment.redis.client()
        for stage, messages in self._seen.items():
            for message in list(messages):
                client.rpush(stage, message, message)

    def _watch(self) -> None:
        """Remember messages as they pass through Redis."""
        while not self._over.is_set():
            try:
                for stage, messages in self.deployment.queued().items():
                    self._seen.setdefault(stage, {}).update(dict.fromkeys(messages))
            except redis.RedisError:
                time.sleep(0.2)
            time.sleep(0.002)
