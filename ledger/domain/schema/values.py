"""Shapes of single values: texts, whole numbers, flags, and fixed words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.schema.shape import JsonSchema, Test, all_of, compiled, distinct, fail, kind, shown

_MAX_SAFE_INTEGER = 2**53 - 1

# Characters that no one sees or that turn the text around them: controls, line and paragraph separators, soft
# hyphen, marks and overrides of direction, invisible operators, byte order mark, annotations, and halves of surrogate
# pairs. The joiners U+200C and U+200D and the tags of flags are writing and stay. An explicit list, because
# categories move with the Unicode version; the classes of Python and of ECMA-262 read it alike.
_HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufeff\ufff9-\ufffb"
)
HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")


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
            raise fail(at, f"must be a string ({self.what}), not {kind(value)}")
        if not self.min_length <= len(value) <= self.max_length:
            raise fail(at, f"must have {self.min_length} to {self.max_length} characters, has {len(value)}")
        if self.pattern is not None and not compiled(self.pattern).fullmatch(value):
            raise fail(at, f"{value[:80]!r} is not {self.what}")
        if self.visible and (found := HIDDEN_CHARACTER.search(value)):
            raise fail(at, f"holds the control or invisible character U+{ord(found[0]):04X}; write {self.what} without")

    def quick(self) -> Test:
        low, high, visible = self.min_length, self.max_length, self.visible
        whole = None if self.pattern is None else compiled(self.pattern).fullmatch

        def test(values: Sequence[Any]) -> bool:
            if not all_of(str, values):
                return False
            for text in distinct(values):
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
            raise fail(at, f"must be a whole number, not {kind(value)}")
        if not self.minimum <= value <= self.maximum:
            raise fail(at, f"{value} must be between {self.minimum} and {self.maximum}")

    def quick(self) -> Test:
        low, high = max(self.minimum, -_MAX_SAFE_INTEGER), min(self.maximum, _MAX_SAFE_INTEGER)

        def test(values: Sequence[Any]) -> bool:
            if not all_of(int, values):
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
            raise fail(at, f"must be true or false, not {kind(value)}")

    def quick(self) -> Test:
        return lambda values: all_of(bool, values)

    def json_schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few fixed strings."""

    values: tuple[str, ...]

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, str) or value not in self.values:
            raise fail(at, f"{shown(value)} is not one of {', '.join(self.values)}")

    def quick(self) -> Test:
        allowed = frozenset(self.values)
        return lambda values: all_of(str, values) and allowed.issuperset(values)

    def json_schema(self) -> JsonSchema:
        return {"enum": list(self.values)}
