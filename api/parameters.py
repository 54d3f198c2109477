"""Query parameters: page cursors, limits, and the refusal of what a route does not know."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any, TypeAlias

from litestar import Request
from litestar.exceptions import NotFoundException
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from ledger.app.paging import ANY_START, Starts
from ledger.domain.record.canonical import MAX_SAFE_INTEGER, canonical_bytes, parse_canonical
from ledger.domain.time.instant import parse_date_or_instant_ns
from ledger.errors import CursorInvalid, InstantInvalid, NotCanonical, QueryInvalid

MAX_PAGE = 100
_MAX_CURSOR = 300
_RESERVED = frozenset({"request", "data", "body", "headers", "cookies"})
"""Arguments of handlers that Litestar fills from elsewhere."""

Limit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE, description=f"Items on a page, 1 to {MAX_PAGE}")]
CursorText: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        max_length=_MAX_CURSOR, description="`next_cursor` of the page before; opaque; absent for the first"
    ),
]
SlaId: TypeAlias = Annotated[str, PathParameter(description="`0x` and 64 lowercase hex digits")]
StatementId: TypeAlias = Annotated[
    str, PathParameter(description="Such as `1f0c3a9b7e21.2023-12-19.v1`: agreement, first local date, version")
]
SlaFilter: TypeAlias = Annotated[
    str | None,
    QueryParameter(pattern="^0x[0-9a-f]{64}$", description="Only of this agreement: `0x` and 64 lowercase hex digits"),
]
RequiredSlaId: TypeAlias = Annotated[
    str, QueryParameter(pattern="^0x[0-9a-f]{64}$", description="The agreement: `0x` and 64 lowercase hex digits")
]
Since: TypeAlias = Annotated[
    int, QueryParameter(ge=0, le=MAX_SAFE_INTEGER, description="First log position (`seq`), counted from 0")
]
TreeSize: TypeAlias = Annotated[
    int, PathParameter(ge=0, le=MAX_SAFE_INTEGER, description="Number of leaves of the log's tree")
]
ViolationId: TypeAlias = Annotated[
    str,
    PathParameter(description="Such as `1f0c3a9b7e21.2023-12-19.availability.w3`: agreement, day, objective, window"),
]
LineId: TypeAlias = Annotated[str, PathParameter(description="Such as `1f0c3a9b7e21.2023-12-19.v1.l0001`")]
PeriodName: TypeAlias = Annotated[
    str,
    QueryParameter(
        pattern=r"^\d{4}-\d\d-\d\d/P\d{1,3}[DWM]$", description="First local date and length, such as 2023-12-19/P1D"
    ),
]
AgreementId: TypeAlias = Annotated[
    str, QueryParameter(pattern="^0x[0-9a-f]{64}$", description="`0x` and 64 lowercase hex digits")
]
StatementFilter: TypeAlias = Annotated[
    str | None, QueryParameter(pattern="^[A-Za-z0-9._-]{1,120}$", description="Only of this statement")
]
ObjectiveFilter: TypeAlias = Annotated[
    str | None, QueryParameter(pattern="^[a-z][a-z0-9_-]{0,39}$", description="Only of the objective of this id")
]
FromInstant: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        name="from", max_length=40, description="Periods that start then or later: RFC 3339, or a date (00:00 UTC)"
    ),
]
ToInstant: TypeAlias = Annotated[
    str | None,
    QueryParameter(name="to", max_length=40, description="Periods that start before: RFC 3339, or a date (00:00 UTC)"),
]
IdempotencyKey: TypeAlias = Annotated[
    str,
    HeaderParameter(
        name="Idempotency-Key",
        pattern="^[!-~]{1,100}$",
        description="Names the request: sent again under the same key it is done once and answered alike",
    ),
]
OptionalTreeSize: TypeAlias = Annotated[
    int | None,
    QueryParameter(
        ge=1,
        le=MAX_SAFE_INTEGER,
        description="Number of leaves the path leads to; the newest signed checkpoint's where absent",
    ),
]


def instant_parameter(name: str, text: str | None) -> int | None:
    """The nanoseconds of a date or an RFC 3339 instant; raises ``QueryInvalid`` naming the parameter."""
    if text is None:
        return None
    try:
        return parse_date_or_instant_ns(text)
    except InstantInvalid as error:
        raise QueryInvalid(f"{name}: {error.message}", parameter=name) from error


def starts_between(from_: str | None, to: str | None) -> Starts:
    """The periods that a list is about; raises ``QueryInvalid`` for bounds between which nothing can start."""
    return starts_within(instant_parameter("from", from_), instant_parameter("to", to))


def starts_within(from_ns: int | None, to_ns: int | None) -> Starts:
    """The same of instants that were read before."""
    if from_ns is not None and to_ns is not None and from_ns >= to_ns:
        raise QueryInvalid("from is not before to, so no period starts between them", parameter="to")
    return Starts(from_ns, to_ns)


def listing_of(name: str, starts: Starts) -> str:
    """What cursors of a list with these bounds are made for."""
    bounds = ("" if each is None else str(each) for each in (starts.from_ns, starts.to_ns))
    return name if starts == ANY_START else f"{name}/{'/'.join(bounds)}"


def encode_cursor(listing: str, last_id: str | None) -> str | None:
    """An opaque cursor that continues ``listing`` (a list with its filter) after the item ``last_id``."""
    if last_id is None:
        return None
    return urlsafe_b64encode(canonical_bytes([listing, last_id])).rstrip(b"=").decode()


def decode_cursor(text: str | None, listing: str) -> str | None:
    """The id that a cursor of this ``listing`` continues after, None for the first page.

    Raises ``CursorInvalid`` for anything but the exact text ``encode_cursor`` makes for the same listing.
    """
    if text is None:
        return None
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        value = parse_canonical(urlsafe_b64decode(padded), max_bytes=_MAX_CURSOR)
    except (UnicodeEncodeError, binascii.Error, NotCanonical):
        raise _bad_cursor("is not one that this service made") from None
    match value:
        case [str(made_for), str(last_id)] if encode_cursor(made_for, last_id) == text:
            if made_for != listing:
                raise _bad_cursor("was made for another list or filter")
            return last_id
    raise _bad_cursor("is not one that this service made")


def check_query(request: Request[Any, Any, Any]) -> None:
    """Refuse unknown and repeated query parameters: a misspelt filter must not answer with everything.

    Runs before every handler. Raises ``QueryInvalid``, and 404 for paths only Litestar's own schema router knows.
    """
    if request.scope["path_template"] == "/schema/{path}":
        raise NotFoundException
    known = _query_names(request) - set(request.route_handler.resolve_dependencies()) - _RESERVED
    for name in request.query_params:
        if name not in known:
            options = ", ".join(sorted(known)) or "none"
            raise QueryInvalid(f"unknown query parameter {name[:40]!r}; known here: {options}", parameter=name[:40])
        if len(request.query_params.getall(name)) > 1:
            raise QueryInvalid(f"the query parameter {name!r} is given more than once", parameter=name)


def _query_names(request: Request[Any, Any, Any]) -> set[str]:
    """What a handler's arguments are called in a query. A header is none, and a Python keyword needs an alias."""
    names: set[str] = set()
    for name, field in request.route_handler.parsed_fn_signature.parameters.items():
        how = field.kwarg_definition
        if name not in request.path_params and not isinstance(how, HeaderParameter):
            names.add(how.name if isinstance(how, QueryParameter) and how.name else name)
    return names


def _bad_cursor(reason: str) -> CursorInvalid:
    return CursorInvalid(f"the cursor {reason}; start again without one", parameter="cursor")
