"""The rows that ``Views`` answers with, each made of stored view rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain.credits.restatement import carries_proof


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One stored row of a view: key and other columns, the JSON body, and the event it comes from."""

    columns: Mapping[str, Any]
    body: Mapping[str, Any]
    seq: int


def evidence_row(row: ViewRow) -> dict[str, Any]:
    columns = {name: row.columns[name] for name in ("service", "event_id", "from_ns", "to_ns", "severity")}
    body = dict(row.body)
    if "breaker" in body:
        body |= {"event": body["kind"], "kind": "breaker_event"}
    return {**columns, **body, "seq": row.seq}


def agreement_row(row: ViewRow) -> dict[str, Any]:
    return {"sla_id": row.columns["sla_id"], **row.body, "seq": row.seq}


def window_row(row: ViewRow) -> dict[str, Any]:
    columns = row.columns
    return {
        "exclusions": {},
        **row.body,
        "sla_id": columns["sla_id"],
        "period": columns["period"],
        "index": columns["window_index"],
        "start_ns": columns["start_ns"],
        "end_ns": int(row.body["end_ns"]),
        "seq": row.seq,
    }


def statement_row(
    row: ViewRow,
    standing: ViewRow,
    attestation: ViewRow | None,
    anchor: ViewRow | None,
    confirmation: ViewRow | None,
    *,
    roots: Sequence[ViewRow],
) -> dict[str, Any]:
    credit, delta = row.body["credit"], row.body.get("credit_delta")
    return {
        **dict.fromkeys(("restates", "reason", "objective_deltas")),
        **row.body,
        "standing": standing.columns["standing"],
        "restated_by": standing.body.get("restated_by"),
        "accepts_until_ns": standing.columns["due_ns"],
        "credit_delta": delta and {**delta, **{name: _units(delta[name]) for name in ("old", "new", "difference")}},
        "id": row.columns["statement_id"],
        "sla_id": row.columns["sla_id"],
        "start_ns": row.columns["start_ns"],
        "end_ns": int(row.body["end_ns"]),
        "credit": credit and {**credit, "minor_units": int(credit["minor_units"])},
        "attestation": _detail(attestation),
        "anchor": _anchor(anchor, confirmation),
        "roots": [{**root.body, "seq": root.seq} for root in roots],
        "seq": _last_seq(row, standing, attestation, anchor, confirmation, *roots),
    }


def leaf_place(statement: ViewRow, attestation: ViewRow | None) -> int | None:
    """The place of the log that a batch must cover to be about a statement: its proof's, or its own where it has none.

    None where a proof is still to come.
    """
    if attestation is not None:
        return attestation.seq
    return None if carries_proof(statement.body) else statement.seq


def roots_at(roots: Iterable[ViewRow], place: int | None) -> list[ViewRow]:
    """Those that cover a place and are not undone, by chain."""
    if place is None:
        return []
    covering = (row for row in roots if row.columns["from_seq"] <= place < row.columns["until_seq"])
    found = [row for row in covering if not row.body.get("undone")]
    return sorted(found, key=lambda row: int(row.body["chain_id"]))


def unbatched_row(tenant: str, row: ViewRow, *, proved: bool) -> dict[str, Any]:
    return {"tenant": tenant, "statement_id": row.columns["statement_id"], "seq": row.seq, "proved": proved}


def _units(minor_units: str | None) -> int | None:
    return None if minor_units is None else int(minor_units)


def credit_row(row: ViewRow, attestation: ViewRow | None) -> dict[str, Any]:
    return {
        "statement_id": row.columns["statement_id"],
        "sla_id": row.columns["sla_id"],
        "period": row.body["period"],
        "currency": row.body["currency"],
        "minor_units": int(row.body["minor_units"]),
        "status": "issued",
        "proof_ref": attestation.body["proof_hash"] if attestation else None,
        "seq": _last_seq(row, attestation),
    }


def violation_row(row: ViewRow, credit: Mapping[str, Any] | None) -> dict[str, Any]:
    columns = row.columns
    return {
        "ended_by": None,
        "reason": None,
        "clause": None,
        "unit": None,
        **row.body,
        "id": columns["violation_id"],
        "sla_id": columns["sla_id"],
        "objective": columns["objective"],
        "state": columns["state"],
        "start_ns": columns["start_ns"],
        "end_ns": int(row.body["to_ns"]),
        "credit": credit,
        "seq": row.seq,
    }


def exclusion_row(row: ViewRow) -> dict[str, Any]:
    announced = row.body["announced_at_ns"]
    return {
        "withdrawn_reason": None,
        "withdrawn_by": None,
        **row.body,
        "sla_id": row.columns["sla_id"],
        "exclusion_id": row.columns["exclusion_id"],
        "state": row.columns["state"],
        "from_ns": row.columns["start_ns"],
        "to_ns": int(row.body["to_ns"]),
        "announced_at_ns": None if announced is None else int(announced),
        "seq": row.seq,
    }


def webhook_row(row: ViewRow) -> dict[str, Any]:
    until = row.body["old_secret_until_ns"]
    return {
        **row.body,
        "id": row.columns["endpoint_id"],
        "old_secret_until_ns": None if until is None else int(until),
        "state": row.columns["state"],
        "seq": row.seq,
    }


def credit_line_row(row: ViewRow, attestation: ViewRow | None, anchor: ViewRow | None) -> dict[str, Any]:
    columns, body = row.columns, row.body
    drafted = columns["status"] == "issued" and body["proof_due"] and attestation is None
    return {
        **body,
        "id": columns["line_id"],
        "statement_id": columns["statement_id"],
        "sla_id": columns["sla_id"],
        "violation_id": columns["violation_id"],
        "start_ns": columns["start_ns"],
        "minor_units": int(body["minor_units"]),
        "status": "draft" if drafted else columns["status"],
        "proof_ref": attestation.body["proof_hash"] if attestation else None,
        "anchor_tx": anchor.body["tx_hash"] if anchor else None,
        "line_seq": row.seq,
        "seq": _last_seq(row, attestation, anchor),
    }


def _detail(row: ViewRow | None) -> dict[str, Any] | None:
    return None if row is None else {**row.body, "seq": row.seq}


def _anchor(anchor: ViewRow | None, confirmation: ViewRow | None) -> dict[str, Any] | None:
    if anchor is None:
        return None
    standing = "recorded" if confirmation is None else confirmation.columns["standing"]
    stands = confirmation is not None and standing != "undone"
    return {
        **anchor.body,
        **(confirmation.body if confirmation is not None and stands else {"confirmations": 0}),
        "confirmed": stands,
        "standing": standing,
        "seq": _last_seq(anchor, confirmation),
    }


def _last_seq(*rows: ViewRow | None) -> int:
    return max(row.seq for row in rows if row is not None)


def by_start(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return row["start_ns"], row["statement_version"], row["id"]
