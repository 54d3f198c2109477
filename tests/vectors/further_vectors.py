"""Vectors of what the committed example bundles do not have: a second signer, a block that was sealed anew, later
versions, incidents step by step, small batches, cosignatures and notices. Each with its intermediate values."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ledger.attest.checks.case import Case
from ledger.attest.checks.opening import windows_opened
from ledger.attest.commitments import statement, telemetry
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.commitments.incident_credit import (
    IncidentClaim,
    evaluate_incidents,
    in_places,
    incident_root,
    total_commit,
)
from ledger.attest.commitments.statement import Context
from ledger.attest.crypto import babyjub, evm_tx
from ledger.attest.crypto.batch import Batch, batch_node, log_id
from ledger.attest.crypto.keccak import keccak256
from ledger.attest.crypto.pair import OneProof, statement_name
from ledger.domain.credits.restatement import differences
from ledger.domain.money import fraction_document
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import payload_commitment
from ledger.domain.record.naming import seal_stream
from ledger.domain.terms.termination import notice_message, unsigned_notice
from ledger.merkle.checkpoint import Checkpoint, parse_checkpoint
from ledger.merkle.cosignature import WitnessKey, cosign, cosigned_message
from ledger.merkle.hasher import leaf_hash
from tests.support import examples
from tests.support.secrets import Secrets, vector_seed

AGAIN_SALT, WITNESSED_S = 987654321, 1_709_500_000


def probe(case: Case) -> Any:
    """Section 5: the second signer over the example's root."""
    seed, root = vector_seed("probe"), case.bundle["telemetry"]["root"]
    made = babyjub.sign(seed, int(root))
    return {
        "seed": seed.hex(),
        "public_key": _point(babyjub.public_key(seed)),
        "telemetry_root": root,
        "r8": _point(made.r8),
        "s": str(made.s),
    }


def _point(point: tuple[int, int]) -> dict[str, str]:
    return dict(zip("xy", map(str, point), strict=True))


def sealed_anew(case: Case) -> Any:
    """Section 5: a failed request of hour 3 came in late, so block 0 is replaced for version 2."""
    sealed = case.bundle["seals"][0]
    counts = list(window_counts(windows_opened(case, examples.opening())))
    counts[3] = replace(counts[3], bad=(counts[3].bad[0] + 1, *counts[3].bad[1:]))
    blocks = telemetry.block_hashes(case.seal_key, counts, [AGAIN_SALT])
    payload = {
        **sealed["payload"],
        "block_hash": str(blocks[0]),
        "inputs": sorted([*sealed["payload"]["inputs"], hashlib.sha256(b"the late batch").hexdigest()]),
        "statement_version": 2,
        "replaces": sealed["header"]["id"],
        "reason": "1 batch with facts of its windows came in late",
    }
    header = {**sealed["header"], "type": "block_resealed", "schema": 2, "version": len(blocks)}
    return {
        "words": [str(window.word()) for window in counts],
        "salt": str(AGAIN_SALT),
        "replaced_block": sealed["payload"]["block_hash"],
        "block": str(blocks[0]),
        "telemetry_root": str(telemetry.telemetry_root(case.seal_key, len(counts), blocks)),
        "stream": seal_stream(case.seal_key),
        "event": _logged(payload, header, "sealed anew"),
    }


def _logged(payload: Any, header: Any, salted: str) -> dict[str, Any]:
    salt = vector_seed(salted)
    commitment = payload_commitment(payload, salt).hex()
    header = {**header, "payload_commitment": commitment}
    return {
        "payload": payload,
        "salt": salt.hex(),
        "commitment": commitment,
        "header": header,
        "leaf_hash": leaf_hash(canonical_bytes(header)).hex(),
    }


def incident_steps(claim: IncidentClaim) -> dict[str, Any]:
    """Section 8: what lies between an incident claim and its signals."""
    found, tiers = evaluate_incidents(claim), Fraction(claim.tier_amount, 10_000)
    requests = sum(each.good + each.bad for each in claim.incidents)
    impact = Fraction(requests * claim.coefficient * claim.price, 10**18)
    combined = tiers + impact if claim.sum_rules else max(tiers, impact)
    root = incident_root(claim.seal_key, claim.coefficient, claim.price, claim.sum_rules, claim.incidents)
    return {
        "words": [str(each.word()) for each in in_places(claim.incidents)],
        "incident_root": str(root),
        "requests": str(requests),
        "impact": fraction_document(impact),
        "combined": fraction_document(combined),
        "capped": fraction_document(Fraction(found.amount, 10**18)),
        "total_commit": str(total_commit(claim.ctx, found.credit, claim.total_salt)),
        "tier_commit": str(statement.tier_commit(claim.ctx, claim.tier_amount, claim.tier_salt)),
    }


def versions(case: Case) -> list[Any]:
    """Section 9: ctx and call data of three versions with a proof, the second and third of the example's signals with
    another credit; the proof bytes are the example's, since call data does not look at them."""
    span, given, proof = case.period.interval, case.bundle["context"], bytes.fromhex(case.proof["proof"])
    first = Context(int(given["chain_id"]), given["registry"], case.sla_id, span.start_ns, span.end_ns, 1, 1)
    found: list[dict[str, Any]] = []
    before: tuple[int, ...] = ()
    context = first
    for number in (1, 2, 3):
        signals = replace(case.signals, ctx=context.value(), credit=case.signals.credit + number - 1)
        digest = b"".join(value.to_bytes(32, "big") for value in before)
        replaced = keccak256(digest) if before else bytes(32)
        recording = evm_tx.Recording(
            sla_id=case.sla_id,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            terms_version=1,
            statement_version=number,
            prev_ctx=context.previous,
            prev_signals_hash=replaced,
            circuit_id=case.verification_key.circuit_id(),
            signals=signals.as_tuple(),
            proof=proof,
        )
        found.append(
            {
                "statement_version": number,
                "prev_ctx": str(context.previous),
                "ctx": str(context.value()),
                "signals": [str(value) for value in signals.as_tuple()],
                "signals_hash": signals.digest().hex(),
                "prev_signals_hash": replaced.hex(),
                "call_data": evm_tx.record_calldata(recording).hex(),
            }
        )
        before = signals.as_tuple()
        context = replace(context, statement_version=number + 1, previous=context.value())
    return found


def small_batches(case: Case, leaf: bytes) -> Any:
    """Section 10: of one leaf, of three, and a checkpoint that is anchored alone."""
    found = parse_checkpoint(case.bundle["log"]["checkpoint"].partition("\n\n")[0] + "\n")
    more = [keccak256(bytes([number])) for number in range(2)]
    return [_batch(found, leaves) for leaves in ([leaf], [leaf, *more])] + [
        {
            "leaves": [],
            "batch_root": bytes(32).hex(),
            "paths": [],
            "log_id": log_id(found.origin).hex(),
            "batch_node": batch_node(found, bytes(32)).hex(),
        }
    ]


def _batch(found: Checkpoint, leaves: Sequence[bytes]) -> dict[str, Any]:
    batch = Batch.of(list(leaves))
    return {
        "leaves": [leaf.hex() for leaf in leaves],
        "batch_root": batch.root.hex(),
        "paths": [[sibling.hex() for sibling in batch.path(leaf)] for leaf in leaves],
        "log_id": log_id(found.origin).hex(),
        "batch_node": batch_node(found, batch.root).hex(),
    }


def pair(case: Case) -> Any:
    """Section 10: what names a statement with two proofs; the second is the next day's, with other signals of the same
    ctx and termsHash, since nothing here looks into it."""
    first, other = case.one, Case(examples.bundle("bundle_next_day"))
    signals = (3 | 7 << 8, 400_000, case.ctx, case.signals.credit, case.signals.terms_hash, 42)
    second = OneProof(keccak256(b"incidents"), signals, other.one.proof)
    name, span = statement_name(first, second), case.period.interval
    recording = evm_tx.Recording(
        sla_id=case.sla_id,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        terms_version=1,
        statement_version=1,
        prev_ctx=0,
        prev_signals_hash=bytes(32),
        circuit_id=first.circuit_id,
        signals=first.signals,
        proof=first.proof,
        incidents=second,
    )
    return {
        "incident_circuit_id": second.circuit_id.hex(),
        "incident_signals": [str(value) for value in signals],
        "incident_proof": second.proof.hex(),
        "circuit_id": name.circuit_id.hex(),
        "signals_hash": name.signals_hash.hex(),
        "proof_hash": name.proof_hash.hex(),
        "leaf": name.leaf(case.ctx).hex(),
        "call_data": evm_tx.record_calldata(recording).hex(),
    }


def commitments(case: Case) -> list[Any]:
    """Section 11: the example's statement, and an announcement; the seal stands in the section already."""
    event = case.bundle["statement"]
    payload = {
        "exclusion_id": "release-7",
        "sla_id": "0x" + case.sla_id.hex(),
        "clause": "release",
        "ticket": "CHG-7",
        "from_ns": "1709287200000000000",
        "to_ns": "1709294400000000000",
        "announced_at_ns": None,
        "approved_by": "board",
        "reason": "Fenster für die Wartung",
        "by": None,
    }
    header = {**event["header"], "type": "exclusion_recorded", "stream": f"exclusions/0x{case.sla_id.hex()}"}
    entry = {name: event[name] for name in ("payload", "salt", "header")}
    leaf = leaf_hash(canonical_bytes(event["header"])).hex()
    return [
        {**entry, "commitment": event["header"]["payload_commitment"], "leaf_hash": leaf},
        _logged(payload, header, "announced"),
    ]


def deltas(case: Case) -> Any:
    """Section 11: what versions say of their differences."""
    old = {name: case.issued[name] for name in ("objectives", "credit")}
    worse = [{**old["objectives"][0], "good": 70, "undecided": 1}, *old["objectives"][1:]]
    new = {"objectives": worse, "credit": {"currency": "USD", "minor_units": "400000"}}
    withheld = {"objectives": [{**each, "state": "withheld"} for each in old["objectives"]], "credit": None}
    pairs = (("a count less", old, new), ("withheld before", withheld, old), ("nothing", old, old))
    return [{"name": name, "old": a, "new": b, **differences(a, b, "USD")} for name, a, b in pairs]


def cosignature(case: Case) -> Any:
    """Section 12: a witness under the example's checkpoint."""
    text = case.bundle["log"]["checkpoint"].partition("\n\n")[0] + "\n"
    key = Secrets({"witness": vector_seed("witness")}).key("witness")
    witness = WitnessKey("witness.example/w", key.public_key)
    line = cosign(text, witness, WITNESSED_S, key.sign)
    return {
        "ed25519 seed": vector_seed("witness").hex(),
        "vkey": witness.vkey(),
        "time_s": WITNESSED_S,
        "message": base64.b64encode(cosigned_message(text, WITNESSED_S)).decode(),
        "line": line.line(),
    }


def notice(case: Case) -> Any:
    """Section 3: a notice by the customer."""
    document = unsigned_notice("0x" + case.sla_id.hex(), case.agreement.doc_sha256.hex(), "2024-03-20", "moved away")
    message = notice_message(document)
    return {
        "document": document,
        "message sha256": hashlib.sha256(message).hexdigest(),
        "signatures": {"customer": Secrets.of_vectors().key("customer").sign(message).hex()},
    }
