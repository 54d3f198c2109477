"""Data quality: rows that say what no honest source says, and so block their period."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.di import NamedDependency

from api.parameters import Limit, SlaId
from api.rest.routes import reads
from api.rest.values import Instant, Word, instant
from ledger.app.access import Principal, Scope
from ledger.app.quality import QualityDesk


class QualityFault(msgspec.Struct, frozen=True, kw_only=True):
    """A row that blocks its period (open), or did until a usable row stood under its id (resolved)."""

    state: Annotated[str, msgspec.Meta(description="open or resolved")]
    source: str
    period: str
    digest: Annotated[str, msgspec.Meta(description="SHA-256 of the batch that the row stands in")]
    reason: Word
    sample_id: str
    line: int
    indicator: str
    field: Annotated[str, msgspec.Meta(description="The member that is wrong")]
    value: Annotated[str, msgspec.Meta(description="What the row says")]
    message: str
    at: Instant


class QualityFaults(msgspec.Struct, frozen=True):
    """Rows that were reported, the open ones first; ``open`` counts all that are."""

    open: int
    items: list[QualityFault]


@reads(
    "/v1/agreements/{sla_id:str}/data-quality",
    summary="Rows that block settlement",
    tag="violations",
    scopes=(Scope.READ_UPTIME,),
    problems=(400, 404, 503),
)
def list_quality_faults(
    quality_desk: NamedDependency[QualityDesk], principal: NamedDependency[Principal], sla_id: SlaId, limit: Limit = 50
) -> QualityFaults:
    """Rows that cannot be: more good than all, counts below 0, an outage that ends before it begins. Hand in a row in
    its place."""
    found = quality_desk.of(sla_id, principal)
    items = [
        QualityFault(
            state="resolved" if fault.resolved else "open",
            source=fault.source,
            period=fault.period,
            digest=fault.digest,
            reason=fault.reason,
            at=instant(int(fault.row["at_ns"])),
            **{name: value for name, value in fault.row.items() if name != "at_ns"},
        )
        for fault in found[:limit]
    ]
    return QualityFaults(sum(not fault.resolved for fault in found), items)
