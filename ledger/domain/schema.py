"""Closed document shapes: one description checks a value and prints its JSON Schema (draft 2020-12).

Agreement, trust file, bundle and every event payload are described with these few parts, so that the
published schema and the code that reads the document cannot part ways. A failed check raises
``DocumentInvalid`` with the field's path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeAlias

from ledger.errors import DocumentInvalid

JsonSchema = dict[str, Any]

Test: TypeAlias = Callable[[Any], bool]
"""True where a value passes its shape's ``check`` and is plain: JSON's own types and no subclass of them, ASCII keys,
integers within +-(2^53 - 1). Of a plain value without lone surrogates every compact JSON encoder that sorts keys gives
the RFC 8785 bytes. False decides nothing: ``check`` does, and names what is wrong."""

_MAX_SAFE_INTEGER = 2**53 - 1


class Shape(Protocol):
    """Part of a document: checks a plain value at a path and describes itself."""

    def check(self, value: Any, at: str) -> None: ...

    def quick(self) -> Test:
        """A test of one value in a fifth of the time, made once for many values."""
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
_HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")


def fail(at: str, message: str, **data: Any) -> DocumentInvalid:
    """The error for a field: ``at`` is its path such as ``objectives[0].target``."""
    return DocumentInvalid(f"{at or 'document'}: {message}", field=at, **data)


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
        if self.visible and (found := _HIDDEN_CHARACTER.search(value)):
            raise fail(at, f"holds the control or invisible character U+{ord(found[0]):04X}; write {self.what} without")

    def quick(self) -> Test:
        low, high = self.min_length, self.max_length
        if self.visible:
            return lambda value: type(value) is str and low <= len(value) <= high and self._passes(value)
        if self.pattern is None:
            return lambda value: type(value) is str and low <= len(value) <= high
        whole = _compiled(self.pattern).fullmatch
        return lambda value: type(value) is str and low <= len(value) <= high and whole(value) is not None

    def _passes(self, value: str) -> bool:
        matches = self.pattern is None or _compiled(self.pattern).fullmatch(value) is not None
        return matches and _HIDDEN_CHARACTER.search(value) is None

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
        return lambda value: type(value) is int and low <= value <= high

    def json_schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, bool):
            raise fail(at, f"must be true or false, not {_kind(value)}")

    def quick(self) -> Test:
        return lambda value: type(value) is bool

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
        values = self.values
        return lambda value: type(value) is str and value in values

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

        def test(value: Any) -> bool:
            if (type(value) is not list and type(value) is not tuple) or not low <= len(value) <= high:
                return False
            return all(map(passes, value))

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

        def test(value: Any) -> bool:
            if type(value) is not dict:
                return False
            # A loop: ``all`` over a generator takes longer than the tests of a few items.
            for key, item in value.items():
                if type(key) is not str or not key.isascii() or allowed(key) is None or not passes(item):
                    return False
            return len(value) <= most

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
        shapes = {**self.optional, **self.required}
        members = {key: shape.quick() for key, shape in shapes.items() if key.isascii()}
        required, count, closed = self.required.keys(), len(self.required), not self.optional

        def test(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for key, item in value.items():
                passes = members.get(key) if type(key) is str else None
                if passes is None or not passes(item):
                    return False
            # All keys are known: where none is optional, as many as are required are those required.
            return len(value) == count if closed else required <= value.keys()

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

        def test(value: Any) -> bool:
            found = value.get(tag) if type(value) is dict else None
            return type(found) is str and found in tests and tests[found](value)

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
        return lambda value: value is None or passes(value)

    def json_schema(self) -> JsonSchema:
        return {"oneOf": [{"type": "null"}, self.shape.json_schema()]}


def _member(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _kind(value: Any) -> str:
    names = {type(None): "nothing", bool: "true/false", dict: "a mapping", list: "a list", str: "a string"}
    return names.get(type(value), f"the {type(value).__name__} {_shown(value)}")


def _shown(value: Any) -> str:
    return repr(value)[:60]
