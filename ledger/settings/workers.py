"""Who works the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.errors import SettingInvalid
from ledger.settings.reading import seconds

DEFAULT_LEASE_S = 30
DEFAULT_RING_AGAIN_S = 15
DEFAULT_SCHEDULE_S = 5
REDIS_SCHEMES = ("redis://", "rediss://")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Who works the outbox. Without ``broker_url`` a thread of the server does; with one, workers that a queue tells.

    ``lease_s`` is how long a dead worker's work stays with it; one that lives renews its lease. ``ring_again_s`` is
    after how long work that no worker took is told again. ``schedule_s`` is how often periods are looked at that close
    by themselves.
    """

    broker_url: str | None = None
    lease_s: int = DEFAULT_LEASE_S
    ring_again_s: int = DEFAULT_RING_AGAIN_S
    schedule_s: int = DEFAULT_SCHEDULE_S

    def __post_init__(self) -> None:
        if self.broker_url is not None and not self.broker_url.startswith(REDIS_SCHEMES):
            # The URL is not repeated: it may hold a password.
            raise SettingInvalid(
                "the broker is no Redis URL; write redis://HOST:PORT/NUMBER, or leave it out to have the server do "
                "the work",
                setting="broker",
            )

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> WorkerSettings:
        """Raises ``SettingInvalid`` naming the setting that is wrong."""
        return cls(
            broker_url=environ.get("SLA_LEDGER_BROKER") or None,
            lease_s=seconds(environ, "SLA_LEDGER_LEASE_S", DEFAULT_LEASE_S, least=3),
            ring_again_s=seconds(environ, "SLA_LEDGER_RING_AGAIN_S", DEFAULT_RING_AGAIN_S, least=1),
            schedule_s=seconds(environ, "SLA_LEDGER_SCHEDULE_S", DEFAULT_SCHEDULE_S, least=1),
        )
