"""Where an agreement stands: its versions of terms, when each is in force, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger.app.agreements.registering import AGREEMENT_REGISTERED, AGREEMENT_TERMINATED, timeline_of
from ledger.app.paging import Row
from ledger.app.ports.store import Transaction
from ledger.domain.record.naming import agreement_stream
from ledger.domain.terms.lifecycle import milestones


def read_lifecycle(tx: Transaction, sla_id: str, *, now_ns: int) -> Row:
    """{sla_id, state, versions, timeline, termination} at an instant; raises ``NotFound``.

    ``versions`` are {terms_version, doc_sha256, state, from_ns, until_ns, registered_at_ns, on_chain, seq}: in force
    from and until, both None for one that a notice kept from it. ``timeline`` are {at_ns, what, terms_version} in
    order, what is to come included. ``termination`` is {effective, at_ns, signed_by, reason, recorded_at_ns, seq}.
    """
    timeline = timeline_of(tx, sla_id)
    in_force = {terms.version: terms.agreement for terms in timeline.terms}
    versions: list[dict[str, Any]] = []
    termination: dict[str, Any] | None = None
    for event in tx.events.stream(agreement_stream(sla_id)):
        payload = event.payload
        if event.type == AGREEMENT_REGISTERED:
            number = payload["terms_version"]
            terms = in_force.get(number)
            versions.append(
                {
                    "terms_version": number,
                    "doc_sha256": payload["doc_sha256"],
                    "state": str(timeline.state_of(number, now_ns)),
                    "from_ns": None if terms is None else terms.starts_ns,
                    "until_ns": None if terms is None else terms.ends_ns,
                    "registered_at_ns": event.occurred_at_ns,
                    "on_chain": payload["registration"] is not None,
                    "seq": event.seq,
                }
            )
        elif event.type == AGREEMENT_TERMINATED and timeline.notice is not None:
            termination = {
                "effective": str(timeline.notice.effective),
                "at_ns": int(payload["effective_ns"]),
                "signed_by": list(timeline.notice.signed_by),
                "reason": timeline.notice.reason,
                "recorded_at_ns": event.occurred_at_ns,
                "seq": event.seq,
            }
    signed = [
        {"at_ns": each["registered_at_ns"], "what": "signed", "terms_version": each["terms_version"]}
        for each in versions
    ]
    coming = [{"at_ns": at_ns, "what": what, "terms_version": number} for at_ns, what, number in milestones(timeline)]
    return {
        "sla_id": sla_id,
        "state": str(timeline.state(now_ns)),
        "versions": versions,
        "timeline": _in_order(signed + coming, versions),
        "termination": termination,
    }


def _in_order(timeline: Iterable[dict[str, Any]], versions: Iterable[Row]) -> list[dict[str, Any]]:
    """By time; but what was handed in when it was in force already was signed before that all the same."""
    began = {each["terms_version"]: each["from_ns"] or each["registered_at_ns"] for each in versions}

    def place(each: dict[str, Any]) -> int:
        at_ns: int = each["at_ns"]
        return min(at_ns, began[each["terms_version"]]) if each["what"] == "signed" else at_ns

    return sorted(timeline, key=place)
