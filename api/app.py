"""The application: routes over the queries, read-only, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from litestar import Litestar
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import License

from api.edge import LOOPBACK_HOSTS, Edge
from api.parameters import check_query
from api.problems import handle_error
from api.receiving import Intake
from api.rest import agreements, health, ingest, log, statements, tlog
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.queries import Health, Queries
from ledger.app.tlog import PublicLog

LOCAL_OPERATOR = Principal("local", "default", ROLE_SCOPES[Role.OPERATOR])
"""Who asks on loopback without credentials."""

API_VERSION = "1.0.0"
_DESCRIPTION = """Read-only. Lists are paged by an opaque `cursor`; errors are problem documents (RFC 9457) with a
stable `code`; instants and amounts that a JSON number cannot carry are decimal strings. Every answer that may be
stored has an `ETag`, the SHA-256 of its bytes: ask again with `If-None-Match`."""

HANDLERS = (
    agreements.list_agreements,
    agreements.get_agreement,
    statements.list_statements,
    statements.get_statement,
    statements.get_inclusion,
    statements.list_credits,
    statements.get_bundle,
    log.list_events,
    log.latest_checkpoint,
    log.get_checkpoint,
    log.get_chain,
    tlog.describe_log,
    tlog.tlog_checkpoint,
    tlog.tlog_tile,
    tlog.get_tlog_proof,
    health.live,
    health.ready,
)


def create_app(
    queries: Queries,
    *,
    health: Health,
    public_log: PublicLog,
    intake: Intake | None = None,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
) -> Edge:
    """The ASGI application. ``hosts`` are the names, without port, that it answers to.

    Without ``intake`` it only reads.
    """
    litestar = Litestar(
        route_handlers=HANDLERS if intake is None else (*HANDLERS, *ingest.HANDLERS),
        dependencies={
            "queries": Provide(lambda: queries, sync_to_thread=False),
            "intake": Provide(lambda: intake, sync_to_thread=False),
            "principal": Provide(lambda: LOCAL_OPERATOR, sync_to_thread=False),
            "health": Provide(lambda: health, sync_to_thread=False),
            "public_log": Provide(lambda: public_log, sync_to_thread=False),
        },
        before_request=check_query,
        exception_handlers={Exception: handle_error},
        openapi_config=OpenAPIConfig(
            title="sla-ledger",
            version=API_VERSION,
            description=_DESCRIPTION,
            license=License(name="Apache-2.0", identifier="Apache-2.0"),
            path="/schema",
            # The JSON document alone: the other pages load their scripts from a CDN.
            render_plugins=[JsonRenderPlugin()],
            use_handler_docstrings=True,
            operation_id_creator=lambda handler, _method, _path: str(handler.handler_name),
        ),
        logging_config=None,
    )
    return Edge(litestar, hosts=hosts, writes=intake is not None)
