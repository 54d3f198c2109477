"""What goes wrong, in an order and at times that follow from the seed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import redis

from tests.support.deployment import ROLES, Deployment

REDIS_AWAY = "Redis away"
KILLS = {f"kill -9 {role}": role for role in ROLES}
GAP_S = (1.0, 2.0)
DOWN_S = (0.0, 1.5)
AHEAD = 3
"""So many faults come about while one thing is settled and takes long."""

FULL: Mapping[str, int] = {
    "kill -9 worker": 3,
    "kill -9 prove worker": 2,
    "kill -9 anchor worker": 2,
    "kill -9 relay": 2,
    "kill -9 api": 2,
    "kill -9 beat": 1,
    "FLUSHALL": 2,
    "deliver again": 4,
    REDIS_AWAY: 1,
}
"""How often each fault comes about in a full run."""

SHORT: Mapping[str, int] = {"kill -9 worker": 1, "kill -9 relay": 1, "FLUSHALL": 1, "deliver again": 1, REDIS_AWAY: 1}


def planned(plan: Mapping[str, int], seed: int) -> list[tuple[str, float, float]]:
    """Faults in their order: the name, seconds of waiting before it, and seconds that what it hits stays down."""
    draw = random.Random(seed)
    names = [name for name, times in plan.items() for _ in range(times)]
    draw.shuffle(names)
    return [(name, draw.uniform(*GAP_S), draw.uniform(*DOWN_S)) for name in names]


@dataclass
class Faults:
    """Does a plan in a thread. ``without_redis`` is called while Redis is away and returns once its writes are
    answered.

    ``done`` says how often each fault came about, ``again`` how many messages were delivered again, ``failure`` what
    went wrong with the plan itself.
    """

    deployment: Deployment
    plan: Mapping[str, int]
    seed: int
    without_redis: Callable[[], None]
    say: Callable[[str], None]
    done: dict[str, int] = field(default_factory=dict)
    again: int = 0
    failure: Exception | None = None
    _seen: dict[str, dict[bytes, None]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _settled: float = 0.0
    _came_about: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the plan; then everything that was ever told is told once more."""
        self._thread.join()
        self._over.set()
        if self.failure is None:
            self._deliver_again()

    def keep_pace(self, share: float) -> None:
        """Say which share of what is settled comes next; returns once as much of the plan came about, and lets little
        more of it come about than that."""
        wanted = share * sum(self.plan.values())
        with self._came_about:
            self._settled = share
            self._came_about.notify_all()
            self._came_about.wait_for(lambda: sum(self.done.values()) >= wanted or self.failure is not None)

    def go_on_alone(self) -> None:
        """All is settled: the rest of the plan waits for nothing."""
        with self._came_about:
            self._settled = 1.0
            self._came_about.notify_all()

    def _run(self) -> None:
        faults = planned(self.plan, self.seed)
        for at, (name, gap_s, down_s) in enumerate(faults):
            with self._came_about:
                self._came_about.wait_for(lambda at=at: self._settled >= (at - AHEAD) / len(faults))  # type: ignore[misc]
            time.sleep(gap_s)
            self.say(name)
            try:
                self._do(name, down_s)
            except Exception as error:  # told by the main thread
                self.failure = error
            with self._came_about:
                self.done[name] = self.done.get(name, 0) + 1
                self._came_about.notify_all()
            if self.failure is not None:
                return

    def _do(self, name: str, down_s: float) -> None:
        if name == "FLUSHALL":
            self.deployment.redis.client().flushall()
        elif name == "deliver again":
            self._deliver_again()
        elif name == REDIS_AWAY:
            self.deployment.redis.kill()
            time.sleep(down_s)
            self.without_redis()
            self.deployment.redis.start()
        else:
            self.deployment.kill(KILLS[name])
            time.sleep(down_s)
            self.deployment.start(KILLS[name])

    def _deliver_again(self) -> None:
        """Put every message that was ever seen into its queue once more, twice."""
        client = self.deployment.redis.client()
        for stage, messages in self._seen.items():
            for message in list(messages):
                client.rpush(stage, message, message)
                self.again += 2

    def _watch(self) -> None:
        """Remember messages as they pass through Redis."""
        while not self._over.is_set():
            try:
                for stage, messages in self.deployment.queued().items():
                    self._seen.setdefault(stage, {}).update(dict.fromkeys(messages))
            except redis.RedisError:
                time.sleep(0.2)
            time.sleep(0.002)
