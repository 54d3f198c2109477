"""Whether the process lives, and whether it can answer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Response
from litestar.di import NamedDependency

from api.problems import NotReady
from api.rest.routes import PUBLIC, reads
from ledger.app.reading.readiness import Health

_OF_NOW = {"cache-control": "no-store"}


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


@reads(
    "/health/live",
    summary="Liveness",
    tag="health",
    scopes=PUBLIC,
    problems=(400,),
    waits=False,
)
def live() -> Response[Alive]:
    """Answers as long as the process does; looks at nothing else."""
    return Response(Alive(), headers=_OF_NOW)


@reads("/health/ready", summary="Readiness", tag="health", scopes=PUBLIC)
def ready(health: NamedDependency[Health]) -> Response[Ready]:
    """200 where questions can be answered, else a problem with status 503 that says what is missing."""
    found = health.check()
    if not found.ready or found.schema is None:
        current, head = (found.schema.current, found.schema.head) if found.schema else (None, None)
        reason = found.database_error or f"the database is at schema {current}, this version needs {head}"
        raise NotReady(reason, schema=current, schema_needed=head)
    state = Ready(
        schema=found.schema.head,
        log_size=found.log_size,
        outbox_pending=found.outbox_pending,
        outbox_parked=found.outbox_parked,
        chain_transactions=found.chain_transactions,
        chain_not_replayed=found.chain_failures,
    )
    return Response(state, headers=_OF_NOW)
