"""Outage lists: NDJSON (``ledger.ingest.ndjson``), one outage a line, or what became of one that was said before.

A row needs ``outage_id`` and ``service`` (text), and ``from`` and ``to`` (RFC 3339 with a zone): service was out from
the first instant until before the second. ``revision`` (a whole number, 1 where it is missing) says which of several
rows of one id counts: the highest. ``"withdrawn": true`` in a revision after the first takes the outage back; then
``from`` and ``to`` are left out. ``resource`` is text that may be missing. Other keys are free and part of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, BinaryIO

from ledger.domain.facts.outages import MAX_REVISION, OutageRow
from ledger.domain.rows.observation import DIGEST_BYTES, Reason, RowRejection
from ledger.ingest.bulk_rows import MAX_ID_CHARS
from ledger.ingest.ndjson import NdjsonLog, RowUnusable, instant_reader, object_reader, shown, text_of
from ledger.ingest.row_members import MAX_TEXT_CHARS, optional_text, required


class OutageList(NdjsonLog[OutageRow, OutageRow]):
    """The rows of one outage list."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name, _row_reader(), lambda _first, _lines: None)

    def __iter__(self) -> Iterator[OutageRow | RowRejection]:
        return self.in_bulk()


def _row_reader() -> Callable[[int, bytes], OutageRow]:
    """Reads one line; raises ``RowUnusable``."""
    decode, read_from, read_to = object_reader(), instant_reader("from"), instant_reader("to")

    def read(number: int, line: bytes) -> OutageRow:
        body, canonical = decode(line)
        required(body, "outage_id", "service")
        revision, withdrawn = _revision(body), _withdrawn(body)
        if withdrawn:
            if revision == 1:
                raise RowUnusable(Reason.FIELD_INVALID, "revision", "nothing was said before that could be withdrawn")
            for field in ("from", "to"):
                if body.get(field) is not None:
                    raise RowUnusable(Reason.FIELD_INVALID, field, "is left out where the outage is withdrawn")
        else:
            required(body, "from", "to")
        return OutageRow(
            line=number,
            outage_id=text_of(body, "outage_id", MAX_ID_CHARS),
            revision=revision,
            body_digest=blake2b(canonical, digest_size=DIGEST_BYTES).digest(),
            service=text_of(body, "service", MAX_ID_CHARS),
            from_ns=None if withdrawn else read_from(body["from"]),
            to_ns=None if withdrawn else read_to(body["to"]),
            resource=optional_text(body, "resource", MAX_TEXT_CHARS),
        )

    return read


def _revision(body: Mapping[str, Any]) -> int:
    revision = body.get("revision", 1)
    if type(revision) is not int or not 1 <= revision <= MAX_REVISION:
        said = f"must be a whole number from 1 to {MAX_REVISION}, not {shown(revision)}"
        raise RowUnusable(Reason.FIELD_INVALID, "revision", said)
    return revision


def _withdrawn(body: Mapping[str, Any]) -> bool:
    withdrawn = body.get("withdrawn", False)
    if type(withdrawn) is not bool:
        raise RowUnusable(Reason.FIELD_INVALID, "withdrawn", f"must be true or false, not {shown(withdrawn)}")
    return withdrawn
