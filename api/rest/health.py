"""Whether the process lives, and whether it can answer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import get
from litestar.datastructures import CacheControlHeader
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec

from api.auth.guard import SCOPES
from api.problems import PROBLEM_MEDIA_TYPE, NotReady, Problem
from api.rest.reading import PUBLIC
from ledger.app.queries import Health

_NO_STORE = CacheControlHeader(no_store=True)


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The database answers at the schema of this version. Parked work and chain failures wait for an operator."""

    status: Literal["ready"] = "ready"
    schema: Annotated[str, msgspec.Meta(description="Migration the database is at")]
    log_size: int
    outbox_pending: Annotated[int, msgspec.Meta(description="Stages still to be done")]
    outbox_parked: Annotated[int, msgspec.Meta(description="Stages given up, each with its error")]
    chain_transactions: Annotated[int, msgspec.Meta(description="Transactions stored for the embedded chain")]
    chain_not_replayed: Annotated[int, msgspec.Meta(description="Those that could not be replayed; see /v1/chain")]


@get(
    "/health/live",
    sync_to_thread=False,
    cache_control=_NO_STORE,
    summary="Liveness",
    tags=["health"],
    opt={SCOPES: PUBLIC},
)
def live() -> Alive:
    """Answers as long as the process does; looks at nothing else."""
    return Alive()


@get(
    "/health/ready",
    sync_to_thread=True,
    cache_control=_NO_STORE,
    summary="Readiness",
    tags=["health"],
    opt={SCOPES: PUBLIC},
    responses={
        503: ResponseSpec(
            Problem, generate_examples=False, description="Not ready, and why", media_type=PROBLEM_MEDIA_TYPE
        )
    },
)
def ready(health: NamedDependency[Health]) -> Ready:
    """200 where questions can be answered, else a problem with status 503 that says what is missing."""
    found = health.check()
    if not found.ready or found.schema is None:
        current, head = (found.schema.current, found.schema.head) if found.schema else (None, None)
        reason = found.database_error or f"the database is at schema {current}, this version needs {head}"
        raise NotReady(reason, schema=current, schema_needed=head)
    return Ready(
        schema=found.schema.head,
        log_size=found.log_size,
        outbox_pending=found.outbox_pending,
        outbox_parked=found.outbox_parked,
        chain_transactions=found.chain_transactions,
        chain_not_replayed=found.chain_failures,
    )
