"""Closed document shapes: one description checks a value and prints its JSON Schema (draft 2020-12).

Agreement, trust file, bundle and every event payload are described with these few parts, so that the
published schema and the code that reads the document cannot part ways. A failed check raises
``DocumentInvalid`` with the field's path.
"""

from ledger.domain.schema.containers import Either, ListOf, MapOf, Nullable, Object
from ledger.domain.schema.shape import JsonSchema, Shape, Test, convert, fail
from ledger.domain.schema.values import HIDDEN_CHARACTER, Flag, Integer, OneOf, Text

__all__ = [
    "HIDDEN_CHARACTER",
    "Either",
    "Flag",
    "Integer",
    "JsonSchema",
    "ListOf",
    "MapOf",
    "Nullable",
    "Object",
    "OneOf",
    "Shape",
    "Test",
    "Text",
    "convert",
    "fail",
]
