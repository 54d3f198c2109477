"""Credits: what follows from statements."""

from __future__ import annotations

from typing import Annotated

import msgspec

from api.parameters import (
    CursorText,
    FromInstant,
    Limit,
    SlaFilter,
    ToInstant,
    decode_cursor,
    encode_cursor,
    listing_of,
    starts_between,
)
from api.rest.routes import Seen, reads
from api.rest.statements import Versions
from api.rest.values import Money, Seq, Word, money
from ledger.app.access import Scope
from ledger.app.paging import Row


class Credit(msgspec.Struct, frozen=True, kw_only=True):
    """The credit of one statement; it may be zero. Lines that were taken back since do not change it."""

    statement_id: str
    sla_id: Word
    period: str
    credit: Money
    status: Annotated[str, msgspec.Meta(description="Always issued; its credit lines say what became of it")]
    proof_hash: Annotated[Word | None, msgspec.Meta(description="The proof it follows by; null while there is none")]
    seq: Seq


class CreditPage(msgspec.Struct, frozen=True):
    """Credits by start of their period; ``next_cursor`` is null on the last page."""

    items: list[Credit]
    next_cursor: str | None


@reads(
    "/v1/credits",
    of_the_log=True,
    summary="List credits",
    tag="statements",
    scopes=(Scope.READ_CREDITS,),
    problems=(400, 404, 503),
)
def list_credits(
    seen: Seen,
    sla_id: SlaFilter = None,
    versions: Versions = "newest",
    from_: FromInstant = None,
    to: ToInstant = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> CreditPage:
    """Credits of statements of one agreement or of all, by the start of their period. Withheld statements have none.

    What is owed now is the sum of the credit lines (`/v1/credit-lines`): lines may have been taken back since.
    """
    starts = starts_between(from_, to)
    listing = listing_of(f"credits/{sla_id or ''}/{versions}", starts)
    after = decode_cursor(cursor, listing)
    page = seen.credits(sla_id, after=after, limit=limit, newest=versions == "newest", starts=starts)
    return CreditPage([_credit(row) for row in page.rows], encode_cursor(listing, page.last_id))


def _credit(row: Row) -> Credit:
    return Credit(
        statement_id=row["statement_id"],
        sla_id=row["sla_id"],
        period=row["period"],
        credit=money(row["currency"], row["minor_units"]),
        status=row["status"],
        proof_hash=row["proof_ref"],
        seq=row["seq"],
    )
