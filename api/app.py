"""The application: routes over what the principal may see, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, License, SecurityScheme

from api.auth.callers import Authentication
from api.auth.guard import SCOPES, caller_of, check_scopes, principal_of, require_declared
from api.auth.guests import GuestTokens
from api.auth.rate import RateLimit
from api.bodies import bounded_by
from api.desks import Desks
from api.edge import LOCAL_ONLY, UNLIMITED, Edge
from api.embed import pages, summary
from api.graphql.context import Sources
from api.graphql.route import create_graphql
from api.meters import Meters
from api.parameters import check_query
from api.problems import handle_error
from api.rest import (
    agreements,
    amending,
    budgets,
    charges,
    claims,
    credit_lines,
    embed_tokens,
    exclusions,
    explanations,
    health,
    ingest,
    log,
    metrics,
    pending,
    probe,
    quality,
    settled_credits,
    statements,
    tlog,
    violations,
    webhooks,
    writing,
)
from api.served import DEPENDENCIES, Served, served
from ledger.app.reading.budget_board import BudgetBoard
from ledger.app.reading.readiness import Health
from ledger.settings import BODY_TIMEOUT_S, LOOPBACK_HOSTS, EmbedSettings

API_VERSION = "1.0.0"
MAX_BODY_BYTES = 1024 * 1024
"""Of routes that do not say otherwise (``request_max_body_size``)."""
_DESCRIPTION = """Every operation names the scopes it needs; what a principal may not see of an answer is null and its
name listed in `withheld`. Lists are paged by an opaque `cursor`; errors are problem documents (RFC 9457) with a
stable `code`; instants and amounts that a JSON number cannot carry are decimal strings. Every answer that may be
stored has an `ETag` over its bytes and what the principal may see: ask again with `If-None-Match`."""

HANDLERS = (
    agreements.list_agreements,
    agreements.get_agreement,
    budgets.list_budgets,
    pending.list_pending_periods,
    statements.list_statements,
    statements.get_statement,
    explanations.get_explanation,
    statements.get_inclusion,
    settled_credits.list_credits,
    statements.get_bundle,
    log.list_events,
    log.latest_checkpoint,
    log.get_checkpoint,
    log.get_chain,
    log.list_registry_events,
    tlog.describe_log,
    tlog.tlog_checkpoint,
    tlog.tlog_tile,
    tlog.get_tlog_proof,
    exclusions.list_exclusions,
    quality.list_quality_faults,
    violations.list_windows,
    violations.list_violations,
    violations.get_violation,
    credit_lines.list_credit_lines,
    credit_lines.reverse_credit_line,
    credit_lines.apply_credit_line,
    credit_lines.export_credits,
    webhooks.register_webhook,
    webhooks.list_webhooks,
    webhooks.rotate_webhook_secret,
    webhooks.set_webhook_state,
    webhooks.list_deliveries,
    health.live,
    health.ready,
    metrics.get_metrics,
    summary.get_summary,
    pages.embed_page,
    pages.dashboard_page,
    pages.embed_file,
)


_WRITING = (
    *writing.HANDLERS,
    *amending.HANDLERS,
    *exclusions.HANDLERS,
    *charges.HANDLERS,
    *claims.HANDLERS,
    *probe.HANDLERS,
)
"""What commands serve."""


def create_app(
    desks: Desks,
    *,
    health: Health,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    authentication: Authentication = LOCAL_ONLY,
    rate_limit: RateLimit = UNLIMITED,
    guests: GuestTokens | None = None,
    embed: EmbedSettings | None = None,
) -> Edge:
    """The ASGI application. ``hosts`` are the names, without port, that it answers to.

    Handlers get ``principal`` and the desks of its tenant. Without ``guests`` there are no guest tokens. Raises
    ``TypeError`` for handlers that do not declare their scopes.
    """
    meters = _meters(desks, health)
    sources = Sources(desks.queries_for, desks.lists_for, desks.asked_for)
    return Edge(
        _routes(
            guests=guests is not None,
            commands=desks.commands is not None,
            intake=desks.intake is not None,
            body_timeout_s=BODY_TIMEOUT_S if desks.intake is None else desks.intake.settings.body_timeout_s,
        ),
        Served(desks, health, meters, sources, guests, embed or EmbedSettings()),
        authentication=authentication,
        hosts=hosts,
        rate_limit=rate_limit,
        revision=desks.queries.revision,
        count=meters.answered,
    )


@cache
def _routes(*, guests: bool, commands: bool, intake: bool, body_timeout_s: float) -> Litestar:
    """Those of each application that has ``guests``, ``commands`` and ``intake``, or has them not."""
    litestar = Litestar(
        route_handlers=[
            *HANDLERS,
            *([embed_tokens.make_guest_token] if guests else []),
            create_graphql(lambda request: served(request).graphql),
            *(_WRITING if commands else []),
            *(ingest.HANDLERS if intake else []),
        ],
        dependencies={
            **DEPENDENCIES,
            "caller": Provide(caller_of, sync_to_thread=False),
            "principal": Provide(principal_of, sync_to_thread=False),
        },
        guards=[check_scopes],
        before_request=check_query,
        exception_handlers={Exception: handle_error},
        openapi_config=_openapi(),
        request_class=bounded_by(body_timeout_s),
        request_max_body_size=MAX_BODY_BYTES,
        logging_config=None,
    )
    require_declared(litestar)
    return litestar


def _meters(desks: Desks, health: Health) -> Meters:
    outcomes = dict if desks.intake is None else desks.intake.outcomes.counts
    return Meters(health, outcomes, BudgetBoard(desks.queries, health.tenants))


def _openapi() -> OpenAPIConfig:
    bearer = SecurityScheme(
        type="http",
        scheme="bearer",
        description="An API key (`sla-ledger keys api create`), an access token (RFC 9068) or a guest token",
    )
    return OpenAPIConfig(
        title="sla-ledger",
        version=API_VERSION,
        description=_DESCRIPTION,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(security_schemes={"bearer": bearer}),
        openapi_router=Router("/schema", route_handlers=[], opt={SCOPES: ()}, include_in_schema=False),
        # The JSON document alone: the other pages load their scripts from a CDN.
        render_plugins=[JsonRenderPlugin()],
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _path: operation_id(handler),
    )


def operation_id(handler: BaseRouteHandler) -> str:
    """The name of the handler's function, which Litestar wraps once it is to run in a thread."""
    function: Any = handler.fn
    while hasattr(function, "func"):
        function = function.func
    return str(function.__name__)
