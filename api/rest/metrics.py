"""What Prometheus scrapes."""

from __future__ import annotations

from litestar import Response
from litestar.di import NamedDependency

from api.meters import CONTENT_TYPE, Meters
from api.rest.routes import reads
from ledger.app.access import Scope


@reads(
    "/metrics",
    summary="Metrics",
    tag="health",
    scopes=(Scope.READ_METRICS,),
    media_type="text/plain",
    shape=str,
    problems=(400,),
)
def get_metrics(meters: NamedDependency[Meters]) -> Response[bytes]:
    """Prometheus text format 0.0.4: the log, the outbox and the chain now, and requests by route since the start."""
    return Response(meters.text(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})
