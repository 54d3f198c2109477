"""POST /graphql: one JSON request, one JSON answer. No queries in an address, no batches, no page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from graphql import GraphQLError
from litestar import MediaType, Request, Response, post
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from api.auth.guard import AUTHENTICATED, SCOPES
from api.graphql.context import RequestContext, Sources
from api.graphql.errors import LimitExceeded, RequestUnusable, present_all
from api.graphql.limits import Limits
from api.graphql.schema import RoleSchema, schemas_within
from ledger.app.access import Principal
from ledger.domain.record.canonical import parse_json
from ledger.errors import NotCanonical, Unauthenticated

PATH = "/graphql"
_OBJECTS = ("variables", "extensions")
_HEADERS = {"Cache-Control": "no-store", "Vary": "Authorization"}
_MEMBERS = {"query", "operationName", "variables", "extensions"}


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """A request as the GraphQL over HTTP draft has it. ``strict`` is the member ``strict`` of its extensions."""

    query: str
    operation_name: str | None
    variables: Mapping[str, Any]
    strict: bool


def create_graphql(
    sources_of: Callable[[Request[Any, Any, Any]], Sources],
    *,
    now_ns: Callable[[], int] = time.time_ns,
    strict: bool = False,
    limits: Limits | None = None,
) -> HTTPRouteHandler:
    """The route handler; ``sources_of`` tells where the answer to a request comes from.

    Where ``strict`` is set, or a request asks for it, one forbidden field refuses the whole operation. The handler
    takes the dependency ``principal``; without one the answer is 401.
    """
    schemas = schemas_within(limits or Limits())

    @post(
        PATH,
        sync_to_thread=True,
        status_code=200,
        media_type=MediaType.JSON,
        # OpenAPI could say no more than "any JSON": docs/schema.graphql is the description.
        include_in_schema=False,
        request_max_body_size=schemas.limits.body_bytes,
        opt={SCOPES: (), AUTHENTICATED: True},
    )
    def graphql(
        request: Request[Any, Any, Any], body: RawBody, principal: NamedDependency[Principal | None]
    ) -> Response[bytes]:
        """Queries over what REST serves; docs/schema.graphql is the schema, docs/graphql.md explains it."""
        # A tenant without a name is nobody's: who asks is not known.
        if principal is None or not principal.tenant:
            raise Unauthenticated("GraphQL needs credentials; send them in the Authorization header")
        _require_json(request)
        asked = read_request(body, schemas.limits)
        sources = sources_of(request)
        context = RequestContext(
            principal,
            sources.queries_for(principal),
            sources.lists_for(principal),
            now_ns=now_ns,
            latency_cache=sources.latency_cache,
            desks=sources.desks_for(principal),
            operation_name=asked.operation_name,
            strict=strict or asked.strict,
        )
        answer = msgspec.json.encode(run(schemas.of(principal.scopes), asked, context))
        return Response(answer, media_type=MediaType.JSON, headers=_HEADERS)

    return graphql


def run(schema: RoleSchema, asked: GraphQLRequest, context: RequestContext) -> dict[str, Any]:
    """Execute a request; the answer as GraphQL has it, ``data`` and ``errors``."""
    try:
        result = schema.execute_sync(
            asked.query,
            variable_values=dict(asked.variables),
            context_value=context,
            operation_name=asked.operation_name,
            allowed_operation_types=(OperationType.QUERY,),
        )
    except CannotGetOperationTypeError:
        result = _refused("the document has no operation of that name; see operationName")
    except InvalidOperationTypeError:
        result = _refused("queries alone are served; REST writes")
    found = result.errors or []
    # An operation that did not run has no member `data` (GraphQL, 7.1); an error of one that ran has a path.
    ran = result.data is not None or any(error.path is not None for error in found)
    answer = {"data": result.data} if ran else {}
    return {**answer, "errors": present_all(found)} if found else answer


def read_request(body: bytes, limits: Limits) -> GraphQLRequest:
    """The request in a body. Raises ``RequestUnusable``, and ``LimitExceeded`` for one that is too long."""
    if len(body) > limits.body_bytes:
        raise LimitExceeded(f"the body has {len(body)} bytes; at most {limits.body_bytes} are read", limit="body_bytes")
    try:
        value = parse_json(body, max_bytes=limits.body_bytes)
    except NotCanonical as error:
        raise RequestUnusable(f"the body is not usable JSON: {error.message}") from error
    if isinstance(value, list):
        raise RequestUnusable("batches are not served; send one request")
    if not isinstance(value, dict):
        raise RequestUnusable('the body is not a GraphQL request; send {"query": "..."}')
    unknown = sorted(value.keys() - _MEMBERS)
    if unknown:
        known = ", ".join(sorted(_MEMBERS))
        raise RequestUnusable(f"unknown member {unknown[0][:40]!r}; known: {known}", member=unknown[0][:40])
    query, name = value.get("query"), value.get("operationName")
    # Null is the same as absent.
    variables, extensions = ({} if value.get(member) is None else value[member] for member in _OBJECTS)
    if not isinstance(query, str) or not query.strip():
        raise RequestUnusable("query must be a text with an operation", member="query")
    if name is not None and not isinstance(name, str):
        raise RequestUnusable("operationName must be a text", member="operationName")
    for member, found in zip(_OBJECTS, (variables, extensions), strict=True):
        if not isinstance(found, dict):
            raise RequestUnusable(f"{member} must be an object", member=member)
    strict = extensions.get("strict", False)
    if not isinstance(strict, bool):
        raise RequestUnusable("extensions.strict must be true or false", member="extensions.strict")
    return GraphQLRequest(query, name, variables, strict)


def _require_json(request: Request[Any, Any, Any]) -> None:
    # A form or text/plain would be a request that a page of any origin may send without asking.
    content_type, _ = request.content_type
    if content_type != "application/json":
        raise HTTPException("send the request as application/json", status_code=415)


def _refused(message: str) -> ExecutionResult:
    return ExecutionResult(data=None, errors=[GraphQLError(message)])
