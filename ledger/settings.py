"""What a server process is told from outside: the data directory, the database and where it listens.

Arguments win over the environment (``SLA_LEDGER_DATA``, ``DATABASE_URL``, ``SLA_LEDGER_HOST``, ``SLA_LEDGER_PORT``),
and the environment wins over the defaults. docs/settings.md lists them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ledger.errors import SettingInvalid

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
MAX_PORT = 65_535
DEFAULT_LEASE_S = 30
DEFAULT_RING_AGAIN_S = 15
DEFAULT_SCHEDULE_S = 5
MAX_SECONDS = 3600
REDIS_SCHEMES = ("redis://", "rediss://")
POSTGRES_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Checked settings of ``sla-ledger up``.

    ``host`` is a loopback address in this version: requests are not authenticated yet, so whoever reaches the
    port reads everything. ``port`` 0 lets the system choose a free one. ``database_url`` names a PostgreSQL; without
    one the database is a SQLite file in the data directory.
    """

    data_dir: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    database_url: str | None = None

    def __post_init__(self) -> None:
        if self.database_url is not None and not self.database_url.startswith(POSTGRES_SCHEMES):
            # The URL is not repeated: it may hold a password.
            raise SettingInvalid(
                "the database is no PostgreSQL URL; write postgresql://USER:PASSWORD@HOST:PORT/NAME, or leave it out "
                "for a SQLite file in the data directory",
                setting="database",
            )
        if not _is_loopback(self.host):
            raise SettingInvalid(
                f"the host {self.host!r} is not a loopback address: this version has no sign-in, so it serves "
                "127.0.0.1 or ::1 only; put a proxy with authentication in front of it to go further",
                setting="host",
            )
        if not 0 <= self.port <= MAX_PORT:
            raise SettingInvalid(f"the port {self.port} is not between 0 and {MAX_PORT}", setting="port")

    @property
    def authority(self) -> str:
        """``host:port`` as a URL spells it, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


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
            lease_s=_seconds(environ, "SLA_LEDGER_LEASE_S", DEFAULT_LEASE_S, least=3),
            ring_again_s=_seconds(environ, "SLA_LEDGER_RING_AGAIN_S", DEFAULT_RING_AGAIN_S, least=1),
            schedule_s=_seconds(environ, "SLA_LEDGER_SCHEDULE_S", DEFAULT_SCHEDULE_S, least=1),
        )


def read_settings(
    environ: Mapping[str, str],
    *,
    data_dir: str | None = None,
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
) -> ServerSettings:
    """Settings from arguments and environment; raises ``SettingInvalid`` naming the setting that is wrong."""
    data = environ.get("SLA_LEDGER_DATA", "") if data_dir is None else data_dir
    if not data:
        raise SettingInvalid("no data directory: pass --data DIR or set SLA_LEDGER_DATA", setting="data")
    return ServerSettings(
        data_dir=Path(data),
        host=environ.get("SLA_LEDGER_HOST", DEFAULT_HOST) if host is None else host,
        port=_port(environ.get("SLA_LEDGER_PORT", str(DEFAULT_PORT))) if port is None else port,
        database_url=(environ.get("DATABASE_URL") if database is None else database) or None,
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT))):
        raise SettingInvalid(
            f"SLA_LEDGER_PORT={text[:20]!r} is not a port; write a number from 0 to {MAX_PORT}", setting="port"
        )
    return int(text)


def _seconds(environ: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SECONDS))):
        raise SettingInvalid(f"{name}={text[:20]!r} is not a number of seconds", setting=name)
    if not least <= int(text) <= MAX_SECONDS:
        raise SettingInvalid(f"{name}={text} is not between {least} and {MAX_SECONDS}", setting=name)
    return int(text)


def _is_loopback(host: str) -> bool:
    # A name such as "localhost" is refused too: what it resolves to is decided elsewhere.
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
