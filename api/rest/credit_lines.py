"""Credit lines: what is owed violation by violation, what finance does with them, and the file for its books."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Annotated, Any, Literal, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from api.parameters import (
    CursorText,
    FromInstant,
    IdempotencyKey,
    Limit,
    LineId,
    SlaFilter,
    StatementFilter,
    ToInstant,
    decode_cursor,
    encode_cursor,
    listing_of,
    starts_between,
)
from api.rest.routes import reads, writes
from api.rest.values import Instant, Money, Seq, Word, instant, money
from ledger.app.access import Principal, Scope
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.billing.exports import MEDIA_TYPE
from ledger.app.paging import Row
from ledger.app.reading.lists import Lists

_IN_MEMORY = 4 * 1024 * 1024
_CHUNK = 64 * 1024

Status: TypeAlias = Annotated[
    Literal["draft", "issued", "applied", "void"] | None, QueryParameter(description="Only of this status")
]


_CHANGING = (Scope.WRITE_CREDITS, Scope.READ_CREDITS)
"""The answer to a change has the line with its amount."""


class Billing(msgspec.Struct, frozen=True):
    """Where billing has booked a line."""

    reference: str
    at: Instant
    by: str | None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is never edited. The sum of all is what is owed, and so is that of those not void."""

    id: str
    statement_id: str
    sla_id: Word
    customer: str
    period: str
    objective: str | None
    violation_id: Annotated[str | None, msgspec.Meta(description="Null: the ratio of the whole period failed alone")]
    credit: Annotated[Money, msgspec.Meta(description="Below zero where it takes something back")]
    status: Annotated[str, msgspec.Meta(description="draft (its statement's proof is due), issued, applied or void")]
    reverses: Annotated[str | None, msgspec.Meta(description="The line it takes back")]
    reversed_by: Annotated[str | None, msgspec.Meta(description="The line that takes it back")]
    restates: Annotated[
        str | None, msgspec.Meta(description="Of a difference: the statement that the line's own replaces")
    ]
    reason: Annotated[str | None, msgspec.Meta(description="Why it takes the other line back, or differs")]
    billing: Billing | None


class CreditLine(Line, frozen=True, kw_only=True):
    """A line with its proof."""

    proof_hash: Annotated[Word | None, msgspec.Meta(description="The proof of its statement; null while there is none")]
    anchor_tx: Annotated[Word | None, msgspec.Meta(description="The transaction that recorded it on chain")]
    seq: Seq


class CreditLinePage(msgspec.Struct, frozen=True):
    """Credit lines by start of their period; ``next_cursor`` is null on the last page."""

    items: list[CreditLine]
    next_cursor: str | None


class Reversal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What it takes to take a line back."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500, description="Why; it stays in the log for good")]


class Booking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What it takes to say that a line is booked."""

    reference: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="Under which billing booked it")]


@reads(
    "/v1/credit-lines",
    summary="List credit lines",
    tag="credits",
    scopes=(Scope.READ_CREDITS,),
    problems=(400, 404, 503),
)
def list_credit_lines(  # noqa: PLR0913, PLR0917 - one for each query parameter
    lists: NamedDependency[Lists],
    principal: NamedDependency[Principal],
    sla_id: SlaFilter = None,
    statement_id: StatementFilter = None,
    status: Status = None,
    from_: FromInstant = None,
    to: ToInstant = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> CreditLinePage:
    """Credit lines and reversal entries, by the start of their period."""
    starts = starts_between(from_, to)
    listing = listing_of(f"credit-lines/{sla_id or ''}/{statement_id or ''}/{status or ''}", starts)
    page = lists.credit_lines(
        principal,
        sla_id=sla_id,
        statement_id=statement_id,
        status=status,
        starts=starts,
        after=decode_cursor(cursor, listing),
        limit=limit,
    )
    return CreditLinePage([_credit_line(row) for row in page.rows], encode_cursor(listing, page.last_id))


@writes(
    "/v1/credit-lines/{line_id:str}/reverse",
    summary="Take a line back",
    tag="credits",
    scopes=_CHANGING,
)
def reverse_credit_line(
    credit_desk: NamedDependency[CreditDesk],
    principal: NamedDependency[Principal],
    line_id: LineId,
    data: JSONBody[Reversal],
    idempotency_key: IdempotencyKey,
) -> Line:
    """Take a line back whole; the answer is the entry that does so. A reversal is not taken back."""
    made = credit_desk.reverse(line_id, reason=data.reason, request=idempotency_key, by=principal.subject)
    return Line(**_members(made))


@writes(
    "/v1/credit-lines/{line_id:str}/apply",
    summary="Mark a line booked",
    tag="credits",
    scopes=_CHANGING,
)
def apply_credit_line(
    credit_desk: NamedDependency[CreditDesk],
    principal: NamedDependency[Principal],
    line_id: LineId,
    data: JSONBody[Booking],
    idempotency_key: IdempotencyKey,
) -> Line:
    """Say under which reference billing booked a line or a reversal entry."""
    made = credit_desk.apply(line_id, reference=data.reference, request=idempotency_key, by=principal.subject)
    return Line(**_members(made))


@reads(
    "/v1/exports/credits.csv",
    summary="Credit lines as CSV",
    tag="credits",
    scopes=(Scope.EXPORT, Scope.READ_CREDITS),
    media_type=MEDIA_TYPE,
    shape=str,
)
def export_credits(
    lists: NamedDependency[Lists],
    principal: NamedDependency[Principal],
    from_: FromInstant = None,
    to: ToInstant = None,
) -> Stream:
    """Every line of the periods that start in [from, to), with control totals: docs/credits.md.

    All of one state of the ledger.
    """
    starts = starts_between(from_, to)
    # Written before the first byte goes out: an error is a problem document then, not half a file, and no
    # transaction waits for a slow reader.
    out = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed when it was sent
    try:
        lists.export_credits(principal, out, from_ns=starts.from_ns, to_ns=starts.to_ns)
    except BaseException:
        out.close()
        raise
    headers = {
        "content-disposition": 'attachment; filename="credits.csv"',
        "content-length": str(out.tell()),
        "cache-control": "no-store",
    }
    return Stream(_chunks(out), media_type=MEDIA_TYPE, headers=headers)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while chunk := file.read(_CHUNK):
            yield chunk


def _credit_line(row: Row) -> CreditLine:
    return CreditLine(
        **_members({**row, "line_id": row["id"]}),
        proof_hash=row["proof_ref"],
        anchor_tx=row["anchor_tx"],
        seq=row["seq"],
    )


def _members(line: Row) -> dict[str, Any]:
    billing = line["billing"]
    same = ("statement_id", "sla_id", "customer", "period", "objective", "violation_id", "status", "reverses")
    return {
        **{name: line[name] for name in (*same, "reversed_by", "reason")},
        "id": line["line_id"],
        "restates": line.get("restates"),
        "credit": money(line["currency"], int(line["minor_units"])),
        "billing": billing and Billing(billing["reference"], instant(int(billing["at_ns"])), billing["by"]),
    }
