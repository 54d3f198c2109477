"""How deep JSON nests, told before it is decoded: decoders recurse in C, and where the stack ends the process ends."""

from __future__ import annotations

import re

MAX_DEPTH = 64

_NOT_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]+', re.DOTALL)


def too_deep(data: bytes) -> bool:
    """Whether brackets outside strings nest deeper than any reader should follow."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH and depth(data) > MAX_DEPTH


def depth(data: bytes) -> int:
    """How deep brackets outside strings nest."""
    deepest = level = 0
    for bracket in _NOT_BRACKETS.sub(b"", data):
        level += 1 if bracket in b"[{" else -1
        deepest = max(deepest, level)
    return deepest
