"""Answers kept for as long as the log does not grow and no chain was looked at.

Most of what is asked follows from the log alone, and dashboards ask it again and again; how far the transactions of
anchors have come is known from looks at their chains. An answer is kept under everything it depends on: address, what
the principal may see, and the revision before it was made. One that moved on meanwhile only means that nobody is given
it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from litestar.handlers import BaseRouteHandler

from ledger.app.access import Principal, Scope
from ledger.app.reading.queries import Revision

OF_THE_LOG: Final = "of_the_log"
"""The key of a handler's ``opt``: True where its answers follow from the log and the principal alone."""

MAX_BYTES: Final = 32 * 1024 * 1024
MAX_ANSWER_BYTES: Final = 1024 * 1024
ENTRY_BYTES: Final = 512
"""What an entry takes beside the texts that are counted: objects, headers, its place in the order."""


def is_of_the_log(handler: BaseRouteHandler | None) -> bool:
    """Whether a handler's answers may be kept."""
    return handler is not None and handler.opt.get(OF_THE_LOG) is True


@dataclass(frozen=True, slots=True)
class Place:
    """What an answer depends on beside the log. The subject is not among it: equal rights see equal answers.

    ``parameters`` are those of the query as they are read, sorted: however a query is spelt, it has one place.
    """

    path: str
    parameters: tuple[tuple[str, str], ...]
    tenant: str
    scopes: frozenset[Scope]
    sla_ids: frozenset[str] | None

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return ENTRY_BYTES + len(self.path) + sum(len(name) + len(value) for name, value in self.parameters)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The bytes of a 200 with its media type and validator, and the route that gave it."""

    body: bytes
    content_type: bytes
    etag: bytes
    route: str
    revision: Revision


class KeptAnswers:
    """The answers asked for last: they and their places take at most ``max_bytes``. Used by one event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[Place, KeptAnswer] = OrderedDict()

    @staticmethod
    def place(path: str, query: bytes, principal: Principal) -> Place:
        # Latin-1 keeps each byte, so that two queries are one only if they have the same bytes once unquoted.
        found = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
        return Place(path, tuple(sorted(found)), principal.tenant, principal.scopes, principal.sla_ids)

    def find(self, place: Place, revision: Revision) -> KeptAnswer | None:
        """The answer kept at a place, if it is of this revision."""
        kept = self._kept.get(place)
        if kept is None or kept.revision != revision:
            return None
        self._kept.move_to_end(place)
        return kept

    def keep(self, place: Place, answer: KeptAnswer) -> None:
        if len(answer.body) > MAX_ANSWER_BYTES:
            return
        before = self._kept.pop(place, None)
        if before is not None:
            self._bytes -= place.size + len(before.body)
        self._kept[place] = answer
        self._bytes += place.size + len(answer.body)
        while self._bytes > self._max_bytes:
            oldest, dropped = self._kept.popitem(last=False)
            self._bytes -= oldest.size + len(dropped.body)
