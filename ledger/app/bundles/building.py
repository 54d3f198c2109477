"""The bundle of a statement: all evidence in one signed file that needs neither database nor service to verify."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.app.access import DEFAULT_TENANT
from ledger.app.agreements.registering import AGREEMENT_TERMINATED, timeline_of
from ledger.app.bundles.roots import bundle_roots, placed_members
from ledger.app.judgement.windows import judgements
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database, Transaction
from ledger.app.settlement.attestations import anchored, confirmed, proved
from ledger.app.settlement.probe import probe_signature
from ledger.app.settlement.sealing import collector_signature, load_salts, seals_of
from ledger.app.settlement.statements import earlier_versions, issued_event, proved_before
from ledger.domain.events.exclusion_events import EXCLUSION_RECORDED
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import StoredEvent
from ledger.domain.record.naming import agreement_stream, exclusions_stream, telemetry_stream
from ledger.domain.terms.lifecycle import Terms, Timeline
from ledger.errors import NotFound

BUNDLE_FORMAT = "sla-ledger/bundle/v1"
MAX_ANNOUNCEMENTS = 1000
OPENING_FORMAT = "sla-ledger/opening/v1"
SIGNING_PREFIX = b"sla-ledger/bundle/v1\n"

Sign = Callable[[bytes], bytes]
"""Ed25519 by the issuer."""


@dataclass(frozen=True, slots=True)
class LedgerBundles:
    """``ledger.app.reading.queries.BundleSource``: bundles are made from the ledger whenever one is asked for.

    ``vkey_at`` gives the log's verifier key of the checkpoint of a size, ``sign`` is the issuer's.
    """

    database: Database
    vkey_at: Callable[[Transaction, int], str]
    sign: Sign
    attestor: Attestor

    def get(self, statement_id: str, tenant: str = DEFAULT_TENANT) -> bytes:
        """The bundle of a statement of one tenant; raises ``NotFound``."""
        with self.database.of_tenant(tenant).read() as tx:
            vkey = self.vkey_at(tx, tx.log.checkpoint_size() or 0)
            return build_bundle(tx, statement_id, vkey=vkey, sign=self.sign, attestor=self.attestor)


def signing_message(bundle: Mapping[str, Any]) -> bytes:
    """The bytes the issuer signs: everything in the bundle but the signature itself."""
    return SIGNING_PREFIX + canonical_bytes({key: bundle[key] for key in bundle if key != "issuer_signature"})


def build_bundle(tx: Transaction, statement_id: str, *, vkey: str, sign: Sign, attestor: Attestor) -> bytes:
    """The canonical bytes of a statement's bundle, under the newest checkpoint.

    ``vkey`` is the log's verifier key. Raises ``NotFound`` for an unknown statement, or where no checkpoint that
    covers it has been signed yet.
    """
    statement = issued_event(tx, statement_id)
    checkpoint, size = _checkpoint(tx, statement)
    issued = statement.payload
    timeline = timeline_of(tx, issued["sla_id"])
    terms, period = timeline.named(issued["period"])
    document = timeline.documents[terms.version - 1].document
    proof_event = proved(tx, statement_id)
    # A reorganisation may move the transaction: what was confirmed stands where it will stay.
    anchor_event = confirmed(tx, statement_id) or anchored(tx, statement_id)
    seal_key = issued["seal_key"]
    seals = [] if seal_key is None else seals_of(tx, int(seal_key), issued["statement_version"])
    bundle: dict[str, Any] = {
        "format": BUNDLE_FORMAT,
        "agreement": document,
        "statement": _evidence(tx, statement, size),
        "seals": [_evidence(tx, event, size) for event in seals],
        "log": {"vkey": vkey, "checkpoint": checkpoint},
        "telemetry": None if seal_key is None else _telemetry(tx, issued, seals),
        "context": None,
        "base": None,
        "credit_salt": None,
        "proof": None,
        "anchor": None if anchor_event is None else placed_members(tx, anchor_event.payload),
    }
    if proof_event is not None:
        bundle |= _proof(tx, issued, proof_event.payload, document)
    recorded: dict[str, Any] = {}
    if bundle["anchor"] is not None and anchor_event is not None and "raw_transaction" in anchor_event.payload:
        recorded = _as_recorded(bundle, attestor)
        bundle |= recorded
    # The leaf under a root is that of the statement with this ledger's own proof.
    if not recorded.keys() - {"anchor"} and (roots := bundle_roots(tx, statement, proof_event, attestor)):
        bundle["roots"] = roots
    if announced := _announcements(tx, statement, terms, size):
        bundle["announcements"] = announced
    if issued["statement_version"] > 1:
        bundle["previous"] = [_evidence(tx, event, size) for event in earlier_versions(tx, issued)]
    if period.interval.end_ns == terms.agreement.ends_ns and terms.agreement.ended_on is not None:
        bundle["ended_by"] = _ended_by(timeline, terms)
        bundle |= _logged_notice(tx, issued["sla_id"], bundle["ended_by"], size)
    bundle["issuer_signature"] = sign(signing_message(bundle)).hex()
    return canonical_bytes(bundle)


def build_opening(tx: Transaction, statement_id: str) -> bytes:
    """Counts of every window and salts of every block: what lets its holder recompute the telemetry root.

    Raises ``NotFound`` for an unknown statement, or where nothing was sealed because no circuit attests its terms.
    """
    event = issued_event(tx, statement_id)
    issued = event.payload
    if issued["seal_key"] is None:
        raise NotFound(f"nothing is sealed for {statement_id}, so there is nothing to open", statement_id=statement_id)
    windows = judgements(tx, issued["sla_id"], issued["period"], before_seq=event.place)
    return canonical_bytes(
        {
            "format": OPENING_FORMAT,
            "statement_id": statement_id,
            "windows": [{"state": window["state"], "cells": window["cells"]} for window in windows],
            "salts": [str(salt) for salt in load_salts(tx, issued).blocks],
        }
    )


def _announcements(tx: Transaction, statement: StoredEvent, terms: Terms, size: int) -> list[dict[str, Any]]:
    """What logged the exclusions for maintenance that a statement lists, as they stood when it was issued."""
    issued = statement.payload
    classes = terms.agreement.exclusion_terms.classes
    wanted = {each["exclusion_id"] for each in issued.get("exclusions", ()) if each["clause"] in classes}
    if not wanted:
        return []
    found: dict[str, StoredEvent] = {}
    for event in tx.events.stream(exclusions_stream(issued["sla_id"])):
        if (
            event.type == EXCLUSION_RECORDED
            and event.payload["exclusion_id"] in wanted
            and event.place < statement.place
        ):
            found[event.payload["exclusion_id"]] = event
    return [_evidence(tx, event, size) for event in list(found.values())[:MAX_ANNOUNCEMENTS]]


def _ended_by(timeline: Timeline, terms: Terms) -> Mapping[str, Any]:
    """The signed document that ended some terms before their own end: the next version, or a notice."""
    ended_on = terms.agreement.ended_on
    if timeline.notice is not None and timeline.notice.effective == ended_on:
        return timeline.notice.document
    return timeline.documents[terms.version].document


def _logged_notice(tx: Transaction, sla_id: str, ended_by: Mapping[str, Any], size: int) -> dict[str, Any]:
    """What logged the notice that ended the terms: who reads it sees that it did not come afterwards."""
    logged = (each for each in tx.events.stream(agreement_stream(sla_id)) if each.type == AGREEMENT_TERMINATED)
    given = [each for each in logged if each.payload["notice"] == ended_by and each.place < size]
    return {"notice": _evidence(tx, given[0], size)} if given else {}


def _checkpoint(tx: Transaction, statement: StoredEvent) -> tuple[str, int]:
    size = tx.log.checkpoint_size()
    note = None if size is None else tx.log.checkpoint(size)
    if size is None or note is None or size <= statement.place:
        raise NotFound(
            f"no signed checkpoint covers the statement yet (it is event {statement.place}); sign the log first",
            seq=statement.place,
        )
    return note, size


def _evidence(tx: Transaction, event: StoredEvent, size: int) -> dict[str, Any]:
    return {
        "seq": event.place,
        "header": event.header,
        "payload": dict(event.committed_payload),
        "salt": event.salt.hex(),
        "inclusion": [node.hex() for node in tx.log.inclusion_proof(event.place, size)],
    }


def _telemetry(tx: Transaction, issued: Mapping[str, Any], seals: Sequence[StoredEvent]) -> dict[str, Any]:
    root = issued["telemetry_root"]
    signatures = list(tx.events.stream(telemetry_stream(int(issued["seal_key"]))))
    signed = collector_signature(signatures, root)
    if signed is None:
        raise NotFound(f"the log holds no signature of the collector over {root}", telemetry_root=root)
    of_probe = probe_signature(signatures, root)
    return {
        "root": root,
        "windows": issued["windows"],
        "blocks": [event.payload["block_hash"] for event in seals],
        "signature": _signature(signed),
        **({} if of_probe is None else {"probe_signature": _signature(of_probe)}),
    }


def _signature(event: StoredEvent) -> dict[str, Any]:
    return {"r8": event.payload["r8"], "s": event.payload["s"]}


def _proof(
    tx: Transaction, issued: Mapping[str, Any], proof: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, Any]:
    """The members that come with a proof."""
    salts = load_salts(tx, issued)
    committed = document["compensation"]["credit_visibility"] == "committed"
    context = {"chain_id": proof["chain_id"], "registry": proof["registry"], "prev_ctx": proof["previous_ctx"]}
    if earlier := proved_before(tx, issued):
        replaced = proved(tx, earlier[-1].payload["statement_id"])
        if replaced is not None:
            context["prev_signals"] = replaced.payload["signals"]
            if "incident_proof" in replaced.payload:
                context["prev_incident_signals"] = replaced.payload["incident_proof"]["signals"]
    found = {
        "context": context,
        "base": {"salt": str(salts.base)},
        "credit_salt": str(salts.credit) if committed else None,
        "proof": _shown_proof(tx, proof),
    }
    if "incident_proof" in proof:
        total_salt = str(salts.total) if committed else None
        found["incident_proof"] = {**_shown_proof(tx, proof["incident_proof"]), "credit_salt": total_salt}
    return found


def _as_recorded(bundle: Mapping[str, Any], attestor: Attestor) -> dict[str, Any]:
    """Members of a bundle by what another party's transaction records.

    Who sees a proof can make another of it that shows the same, and a party may be the first to record that: then it is
    the proof of the bundle. There is no anchor where a reader could not tell what is recorded.
    """
    names = [name for name in ("proof", "incident_proof") if name in bundle]
    found = [each.hex() for each in attestor.recorded_proofs(bytes.fromhex(bundle["anchor"]["raw_transaction"]))]
    if len(found) != len(names):
        return {"anchor": None}
    changed = zip(names, found, strict=True)
    return {name: {**bundle[name], "proof": each} for name, each in changed if bundle[name]["proof"] != each}


def _shown_proof(tx: Transaction, proof: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "circuit": proof["circuit"],
        "signals": proof["signals"],
        "proof": proof["proof"],
        "verification_key": json.loads(tx.batches.get(proof["verification_key"])),
        "manifest": {
            "circuit": proof["circuit"],
            "circuit_id": proof["circuit_id"],
            "dev_unsafe": proof["dev_key"],
        },
    }
