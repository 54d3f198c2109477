"""The feeds there are: what a row of each is, and the book that judges a period by them. To add one, add its module and
a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.domain.facts.counter_log import CounterBook
from ledger.domain.facts.feeds import FactBook, FactKind
from ledger.domain.facts.histogram_log import HistogramBook
from ledger.domain.facts.outages import OutageBook

BOOKS: Mapping[str, type[FactBook[Any]]] = {book.kind.name: book for book in (OutageBook, CounterBook, HistogramBook)}
KINDS: Mapping[type, FactKind[Any]] = {book.kind.row: book.kind for book in BOOKS.values()}
