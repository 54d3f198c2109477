"""Exclusions of time: listed with what becomes of each, recorded and withdrawn.

What is asked names itself by the exclusion's id, so that asking again changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from api.parameters import CursorText, Limit, SlaId, decode_cursor, encode_cursor
from api.rest.routes import reads, writes
from api.rest.values import Instant, Seq, Withheld, Word, instant
from api.rest.writing import Written
from ledger.app.access import Principal, Scope
from ledger.app.paging import Row
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk, RecordedExclusion
from ledger.app.reading.lists import Lists, visible_exclusion
from ledger.domain.time.instant import parse_instant_ns
from ledger.errors import ExclusionInvalid, InstantInvalid

ExclusionId: TypeAlias = Annotated[str, PathParameter(description="As it was recorded, such as `release-7`")]
_When: TypeAlias = Annotated[str, msgspec.Meta(max_length=40, description="RFC 3339 with a zone")]


class Honoured(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """The part of an exclusion's time that leaves the counts."""

    from_: Instant
    to: Instant


class Exclusion(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Time that is to be excluded, and what becomes of it under the terms and beside all others."""

    id: str
    sla_id: Word
    clause: Annotated[str, msgspec.Meta(description="The maintenance class or carve-out of the agreement")]
    ticket: str | None
    from_: Instant
    to: Instant
    announced_at: Instant | None
    approved_by: str | None
    reason: str
    by: Annotated[str | None, msgspec.Meta(description="Who recorded it")]
    state: Annotated[str, msgspec.Meta(description="recorded, or withdrawn")]
    ruling: Annotated[
        str | None,
        msgspec.Meta(
            description="honoured, shortened, or why it takes nothing out: no_clause, not_approved, announced_late, "
            "too_many, over_cap; null once withdrawn"
        ),
    ]
    honoured: Annotated[Honoured | None, msgspec.Meta(description="What of it leaves the counts; null: nothing")]
    why: Annotated[str | None, msgspec.Meta(description="Why not all of it does; null where all does")]
    withdrawn_reason: str | None
    withdrawn_by: str | None
    withheld: Withheld


class ListedExclusion(Exclusion, frozen=True, kw_only=True):
    """An exclusion of a list."""

    seq: Seq


class ExclusionPage(msgspec.Struct, frozen=True):
    """Exclusions by start; ``next_cursor`` is null on the last page."""

    items: list[ListedExclusion]
    next_cursor: str | None


class ExclusionReceipt(msgspec.Struct, frozen=True):
    """The exclusion as it is now, and where the event stands that made it so."""

    exclusion: Exclusion
    receipt: Written


class ExclusionWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """What is to be excluded. It may lie in the past."""

    id: Annotated[str, msgspec.Meta(description="Names it for good: lowercase letters, digits, - and _, 40 at most")]
    clause: Annotated[str, msgspec.Meta(description="A maintenance class or carve-out of the agreement")]
    from_: _When
    to: _When
    reason: Annotated[
        str, msgspec.Meta(max_length=500, description="What happened in it; it stays in the log for good")
    ]
    ticket: Annotated[str | None, msgspec.Meta(description="Needed for maintenance")] = None
    announced_at: Annotated[_When | None, msgspec.Meta(description="When the customer was told")] = None
    approved_by: Annotated[str | None, msgspec.Meta(description="Who approved it")] = None


class ExclusionWithdrawal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What it takes to withdraw an exclusion."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500, description="Why; it stays in the log for good")]


@reads(
    "/v1/agreements/{sla_id:str}/exclusions",
    summary="List exclusions",
    tag="exclusions",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def list_exclusions(
    lists: NamedDependency[Lists],
    principal: NamedDependency[Principal],
    sla_id: SlaId,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> ExclusionPage:
    """What is excluded from the counts of an agreement, by start, and why some of it is not."""
    listing = f"exclusions/{sla_id}"
    page = lists.exclusions(principal, sla_id, after=decode_cursor(cursor, listing), limit=limit)
    items = [ListedExclusion(**_members(row), seq=row["seq"]) for row in page.rows]
    return ExclusionPage(items, encode_cursor(listing, page.last_id))


@writes(
    "/v1/agreements/{sla_id:str}/exclusions",
    summary="Exclude time",
    tag="exclusions",
    scopes=(Scope.WRITE_AGREEMENTS,),
)
def record_exclusion(
    exclusion_desk: NamedDependency[ExclusionDesk],
    principal: NamedDependency[Principal],
    sla_id: SlaId,
    data: JSONBody[ExclusionWrite],
) -> ExclusionReceipt:
    """Record maintenance or a carve-out. What the terms do not allow is recorded and not honoured: see ``ruling``.

    A closed period of which it takes something out is judged anew.
    """
    asked = AskedExclusion(
        id=data.id,
        clause=data.clause,
        from_ns=_instant_ns("from", data.from_),
        to_ns=_instant_ns("to", data.to),
        reason=data.reason,
        ticket=data.ticket,
        announced_at_ns=None if data.announced_at is None else _instant_ns("announced_at", data.announced_at),
        approved_by=data.approved_by,
        by=principal.subject,
    )
    return _receipt(exclusion_desk.record(sla_id, asked), principal)


@writes(
    "/v1/agreements/{sla_id:str}/exclusions/{exclusion_id:str}/withdraw",
    summary="Withdraw an exclusion",
    tag="exclusions",
    scopes=(Scope.WRITE_AGREEMENTS,),
)
def withdraw_exclusion(
    exclusion_desk: NamedDependency[ExclusionDesk],
    principal: NamedDependency[Principal],
    sla_id: SlaId,
    exclusion_id: ExclusionId,
    data: JSONBody[ExclusionWithdrawal],
) -> ExclusionReceipt:
    """Withdraw an exclusion: its time counts again. Its id is used up."""
    made = exclusion_desk.withdraw(sla_id, exclusion_id, reason=data.reason, by=principal.subject)
    return _receipt(made, principal)


HANDLERS = (record_exclusion, withdraw_exclusion)
"""Those that need a deployment which takes writes."""


def _receipt(made: RecordedExclusion, principal: Principal) -> ExclusionReceipt:
    receipt = made.receipt
    row = visible_exclusion(made.as_row(), made.ruled, principal)
    return ExclusionReceipt(
        Exclusion(**_members(row)), Written(event_id=receipt.event_id, version=receipt.version, seq=receipt.seq)
    )


def _members(row: Row) -> dict[str, Any]:
    same = ("id", "sla_id", "clause", "ticket", "approved_by", "reason", "by", "state", "ruling", "why", "withheld")
    announced, honoured = row["announced_at_ns"], row["honoured"]
    return {
        **{name: row[name] for name in (*same, "withdrawn_reason", "withdrawn_by")},
        "from_": instant(row["from_ns"]),
        "to": instant(row["to_ns"]),
        "announced_at": None if announced is None else instant(announced),
        "honoured": honoured and Honoured(instant(honoured["from_ns"]), instant(honoured["to_ns"])),
    }


def _instant_ns(name: str, text: str) -> int:
    try:
        return parse_instant_ns(text)
    except InstantInvalid as error:
        raise ExclusionInvalid(f"{name}: {error.message}", field=name) from error
