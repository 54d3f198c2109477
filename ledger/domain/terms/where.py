"""Selectors: which requests an objective is about, and how a row shows that it is one of them.

``where`` names the most input tokens of a request, the model that has to answer it, the region that has to serve it, or
several of these. A row says so by its members ``input_tokens`` (a whole number), ``model`` and ``region`` (texts; equal
only where every character is); null says nothing.

What a row leaves out must not take it out of a promise without a trace. A row without ``input_tokens`` therefore counts
as selected: else a provider would drop its failures by not counting their tokens. A row without ``model`` or ``region``
does not: no promise of a version or a region is made for what nobody says that it answered, and else one failure would
break the promise of every region. An objective without ``where`` beside it counts those rows.

A member of a wrong type makes its row unusable, but only where the agreement asks for that member: else it is one of
the keys that are free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from ledger.domain.rows.observation import Reason, RequestColumns, RequestRow, RowRejection
from ledger.domain.schema import Integer, Object, Text, fail
from ledger.domain.terms.indicators import SAMPLE_INDICATORS

WHERE = Object(
    {},
    {
        "input_tokens_at_most": Integer(1, 2**53 - 1),
        "model": Text(max_length=120, what="name and version of a model as the rows have them", visible=True),
        "region": Text(max_length=120, what="name of a region as the rows have it", visible=True),
    },
)

_SHOWN_CHARS = 40
# A value in a body of one level without escapes: a text, or what stands before the next comma or the end.
_SEARCH = {
    key: re.compile(b'[{,]"%s":("[^"]*"|[^,}]*)' % key.encode()).search for key in ("input_tokens", "model", "region")
}


class Said(NamedTuple):
    """What a row says of itself, None where it says nothing or nobody asks."""

    input_tokens: int | None
    model: str | None
    region: str | None


NOTHING_SAID = Said(None, None, None)


@dataclass(frozen=True, slots=True)
class Where:
    """The requests that an objective is about: of at most so many input tokens, of this model, of this region; None: of
    any."""

    input_tokens_at_most: int | None = None
    model: str | None = None
    region: str | None = None

    def selects(self, said: Said) -> bool:
        if (self.model is not None and said.model != self.model) or (
            self.region is not None and said.region != self.region
        ):
            return False
        most = self.input_tokens_at_most
        return most is None or said.input_tokens is None or said.input_tokens <= most

    def __str__(self) -> str:
        parts = []
        if self.input_tokens_at_most is not None:
            parts.append(f"requests of at most {self.input_tokens_at_most} input tokens, or that do not say how many")
        if self.model is not None:
            parts.append(f"requests that name the model {self.model!r}")
        if self.region is not None:
            parts.append(f"requests that name the region {self.region!r}")
        return "only " + ", and of these only ".join(parts)


def read_where(at: str, said: Mapping[str, Any] | None, indicator: str) -> Where | None:
    """The selector of an objective with this indicator.

    Raises ``DocumentInvalid`` naming the field.
    """
    if said is None:
        return None
    if indicator in SAMPLE_INDICATORS:
        raise fail(at, f"only requests are selected, and {indicator} comes from samples; see evaluator and resource")
    if not said:
        raise fail(at, "say input_tokens_at_most, model or region, or several of them")
    return Where(**said)


class Selection:
    """Reads of rows what the selectors of an agreement have to know, and nothing where there are none."""

    def __init__(self, wheres: Iterable[Where | None]) -> None:
        found = [each for each in wheres if each is not None]
        asked = {
            "input_tokens": any(each.input_tokens_at_most is not None for each in found),
            "model": any(each.model is not None for each in found),
            "region": any(each.region is not None for each in found),
        }
        self._keys = [key for key in Said._fields if asked[key]]
        self.asks = bool(found)

    def of_row(self, row: RequestRow) -> Said | RowRejection:
        """What a row says, or why it cannot be used."""
        if not self.asks:
            return NOTHING_SAID
        said = {key: _value(key, row.body) for key in self._keys}
        for key, value in said.items():
            fits, needed = _MEMBERS[key]
            if not fits(value):
                return RowRejection(row.line, Reason.FIELD_INVALID, key, f"must be {needed}, not {_shown(value)}")
        return NOTHING_SAID._replace(**said)

    def of_columns(self, columns: RequestColumns) -> Sequence[Said] | None:
        """What each row says, nothing at all where nobody asks; None: not all rows can be used."""
        if not self.asks:
            return ()
        bodies = columns.bodies()
        said: dict[str, Sequence[Any]] = dict.fromkeys(Said._fields, [None] * len(columns))
        for key in self._keys:
            said[key] = [_value(key, body) for body in bodies]
            if not all(map(_MEMBERS[key][0], said[key])):
                return None
        return list(map(Said, *said.values()))


def _is_tokens(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or type(value) is str


_MEMBERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "input_tokens": (_is_tokens, "a whole number from 0"),
    "model": (_is_text, "text"),
    "region": (_is_text, "text"),
}
"""Of each member of a row whether a value is one, and what it has to be."""


def _value(key: str, body: bytes) -> Any:
    """A member of a body. Of a plain one only that member is read: a fifth of the time of reading all."""
    if body.count(b"{") != 1 or b"[" in body or b"\\" in body:
        return json.loads(body, parse_float=Decimal).get(key)
    found = _SEARCH[key](body)
    if found is None:
        return None
    value = found[1]
    return int(value) if value.isdigit() else json.loads(value, parse_float=Decimal)


def _shown(value: Any) -> str:
    shown = json.dumps(value, default=str)
    return shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 3] + "..."
