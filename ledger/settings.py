"""What a server process is told from outside: the data directory, the database and where it listens.

Arguments win over the environment (``SLA_LEDGER_DATA``, ``DATABASE_URL``, ``SLA_LEDGER_HOST``, ``SLA_LEDGER_PORT``),
and the environment wins over the defaults. docs/settings.md lists them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.errors import SettingInvalid

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
MAX_PORT = 65_535
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
DEFAULT_CONFIRMATIONS = 12
MAX_CONFIRMATIONS = 10_000

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS = re.compile(r"[0-9]{1,5}")


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
