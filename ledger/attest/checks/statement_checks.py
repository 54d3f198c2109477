"""What a verifier checks of a bundle, one function for each check (docs/attestation-format.md, section 12).

A function returns what it established, for people, or raises; ``verification`` turns either into a line.
"""

from __future__ import annotations

from ledger.app.agreements.registering import require_notice_signatures, require_signatures
from ledger.app.bundles.building import signing_message
from ledger.attest.checks.case import Case, require
from ledger.attest.checks.credit_checks import credit_by_totals, credit_with_incidents, recorded_charges
from ledger.attest.checks.exclusion_checks import require_excluded
from ledger.attest.checks.incident_checks import (
    replaced_signals_hash,
    require_replaced_credit,
    stated_incidents,
    tier_credit,
)
from ledger.attest.commitments import statement as formats
from ledger.attest.commitments import telemetry
from ledger.attest.commitments.attestation_context import sla_id
from ledger.attest.crypto import babyjub, evm_tx, signing
from ledger.attest.crypto.groth16 import check_proof
from ledger.domain.attested import BLOCK_WINDOWS, TEST_CHAIN_IDS
from ledger.domain.credits.claims import accepts_until_ns
from ledger.domain.credits.compensation import credit_trace
from ledger.domain.credits.settlement import result_unit
from ledger.domain.credits.verdict import ObjectiveResult, judge_objective
from ledger.domain.money import format_minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.indicators import INDICATORS

_STATES = {
    "no_data": formats.State.NO_DATA,
    "met": formats.State.MET,
    "breached": formats.State.BREACHED,
}


def issuer_signature(case: Case) -> str:
    key = bytes.fromhex(case.bundle["agreement"]["parties"]["issuer"]["ed25519_public_key"])
    signature = bytes.fromhex(case.bundle["issuer_signature"])
    require(signing.verify(key, signing_message(case.bundle), signature), "the issuer did not sign this file")
    return "the issuer signed every byte of this file"


def agreement(case: Case) -> str:
    require_signatures(case.agreement, signing.verify)
    issued = case.issued
    require(issued["sla_id"] == "0x" + case.sla_id.hex(), "the statement is for another agreement (sla_id)")
    require(issued["doc_sha256"] == case.agreement.doc_sha256.hex(), "the statement is for other terms (doc_sha256)")
    return f"both parties signed it for {case.agreement.service}; slaId 0x{case.sla_id.hex()[:16]}..." + _ending(case)


def _ending(case: Case) -> str:
    """What ended the terms, if anything did: signed like themselves, and about the same agreement."""
    ended_by, terms = case.bundle.get("ended_by"), case.agreement
    if ended_by is None:
        return ""
    if case.notice is not None:
        notice = case.notice
        require(notice.sla_id == "0x" + case.sla_id.hex(), "the notice ends another agreement")
        require_notice_signatures(notice, terms, signing.verify)
        return f"; ended on {notice.effective} by notice of {' and '.join(notice.signed_by)}"
    following = Agreement.from_document(ended_by)
    require(sla_id(following) == case.sla_id, "the terms that follow are of another agreement")
    for name, before, after in (
        ("issuer", terms.issuer, following.issuer),
        ("customer", terms.customer, following.customer),
    ):
        same = before.ed25519_public_key == after.ed25519_public_key
        require(same, f"the terms that follow name another key of the {name}")
    require_signatures(following, signing.verify)
    return f"; other terms follow from {following.effective_from}"


def period(case: Case) -> str:
    issued, span = case.issued, case.period.interval
    require(issued["period"] == str(case.period), f"the period is spelled {case.period}")
    require(issued["start_ns"] == str(span.start_ns), "start_ns is not the start of the period in its zone")
    require(issued["end_ns"] == str(span.end_ns), "end_ns is not the end of the period in its zone")
    require(issued["windows"] == case.window_count, f"the period has {case.window_count} windows")
    said = issued.get("accepts_until_ns")
    if said is not None or "deadline" in case.bundle["agreement"].get("settlement", {}):
        until = str(accepts_until_ns(case.agreement, case.period))
        require(said == until, f"accepts_until_ns is not {until}, until when the terms take claims and facts")
    require_excluded(case)
    counts_fit = issued["idle"] <= issued["observed"] <= case.window_count
    require(counts_fit, "window counts do not add up")
    return f"{case.period} in {case.period.zone}, {case.window_count} windows"


def sealed_telemetry(case: Case) -> str:
    sealed, issued = case.bundle["telemetry"], case.issued
    if case.reasons:
        require(sealed is None and not case.bundle["seals"], "terms without a circuit have nothing sealed")
        require(issued["seal_key"] is None and issued["telemetry_root"] is None, "the statement names a seal")
        return "nothing is sealed under these terms"
    require(sealed is not None, "the telemetry root is missing")
    blocks = tuple(int(block) for block in sealed["blocks"])
    root = telemetry.telemetry_root(case.seal_key, case.window_count, blocks)
    require(sealed["windows"] == case.window_count, "the root is for another number of windows")
    require(sealed["root"] == str(root), "the blocks do not give this root")
    require(issued["telemetry_root"] == str(root), "the statement names another root")
    require(issued["seal_key"] == str(case.seal_key), "the statement names another seal key")
    require(len(case.bundle["seals"]) == len(blocks), f"{len(blocks)} blocks need as many seals")
    for index, seal in enumerate(case.bundle["seals"]):
        payload = seal["payload"]
        first = index * BLOCK_WINDOWS
        inside = max(0, min(BLOCK_WINDOWS, case.window_count - first))
        expected = ("0x" + case.sla_id.hex(), str(case.seal_key), index, str(blocks[index]), first, inside)
        found = tuple(payload[key] for key in ("sla_id", "seal_key", "block", "block_hash", "first_window", "windows"))
        require(found == expected, f"seal {index} does not seal block {index} of this period")
    return f"{len(blocks)} sealed block(s) give the telemetry root"


def collector_signature(case: Case) -> str:
    sealed = case.bundle["telemetry"]
    require(sealed is not None, "there is no telemetry to sign")
    r8 = sealed["signature"]["r8"]
    signature = babyjub.Signature((int(r8["x"]), int(r8["y"])), int(sealed["signature"]["s"]))
    holds = babyjub.verify(case.agreement.collector_key, int(sealed["root"]), signature)
    require(holds, "the collector did not sign this telemetry root")
    return "the agreement's collector signed the telemetry root"


def verdict(case: Case) -> str:
    """States and credit follow from the statement's own totals, and a missing proof has its reason."""
    issued = case.issued
    require(issued["attestable"] == (not case.reasons), "attestable is not what the terms say")
    require(
        issued["unattested_reasons"] == list(case.reasons), "the reasons without a proof are not those of the terms"
    )
    require(issued["state"] == ("withheld" if case.withheld else "settled"), "the state does not follow from coverage")
    proof_due = not case.reasons and not case.withheld
    require((case.bundle["proof"] is not None) == proof_due, _PROOF_DUE[proof_due])
    second_due = proof_due and case.agreement.compensation.impact is not None
    require(("incident_proof" in case.bundle) == second_due, _SECOND_DUE[second_due])
    if not proof_due:
        for name in ("context", "base", "credit_salt", "anchor"):
            require(case.bundle[name] is None, f"{name} belongs to a proof, and there is none")
    for result in case.results:
        require(
            result.good + result.undecided <= result.valid,
            f"{result.objective.id} has more good requests than valid ones",
        )
        possible = ("withheld",) if case.withheld else _states_of(result)
        expected = " or ".join(possible)
        require(result.state in possible, f"{result.objective.id} is {expected} by its counts, not {result.state}")
    if case.withheld:
        require(issued["credit"] is None and not issued["trace"], "a withheld statement has no credit")
        return (
            f"withheld: {issued['observed']} of {issued['windows']} windows observed; no verdict, no credit, no proof"
        )
    terms = case.agreement.compensation
    if terms.pays_for_incidents and not terms.simple:
        return credit_with_incidents(case, credit_trace(case.paid_by, case.results, (), recorded_charges(case)))
    runs = None if terms.impact is None else stated_incidents(case)
    return credit_by_totals(case, credit_trace(case.paid_by, case.results, (), recorded_charges(case), runs))


def _states_of(result: ObjectiveResult) -> tuple[str, ...]:
    """What an objective may be by its counts.

    Whether its minimum volume was there is not known where its method counts something else than its indicator does.
    """
    objective = result.objective
    known = result_unit(result) == INDICATORS[objective.indicator].unit
    volumes = (result.valid,) if known or not objective.minimum_valid else (objective.minimum_valid, 0)
    judged = (judge_objective(objective, result.good, result.valid, result.undecided, volume) for volume in volumes)
    return tuple(dict.fromkeys(map(str, judged)))


_PROOF_DUE = {True: "this statement must have a proof", False: "this statement cannot have a proof"}
_SECOND_DUE = {
    True: "this statement must have a proof of its incident credit, which alone is the credit",
    False: "a proof of an incident credit belongs to a proved statement whose terms pay for incidents",
}


def context(case: Case) -> str:
    context = case.bundle["context"]
    require(context is not None, "the bundle names no chain and registry")
    require(context["prev_ctx"] == str(case.previous_ctx), "prev_ctx is not the context of the version before it")
    replaced = context.get("prev_signals")
    require((replaced is not None) == (case.proofs_before > 0), "exactly a restatement names the signals it replaces")
    if replaced is not None:
        before = formats.Signals(*(int(signal) for signal in replaced))
        require(before.ctx == case.previous_ctx, "the replaced signals are of another statement")
        require(before.terms_hash == case.terms_hash, "the replaced signals are under other terms")
        root = case.replaced["telemetry_root"]
        require(str(before.telemetry_root) == root, "the replaced signals are from other telemetry than that version")
    require_replaced_credit(case, context)
    require(case.signals.ctx == case.ctx, "the proof is for another chain, registry, agreement, period or version")
    return "the proof is for this chain, registry, agreement, period and version"


def terms(case: Case) -> str:
    require(case.signals.terms_hash == case.terms_hash, "the proof is for other terms (termsHash)")
    return "the proof is under the signed terms"


def telemetry_signal(case: Case) -> str:
    require(str(case.signals.telemetry_root) == case.bundle["telemetry"]["root"], "the proof is from other telemetry")
    return "the proof is from the sealed telemetry"


def base(case: Case) -> str:
    opened = case.bundle["base"]
    require(opened is not None, "the salt of the base is missing")
    fee = case.paid_by.compensation.base
    commit = formats.base_commit(case.seal_key, fee, int(opened["salt"]))
    require(case.signals.base_commit == commit, "the proof is over another base than the agreement's")
    return "the proof is over the agreement's base"


def summary(case: Case) -> str:
    shown, issued = formats.Summary.decode(case.signals.summary), case.issued
    states = tuple(_STATES.get(str(result.state), formats.State.UNUSED) for result in case.results)
    states += (formats.State.UNUSED,) * (len(shown.states) - len(states))
    require(shown.states == states, "the proof shows other states than the statement")
    for name in ("windows", "observed", "excluded", "idle"):
        require(getattr(shown, name) == issued[name], f"the proof shows {getattr(shown, name)} {name} windows")
    idle = f", {shown.idle} of them without any request" if shown.idle else ""
    return f"{shown.observed} of {shown.windows} windows observed{idle}, {shown.excluded} excluded"


def credit(case: Case) -> str:
    if case.agreement.compensation.impact is not None:
        return tier_credit(case)
    issued = case.issued["credit"]
    require(issued is not None, "the statement has no credit")
    amount = int(issued["minor_units"])
    committed = case.agreement.compensation.credit_visibility == "committed"
    salt = case.bundle["credit_salt"]
    require((salt is not None) == committed, "a credit salt belongs to a committed credit, and only there")
    expected = formats.credit_commit(case.ctx, amount, int(salt)) if committed else amount
    require(case.signals.credit == expected, "the proof shows another credit than the statement")
    shown = f"a credit of {format_minor_units(amount, issued['currency'])} {issued['currency']}"
    return f"the proof commits to {shown}, which the salt opens" if committed else f"the proof shows {shown}"


def key(case: Case) -> str:
    manifest, circuit_id = case.proof["manifest"], case.verification_key.circuit_id().hex()
    require(manifest["circuit_id"] == circuit_id, "the manifest names another key (circuit_id)")
    require(manifest["circuit"] == case.proof["circuit"], "the manifest names another circuit")
    require(case.proof["circuit"] == case.circuit_name, f"a proof over these blocks is of {case.circuit_name}")
    chain_id = int(case.bundle["context"]["chain_id"]) if case.bundle["context"] else 0
    allowed = not manifest["dev_unsafe"] or chain_id in TEST_CHAIN_IDS
    require(allowed, f"a development key is used on chain {chain_id}; it proves nothing there")
    return f"{manifest['circuit']}, circuit id {circuit_id[:16]}..."


def proof(case: Case) -> str:
    if not case.proof_holds:
        check_proof(case.verification_key, case.signals.as_tuple(), bytes.fromhex(case.proof["proof"]))
    return "the Groth16 proof holds for these six signals"


def anchor(case: Case) -> str:
    placed = case.bundle["anchor"]
    require(placed is not None, "the statement is not anchored")
    transaction = evm_tx.decode_transaction(bytes.fromhex(placed["raw_transaction"]))
    require(placed["tx_hash"] == "0x" + transaction.tx_hash.hex(), "tx_hash is not the hash of the transaction")
    parties = (case.agreement.issuer.evm_address, case.agreement.customer.evm_address)
    chain_id, registry = int(case.bundle["context"]["chain_id"]), case.bundle["context"]["registry"]
    recording = evm_tx.Recording(
        sla_id=case.sla_id,
        start_ns=case.period.interval.start_ns,
        end_ns=case.period.interval.end_ns,
        terms_version=case.issued["terms_version"],
        statement_version=case.proofs_before + 1,
        prev_ctx=case.previous_ctx,
        prev_signals_hash=replaced_signals_hash(case.bundle["context"]),
        circuit_id=case.one.circuit_id,
        signals=case.one.signals,
        proof=case.one.proof,
        incidents=case.second,
    )
    evm_tx.require_records(transaction, recording, chain_id=chain_id, registry=registry, parties=parties)
    return f"a party's transaction {placed['tx_hash'][:18]}... records exactly this at the registry"
