"""The gate: what the selected operation asks for is compared with what the principal may see, before it runs.

Validation is against the whole schema, execution in the schema of the principal's scopes. A field that is not in the
latter is known here, so it can be answered with null and ``FORBIDDEN`` instead of "no such field"; were it missed
here, execution would not find it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLDirective,
    GraphQLError,
    GraphQLField,
    GraphQLIncludeDirective,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    GraphQLString,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_argument_values,
    get_directive_values,
    get_named_type,
    get_nullable_type,
    get_operation_ast,
    get_variable_values,
    is_list_type,
)
from graphql.execution.values import VariableValues
from strawberry.extensions import SchemaExtension
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from api.graphql.access import Requirement
from api.graphql.context import RequestContext
from api.graphql.errors import forbidden
from api.graphql.limits import Limits, require_cost
from ledger.app.access import Principal
from ledger.errors import AccessDenied

LIST_ITEMS = 5
"""How many items a list is taken to have whose size no argument says."""
COSTS: Mapping[tuple[str, str], int] = {
    # These read recorded batches and committed windows, not a view row.
    ("SlaReport", "p95LatencyMs"): 2000,
    ("SlaReport", "measuredRequests"): 2000,
    ("SlaReport", "uptimePercent"): 200,
    ("SlaReport", "errorRatePercent"): 200,
    # These judge again what stands in the log: every window of a period, every exclusion of an agreement.
    ("Query", "explanation"): 2000,
    ("Query", "claims"): 2000,
    ("Query", "exclusions"): 200,
    # These read batches of facts, or streams of events.
    ("Query", "dataQuality"): 2000,
    ("Query", "pendingPeriods"): 200,
    ("Query", "charges"): 200,
    ("Agreement", "lifecycle"): 200,
}


@dataclass(frozen=True, slots=True)
class WholeSchema:
    """The schema with everything in it, and what its fields need; fields that are not named need nothing."""

    schema: GraphQLSchema
    requirements: Mapping[tuple[str, str], Requirement]

    @property
    def auth(self) -> GraphQLDirective:
        directive = self.schema.get_directive("auth")
        if directive is None:
            raise LookupError("the schema declares no @auth")
        return directive


@dataclass(slots=True)
class Selection:
    """What an operation selects: refused fields by the identity of their node, and the cost of the rest."""

    denied: dict[int, AccessDenied] = field(default_factory=dict)
    cost: int = 0


def select(
    whole: WholeSchema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: VariableValues,
    principal: Principal,
) -> Selection:
    """Walk the selected operation of a valid document, as execution will: fragments, @skip and @include.

    Every fragment is walked once: what a field needs depends on its type, and a fragment has one.
    """
    walk = _Walk(whole, document, variables, principal)
    walk.found.cost = walk.cost(operation.selection_set, whole.schema.query_type)
    return walk.found


class _Walk:
    def __init__(
        self, whole: WholeSchema, document: DocumentNode, variables: VariableValues, principal: Principal
    ) -> None:
        self.found = Selection()
        self._whole = whole
        self._auth = whole.auth
        self._variables = variables
        self._principal = principal
        self._costs: dict[str, int] = {}
        self._fragments = {
            found.name.value: found for found in document.definitions if isinstance(found, FragmentDefinitionNode)
        }

    def cost(self, selections: SelectionSetNode | None, parent: GraphQLNamedType | None) -> int:
        total = 0
        for node in selections.selections if selections else ():
            if not self._included(node):
                continue
            if isinstance(node, FieldNode):
                total += self._field(node, parent)
            elif isinstance(node, FragmentSpreadNode):
                total += self._fragment(node.name.value)
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                total += self.cost(
                    node.selection_set, self._whole.schema.get_type(condition.name.value) if condition else parent
                )
        return total

    def _fragment(self, name: str) -> int:
        if name not in self._costs:
            fragment = self._fragments[name]
            parent = self._whole.schema.get_type(fragment.type_condition.name.value)
            self._costs[name] = self.cost(fragment.selection_set, parent)
        return self._costs[name]

    def _field(self, node: FieldNode, parent: GraphQLNamedType | None) -> int:
        # The whole schema has object types alone (see `schema`), so the parent's fields are those that are resolved.
        if not isinstance(parent, GraphQLObjectType):
            raise LookupError(f"{node.name.value} is selected on {parent}, which is no object type")
        definition = self._whole.schema.get_field(parent, node.name.value)
        if definition is None:
            raise LookupError(f"{parent.name} has no field {node.name.value}")
        place = (parent.name, node.name.value)
        missing = self._missing(node, place)
        if missing:
            self.found.denied[id(node)] = forbidden(self._principal, ".".join(place), missing)
            return 1
        below = self.cost(node.selection_set, get_named_type(definition.type))
        return COSTS.get(place, 1) + self._items(node, definition) * below

    def _missing(self, node: FieldNode, place: tuple[str, str]) -> tuple[str, ...]:
        needed = self._whole.requirements.get(place)
        missing = needed.missing(self._principal) if needed else ()
        return missing + tuple(scope for scope in self._asked(node) if scope not in missing)

    def _asked(self, node: FieldNode) -> Iterator[str]:
        """Scopes that the query itself asks for beside the field, and that the principal lacks."""
        for directive in node.directives or ():
            if directive.name.value == self._auth.name:
                scope = get_argument_values(self._auth, directive, self._variables, hide_suggestions=True)["scope"]
                if scope not in self._principal.scopes:
                    yield scope[:100]

    def _items(self, node: FieldNode, definition: GraphQLField) -> int:
        if "first" in definition.args:
            first = get_argument_values(definition, node, self._variables, hide_suggestions=True)["first"]
            return max(1, int(first))
        # The edges of a page were counted with its `first`.
        is_list = is_list_type(get_nullable_type(definition.type)) and node.name.value != "edges"
        return LIST_ITEMS if is_list else 1

    def _included(self, node: Any) -> bool:
        if not node.directives:
            return True
        skip = get_directive_values(GraphQLSkipDirective, node, self._variables, hide_suggestions=True)
        include = get_directive_values(GraphQLIncludeDirective, node, self._variables, hide_suggestions=True)
        return not (skip and skip["if"]) and not (include and not include["if"])


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A parsed document and what validation against the whole schema found."""

    document: DocumentNode
    errors: tuple[GraphQLError, ...]


class GatedSchema(Protocol):
    """What the gate needs of the schema that an operation is executed in."""

    whole: WholeSchema
    limits: Limits

    def checked(self, query: str) -> CheckedDocument:
        """Raises ``LimitExceeded``, and ``GraphQLSyntaxError``."""
        ...


class Gate(SchemaExtension):
    """Sets the errors of an operation before validation is over, so that it cannot run with one.

    The schema of the execution context is a ``GatedSchema``, its context a ``RequestContext``.
    """

    def on_parse(self) -> Iterator[None]:
        context = self.execution_context
        self._schema = cast(GatedSchema, context.schema)
        self._checked = self._schema.checked(context.query or "")
        context.graphql_document = self._checked.document
        yield

    def on_validate(self) -> Iterator[None]:
        # Before `yield`: what is set after it would come too late, and an error here ends the request. Not None, so
        # that nothing validates against the role's schema, to which a forbidden field is unknown.
        self.execution_context.pre_execution_errors = self._errors()
        yield

    def _errors(self) -> list[GraphQLError]:
        if self._checked.errors:
            return list(self._checked.errors)
        context: RequestContext = self.execution_context.context
        whole, limits = self._schema.whole, self._schema.limits
        document = self._checked.document
        operation = get_operation_ast(document, context.operation_name)
        if operation is None:
            return [GraphQLError("the document has several operations; name one with operationName")]
        variables = get_variable_values(
            whole.schema,
            operation.variable_definitions or (),
            self.execution_context.variables or {},
            max_errors=limits.errors,
            hide_suggestions=True,
        )
        if isinstance(variables, list):
            return variables
        found = select(whole, document, operation, variables, context.principal)
        require_cost(found.cost, limits)
        if found.denied and context.strict:
            return [GraphQLError(error.message, original_error=error) for error in found.denied.values()]
        context.denied = found.denied
        return []


class GatedExecutor(StrawberryGraphQLCoreExecutionContext):
    """Answers a field that the gate refused with null and its error."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.context_value.denied:
            # Per instance: where nothing was refused no field pays for the question.
            self.execute_field = self._execute_field  # type: ignore[method-assign]

    def _execute_field(
        self, parent_type: Any, source: Any, field_details_list: Any, path: Any, position_context: Any
    ) -> Any:
        denied: Mapping[int, AccessDenied] = self.context_value.denied
        # One response key may come from several nodes; one that is refused withholds the value.
        for details in field_details_list:
            error = denied.get(id(details.node))
            if error is not None:
                definition = self.schema.get_field(parent_type, details.node.name.value)
                shape = GraphQLString if definition is None else definition.type
                self.handle_field_error(error, shape, field_details_list, path)
                return None
        return super().execute_field(parent_type, source, field_details_list, path, position_context)
