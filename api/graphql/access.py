"""What each field needs, written into the schema once from the one policy (``ledger.app.access``).

``scoped`` declares a field with its ``@auth`` directives. From them the gate knows what a field needs, the schema of a
set of scopes which fields it has, and the second layer what to check when a field is resolved (``guarded``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import strawberry
from graphql import DirectiveLocation
from strawberry.schema_directive import Location
from strawberry.types.field import StrawberryField

from api.graphql.errors import forbidden, lacking
from ledger.app.access import FIELD_SCOPES, METRIC_SCOPES, RESOURCE_SCOPES, Principal, Scope

Resolve = Callable[..., Any]
"""A resolver as graphql-core calls it: (source, info, **arguments)."""
Method = TypeVar("Method", bound=Callable[..., Any])

_ANY_OF = "any_of"
# Strawberry's own list of locations has those of type systems alone; a location is looked up by its value.
_LOCATIONS: list[Any] = [Location.FIELD_DEFINITION, DirectiveLocation.FIELD]


@strawberry.schema_directive(
    locations=_LOCATIONS,
    name="auth",
    repeatable=True,
    description="The field needs this scope; all of them where it stands more than once. "
    "In a query it asks for one scope more than the schema does, so it can only narrow.",
)
class Auth:
    """``@auth(scope: "sla:read:credits")``."""

    scope: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """All of ``all_of`` and, where it is not empty, one of ``any_of``."""

    all_of: frozenset[Scope]
    any_of: frozenset[Scope]

    def missing(self, principal: Principal) -> tuple[str, ...]:
        """What the principal lacks, as scopes or as a choice of scopes; empty: may see."""
        found = tuple(map(str, lacking(principal, self.all_of)))
        if not found and self.any_of and self.any_of.isdisjoint(principal.scopes):
            return (" or ".join(sorted(self.any_of)),)
        return found

    def met_by(self, scopes: frozenset[Scope]) -> bool:
        return scopes >= self.all_of and not (self.any_of and self.any_of.isdisjoint(scopes))


def guarded(resolve: Resolve, place: str, needed: Requirement) -> Resolve:
    """``resolve`` behind the second layer: checked when the value is made, whatever the gate decided.

    Strawberry's ``PermissionExtension`` does the same, but one such field of six took a page of 100 statements to 1.3
    times its time (``graphql_access_ratio``).
    """

    def check(source: Any, info: Any, **arguments: Any) -> Any:
        principal: Principal = info.context.principal
        if not needed.met_by(principal.scopes):
            raise forbidden(principal, place, needed.missing(principal))
        return resolve(source, info, **arguments)

    return check


def scoped(resource: str, member: str, **options: Any) -> Any:
    """A strawberry field that needs what ``FIELD_SCOPES[resource][member]`` names."""
    return _field(FIELD_SCOPES[resource][member], options)


def resource(name: str, **options: Any) -> Any:
    """A strawberry field that needs what ``RESOURCE_SCOPES[name]`` names."""
    return _field(RESOURCE_SCOPES[name], options)


def metric(**options: Any) -> Any:
    """A strawberry field that needs one of the scopes of metrics; which one, its value's row says."""
    return strawberry.field(metadata={_ANY_OF: frozenset(METRIC_SCOPES.values())}, **options)


def resolves(declared: Any) -> Callable[[Method], Method]:
    """Decorator: the method gives the value of the field ``declared``. Strawberry's own has no types for this use."""
    return cast(Callable[[Method], Method], declared)


def requirement(field: StrawberryField) -> Requirement:
    """What a field of the schema needs."""
    all_of = frozenset(Scope(directive.scope) for directive in field.directives if isinstance(directive, Auth))
    return Requirement(all_of, field.metadata.get(_ANY_OF, frozenset()))


def _field(scopes: frozenset[Scope], options: dict[str, Any]) -> Any:
    return strawberry.field(directives=[Auth(scope=str(scope)) for scope in sorted(scopes)], **options)
