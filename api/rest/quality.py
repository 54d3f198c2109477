"""Data quality: rows that say what no honest source says, and so block their period."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from api.parameters import CursorText, Limit, SlaId, decode_cursor, encode_cursor
from api.rest.routes import reads
from api.rest.values import Instant, Withheld, Word, instant
from ledger.app.access import Principal, Scope
from ledger.app.facts.quality import QualityDesk
from ledger.app.paging import Row

FaultState: TypeAlias = Annotated[
    Literal["open", "resolved"] | None, QueryParameter(name="state", description="Only of this state")
]


class QualityFault(msgspec.Struct, frozen=True, kw_only=True):
    """A row that blocks its period (open), or did until a usable row stood under its id (resolved)."""

    id: Annotated[str, msgspec.Meta(description="Names it within its agreement")]
    state: Annotated[str, msgspec.Meta(description="open or resolved")]
    source: str
    period: str
    digest: Annotated[str, msgspec.Meta(description="SHA-256 of the batch that the row stands in")]
    reason: Word
    sample_id: str
    line: int
    indicator: str
    field: Annotated[str, msgspec.Meta(description="The member that is wrong")]
    value: Annotated[str | None, msgspec.Meta(description="What the row says; it needs the scope of the indicator")]
    message: Annotated[str | None, msgspec.Meta(description="What is wrong with that; likewise")]
    at: Instant
    withheld: Withheld


class QualityFaults(msgspec.Struct, frozen=True):
    """Rows as they were reported; ``open`` counts all that are open. ``next_cursor`` is null on the last page."""

    open: int
    items: list[QualityFault]
    next_cursor: str | None


@reads(
    "/v1/agreements/{sla_id:str}/data-quality",
    summary="Rows that block settlement",
    tag="violations",
    scopes=(Scope.READ_UPTIME,),
    problems=(400, 404, 503),
)
def list_quality_faults(
    quality_desk: NamedDependency[QualityDesk],
    principal: NamedDependency[Principal],
    sla_id: SlaId,
    of_state: FaultState = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> QualityFaults:
    """Rows that cannot be: more good than all, counts below 0, an outage that ends before it begins. Hand in a row in
    its place."""
    listing = f"data-quality/{sla_id}/{of_state or ''}"
    found = quality_desk.page(sla_id, principal, state=of_state, after=decode_cursor(cursor, listing), limit=limit)
    return QualityFaults(
        found.open, [_fault(row) for row in found.page.rows], encode_cursor(listing, found.page.last_id)
    )


def _fault(row: Row) -> QualityFault:
    return QualityFault(at=instant(row["at_ns"]), **{name: value for name, value in row.items() if name != "at_ns"})
