"""Read models: derived from events alone and rebuilt at will."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
)

from ledger.store.tables.base import BIGINT, metadata


def _view(name: str, key: Sequence[Column[Any]], others: Sequence[Column[Any]] = ()) -> Table:
    """A read model: what it is asked or ordered by as columns, the rest as JSON in ``body``."""
    return Table(
        name,
        metadata,
        Column("tenant", String(120), nullable=False),
        *key,
        *others,
        Column("body", LargeBinary, nullable=False),
        Column("seq", BIGINT, nullable=False),
        PrimaryKeyConstraint("tenant", *(column.name for column in key)),
    )


def _sla_id() -> Column[str]:
    return Column("sla_id", String(66), nullable=False)


def _statement_id() -> Column[str]:
    return Column("statement_id", String(120), nullable=False)


def _text_key(name: str, length: int) -> Column[str]:
    """An id that a list is continued by: ordered by code points in every database."""
    ordered = String(length, collation="C")
    return Column(name, String(length).with_variant(ordered, "postgresql"), nullable=False)


def _start_ns() -> Column[int]:
    return Column("start_ns", BIGINT, nullable=False)


view_agreement = _view("view_agreement", [_sla_id()])
view_window = _view(
    "view_window",
    [_sla_id(), Column("period", String(16), nullable=False), Column("window_index", Integer, nullable=False)],
    [_start_ns()],
)
view_statement = _view("view_statement", [_text_key("statement_id", 120)], [_sla_id(), _start_ns()])
view_credit = _view("view_credit", [_text_key("statement_id", 120)], [_sla_id(), _start_ns()])
# Of the versions of a statement those that nothing replaced are listed, and found once they are due to be final.
view_standing = _view(
    "view_standing",
    [_text_key("statement_id", 120)],
    [
        _sla_id(),
        _start_ns(),
        Column("standing", String(10), nullable=False),
        Column("credited", Integer, nullable=False),
        Column("due_ns", BIGINT, nullable=False),
    ],
)
view_attestation = _view("view_attestation", [_statement_id()])
view_anchor = _view("view_anchor", [_statement_id()])
# Those that a deep reorganisation may still undo are found by their chain.
view_anchor_confirmation = _view(
    "view_anchor_confirmation",
    [_statement_id()],
    [Column("standing", String(10), nullable=False), Column("chain_id", String(78), nullable=False)],
)
# Batches are over all tenants, and what is published is everybody's. A statement finds those that cover its place.
view_root = _view(
    "view_root",
    [Column("target", String(78), nullable=False), Column("number", BIGINT, nullable=False)],
    [Column("from_seq", BIGINT, nullable=False), Column("until_seq", BIGINT, nullable=False)],
)
Index(None, view_root.c.until_seq)
# Those that wait for a batch are found by their place in the log, whosever they are.
Index(None, view_attestation.c.seq)
Index(None, view_statement.c.seq)


view_violation = _view(
    "view_violation",
    [_text_key("violation_id", 120)],
    [
        _sla_id(),
        Column("objective", String(40), nullable=False),
        Column("state", String(10), nullable=False),
        _start_ns(),
    ],
)
view_exclusion = _view(
    "view_exclusion",
    [_sla_id(), Column("exclusion_id", String(40), nullable=False)],
    [_start_ns(), Column("state", String(10), nullable=False)],
)
view_credit_line = _view(
    "view_credit_line",
    [_text_key("line_id", 140)],
    [
        _statement_id(),
        _sla_id(),
        Column("violation_id", String(120), nullable=True),
        Column("status", String(10), nullable=False),
        _start_ns(),
    ],
)


# Evidence is asked for by service and time. A point covers at most an hour, so that the index finds those that touch
# an interval; ``series`` says which rows are of one thing, of which the most telling one is enough.
_SERVICE_COLUMN = 120


def _service() -> Column[str]:
    return Column("service", String(_SERVICE_COLUMN), nullable=False)


def _event_id() -> Column[str]:
    return Column("event_id", String(36), nullable=False)


def _evidence_columns() -> list[Column[Any]]:
    return [
        Column("from_ns", BIGINT, nullable=False),
        Column("to_ns", BIGINT, nullable=False),
        Column("severity", Integer, nullable=False),
        Column("series", String(420), nullable=False),
    ]


view_telemetry = _view(
    "view_telemetry",
    [_service(), _event_id(), Column("point", Integer, nullable=False)],
    _evidence_columns(),
)
view_breaker = _view("view_breaker", [_service(), _event_id()], _evidence_columns())
view_telemetry_source = _view(
    "view_telemetry_source", [_service(), Column("source", String(_SERVICE_COLUMN), nullable=False)]
)

Index(None, view_telemetry.c.tenant, view_telemetry.c.service, view_telemetry.c.from_ns)
Index(None, view_breaker.c.tenant, view_breaker.c.service, view_breaker.c.from_ns)
view_webhook = _view(
    "view_webhook", [Column("endpoint_id", String(27), nullable=False)], [Column("state", String(10), nullable=False)]
)

for _table, _key in (
    (view_statement, "statement_id"),
    (view_credit, "statement_id"),
    (view_standing, "statement_id"),
    (view_violation, "violation_id"),
    (view_credit_line, "line_id"),
):
    Index(None, _table.c.tenant, _table.c.start_ns, _table.c[_key])
    Index(None, _table.c.tenant, _table.c.sla_id, _table.c.start_ns, _table.c[_key])
Index(
    None,
    view_credit_line.c.tenant,
    view_credit_line.c.statement_id,
    view_credit_line.c.start_ns,
    view_credit_line.c.line_id,
)
Index(None, view_credit_line.c.tenant, view_credit_line.c.violation_id)
Index(
    None,
    *(view_anchor_confirmation.c[name] for name in ("tenant", "standing", "chain_id", "statement_id")),
)
Index(None, view_standing.c.tenant, view_standing.c.standing, view_standing.c.due_ns, view_standing.c.statement_id)

VIEW_TABLES = {
    table.name: table
    for table in (
        view_agreement,
        view_window,
        view_statement,
        view_credit,
        view_standing,
        view_attestation,
        view_anchor,
        view_violation,
        view_exclusion,
        view_credit_line,
        view_anchor_confirmation,
        view_root,
        view_telemetry,
        view_breaker,
        view_telemetry_source,
        view_webhook,
    )
}
