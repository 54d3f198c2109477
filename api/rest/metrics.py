"""What Prometheus scrapes."""

from __future__ import annotations

from litestar import Response
from litestar.datastructures import CacheControlHeader
from litestar.di import NamedDependency
from litestar.handlers import get

from api.auth.guard import SCOPES
from api.meters import CONTENT_TYPE, Meters
from ledger.app.access import Scope


@get(
    "/metrics",
    sync_to_thread=True,
    media_type="text/plain",
    cache_control=CacheControlHeader(no_store=True),
    summary="Metrics",
    tags=["health"],
    opt={SCOPES: (Scope.READ_METRICS,)},
)
def get_metrics(meters: NamedDependency[Meters]) -> Response[bytes]:
    """Prometheus text format 0.0.4: the log, the outbox and the chain now, and requests by route since the start."""
    return Response(meters.text(), headers={"content-type": CONTENT_TYPE})
