"""Exact JSON and closed shapes for ``outsider``: sections 2 and 12, and the schemas that section 12 names."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
SAFE = 2**53 - 1
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


class BadInput(Exception):
    """Bytes that are no document of the format."""


def jcs(value: Any) -> bytes:
    """RFC 8785 of what section 2 leaves of JSON."""
    return _text(value, 0).encode("utf-8")


def _text(value: Any, depth: int) -> str:
    if isinstance(value, dict | list) and depth > 64:
        raise BadInput("too deep")
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key, depth)}:{_text(value[key], depth + 1)}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(item, depth + 1) for item in value) + "]"
    if type(value) is int and abs(value) > SAFE:
        raise BadInput("an integer beyond 2^53")
    return json.dumps(value, ensure_ascii=False)


def read(data: bytes, limit: int, *, exact: bool) -> Any:
    """The document in some bytes; ``exact`` ones have no other spelling."""
    if len(data) > limit:
        raise BadInput(f"more than {limit} bytes")
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_int=_int, parse_float=_none, parse_constant=_none
        )
        again = jcs(value)
    except (ValueError, RecursionError) as error:
        raise BadInput(str(error)) from error
    if exact and again != data:
        raise BadInput("not the exact bytes")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise BadInput("a key stands twice")
    return dict(pairs)


def _int(text: str) -> int:
    if text == "-0" or len(text) > 17:
        raise BadInput(f"the number {text}")
    return int(text)


def _none(text: str) -> Any:
    raise BadInput(f"the number {text}")


@cache
def schema(name: str) -> Any:
    return json.loads((DOCS / name).read_bytes())


def require_shape(value: Any, name: str) -> None:
    if not fits(value, schema(f"{name}.schema.json")):
        raise BadInput(f"not of {name}.schema.json")


def fits(value: Any, shape: Any) -> bool:
    """JSON Schema (draft 2020-12), as much of it as the schemas use."""
    if "oneOf" in shape:
        return sum(fits(value, one) for one in shape["oneOf"]) == 1
    if "enum" in shape:
        return any(value == one and type(value) is type(one) for one in shape["enum"])
    kind = shape.get("type")
    if kind == "integer":
        return type(value) is int and shape.get("minimum", -SAFE) <= value <= shape.get("maximum", SAFE)
    if kind is not None and not isinstance(value, TYPES[kind]):
        return False
    if isinstance(value, str):
        long_enough = shape.get("minLength", 0) <= len(value) <= shape.get("maxLength", SAFE)
        return long_enough and ("pattern" not in shape or _whole(shape["pattern"], value))
    if isinstance(value, list):
        counted = shape.get("minItems", 0) <= len(value) <= shape.get("maxItems", SAFE)
        return counted and all(fits(item, shape.get("items", {})) for item in value)
    return not isinstance(value, dict) or _members_fit(value, shape)


def _members_fit(value: dict[str, Any], shape: Any) -> bool:
    named, patterns = shape.get("properties", {}), shape.get("patternProperties", {})
    if len(value) > shape.get("maxProperties", SAFE) or not set(shape.get("required", ())) <= value.keys():
        return False
    for key, item in value.items():
        shapes = [named[key]] if key in named else [of for pattern, of in patterns.items() if _whole(pattern, key)]
        if not shapes and shape.get("additionalProperties", True) is False:
            return False
        if not all(fits(item, of) for of in shapes):
            return False
    return True


def _whole(pattern: str, text: str) -> bool:
    # ECMA-262's $ is the end of the text; Python's also stands before a last line feed.
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text, re.ASCII) is not None
