"""Shapes made of other shapes: lists, mappings, closed objects, and those told apart by a tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ledger.domain.schema.shape import JsonSchema, Shape, Test, all_of, compiled, fail, kind, member, shown, within

_LISTS = frozenset({list, tuple})


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape."""

    item: Shape
    min_items: int = 0
    max_items: int = 1000

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise fail(at, f"must be a list, not {kind(value)}")
        if not self.min_items <= len(value) <= self.max_items:
            raise fail(at, f"must have {self.min_items} to {self.max_items} entries, has {len(value)}")
        for index, item in enumerate(value):
            self.item.check(item, f"{at}[{index}]")

    def quick(self) -> Test:
        passes, low, high = self.item.quick(), self.min_items, self.max_items

        def test(values: Sequence[Any]) -> bool:
            if not _LISTS.issuperset(map(type, values)) or not within(map(len, values), low, high):
                return False
            return passes(list(chain.from_iterable(values)))

        return test

    def json_schema(self) -> JsonSchema:
        bounds = {"minItems": self.min_items, "maxItems": self.max_items}
        return {"type": "array", "items": self.item.json_schema(), **bounds}


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object whose keys follow a pattern and whose values have one shape."""

    key_pattern: str
    item: Shape
    max_items: int = 1000

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            raise fail(at, f"must be a mapping, not {kind(value)}")
        if len(value) > self.max_items:
            raise fail(at, f"has {len(value)} keys; at most {self.max_items}")
        for key, item in value.items():
            if not isinstance(key, str) or not compiled(self.key_pattern).fullmatch(key):
                raise fail(at, f"the key {key!r} is not allowed here")
            self.item.check(item, f"{at}.{key}")

    def quick(self) -> Test:
        allowed, passes, most = compiled(self.key_pattern).fullmatch, self.item.quick(), self.max_items

        def test(values: Sequence[Any]) -> bool:
            if not all_of(dict, values) or not within(map(len, values), 0, most):
                return False
            keys = list(chain.from_iterable(values))
            if not all_of(str, keys):
                return False
            if not all(key.isascii() and allowed(key) is not None for key in set(keys)):
                return False
            return passes([item for value in values for item in value.values()])

        return test

    def json_schema(self) -> JsonSchema:
        return {
            "type": "object",
            "patternProperties": {f"^(?:{self.key_pattern})$": self.item.json_schema()},
            "additionalProperties": False,
            "maxProperties": self.max_items,
        }


@dataclass(frozen=True, slots=True)
class Object:
    """A closed object: ``required`` and ``optional`` members, nothing else."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)
    title: str | None = None

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            raise fail(at, f"must be a mapping, not {kind(value)}")
        required, optional = self.required, self.optional
        if value.keys() != required.keys():
            self._check_keys(value, at)
        prefix = f"{at}." if at else ""
        for key, item in value.items():
            shape = required.get(key) or optional[key]
            shape.check(item, prefix + key)

    def _check_keys(self, value: Mapping[Any, Any], at: str) -> None:
        for key in value:
            if key not in self.required and key not in self.optional:
                known = ", ".join([*self.required, *self.optional])
                raise fail(member(at, str(key)), f"unknown key; known here: {known}")
        for key in self.required:
            if key not in value:
                raise fail(member(at, key), "is missing")

    def quick(self) -> Test:
        required = [(key, shape.quick()) for key, shape in self.required.items()]
        # Without one that is not ASCII: a value that has it has more members than are known here.
        optional = [(key, shape.quick()) for key, shape in self.optional.items() if key.isascii()]
        if not all(map(str.isascii, self.required)):
            return lambda values: False

        def test(values: Sequence[Any]) -> bool:
            if not all_of(dict, values):
                return False
            for value in values:
                if not all_of(str, value):
                    return False
            known = len(required) * len(values)
            try:
                for key, passes in required:
                    if not passes([value[key] for value in values]):
                        return False
            except KeyError:
                return False
            for key, passes in optional:
                present = [value[key] for value in values if key in value]
                if not passes(present):
                    return False
                known += len(present)
            return known == sum(map(len, values))

        return test

    def json_schema(self) -> JsonSchema:
        members = {**self.required, **self.optional}
        found: JsonSchema = {
            "type": "object",
            "properties": {key: shape.json_schema() for key, shape in members.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"title": self.title, **found} if self.title else found


@dataclass(frozen=True, slots=True)
class Either:
    """An object told apart by the value of one member (``tag``)."""

    tag: str
    shapes: Mapping[str, Object]

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            raise fail(at, f"must be a mapping, not {kind(value)}")
        found = value.get(self.tag)
        if not isinstance(found, str) or found not in self.shapes:
            raise fail(member(at, self.tag), f"{shown(found)} is not one of {', '.join(self.shapes)}")
        self.shapes[found].check(value, at)

    def quick(self) -> Test:
        tag, tests = self.tag, {name: shape.quick() for name, shape in self.shapes.items()}

        def test(values: Sequence[Any]) -> bool:
            if not all_of(dict, values):
                return False
            tags = [value.get(tag) for value in values]
            if not all_of(str, tags):
                return False
            return all(
                name in tests and tests[name]([value for value, own in zip(values, tags, strict=True) if own == name])
                for name in set(tags)
            )

        return test

    def json_schema(self) -> JsonSchema:
        return {"oneOf": [shape.json_schema() for shape in self.shapes.values()]}


@dataclass(frozen=True, slots=True)
class Nullable:
    """A shape or null."""

    shape: Shape

    def check(self, value: Any, at: str) -> None:
        if value is not None:
            self.shape.check(value, at)

    def quick(self) -> Test:
        passes = self.shape.quick()
        return lambda values: passes([value for value in values if value is not None])

    def json_schema(self) -> JsonSchema:
        return {"oneOf": [{"type": "null"}, self.shape.json_schema()]}
