"""Lies about a bundle, as small steps that are put together: change a value, log it again, record it again.

Each returns or is a function of a ``Forger``; what it signs again is what its name says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledger.attest.checks.verification import Exit
from ledger.domain.attested import SCALAR_ORDER
from tests.support import examples
from tests.support.forging import Forger

Lie = Callable[[Forger], object]

Lies = Mapping[str, tuple[Lie, set[str]]]
"""By name: what is done to a bundle, and the checks that must fail (others may, too)."""


def at(forged: Forger, path: str) -> tuple[Any, Any]:
    """The container and the key of a dotted path."""
    node: Any = forged.bundle
    *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in above:
        node = node[part]
    return node, last


def put(path: str, value: Any) -> Lie:
    """Another value at a path."""

    def lie(forged: Forger) -> None:
        node, key = at(forged, path)
        assert node[key] != value or type(node[key]) is not type(value)
        node[key] = value

    return lie


def change(path: str, by: Callable[[Any], Any]) -> Lie:
    """The value at a path changed by a function."""

    def lie(forged: Forger) -> None:
        node, key = at(forged, path)
        put(path, by(node[key]))(forged)

    return lie


def then(*lies: Lie) -> Lie:
    """One after the other."""

    def lie(forged: Forger) -> None:
        for one in lies:
            one(forged)

    return lie


def logged(*lies: Lie) -> Lie:
    """The lies, and a log of the forger's own that holds the altered events, signed with the log's key."""
    return then(*lies, Forger.log)


def issued(member: str, value: Any) -> Lie:
    """Another value in the statement, logged under the log's own key."""
    return logged(put(f"statement.payload.{member}", value))


def flipped(text: str) -> str:
    """The same hex with its last digit changed."""
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def bumped(text: str) -> str:
    """The next field element."""
    return str((int(text) + 1) % SCALAR_ORDER)


def require_caught(forged: Forger, named: set[str]) -> None:
    """The report on a forged bundle fails in the checks named, though the issuer signed every byte."""
    report = examples.verified(forged)
    found = examples.failed(report)
    assert named <= found
    assert "issuer signature" not in found
    assert report.exit_code(accept_dev=True) is Exit.FAILED
