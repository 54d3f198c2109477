"""What every part of a document shape is, how it refuses a value, and how it looks at many values at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

from ledger.errors import BadInput, DocumentInvalid

JsonSchema = dict[str, Any]

Test: TypeAlias = Callable[[Sequence[Any]], bool]
"""True where each of the values passes its shape's ``check`` and is plain: JSON's own types and no subclass of them,
ASCII keys, integers within +-(2^53 - 1). Of a plain value without lone surrogates every compact JSON encoder that sorts
keys gives the RFC 8785 bytes. False decides nothing: ``check`` does, and names what is wrong.

It takes many values because the events of an append are mostly of one type: member by member, a thousand payloads
take a quarter of the time of a thousand calls, and a text that they have in common is looked at once."""


class Shape(Protocol):
    """Part of a document: checks a plain value at a path and describes itself."""

    def check(self, value: Any, at: str) -> None: ...

    def quick(self) -> Test:
        """A test of many values in a fraction of the time, made once."""
        ...

    def json_schema(self) -> JsonSchema: ...


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
def compiled(pattern: str) -> re.Pattern[str]:
    # The library keeps compiled patterns, too, but takes longer to find one than to match it.
    return re.compile(pattern, re.ASCII)


def all_of(exact: type, values: Iterable[Any]) -> bool:
    # A loop, here and below: of one value, which is the most frequent number, a generator makes several.
    for value in values:  # noqa: SIM110
        if type(value) is not exact:
            return False
    return True


def distinct(values: Sequence[Any]) -> Iterable[Any]:
    return values if len(values) == 1 else set(values)


def within(sizes: Iterable[int], low: int, high: int) -> bool:
    for size in sizes:  # noqa: SIM110
        if not low <= size <= high:
            return False
    return True


def member(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def kind(value: Any) -> str:
    names = {type(None): "nothing", bool: "true/false", dict: "a mapping", list: "a list", str: "a string"}
    return names.get(type(value), f"the {type(value).__name__} {shown(value)}")


def shown(value: Any) -> str:
    return repr(value)[:60]
