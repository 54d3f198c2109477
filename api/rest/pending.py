"""Periods that are not closed yet, and what each waits for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from api.parameters import SlaId
from api.rest.routes import Seen, reads
from api.rest.values import Instant, Word, instant
from ledger.app.access import RESOURCE_SCOPES


class PendingPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """A period that began and is not closed."""

    period: str
    start: Instant
    end: Instant
    terms_version: int
    watermark: Annotated[
        Instant | None,
        msgspec.Meta(description="Up to where the source declared its facts complete; null where it never did"),
    ]
    waits_for: Annotated[
        str,
        msgspec.Meta(
            description="end, grace, watermark (its source), schedule (it is due), or request (it ended before its "
            "agreement was registered)"
        ),
    ]
    until: Annotated[
        Instant | None,
        msgspec.Meta(description="When that comes at the latest; null where it is up to the schedule or a person"),
    ]


class PendingPeriods(msgspec.Struct, frozen=True, kw_only=True):
    """The newest periods of an agreement that are not closed, oldest first."""

    sla_id: Word
    periods: list[PendingPeriod]


@reads(
    "/v1/agreements/{sla_id:str}/pending-periods",
    summary="Periods that are not closed",
    tag="agreements",
    scopes=tuple(sorted(RESOURCE_SCOPES["agreements"])),
    problems=(400, 404, 503),
)
def list_pending_periods(seen: Seen, sla_id: SlaId) -> PendingPeriods:
    """What each period that began and is not closed waits for, and how far its source has got."""
    same = ("period", "terms_version", "waits_for")
    return PendingPeriods(
        sla_id=sla_id,
        periods=[
            PendingPeriod(
                **{name: row[name] for name in same},
                start=instant(row["start_ns"]),
                end=instant(row["end_ns"]),
                watermark=_instant(row["watermark_ns"]),
                until=_instant(row["until_ns"]),
            )
            for row in seen.pending(sla_id)
        ],
    )


def _instant(at_ns: int | None) -> Instant | None:
    return None if at_ns is None else instant(at_ns)
