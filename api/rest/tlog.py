"""The log as static files for auditors and witnesses (C2SP tlog-tiles), and proofs in files (C2SP tlog-proof)."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import MediaType, Request, Response
from litestar.di import NamedDependency
from litestar.params import PathParameter

from api.parameters import StatementId
from api.rest.routes import PUBLIC, Seen, reads
from ledger.app.access import Scope
from ledger.app.bundles.tlog import PublicLog
from ledger.errors import NotFound

IMMUTABLE: Final = "public, max-age=31536000, immutable"
_OCTETS: Final = "application/octet-stream"

Log: TypeAlias = NamedDependency[PublicLog]
LogId: TypeAlias = Annotated[str, PathParameter(description="`log_id` of `/v1/log`: it names one log for ever")]
TilePath: TypeAlias = Annotated[
    str, PathParameter(description="`<level>/<index>[.p/<width>]`, or `entries` in place of the level")
]


class LogKeyRange(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the log and the sizes whose checkpoints it signs."""

    vkey: Annotated[str, msgspec.Meta(description="name+hash+base64 (C2SP signed-note)")]
    from_size: Annotated[int, msgspec.Meta(ge=0, description="The first size it signs")]
    until_size: Annotated[
        int | None, msgspec.Meta(description="The first size it does not sign; null: the present key")
    ]


class LogDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Where the log is served, and what its checkpoints are checked with."""

    origin: Annotated[str, msgspec.Meta(description="First line of every checkpoint; it never changes")]
    log_id: Annotated[str, msgspec.Meta(description="First 16 hex digits of SHA-256(origin)")]
    prefix: Annotated[str, msgspec.Meta(description="Of the log's files: `<prefix>/checkpoint`, `<prefix>/tile/...`")]
    size: Annotated[int, msgspec.Meta(ge=0, description="Leaves under the newest checkpoint")]
    keys: Annotated[list[LogKeyRange], msgspec.Meta(description="Oldest first; entries of the log show each rotation")]


@reads("/v1/log", summary="The log's name, address and keys", tag="log", scopes=PUBLIC, problems=(400, 503))
def describe_log(public_log: Log) -> LogDescription:
    """Trust none of this by itself: pin the first key or the present one, and check that the log leads to it."""
    found = public_log.describe()
    keys = [
        LogKeyRange(vkey=each.key.vkey(), from_size=each.from_size, until_size=each.until_size) for each in found.keys
    ]
    return LogDescription(
        origin=found.origin, log_id=found.log_id, prefix=f"/log/{found.log_id}", size=found.size, keys=keys
    )


@reads(
    "/log/{log_id:str}/checkpoint",
    summary="Newest checkpoint (tlog-tiles)",
    tag="log files",
    scopes=PUBLIC,
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def tlog_checkpoint(request: Request[Any, Any, Any], public_log: Log, log_id: LogId) -> Response[bytes]:
    """The newest signed note, with the cosignatures of witnesses. It changes; everything else below here does not."""
    _require_log(public_log, log_id)
    _require_sent(request, f"/log/{log_id}/checkpoint")
    return Response(public_log.checkpoint(), media_type=MediaType.TEXT)


@reads(
    "/log/{log_id:str}/tile/{tile_path:path}",
    summary="A tile or entry bundle (tlog-tiles)",
    tag="log files",
    scopes=PUBLIC,
    problems=(400, 404, 503),
    shape=bytes,
    media_type=_OCTETS,
)
def tlog_tile(request: Request[Any, Any, Any], public_log: Log, log_id: LogId, tile_path: TilePath) -> Response[bytes]:
    """Hashes, or entries after their two-byte lengths, in any width up to that of the newest checkpoint.

    Only the one spelling of a path is served. What a path gives once it gives for ever.
    """
    _require_log(public_log, log_id)
    path = f"tile/{tile_path.removeprefix('/')}"
    _require_sent(request, f"/log/{log_id}/{path}")
    return Response(public_log.resource(path), media_type=_OCTETS, headers={"cache-control": IMMUTABLE})


@reads(
    "/v1/statements/{statement_id:str}/tlog-proof",
    summary="Inclusion proof as a file (tlog-proof)",
    tag="log",
    scopes=(Scope.READ_PROOFS,),
    problems=(400, 404, 503),
    media_type=MediaType.TEXT,
)
def get_tlog_proof(public_log: Log, seen: Seen, statement_id: StatementId) -> Response[bytes]:
    """Index, audit path and newest checkpoint in one text. Its extra data is the entry whose hash is the leaf."""
    seen.require_statement(statement_id)
    return Response(public_log.statement_proof(statement_id), media_type=MediaType.TEXT)


def _require_log(public_log: PublicLog, log_id: str) -> None:
    if log_id != public_log.log_id:
        raise NotFound(f"the log served here is {public_log.log_id}; see /v1/log", log_id=public_log.log_id)


def _require_sent(request: Request[Any, Any, Any], path: str) -> None:
    """The path as it was sent: escapes, doubled and trailing slashes are other spellings, which caches keep apart."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    sent = raw.partition(b"?")[0].decode("latin-1")
    if sent != path:
        raise NotFound("a file of the log has one spelling: no escapes, no doubled or trailing slash", path=sent[:80])
