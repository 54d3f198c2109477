"""Authentication as the settings want it."""

from __future__ import annotations

from collections.abc import Callable

from api.auth.access_tokens import AccessTokens
from api.auth.callers import LOCAL_OPERATOR, NOBODY, Authentication, Caller, Verify
from api.auth.guests import GuestTokens, recognise
from api.auth.issuer_keys import IssuerKeys, loader
from ledger.app.access import Role
from ledger.app.keys import check_key, key_principal
from ledger.app.ports.store import Database
from ledger.settings import AuthMode, AuthSettings


def make_authentication(
    settings: AuthSettings, database: Database, guests: GuestTokens, now_ns: Callable[[], int]
) -> Authentication:
    """API keys and guest tokens always; access tokens where an issuer is named."""

    def by_key(text: str) -> Caller:
        key = check_key(database, text, now_ns())
        return Caller(
            key_principal(key),
            operator=key.role == Role.OPERATOR and not key.sla_ids,
            expires_at_ns=key.expires_at_ns,
            key_id=key.key_id,
        )

    verifiers: dict[str, Verify] = {"key": by_key, "guest": guests.verify}
    if settings.issuer and settings.audience and settings.jwks:
        keys = IssuerKeys(loader(settings.jwks), now_ns)
        tokens = AccessTokens(settings.issuer, settings.audience, settings.tenant_claim, keys, now_ns)
        verifiers["jwt"] = tokens.verify
    without = LOCAL_OPERATOR if settings.mode is AuthMode.LOCAL else NOBODY
    return Authentication(without, verifiers, recognise)
