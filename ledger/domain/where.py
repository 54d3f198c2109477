"""Selectors: which requests an objective is about, and how a row shows that it is one of them.

``where`` names the most input tokens of a request, the model that has to answer it, or both. A row says so by its
members ``input_tokens`` (a whole number) and ``model`` (text; equal only where every character is); null says nothing.

What a row leaves out must not take it out of a promise without a trace. A row without ``input_tokens`` therefore counts
as selected: else a provider would drop its failures by not counting their tokens. A row without ``model`` does not: no
promise of a version is made for what nobody says that this version answered. An objective without ``where`` beside it
counts those rows.

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

from ledger.domain.indicators import SAMPLE_INDICATORS
from ledger.domain.observation import Reason, RequestColumns, RequestRow, RowRejection
from ledger.domain.schema import Integer, Object, Text, fail

WHERE = Object(
    {},
    {
        "input_tokens_at_most": Integer(1, 2**53 - 1),
        "model": Text(max_length=120, what="name and version of a model as the rows have them", visible=True),
    },
)

_SHOWN_CHARS = 40
# A value in a body of one level without escapes: a text, or what stands before the next comma or the end.
_TOKENS, _MODEL = (re.compile(b'[{,]"%s":("[^"]*"|[^,}]*)' % key).search for key in (b"input_tokens", b"model"))


class Said(NamedTuple):
    """What a row says of itself, None where it says nothing or nobody asks."""

    input_tokens: int | None
    model: str | None


NOTHING_SAID = Said(None, None)


@dataclass(frozen=True, slots=True)
class Where:
    """The requests that an objective is about: of at most so many input tokens, of this model; None: of any."""

    input_tokens_at_most: int | None = None
    model: str | None = None

    def selects(self, said: Said) -> bool:
        if self.model is not None and said.model != self.model:
            return False
        most = self.input_tokens_at_most
        return most is None or said.input_tokens is None or said.input_tokens <= most

    def __str__(self) -> str:
        parts = []
        if self.input_tokens_at_most is not None:
            parts.append(f"requests of at most {self.input_tokens_at_most} input tokens, or that do not say how many")
        if self.model is not None:
            parts.append(f"requests that name the model {self.model!r}")
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
        raise fail(at, "say input_tokens_at_most, model or both")
    return Where(**said)


class Selection:
    """Reads of rows what the selectors of an agreement have to know, and nothing where there are none."""

    def __init__(self, wheres: Iterable[Where | None]) -> None:
        found = [each for each in wheres if each is not None]
        self._tokens = any(each.input_tokens_at_most is not None for each in found)
        self._model = any(each.model is not None for each in found)
        self.asks = bool(found)

    def of_row(self, row: RequestRow) -> Said | RowRejection:
        """What a row says, or why it cannot be used."""
        if not self.asks:
            return NOTHING_SAID
        tokens = _value("input_tokens", _TOKENS, row.body) if self._tokens else None
        model = _value("model", _MODEL, row.body) if self._model else None
        if not _is_tokens(tokens):
            message = f"must be a whole number from 0, not {_shown(tokens)}"
            return RowRejection(row.line, Reason.FIELD_INVALID, "input_tokens", message)
        if not _is_model(model):
            return RowRejection(row.line, Reason.FIELD_INVALID, "model", f"must be text, not {_shown(model)}")
        return Said(tokens, model)

    def of_columns(self, columns: RequestColumns) -> Sequence[Said] | None:
        """What each row says, nothing at all where nobody asks; None: not all rows can be used."""
        if not self.asks:
            return ()
        nothing = [None] * len(columns)
        bodies = columns.bodies()
        tokens = [_value("input_tokens", _TOKENS, body) for body in bodies] if self._tokens else nothing
        models = [_value("model", _MODEL, body) for body in bodies] if self._model else nothing
        if not (all(map(_is_tokens, tokens)) and all(map(_is_model, models))):
            return None
        return list(map(Said, tokens, models))


def _is_tokens(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_model(value: Any) -> bool:
    return value is None or type(value) is str


def _value(key: str, search: Callable[[bytes], re.Match[bytes] | None], body: bytes) -> Any:
    """A member of a body. Of a plain one only that member is read: a fifth of the time of reading all."""
    if body.count(b"{") != 1 or b"[" in body or b"\\" in body:
        return json.loads(body, parse_float=Decimal).get(key)
    found = search(body)
    if found is None:
        return None
    value = found[1]
    return int(value) if value.isdigit() else json.loads(value, parse_float=Decimal)


def _shown(value: Any) -> str:
    shown = json.dumps(value, default=str)
    return shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 3] + "..."
