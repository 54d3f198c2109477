"""What each field needs, written into the schema once from the one policy (``ledger.app.access``).

``scoped`` declares a field with its ``@auth`` directives and, as the second layer behind the gate, a permission that
is checked when the field is resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import strawberry
from graphql import DirectiveLocation
from strawberry.permission import BasePermission, PermissionExtension
from strawberry.schema_directive import Location
from strawberry.types.field import StrawberryField

from api.graphql.errors import forbidden, lacking
from ledger.app.access import FIELD_SCOPES, METRIC_SCOPES, RESOURCE_SCOPES, Principal, Scope

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


class HoldsScopes(BasePermission):
    """Second layer: true where the principal of the request holds the scopes, whatever the gate decided."""

    def __init__(self, field: str, scopes: frozenset[Scope]) -> None:
        self._field = field
        self._scopes = scopes

    def has_permission(self, source: Any, info: strawberry.Info[Any, Any], **kwargs: Any) -> bool:
        principal: Principal = info.context.principal
        if principal.scopes >= self._scopes:
            return True
        # Raised here, because `on_unauthorized` is told neither who asked nor for what.
        raise forbidden(principal, self._field, lacking(principal, self._scopes))


def scoped(resource: str, member: str, **options: Any) -> Any:
    """A strawberry field that needs what ``FIELD_SCOPES[resource][member]`` names."""
    return _field(f"{resource}.{member}", FIELD_SCOPES[resource][member], options)


def resource(name: str, **options: Any) -> Any:
    """A strawberry field that needs what ``RESOURCE_SCOPES[name]`` names."""
    return _field(name, RESOURCE_SCOPES[name], options)


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


def _field(name: str, scopes: frozenset[Scope], options: dict[str, Any]) -> Any:
    permission = PermissionExtension(permissions=[HoldsScopes(name, scopes)], use_directives=False)
    return strawberry.field(directives=_directives(scopes), extensions=[permission], **options)


def _directives(scopes: Iterable[Scope]) -> list[object]:
    return [Auth(scope=str(scope)) for scope in sorted(scopes)]
