"""From the headers of a request to the principal it acts as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ledger.app.access import ANONYMOUS, DEFAULT_TENANT, ROLE_SCOPES, Principal, Role, check_tenant, refused
from ledger.errors import AccessDenied, Unauthenticated

MAX_CREDENTIALS: Final = 8192
TENANT_HEADER: Final = b"sla-tenant"
_SCHEME: Final = b"bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal, and what its credentials say beside.

    ``operator`` may name the tenant of each request. ``expires_at_ns`` is the end of the credentials, ``key_id`` the
    API key they go back to. A guest has the ``guest_origin`` of the page its token was made for.
    """

    principal: Principal
    operator: bool = False
    expires_at_ns: int | None = None
    key_id: str | None = None
    guest_origin: str | None = None


LOCAL_OPERATOR: Final = Caller(Principal("local operator", DEFAULT_TENANT, ROLE_SCOPES[Role.OPERATOR]), operator=True)
NOBODY: Final = Caller(ANONYMOUS)


class GuestRefused(Unauthenticated):
    """A guest token that was made here and does not hold any more: the page of ``guest_origin`` may read why."""

    def __init__(self, reason: str, guest_origin: str) -> None:
        super().__init__(refused(reason).message, presented=True)
        self.guest_origin = guest_origin


Verify: TypeAlias = Callable[[str], Caller]
"""Checks one kind of credentials; raises ``Unauthenticated``, and ``Unavailable`` where it cannot tell."""

Recognise: TypeAlias = Callable[[str], str]
"""The kind of credentials a text claims to be, a key of the verifiers; "" for none known."""


class Authentication:
    """Turns the values of ``Authorization`` and ``Sla-Tenant`` into a caller."""

    def __init__(self, without: Caller, verifiers: Mapping[str, Verify], recognise: Recognise) -> None:
        """``without`` is who asks without credentials."""
        self._without = without
        self._verifiers = verifiers
        self._recognise = recognise

    @property
    def is_local(self) -> bool:
        """Whether requests without credentials are the operator's."""
        return self._without is LOCAL_OPERATOR

    def without_credentials(self, tenant: Sequence[bytes]) -> Caller:
        """Raises ``AccessDenied`` or ``QueryInvalid`` for a tenant that cannot be acted for."""
        return _acting(self._without, tenant)

    def verify(self, authorization: Sequence[bytes], tenant: Sequence[bytes]) -> Caller:
        """The caller of given credentials; they may be looked up in the database, so this may wait.

        Raises ``Unauthenticated``, ``AccessDenied``, ``QueryInvalid`` or ``Unavailable``.
        """
        text = _bearer(authorization)
        verify = self._verifiers.get(self._recognise(text))
        if verify is None:
            raise refused("they are of no kind that this server takes")
        return _acting(verify(text), tenant)


def _bearer(authorization: Sequence[bytes]) -> str:
    if len(authorization) != 1:
        raise refused("there is more than one Authorization header")
    (value,) = authorization
    if len(value) > MAX_CREDENTIALS:
        raise refused(f"they have more than {MAX_CREDENTIALS} bytes")
    if not value.lower().startswith(_SCHEME) or not value.isascii():
        raise refused("the scheme is not Bearer")
    return value[len(_SCHEME) :].decode().strip()


def _acting(caller: Caller, tenant: Sequence[bytes]) -> Caller:
    """``caller`` for the tenant that the request names, if it names one."""
    if not tenant:
        return caller
    named = check_tenant(tenant[0].decode("latin-1") if len(tenant) == 1 else "")
    principal = caller.principal
    if named == principal.tenant:
        return caller
    if not caller.operator:
        raise AccessDenied(f"{principal.subject} acts for its own tenant only; leave Sla-Tenant out", tenant=named)
    return replace(caller, principal=replace(principal, tenant=named))
