"""Settings of ``sla-ledger up``, from its arguments and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ledger.errors import SettingInvalid
from ledger.settings.access import LOCAL_AUTH, LOOPBACK_HOSTS, AuthMode, AuthSettings, read_auth_settings
from ledger.settings.embed import EmbedSettings
from ledger.settings.ingest import IngestSettings
from ledger.settings.logs import LogSettings
from ledger.settings.reading import MAX_PORT, is_address, is_loopback

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
POSTGRES_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Checked settings of ``sla-ledger up``.

    ``host`` is a loopback address unless ``auth`` requires credentials. ``port`` 0 lets the system choose a free
    one. ``database_url`` names a PostgreSQL; without one the database is a SQLite file in the data directory.
    """

    data_dir: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    database_url: str | None = None
    auth: AuthSettings = LOCAL_AUTH
    log: LogSettings = field(default_factory=LogSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    embed: EmbedSettings = field(default_factory=EmbedSettings)

    def __post_init__(self) -> None:
        if self.database_url is not None and not self.database_url.startswith(POSTGRES_SCHEMES):
            # The URL is not repeated: it may hold a password.
            raise SettingInvalid(
                "the database is no PostgreSQL URL; write postgresql://USER:PASSWORD@HOST:PORT/NAME, or leave it out "
                "for a SQLite file in the data directory",
                setting="database",
            )
        if self.auth.mode is AuthMode.LOCAL and not is_loopback(self.host):
            raise SettingInvalid(
                f"the host {self.host!r} is not a loopback address, and requests need no credentials: serve 127.0.0.1 "
                "or ::1, or set SLA_LEDGER_AUTH=required",
                setting="host",
            )
        if not is_address(self.host):
            raise SettingInvalid(f"the host {self.host!r} is not an IP address", setting="host")
        if self.auth.hosts == LOOPBACK_HOSTS and not is_loopback(self.host):
            raise SettingInvalid(
                "SLA_LEDGER_HOSTS names no host that others would ask for; list the names this server is reached by",
                setting="hosts",
            )
        if not 0 <= self.port <= MAX_PORT:
            raise SettingInvalid(f"the port {self.port} is not between 0 and {MAX_PORT}", setting="port")

    @property
    def authority(self) -> str:
        """``host:port`` as a URL spells it, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_settings(
    environ: Mapping[str, str],
    *,
    data_dir: str | None = None,
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
    auth: str | None = None,
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
        auth=read_auth_settings(environ, mode=auth),
        log=LogSettings.read(environ),
        ingest=IngestSettings.read(environ),
        embed=EmbedSettings.read(environ),
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT))):
        raise SettingInvalid(
            f"SLA_LEDGER_PORT={text[:20]!r} is not a port; write a number from 0 to {MAX_PORT}", setting="port"
        )
    return int(text)
