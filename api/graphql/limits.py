"""How large an operation may be, checked before anything walks or executes it.

Tokens and brackets are counted before the parser, depth and aliases before validation, and cost (list sizes
multiplied along the path) before execution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
)

from api.graphql.errors import LimitExceeded

# Strings and comments as the lexer reads them, so that a bracket in one does not count.
_PIECES = re.compile(r'"""(?:\\"""|(?!""").)*"""|"(?:[^"\\\n\r]|\\.)*"|#[^\n\r]*|[\[\](){}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for. The introspection query of common clients needs 15 levels."""

    body_bytes: int = 64 * 1024
    tokens: int = 1000
    brackets: int = 64
    depth: int = 15
    aliases: int = 30
    fragments: int = 30
    operations: int = 10
    cost: int = 20_000
    errors: int = 20


def parse_bounded(query: str, limits: Limits) -> DocumentNode:
    """The document of a query text. Raises ``LimitExceeded``, and ``GraphQLSyntaxError``."""
    _require("brackets", _nesting(query), limits.brackets)
    document = parse(query, max_lexical_tokens=limits.tokens)
    fragments = {found.name.value: found for found in document.definitions if isinstance(found, FragmentDefinitionNode)}
    operations = [found for found in document.definitions if isinstance(found, OperationDefinitionNode)]
    _require("fragments", len(fragments), limits.fragments)
    _require("operations", len(operations), limits.operations)
    for definition in (*operations, *fragments.values()):
        # Each on its own first, so that a chain of fragments cannot lead deeper than the interpreter goes.
        _require("depth", _Shape({}).depth(definition.selection_set), limits.depth)
    shape = _Shape(fragments)
    depths = [shape.depth(operation.selection_set) for operation in operations]
    depths += [shape.of_fragment(name) for name in fragments]
    _require("depth", max(depths, default=0), limits.depth)
    _require("aliases", shape.aliases, limits.aliases)
    return document


def require_cost(cost: int, limits: Limits) -> None:
    """Raises ``LimitExceeded``."""
    _require("cost", cost, limits.cost)


class _Shape:
    """Depth of selections through fragments, each measured once; aliases of the whole document."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self.aliases = 0
        self._fragments = fragments
        self._depths: dict[str, int] = {}

    def depth(self, selections: SelectionSetNode | None) -> int:
        deepest = 0
        for node in selections.selections if selections else ():
            below = 0
            if isinstance(node, FieldNode):
                self.aliases += node.alias is not None
                below = 1 + self.depth(node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                below = self.of_fragment(node.name.value)
            elif isinstance(node, InlineFragmentNode):
                below = self.depth(node.selection_set)
            deepest = max(deepest, below)
        return deepest

    def of_fragment(self, name: str) -> int:
        if name not in self._depths:
            # Also what ends a cycle, which validation then names.
            self._depths[name] = 0
            fragment = self._fragments.get(name)
            self._depths[name] = self.depth(fragment.selection_set) if fragment else 0
        return self._depths[name]


def _nesting(query: str) -> int:
    deepest = depth = 0
    for piece in _PIECES.findall(query):
        if piece in ("[", "(", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif piece in ("]", ")", "}"):
            depth -= 1
    return deepest


def _require(limit: str, found: int, allowed: int) -> None:
    if found > allowed:
        raise LimitExceeded(
            f"the operation is too large ({limit}: {found}, at most {allowed}); ask for less, or in several requests",
            limit=limit,
            allowed=allowed,
        )
