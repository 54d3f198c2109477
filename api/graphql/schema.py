"""One schema for each set of scopes: introspection in it shows nothing that is forbidden.

The types are declared once (``types``, ``report``, ``query``). The schema with everything in it validates and is what
``docs/schema.graphql`` shows; nothing is executed in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import Any, Generic, TypeVar

import strawberry
from graphql import GraphQLError, GraphQLNonNull, execute, is_abstract_type, validate
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig
from strawberry.types import ExecutionContext
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.field import StrawberryField

from api.graphql.access import Auth, Requirement, guarded, requirement
from api.graphql.errors import log_unexpected
from api.graphql.gate import CheckedDocument, Gate, GatedExecutor, WholeSchema
from api.graphql.limits import Limits, parse_bounded
from api.graphql.query import Query
from api.graphql.scalars import SCALARS
from ledger.app.access import Scope

SDL_PATH = "docs/schema.graphql"
_MAX_SCHEMAS = 64
_MAX_DOCUMENTS = 128
_MAX_KEPT_CHARS = 8 * 1024

Value = TypeVar("Value")


class _Recent(Generic[Value]):
    """The values last used, made when they are missing; two may make one at once, and then one of them is kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[Any, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            value = self._values.setdefault(key, made)
            if len(self._values) > self._size:
                self._values.popitem(last=False)
            return value


class _Declared(strawberry.Schema):
    """The declared types without the fields that ``scopes`` do not reach."""

    def __init__(self, scopes: frozenset[Scope]) -> None:
        # Read by `get_fields`, which the constructor calls.
        self._scopes = scopes
        super().__init__(
            query=Query,
            types=[Auth],
            extensions=[Gate],
            execution_context_class=GatedExecutor,
            config=StrawberryConfig(scalar_map=SCALARS, disable_field_suggestions=True),
        )

    def get_fields(self, type_definition: StrawberryObjectDefinition) -> list[StrawberryField]:
        return [found for found in type_definition.fields if requirement(found).met_by(self._scopes)]


class RoleSchema(_Declared):
    """The schema that principals with exactly ``scopes`` are answered in.

    It keeps the documents it has parsed; no other schema sees them.
    """

    def __init__(self, scopes: frozenset[Scope], whole: WholeSchema, limits: Limits) -> None:
        super().__init__(scopes)
        for (type_name, field_name), needed in whole.requirements.items():
            # Neither is there where the field, or all that leads to the type, is forbidden.
            field = getattr(self._schema.get_type(type_name), "fields", {}).get(field_name)
            if field is not None:
                field.resolve = guarded(field.resolve, f"{type_name}.{field_name}", needed)
        self.whole = whole
        self.limits = limits
        self._documents: _Recent[CheckedDocument] = _Recent(_MAX_DOCUMENTS)

    def checked(self, query: str) -> CheckedDocument:
        """The parsed and validated document. Raises ``LimitExceeded``, and ``GraphQLSyntaxError``."""
        if len(query) > _MAX_KEPT_CHARS:
            return self._check(query)
        return self._documents.get(query, lambda: self._check(query))

    def _check(self, query: str) -> CheckedDocument:
        document = parse_bounded(query, self.limits)
        found = validate(self.whole.schema, document, max_errors=self.limits.errors, hide_suggestions=True)
        return CheckedDocument(document, tuple(found))

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        log_unexpected(errors)

    def _get_execute_function(self) -> Callable[..., Any]:
        return partial(execute, hide_suggestions=True)


class Schemas:
    """Schemas by the scopes that make a difference, made when they are first needed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        declared = _Declared(frozenset(Scope))
        self._whole = WholeSchema(declared._schema, requirements_of(declared))
        self._used = frozenset[Scope]().union(
            *(found.all_of | found.any_of for found in self._whole.requirements.values())
        )
        self._schemas: _Recent[RoleSchema] = _Recent(_MAX_SCHEMAS)

    def of(self, scopes: frozenset[Scope]) -> RoleSchema:
        """The schema of a principal with these scopes."""
        used = scopes & self._used
        return self._schemas.get(used, lambda: RoleSchema(used, self._whole, self.limits))


@cache
def schemas_within(limits: Limits) -> Schemas:
    """Those of all servers of a process: they hold nothing that one of them answers from, and are dear to make."""
    return Schemas(limits)


def requirements_of(declared: strawberry.Schema) -> Mapping[tuple[str, str], Requirement]:
    """What the fields of a schema need, by (type, field) as GraphQL names them.

    Raises ``TypeError`` where the gate could not tell: an interface or union, whose fields are resolved on another
    type, and a field that can be forbidden but not null.
    """
    found: dict[tuple[str, str], Requirement] = {}
    for name, kind in declared._schema.type_map.items():
        if name.startswith("__"):
            continue
        if is_abstract_type(kind):
            raise TypeError(f"{name} is an interface or union; the gate knows object types alone")
        for field_name, field in getattr(kind, "fields", {}).items():
            definition = field.extensions.get("strawberry-definition")
            if definition is None:
                continue
            needed = requirement(definition)
            if needed.all_of or needed.any_of:
                if isinstance(field.type, GraphQLNonNull):
                    raise TypeError(f"{name}.{field_name} needs a scope, so it must be nullable")
                found[name, field_name] = needed
    return found


def sdl_file() -> Mapping[str, str]:
    """The whole schema in the schema definition language, for ``sla-ledger generate``."""
    note = "# Generated by `sla-ledger generate` from api/graphql; do not edit.\n\n"
    return {SDL_PATH: note + print_schema(_Declared(frozenset(Scope))) + "\n"}
