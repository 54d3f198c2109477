"""Who may see and do what: the one policy that REST, GraphQL, exports, webhooks and embeds decide by.

A principal acts for one tenant and holds scopes. Roles are named sets of scopes. A field of a resource that needs a
scope the principal lacks is withheld: it reads null, and its name is listed. Source of roles and scopes: the access
table of the domain (customer admin: everything of the own SLA; operations viewer: live availability and latency).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from ledger.errors import AccessDenied, QueryInvalid, Unauthenticated

DEFAULT_TENANT = "default"
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}", re.ASCII)


class Scope(StrEnum):
    """What a principal may do, in the words that keys and identity providers carry."""

    READ_AGREEMENTS = "sla:read:agreements"
    READ_THRESHOLDS = "sla:read:thresholds"
    READ_UPTIME = "sla:read:uptime"
    READ_LATENCY = "sla:read:latency"
    READ_VIOLATIONS = "sla:read:violations"
    READ_CREDITS = "sla:read:credits"
    READ_PROOFS = "sla:read:proofs"
    READ_LOG = "sla:read:log"
    READ_METRICS = "sla:read:metrics"
    EXPORT = "sla:export"
    WRITE_AGREEMENTS = "sla:write:agreements"
    WRITE_OBSERVATIONS = "sla:write:observations"
    WRITE_PERIODS = "sla:write:periods"
    WRITE_CREDITS = "sla:write:credits"
    WRITE_CLAIMS = "sla:write:claims"
    ADMIN_KEYS = "sla:admin:keys"
    ADMIN_WEBHOOKS = "sla:admin:webhooks"
    EMBED = "sla:embed"
    """Exchange the own rights for a guest token, which has no more of them."""


class Role(StrEnum):
    """Named sets of scopes."""

    CUSTOMER_ADMIN = "customer_admin"
    OPERATIONS_VIEWER = "operations_viewer"
    FINANCE = "finance"
    OPERATOR = "operator"


_VIEWER = frozenset({Scope.READ_AGREEMENTS, Scope.READ_UPTIME, Scope.READ_LATENCY, Scope.READ_VIOLATIONS})

ROLE_SCOPES: Mapping[Role, frozenset[Scope]] = {
    Role.CUSTOMER_ADMIN: _VIEWER
    | {
        Scope.READ_THRESHOLDS,
        Scope.READ_CREDITS,
        Scope.READ_PROOFS,
        Scope.EXPORT,
        Scope.WRITE_CLAIMS,
        Scope.ADMIN_WEBHOOKS,
        Scope.EMBED,
    },
    Role.OPERATIONS_VIEWER: _VIEWER,
    Role.FINANCE: frozenset(
        {
            Scope.READ_AGREEMENTS,
            Scope.READ_CREDITS,
            Scope.READ_PROOFS,
            Scope.EXPORT,
            Scope.WRITE_CREDITS,
            Scope.ADMIN_WEBHOOKS,
        }
    ),
    Role.OPERATOR: frozenset(Scope),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: ``subject`` names the key or user, ``tenant`` is whose data this request is about.

    ``sla_ids`` limits a guest to some agreements; None: all of the tenant's.
    """

    subject: str
    tenant: str
    scopes: frozenset[Scope]
    sla_ids: frozenset[str] | None = None

    def holds(self, *scopes: Scope) -> bool:
        return self.scopes.issuperset(scopes)

    def may_see(self, sla_id: str) -> bool:
        return self.sla_ids is None or sla_id in self.sla_ids


ANONYMOUS = Principal("nobody", "", frozenset())
"""Who asks without credentials where they are required: public routes answer, and see no tenant's data."""


def refused(reason: str) -> Unauthenticated:
    """The error for credentials that do not hold. ``reason`` never repeats them."""
    return Unauthenticated(f"the credentials are refused: {reason}", presented=True)


def check_tenant(name: str) -> str:
    """``name`` if tenants are called so; raises ``QueryInvalid``."""
    if _TENANT.fullmatch(name) is None:
        raise QueryInvalid(
            f"{name[:40]!r} is no tenant's name: letters, digits, dots, dashes and underscores, 120 at most",
            parameter="tenant",
        )
    return name


METRIC_SCOPES: Mapping[str, Scope] = {
    "availability": Scope.READ_UPTIME,
    "first_token_latency": Scope.READ_LATENCY,
    "response_latency": Scope.READ_LATENCY,
}
"""The scope that counts of an objective need, by the objective's indicator."""

FIELD_SCOPES: Mapping[str, Mapping[str, frozenset[Scope]]] = {
    "agreement": {"document": frozenset({Scope.READ_THRESHOLDS, Scope.READ_CREDITS})},
    "statement": {
        "credit": frozenset({Scope.READ_CREDITS}),
        "credit_delta": frozenset({Scope.READ_CREDITS}),
        "objective_deltas": frozenset(METRIC_SCOPES.values()),
        # The steps to the credit name counts, tiers and base; the public signals hold the credit.
        "trace": frozenset({Scope.READ_CREDITS, Scope.READ_THRESHOLDS, *METRIC_SCOPES.values()}),
        # Why no circuit proves it is said in sentences about tiers, rules and limits of the terms.
        "unattested_reasons": frozenset({Scope.READ_CREDITS, Scope.READ_THRESHOLDS}),
        "attestation": frozenset({Scope.READ_PROOFS, Scope.READ_CREDITS}),
        "anchor": frozenset({Scope.READ_PROOFS}),
        "roots": frozenset({Scope.READ_PROOFS}),
    },
    "objective_result": {"target": frozenset({Scope.READ_THRESHOLDS})},
    "violation": {
        "target": frozenset({Scope.READ_THRESHOLDS}),
        # What the contract says is a term of it.
        "clause": frozenset({Scope.READ_THRESHOLDS}),
        "credit": frozenset({Scope.READ_CREDITS}),
    },
    "credit": {},
    # Which limit of the terms an exclusion breaks is said with that limit.
    "exclusion": {"why": frozenset({Scope.READ_THRESHOLDS})},
    "sla_report": {
        "uptime_percent": frozenset({Scope.READ_UPTIME}),
        "error_rate_percent": frozenset({Scope.READ_UPTIME}),
        "requests": frozenset({Scope.READ_UPTIME}),
        "windows": frozenset({Scope.READ_UPTIME}),
        "p95_latency_ms": frozenset({Scope.READ_LATENCY}),
        "measured_requests": frozenset({Scope.READ_LATENCY}),
    },
}
"""Members of rows that need more than the resource itself, by resource; all scopes named are needed."""

RESOURCE_SCOPES: Mapping[str, frozenset[Scope]] = {
    "agreements": frozenset({Scope.READ_AGREEMENTS}),
    "statements": frozenset({Scope.READ_AGREEMENTS}),
    "credits": frozenset({Scope.READ_CREDITS}),
    "violations": frozenset({Scope.READ_VIOLATIONS}),
    "exclusions": frozenset({Scope.READ_AGREEMENTS}),
    # What may fail says what the target is.
    "budgets": frozenset({Scope.READ_THRESHOLDS}),
    "windows": frozenset({Scope.READ_UPTIME}),
    "data_quality": frozenset({Scope.READ_UPTIME}),
}
"""What the resources themselves need, by their name in the plural; their members may need more."""

_EVERY_METRIC = frozenset(METRIC_SCOPES.values())


def metric_scopes(indicator: str | None) -> frozenset[Scope]:
    """The scopes that counts of an indicator need; of one that is not in ``METRIC_SCOPES``, all that are."""
    scope = METRIC_SCOPES.get(indicator or "")
    return _EVERY_METRIC if scope is None else frozenset({scope})


BUNDLE_SCOPES = (Scope.READ_PROOFS, Scope.READ_CREDITS, Scope.READ_THRESHOLDS, *sorted(_EVERY_METRIC))
"""A bundle has the terms, the counts and the credit, each bound to the others: nothing of it can be left out."""

AGREEMENT_SCOPES = frozenset(
    {
        *_VIEWER,
        Scope.READ_THRESHOLDS,
        Scope.READ_CREDITS,
        Scope.READ_PROOFS,
    }
)
"""Reading about single agreements: all that a guest, or a key for some agreements, can have. The log, exports, webhooks
and writes are about all of a tenant's."""


def require(principal: Principal, *scopes: Scope) -> None:
    """Raises ``AccessDenied`` naming the first scope that is lacking, ``Unauthenticated`` where nobody known asks."""
    if scopes and principal is ANONYMOUS:
        raise Unauthenticated("this needs credentials: send `Authorization: Bearer KEY`, an API key or access token")
    for scope in scopes:
        if scope not in principal.scopes:
            raise AccessDenied(
                f"this needs the scope {scope}, which {principal.subject} does not have; ask an administrator for it",
                scope=str(scope),
            )


def redact(resource: str, row: Mapping[str, Any], principal: Principal) -> tuple[dict[str, Any], list[str]]:
    """A row with None for every member the principal may not see, and the names of those members."""
    hidden = _hidden(resource, principal.scopes)
    withheld = [name for name in row if name in hidden] if hidden else []
    return {**row, **dict.fromkeys(withheld)}, withheld


@lru_cache(maxsize=256)
def _hidden(resource: str, scopes: frozenset[Scope]) -> frozenset[str]:
    """The members of a resource's rows that need more than ``scopes``."""
    return frozenset(name for name, needed in FIELD_SCOPES[resource].items() if not scopes >= needed)
