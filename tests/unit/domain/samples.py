"""Agreements and rows that the tests change and try."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ledger.domain.rows.observation import RequestRow
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.ingest.agreement_yaml import parse_document

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DAY_NS = parse_instant_ns("2023-06-14T00:00:00Z")
HOUR_NS = 3600 * SECOND_NS


@cache
def _example(name: str) -> Any:
    return parse_document((EXAMPLES / name).read_bytes(), name, AGREEMENT)[0]


def document(name: str = "agreement.yaml") -> dict[str, Any]:
    """A fresh copy of an example's document."""
    found: dict[str, Any] = copy.deepcopy(_example(name))
    return found


def agreement(change: Callable[[dict[str, Any]], object] | None = None, name: str = "agreement.yaml") -> Agreement:
    """The agreement of an example, after a change to its document."""
    plain = document(name)
    if change is not None:
        change(plain)
    return Agreement.from_document(plain)


def put(plain: dict[str, Any], path: str, value: object) -> None:
    """Set the member at ``a.b.0.c``."""
    *parents, last = path.split(".")
    target: Any = plain
    for key in parents:
        target = target[int(key) if isinstance(target, list) else key]
    target[int(last) if isinstance(target, list) else last] = value


def row(
    request_id: str = "r-1",
    *,
    at_s: float = 0,
    code: int | None = None,
    first_token_ms: int = 200,
    response_ms: int = 900,
    service: str = "example-chat",
    body: str | None = None,
) -> RequestRow:
    """A row that starts ``at_s`` seconds into 2023-06-14; its body is all its values, or ``body``."""
    started_at_ns = DAY_NS + int(at_s * SECOND_NS)
    ok = code is None
    said = body or f"{request_id} {started_at_ns} {code} {first_token_ms} {response_ms} {service}"
    return RequestRow(
        1,
        request_id,
        hashlib.blake2b(said.encode(), digest_size=16).digest(),
        service,
        started_at_ns,
        code,
        first_token_ms * 10**6 if ok else None,
        response_ms * 10**6 if ok else None,
    )


def windows(of: Agreement, cells: Mapping[int, tuple[tuple[int, int], ...]], **states: tuple[int, ...]) -> list[Window]:
    """The 24 windows of 2023-06-14: (good, bad) per objective by hour, idle elsewhere.

    ``no_data=(3, 4)`` and ``excluded=(5,)`` name hours in another state.
    """
    found = []
    for hour in range(24):
        state = next((WindowState(name) for name, hours in states.items() if hour in hours), WindowState.OBSERVED)
        pairs = cells.get(hour, ((0, 0),) * len(of.objectives))
        interval = Interval(DAY_NS + hour * HOUR_NS, DAY_NS + (hour + 1) * HOUR_NS)
        found.append(Window(interval, state, tuple(Cell(*pair) for pair in pairs)))
    return found
