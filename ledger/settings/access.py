"""Who may ask: credentials, the names a server answers to, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ledger.errors import SettingInvalid
from ledger.settings.reading import is_safe_url

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
MAX_RATE = 10_000_000


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
        if self.jwks is not None and "://" in self.jwks and not is_safe_url(self.jwks):
            raise SettingInvalid(
                "SLA_LEDGER_AUTH_JWKS is no https URL; only on this machine (127.0.0.1, ::1) http will do, too",
                setting="auth_jwks",
            )
        if not 0 <= self.rate_per_minute <= MAX_RATE:
            raise SettingInvalid(f"SLA_LEDGER_RATE_LIMIT is not between 0 and {MAX_RATE}", setting="rate_limit")


LOCAL_AUTH = AuthSettings()
DEFAULT_RATE = {AuthMode.LOCAL: 0, AuthMode.REQUIRED: 6000}


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
