"""What a server process is told from outside: the data directory, the database, where it listens and who may ask.

Arguments win over the environment (``SLA_LEDGER_DATA``, ``DATABASE_URL``, ``SLA_LEDGER_HOST``, ``SLA_LEDGER_PORT``),
and the environment wins over the defaults. docs/settings.md lists them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.errors import SettingInvalid

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
MAX_PORT = 65_535
DEFAULT_LEASE_S = 30
DEFAULT_RING_AGAIN_S = 15
DEFAULT_SCHEDULE_S = 5
MAX_SECONDS = 3600
REDIS_SCHEMES = ("redis://", "rediss://")
MAX_OBSERVATION_BYTES = 64_000_000
MAX_TELEMETRY_BYTES = 16_000_000
BODY_TIMEOUT_S = 30
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
MAX_RATE = 10_000_000


class LogFormat(StrEnum):
    """How a service writes its log."""

    TEXT = "text"
    JSON = "json"


def webhooks_reach_private(environ: Mapping[str, str]) -> bool:
    """Whether webhooks may go to addresses of the own network and over http (``SLA_LEDGER_WEBHOOKS_PRIVATE=1``)."""
    text = environ.get("SLA_LEDGER_WEBHOOKS_PRIVATE", "") or "0"
    if text not in ("0", "1"):
        raise SettingInvalid(
            f"SLA_LEDGER_WEBHOOKS_PRIVATE={text[:20]!r} is neither 0 nor 1", setting="webhooks_private"
        )
    return text == "1"


LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log of a service process, on stderr."""

    format: LogFormat = LogFormat.TEXT
    level: str = "warning"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> LogSettings:
        """From ``SLA_LEDGER_LOG_FORMAT`` and ``SLA_LEDGER_LOG_LEVEL``; raises ``SettingInvalid``."""
        form, level = environ.get("SLA_LEDGER_LOG_FORMAT", "text"), environ.get("SLA_LEDGER_LOG_LEVEL", "")
        if form not in tuple(LogFormat):
            raise SettingInvalid(f"SLA_LEDGER_LOG_FORMAT={form[:20]!r} is neither text nor json", setting="log_format")
        # People read warnings; whoever collects JSON wants the requests, too.
        level = level or ("info" if form == LogFormat.JSON else "warning")
        if level not in LOG_LEVELS:
            raise SettingInvalid(
                f"SLA_LEDGER_LOG_LEVEL={level[:20]!r} is none of {', '.join(LOG_LEVELS)}", setting="log_level"
            )
        return cls(LogFormat(form), level)


class AuthMode(StrEnum):
    """Whether requests need credentials."""

    LOCAL = "local"
    """On loopback addresses alone: whoever reaches the port is the operator, unless credentials say otherwise."""
    REQUIRED = "required"
    """On any address: every route that is not public needs credentials."""


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Who may ask.

    ``issuer``, ``audience`` and ``jwks`` (an https URL or a file) belong together: with them, access tokens of that
    issuer (RFC 9068) are taken beside API keys. ``hosts`` are the names, without port, that requests may be addressed
    to. ``rate_per_minute`` bounds the requests of one principal; 0: no bound.
    """

    mode: AuthMode = AuthMode.LOCAL
    issuer: str | None = None
    audience: str | None = None
    jwks: str | None = None
    tenant_claim: str = "tenant"
    hosts: frozenset[str] = LOOPBACK_HOSTS
    rate_per_minute: int = 0

    def __post_init__(self) -> None:
        together = (self.issuer, self.audience, self.jwks)
        if any(together) and not all(together):
            raise SettingInvalid(
                "SLA_LEDGER_AUTH_ISSUER, SLA_LEDGER_AUTH_AUDIENCE and SLA_LEDGER_AUTH_JWKS belong together: set all "
                "three, or none",
                setting="auth",
            )
        if self.jwks is not None and "://" in self.jwks and not _is_safe_url(self.jwks):
            raise SettingInvalid(
                "SLA_LEDGER_AUTH_JWKS is no https URL; only on this machine (127.0.0.1, ::1) http will do, too",
                setting="auth_jwks",
            )
        if not 0 <= self.rate_per_minute <= MAX_RATE:
            raise SettingInvalid(f"SLA_LEDGER_RATE_LIMIT is not between 0 and {MAX_RATE}", setting="rate_limit")


LOCAL_AUTH = AuthSettings()
DEFAULT_RATE = {AuthMode.LOCAL: 0, AuthMode.REQUIRED: 6000}
DEFAULT_CONFIRMATIONS = 12
MAX_CONFIRMATIONS = 10_000

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS = re.compile(r"[0-9]{1,5}")


_SLA_ID = re.compile(r"0x[0-9a-f]{64}", re.ASCII)
_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]{1,253}|\[[0-9a-f:]{2,45}\])(:[1-9][0-9]{0,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """Which pages may frame the dashboard: origins by agreement, and origins for every agreement.

    An origin is written as a browser spells it: scheme, host in lower case, port where it is not the scheme's.
    """

    of_all: tuple[str, ...] = ()
    of_agreement: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> EmbedSettings:
        """``SLA_LEDGER_EMBED_ANCESTORS``: entries ORIGIN or SLA_ID=ORIGIN with blanks between them."""
        of_all: list[str] = []
        of_agreement: dict[str, tuple[str, ...]] = {}
        for entry in environ.get("SLA_LEDGER_EMBED_ANCESTORS", "").split():
            sla_id, equals, origin = entry.rpartition("=")
            if not _is_framing_origin(origin) or (equals and not _SLA_ID.fullmatch(sla_id)):
                raise SettingInvalid(
                    f"SLA_LEDGER_EMBED_ANCESTORS: {entry[:100]!r} is neither ORIGIN nor SLA_ID=ORIGIN; an origin is "
                    "https://portal.example, without a path (http only on this machine)",
                    setting="embed_ancestors",
                )
            if equals:
                of_agreement[sla_id] = (*of_agreement.get(sla_id, ()), origin)
            else:
                of_all.append(origin)
        return cls(tuple(of_all), of_agreement)

    def ancestors(self, sla_id: str) -> tuple[str, ...]:
        """Origins of the pages that may frame this agreement's dashboard; none: it is a page of its own only."""
        return tuple(dict.fromkeys((*self.of_all, *self.of_agreement.get(sla_id, ()))))


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
    log: LogSettings = LogSettings()
    ingest: IngestSettings = IngestSettings()
    embed: EmbedSettings = field(default_factory=EmbedSettings)

    def __post_init__(self) -> None:
        if self.database_url is not None and not self.database_url.startswith(POSTGRES_SCHEMES):
            # The URL is not repeated: it may hold a password.
            raise SettingInvalid(
                "the database is no PostgreSQL URL; write postgresql://USER:PASSWORD@HOST:PORT/NAME, or leave it out "
                "for a SQLite file in the data directory",
                setting="database",
            )
        if self.auth.mode is AuthMode.LOCAL and not _is_loopback(self.host):
            raise SettingInvalid(
                f"the host {self.host!r} is not a loopback address, and requests need no credentials: serve 127.0.0.1 "
                "or ::1, or set SLA_LEDGER_AUTH=required",
                setting="host",
            )
        if not _is_address(self.host):
            raise SettingInvalid(f"the host {self.host!r} is not an IP address", setting="host")
        if self.auth.hosts == LOOPBACK_HOSTS and not _is_loopback(self.host):
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


def read_auth_settings(environ: Mapping[str, str], *, mode: str | None = None) -> AuthSettings:
    """Who may ask, from the environment; raises ``SettingInvalid``."""
    named = mode or environ.get("SLA_LEDGER_AUTH") or AuthMode.LOCAL
    if named not in set(AuthMode):
        raise SettingInvalid(f"SLA_LEDGER_AUTH={named[:20]!r} is neither local nor required", setting="auth")
    chosen = AuthMode(named)
    rate = environ.get("SLA_LEDGER_RATE_LIMIT", "")
    if rate and not (rate.isascii() and rate.isdigit() and len(rate) <= len(str(MAX_RATE))):
        raise SettingInvalid(f"SLA_LEDGER_RATE_LIMIT={rate[:20]!r} is no whole number", setting="rate_limit")
    return AuthSettings(
        mode=chosen,
        issuer=environ.get("SLA_LEDGER_AUTH_ISSUER") or None,
        audience=environ.get("SLA_LEDGER_AUTH_AUDIENCE") or None,
        jwks=environ.get("SLA_LEDGER_AUTH_JWKS") or None,
        tenant_claim=environ.get("SLA_LEDGER_AUTH_TENANT_CLAIM") or "tenant",
        hosts=LOOPBACK_HOSTS | _hosts(environ.get("SLA_LEDGER_HOSTS", "")),
        rate_per_minute=int(rate) if rate else DEFAULT_RATE[chosen],
    )


def _hosts(text: str) -> frozenset[str]:
    names = frozenset(name.strip().lower() for name in text.split(",") if name.strip())
    for name in names:
        port = name.rpartition(":")[2] if ":" in name and not name.endswith("]") else ""
        if port or not name.isascii() or any(sign in name for sign in "/@*? "):
            raise SettingInvalid(
                f"SLA_LEDGER_HOSTS has {name[:60]!r}; write names without scheme, port or wildcard, and commas between",
                setting="hosts",
            )
    return names


def _is_safe_url(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)))


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """Where statements are anchored: the embedded chain without ``rpc_url``, else the chain of that node.

    ``rpc_url`` may hold a key, so it is never shown. ``registry`` is the address of a deployed registry; None: that
    of the deployer's key. ``confirmations`` None takes ``confirmations_on`` the chain.
    """

    rpc_url: str | None = field(default=None, repr=False)
    registry: str | None = None
    confirmations: int | None = None

    def confirmations_on(self, chain_id: int) -> int:
        """Blocks that must stand, the transaction's own included, before an anchor counts as confirmed.

        A local node makes a block when something is sent and not before, so there the own block is enough.
        """
        if self.confirmations is not None:
            return self.confirmations
        return 1 if chain_id in TEST_CHAIN_IDS else DEFAULT_CONFIRMATIONS


def read_chain_settings(environ: Mapping[str, str]) -> ChainSettings:
    """Settings of the chain from the environment; raises ``SettingInvalid`` naming the setting that is wrong."""
    url = environ.get("SLA_LEDGER_CHAIN_RPC") or None
    if url is not None and not _is_http_url(url):
        # The URL is not repeated: it may hold a key.
        raise SettingInvalid(
            "SLA_LEDGER_CHAIN_RPC is no URL of a node; write http://HOST:PORT or https://HOST/PATH, or leave it out "
            "for the embedded chain",
            setting="SLA_LEDGER_CHAIN_RPC",
        )
    registry = environ.get("SLA_LEDGER_REGISTRY") or None
    if registry is not None and _ADDRESS.fullmatch(registry) is None:
        raise SettingInvalid(
            f"SLA_LEDGER_REGISTRY={registry[:50]!r} is no address; write 0x and 40 hex digits",
            setting="SLA_LEDGER_REGISTRY",
        )
    wanted = environ.get("SLA_LEDGER_CONFIRMATIONS") or None
    if wanted is not None and not (_DIGITS.fullmatch(wanted) and 1 <= int(wanted) <= MAX_CONFIRMATIONS):
        raise SettingInvalid(
            f"SLA_LEDGER_CONFIRMATIONS={wanted[:20]!r} is no number from 1 to {MAX_CONFIRMATIONS}",
            setting="SLA_LEDGER_CONFIRMATIONS",
        )
    if url is None and (registry or wanted):
        raise SettingInvalid(
            "SLA_LEDGER_REGISTRY and SLA_LEDGER_CONFIRMATIONS are about the chain of a node: name it by "
            "SLA_LEDGER_CHAIN_RPC as well, or leave them out",
            setting="SLA_LEDGER_CHAIN_RPC",
        )
    return ChainSettings(url, registry, None if wanted is None else int(wanted))


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False


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


def _seconds(environ: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SECONDS))):
        raise SettingInvalid(f"{name}={text[:20]!r} is not a number of seconds", setting=name)
    if not least <= int(text) <= MAX_SECONDS:
        raise SettingInvalid(f"{name}={text} is not between {least} and {MAX_SECONDS}", setting=name)
    return int(text)


def _is_loopback(host: str) -> bool:
    # A name such as "localhost" is refused too: what it resolves to is decided elsewhere.
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_framing_origin(text: str) -> bool:
    """Plain http is readable by everyone on the way, so it is allowed where there is no way: on this machine."""
    found = _ORIGIN.fullmatch(text)
    if found is None or int((found[3] or ":443")[1:]) > MAX_PORT:
        return False
    return found[1] == "https" or found[2] == "localhost" or _is_loopback(found[2].strip("[]"))
