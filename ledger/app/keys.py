"""API keys: made for a tenant and a role, shown once, kept as a hash, revoked for good.

A key reads ``slk_<key id>_<secret>``: the id is in clear, so that it can be looked up and named in lists; the secret
has 256 random bits, so that one SHA-256 is as good as a slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

from ledger.app.access import AGREEMENT_SCOPES, ROLE_SCOPES, Principal, Role, Scope, check_tenant, refused
from ledger.app.ports.keys import ApiKey
from ledger.app.ports.store import Database, Randomness, Transaction
from ledger.errors import QueryInvalid

KEY_PREFIX = "slk_"
MAX_LABEL_CHARS = 120
_ID_BYTES = 8
_SECRET_BYTES = 32
_KEY = re.compile(r"slk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_LIMITED = AGREEMENT_SCOPES | {Scope.EMBED}
_UNKNOWN = hashlib.sha256(b"no key has this").digest()


def make_key(
    tx: Transaction,
    *,
    tenant: str,
    role: Role,
    now_ns: int,
    randomness: Randomness,
    label: str = "",
    sla_ids: Sequence[str] = (),
    expires_at_ns: int | None = None,
) -> tuple[ApiKey, str]:
    """A new key of ``tenant``, whose transaction ``tx`` is, and its text, which is shown now and never again.

    ``sla_ids`` limits it to some agreements; none: all of the tenant's. Raises ``NotFound`` for an agreement that the
    tenant does not have, and ``QueryInvalid`` for a name, label or end that cannot be used.
    """
    check_tenant(tenant)
    if len(label) > MAX_LABEL_CHARS or not label.isprintable():
        raise QueryInvalid(f"a label has up to {MAX_LABEL_CHARS} printable characters", parameter="label")
    if expires_at_ns is not None and expires_at_ns <= now_ns:
        raise QueryInvalid("the key would have expired already; name a later instant", parameter="expires")
    for sla_id in sla_ids:
        tx.views.agreement(sla_id)
    secret = randomness.bytes(_SECRET_BYTES)
    key = ApiKey(
        key_id=randomness.bytes(_ID_BYTES).hex(),
        tenant=tenant,
        role=str(role),
        label=label,
        sla_ids=tuple(sorted(set(sla_ids))),
        secret_digest=hashlib.sha256(secret).digest(),
        created_at_ns=now_ns,
        expires_at_ns=expires_at_ns,
        revoked_at_ns=None,
    )
    tx.keys.add(key)
    return key, f"{KEY_PREFIX}{key.key_id}_{urlsafe_b64encode(secret).rstrip(b'=').decode()}"


def check_key(database: Database, text: str, now_ns: int) -> ApiKey:
    """The key of a text. Raises ``Unauthenticated`` where there is none, or one that expired or was revoked."""
    found = _KEY.fullmatch(text)
    if found is None:
        raise refused("that is no API key")
    with database.read() as tx:
        key = tx.keys.find(found[1])
    digest = hashlib.sha256(urlsafe_b64decode(found[2] + "=")).digest()
    holds = hmac.compare_digest(digest, _UNKNOWN if key is None else key.secret_digest)
    if key is None or not holds:
        raise refused("there is no such API key")
    if not is_alive(key, now_ns):
        raise refused("the API key was revoked" if key.revoked_at_ns is not None else "the API key has expired")
    return key


def is_alive(key: ApiKey, now_ns: int) -> bool:
    """Whether a key neither expired nor was revoked."""
    return key.revoked_at_ns is None and (key.expires_at_ns is None or now_ns < key.expires_at_ns)


def key_principal(key: ApiKey) -> Principal:
    """What a key may do, by the present scopes of its role. A key for some agreements reads those and no more."""
    scopes = ROLE_SCOPES[Role(key.role)]
    return Principal(
        subject=f"key {key.key_id}",
        tenant=key.tenant,
        scopes=scopes & _LIMITED if key.sla_ids else scopes,
        sla_ids=frozenset(key.sla_ids) if key.sla_ids else None,
    )
