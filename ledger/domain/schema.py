"""Closed document shapes: one description checks a value and prints its JSON Schema (draft 2020-12).

Agreement, trust file, bundle and every event payload are described with these few parts, so that the
published schema and the code that reads the document cannot part ways. A failed check raises
``DocumentInvalid`` with the field's path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Protocol, TypeAlias

from ledger.errors import BadInput, DocumentInvalid

JsonSchema = dict[str, Any]

Test: TypeAlias = Callable[[Sequence[Any]], bool]
"""True where each of the values passes its shape's ``check`` and is plain: JSON's own types and no subclass of them,
ASCII keys, integers within +-(2^53 - 1). Of a plain value without lone surrogates every compact JSON encoder that sorts
keys gives the RFC 8785 bytes. False decides nothing: ``check`` does, and names what is wrong.

It takes many values because the events of an append are mostly of one type: member by member, a thousand payloads
take a quarter of the time of a thousand calls, and a text that they have in common is looked at once."""

_MAX_SAFE_INTEGER = 2**53 - 1
_LISTS = frozenset({list, tuple})


class Shape(Protocol):
    """Part of a document: checks a plain value at a path and describes itself."""

    def check(self, value: Any, at: str) -> None: ...

    def quick(self) -> Test:
        """A test of many values in a fraction of the time, made once."""
        ...

    def json_schema(self) -> JsonSchema: ...


# Characters that no one sees or that turn the text around them: controls, line and paragraph separators, soft
# hyphen, marks and overrides of direction, invisible operators, byte order mark, annotations, and halves of surrogate
# pairs. The joiners U+200C and U+200D and the tags of flags are writing and stay. An explicit list, because
# categories move with the Unicode version; the classes of Python and of ECMA-262 read it alike.
_HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufeff\ufff9-\ufffb"
)
HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")


def fail(at: str, message: str, **data: Any) -> DocumentInvalid:
    """The error for a field: ``at`` is its path such as ``objectives[0].target``."""
    return DocumentInvalid(f"{at or 'document'}: {message}", field=at, **data)


def convert(at: str, value: Any, how: Callable[[Any], Any]) -> Any:
    """What ``how`` makes of a field's value; its ``BadInput`` is raised again as ``DocumentInvalid`` with the path."""
    try:
        return how(value)
    except DocumentInvalid:
        raise
    except BadInput as error:
        raise fail(at, error.message) from error


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # The library keeps compiled patterns, too, but takes longer to find one than to match it.
    return re.compile(pattern, re.ASCII)


@dataclass(frozen=True, slots=True)
class Text:
    """A string, optionally by pattern (whole match) and with bounds on its length.

    ``visible`` is for texts that people read: control and invisible characters are refused.
    """

    pattern: str | None = None
    what: str = "text"
    max_length: int = 500
    min_length: int = 1
    visible: bool = False

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, str):
            raise fail(at, f"must be a string ({self.what}), not {_kind(value)}")
        if not self.min_length <= len(value) <= self.max_length:
            raise fail(at, f"must have {self.min_length} to {self.max_length} characters, has {len(value)}")
        if self.pattern is not None and not _compiled(self.pattern).fullmatch(value):
            raise fail(at, f"{value[:80]!r} is not {self.what}")
        if self.visible and (found := HIDDEN_CHARACTER.search(value)):
            raise fail(at, f"holds the control or invisible character U+{ord(found[0]):04X}; write {self.what} without")

    def quick(self) -> Test:
        low, high, visible = self.min_length, self.max_length, self.visible
        whole = None if self.pattern is None else _compiled(self.pattern).fullmatch

        def test(values: Sequence[Any]) -> bool:
            if not _all_of(str, values):
                return False
            for text in _distinct(values):
                if not low <= len(text) <= high or (whole is not None and whole(text) is None):
                    return False
                if visible and HIDDEN_CHARACTER.search(text) is not None:
                    return False
            return True

        return test

    def json_schema(self) -> JsonSchema:
        found: JsonSchema = {"type": "string", "minLength": self.min_length, "maxLength": self.max_length}
        if self.pattern is not None:
            found |= {"pattern": f"^(?:{self.pattern})$", "description": self.what}
        elif self.visible:
            found |= {"pattern": f"^[^{_HIDDEN}]*$", "description": f"{self.what}, no control or invisible characters"}
        return found


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds (both inclusive)."""

    minimum: int = 0
    maximum: int = 2**53 - 1

    def check(self, value: Any, at: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise fail(at, f"must be a whole number, not {_kind(value)}")
        if not self.minimum <= value <= self.maximum:
            raise fail(at, f"{value} must be between {self.minimum} and {self.maximum}")

    def quick(self) -> Test:
        low, high = max(self.minimum, -_MAX_SAFE_INTEGER), min(self.maximum, _MAX_SAFE_INTEGER)

        def test(values: Sequence[Any]) -> bool:
            if not _all_of(int, values):
                return False
            return not values or (low <= min(values) and max(values) <= high)

        return test

    def json_schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, bool):
            raise fail(at, f"must be true or false, not {_kind(value)}")

    def quick(self) -> Test:
        return lambda values: _all_of(bool, values)

    def json_schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few fixed strings."""

    values: tuple[str, ...]

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, str) or value not in self.values:
            raise fail(at, f"{_shown(value)} is not one of {', '.join(self.values)}")

    def quick(self) -> Test:
        allowed = frozenset(self.values)
        return lambda values: _all_of(str, values) and allowed.issuperset(values)

    def json_schema(self) -> JsonSchema:
        return {"enum": list(self.values)}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape."""

    item: Shape
    min_items: int = 0
    max_items: int = 1000

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise fail(at, f"must be a list, not {_kind(value)}")
        if not self.min_items <= len(value) <= self.max_items:
            raise fail(at, f"must have {self.min_items} to {self.max_items} entries, has {len(value)}")
        for index, item in enumerate(value):
            self.item.check(item, f"{at}[{index}]")

    def quick(self) -> Test:
        passes, low, high = self.item.quick(), self.min_items, self.max_items

        def test(values: Sequence[Any]) -> bool:
            if not _LISTS.issuperset(map(type, values)) or not _within(map(len, values), low, high):
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
            raise fail(at, f"must be a mapping, not {_kind(value)}")
        if len(value) > self.max_items:
            raise fail(at, f"has {len(value)} keys; at most {self.max_items}")
        for key, item in value.items():
            if not isinstance(key, str) or not _compiled(self.key_pattern).fullmatch(key):
                raise fail(at, f"the key {key!r} is not allowed here")
            self.item.check(item, f"{at}.{key}")

    def quick(self) -> Test:
        allowed, passes, most = _compiled(self.key_pattern).fullmatch, self.item.quick(), self.max_items

        def test(values: Sequence[Any]) -> bool:
            if not _all_of(dict, values) or not _within(map(len, values), 0, most):
                return False
            keys = list(chain.from_iterable(values))
            if not _all_of(str, keys):
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
            raise fail(at, f"must be a mapping, not {_kind(value)}")
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
                raise fail(_member(at, str(key)), f"unknown key; known here: {known}")
        for key in self.required:
            if key not in value:
                raise fail(_member(at, key), "is missing")

    def quick(self) -> Test:
        required = [(key, shape.quick()) for key, shape in self.required.items()]
        # Without one that is not ASCII: a value that has it has more members than are known here.
        optional = [(key, shape.quick()) for key, shape in self.optional.items() if key.isascii()]
        if not all(map(str.isascii, self.required)):
            return lambda values: False

        def test(values: Sequence[Any]) -> bool:
            if not _all_of(dict, values):
                return False
            for value in values:
                if not _all_of(str, value):
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
            raise fail(at, f"must be a mapping, not {_kind(value)}")
        found = value.get(self.tag)
        if not isinstance(found, str) or found not in self.shapes:
            raise fail(_member(at, self.tag), f"{_shown(found)} is not one of {', '.join(self.shapes)}")
        self.shapes[found].check(value, at)

    def quick(self) -> Test:
        tag, tests = self.tag, {name: shape.quick() for name, shape in self.shapes.items()}

        def test(values: Sequence[Any]) -> bool:
            if not _all_of(dict, values):
                return False
            tags = [value.get(tag) for value in values]
            if not _all_of(str, tags):
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


def _all_of(kind: type, values: Iterable[Any]) -> bool:
    # A loop, here and below: of one value, which is the most frequent number, a generator makes several.
    for value in values:  # noqa: SIM110
        if type(value) is not kind:
            return False
    return True


def _distinct(values: Sequence[Any]) -> Iterable[Any]:
    return values if len(values) == 1 else set(values)


def _within(sizes: Iterable[int], low: int, high: int) -> bool:
    for size in sizes:  # noqa: SIM110
        if not low <= size <= high:
            return False
    return True


def _member(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _kind(value: Any) -> str:
    names = {type(None): "nothing", bool: "true/false", dict: "a mapping", list: "a list", str: "a string"}
    return names.get(type(value), f"the {type(value).__name__} {_shown(value)}")


def _shown(value: Any) -> str:
    return repr(value)[:60]
