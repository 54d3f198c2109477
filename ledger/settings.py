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
MAX_OBSERVATION_BYTES = 64_000_000
MAX_TELEMETRY_BYTES = 16_000_000
BODY_TIMEOUT_S = 30
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
class IngestSettings:
    """Bounds of what comes in by the API and by scraping.

    ``max_observation_bytes`` and ``max_telemetry_bytes`` bound a body as it comes and unpacked; ``body_timeout_s`` is
    how long it may take to come.
    """

    max_observation_bytes: int = MAX_OBSERVATION_BYTES
    max_telemetry_bytes: int = MAX_TELEMETRY_BYTES
    body_timeout_s: float = BODY_TIMEOUT_S

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> IngestSettings:
        """From ``SLA_LEDGER_MAX_OBSERVATION_BYTES``, ``SLA_LEDGER_MAX_TELEMETRY_BYTES`` and
        ``SLA_LEDGER_BODY_TIMEOUT_S``; raises ``SettingInvalid``."""
        return cls(
            _whole(environ, "SLA_LEDGER_MAX_OBSERVATION_BYTES", MAX_OBSERVATION_BYTES, 1_000_000_000),
            _whole(environ, "SLA_LEDGER_MAX_TELEMETRY_BYTES", MAX_TELEMETRY_BYTES, 1_000_000_000),
            _whole(environ, "SLA_LEDGER_BODY_TIMEOUT_S", BODY_TIMEOUT_S, 3_600),
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


def _whole(environ: Mapping[str, str], name: str, default: int, maximum: int) -> int:
    text = environ.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(maximum)) and 0 < int(text) <= maximum):
        raise SettingInvalid(f"{name}={text[:20]!r} must be a whole number from 1 to {maximum}", setting=name)
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT))):
        raise SettingInvalid(
            f"SLA_LEDGER_PORT={text[:20]!r} is not a port; write a number from 0 to {MAX_PORT}", setting="port"
        )
    return int(text)


def _is_loopback(host: str) -> bool:
    # A name such as "localhost" is refused too: what it resolves to is decided elsewhere.
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
