"""Canonical JSON (RFC 8785, JCS) over the values this product hashes and signs.

Only strings, booleans, null, lists, string-keyed objects and integers within +-(2^53 - 1) have a
canonical form here. Floats, NaN and -0 are refused instead of formatted: nothing that is hashed may
depend on how a language prints a float. Larger integers travel as decimal strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.errors import NotCanonical

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 64


_BRACKETS = re.compile(rb'[\[{\]}]|"(?:[^"\\]|\\.)*+"', re.DOTALL)
"""Brackets, and the strings in which a bracket is none."""

_STYLE: Any = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False, "check_circular": False}
_encode = json.JSONEncoder(**_STYLE).encode
_encode_sorted = json.JSONEncoder(**_STYLE, sort_keys=True).encode


def canonical_bytes(value: Any) -> bytes:
    """The RFC 8785 bytes of ``value``.

    Raises ``NotCanonical`` naming the place of the first value that has no canonical form.
    """
    if _is_plain(value, 0):
        try:
            return _encode_sorted(value).encode("utf-8")
        except UnicodeEncodeError:
            pass
    return _encode(_ordered(value, "$", 0)).encode("utf-8")


def parse_json(data: bytes, *, max_bytes: int) -> Any:
    """Read JSON strictly: bounded size and depth, no duplicate keys, no floats, no NaN, no -0.

    Raises ``NotCanonical``. White space and key order are free; see ``parse_canonical`` for exact bytes.
    """
    if len(data) > max_bytes:
        raise NotCanonical(f"the document has {len(data)} bytes; at most {max_bytes} are read", size=len(data))
    require_shallow(data)
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_int=_plain_integer,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except NotCanonical:
        raise
    except ValueError as error:
        raise NotCanonical(f"not UTF-8 JSON: {error}") from error
    _ordered(value, "$", 0)
    return value


def parse_canonical(data: bytes, *, max_bytes: int) -> Any:
    """Read JSON that must already be in its exact RFC 8785 bytes; anything else raises ``NotCanonical``."""
    value = parse_json(data, max_bytes=max_bytes)
    if canonical_bytes(value) != data:
        raise NotCanonical("the document is not in canonical form (RFC 8785): re-encode it before signing or sending")
    return value


def require_shallow(data: bytes) -> None:
    """Refuse JSON nested deeper than ``MAX_DEPTH`` before a parser that recurses sees it. Raises ``NotCanonical``.

    The parser's own guard is the interpreter's recursion limit, which libraries raise past what the stack holds:
    it would not fail, but take the process down.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _BRACKETS.findall(data):
        depth += (token in b"[{") - (token in b"]}")
        if depth > MAX_DEPTH + 1:
            raise NotCanonical(f"nested deeper than {MAX_DEPTH} levels")


def _is_plain(value: Any, depth: int) -> bool:
    """Whether the encoder gives the canonical bytes as it is: nothing to refuse, and keys that sort alike.

    Code points and UTF-16 units order ASCII keys alike. Nearly every value passes, and the encoder is five times as
    fast as ordering by hand, which is left to name what is wrong and to sort the other keys.
    """
    kind = type(value)
    if kind is dict:
        if depth > MAX_DEPTH:
            return False
        for key, member in value.items():
            if type(key) is not str or not key.isascii():
                return False
            # Most members are strings: a call for each would take longer than the encoding.
            if type(member) is not str and not _is_plain(member, depth + 1):
                return False
        return True
    if kind is list or kind is tuple:
        if depth > MAX_DEPTH:
            return False
        return all(type(item) is str or _is_plain(item, depth + 1) for item in value)
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    return kind is str or kind is bool or value is None


def _ordered(value: Any, at: str, depth: int) -> Any:
    """``value`` with object keys in UTF-16 order, after refusing what cannot be canonical."""
    if depth > MAX_DEPTH:
        raise NotCanonical(f"{at}: nested deeper than {MAX_DEPTH} levels", at=at)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, at)
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise NotCanonical(f"{at}: {value} is beyond 2^53; write it as a decimal string", at=at)
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotCanonical(f"{at}: the key {key!r} is not a string", at=at)
        keys = sorted(value, key=lambda key: _text(key, at).encode("utf-16-be"))
        return {key: _ordered(value[key], f"{at}.{key}", depth + 1) for key in keys}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_ordered(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise NotCanonical(f"{at}: {type(value).__name__} has no canonical form; use a string or an integer", at=at)


def _text(value: str, at: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical(f"{at}: a lone surrogate is not text", at=at) from None
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotCanonical(f"the key {key!r} stands twice in one object", key=key)
        found[key] = value
    return found


def _plain_integer(text: str) -> int:
    if text == "-0":
        raise NotCanonical("-0 has no canonical form; write 0")
    if len(text) > 17:
        raise NotCanonical(f"the number {text[:20]}... is beyond 2^53; write it as a decimal string")
    return int(text)


def _no_float(text: str) -> Any:
    raise NotCanonical(f"the number {text[:40]} is not an integer; write it as a decimal string", number=text[:40])
