"""Claims: credits that are asked for, where the agreement settles by claim."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.parameters import IdempotencyKey, StatementId
from api.rest.routes import reads, writes
from api.rest.values import Digest, Instant, Money, Word, instant, money
from api.rest.writing import Told
from ledger.app.access import Principal, Scope
from ledger.app.billing.claims import Claimable, Filed

_CLAIM_ID = Annotated[str, msgspec.Meta(description="Follows from agreement, period, level and incident")]
_SCOPE = Annotated[str, msgspec.Meta(description="Region and model that the level of service is about, or all")]
_VIOLATION = Annotated[
    str | None, msgspec.Meta(description="The incident; null: the ratio of the whole period failed alone")
]


class FiledClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that was filed in time, and the line that pays it."""

    claim_id: _CLAIM_ID
    statement_id: str
    sla_id: Word
    period: str
    scope: _SCOPE
    objective: str | None
    violation_id: _VIOLATION
    credit: Money
    line_id: str
    evidence: Annotated[Digest | None, msgspec.Meta(description="SHA-256 of the batch of facts that it stands on")]
    by: str | None
    deadline: Instant


class ClaimableCredit(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement credits for one incident, and how its claim stands."""

    claim_id: _CLAIM_ID
    scope: _SCOPE
    objective: str | None
    violation_id: _VIOLATION
    credit: Money
    deadline: Annotated[Instant, msgspec.Meta(description="The first instant that is too late")]
    status: Annotated[str, msgspec.Meta(description="open, filed or too_late")]
    filed: FiledClaim | None


class ClaimableCredits(msgspec.Struct, frozen=True):
    """The credits of a statement; none where the agreement settles by itself, or nothing is credited."""

    items: list[ClaimableCredit]


class FiledClaims(msgspec.Struct, frozen=True):
    """What was claimed by one request."""

    items: list[FiledClaim]


class ClaimWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim: for one violation, or for all that is open."""

    violation_id: Annotated[str, msgspec.Meta(max_length=140, description="Null: all that is open")] | None = None
    evidence: (
        Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="SHA-256 of a batch handed in")] | None
    ) = None


@writes(
    "/v1/statements/{statement_id:str}/claims",
    summary="Claim credits",
    tag="credits",
    scopes=(Scope.WRITE_CLAIMS, Scope.READ_CREDITS),
    problems=(400, 404, 409, 413, 503),
)
def file_claims(
    commands: Told,
    principal: NamedDependency[Principal],
    statement_id: StatementId,
    data: JSONBody[ClaimWrite],
    idempotency_key: IdempotencyKey,
) -> FiledClaims:
    """File claims for what a statement credits; each is paid by a credit line. Too late or twice is refused (409)."""
    filed = commands.claims.file(
        statement_id,
        violation=data.violation_id,
        evidence=data.evidence,
        request=idempotency_key,
        by=principal.subject,
    )
    return FiledClaims([_filed(claim) for claim in filed])


@reads(
    "/v1/statements/{statement_id:str}/claims",
    summary="Claims of a statement",
    tag="credits",
    scopes=(Scope.READ_CREDITS,),
    problems=(400, 404, 503),
)
def list_claims(commands: Told, principal: NamedDependency[Principal], statement_id: StatementId) -> ClaimableCredits:
    """What can be or was claimed of a statement, incident by incident."""
    return ClaimableCredits([_claimable(each) for each in commands.claims.of(statement_id, principal)])


HANDLERS = (file_claims, list_claims)


def _filed(claim: Filed) -> FiledClaim:
    same = ("claim_id", "statement_id", "sla_id", "period", "scope", "objective", "violation_id", "line_id")
    return FiledClaim(
        **{name: claim[name] for name in (*same, "evidence", "by")},
        credit=money(claim["currency"], int(claim["minor_units"])),
        deadline=instant(int(claim["deadline_ns"])),
    )


def _claimable(each: Claimable) -> ClaimableCredit:
    return ClaimableCredit(
        claim_id=each.claim_id,
        scope=each.scope,
        objective=each.objective,
        violation_id=each.violation_id,
        credit=money(each.currency, each.minor_units),
        deadline=instant(each.deadline_ns),
        status=str(each.status),
        filed=None if each.filed is None else _filed(each.filed),
    )
