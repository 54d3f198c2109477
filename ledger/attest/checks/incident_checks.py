"""Checks of a statement whose terms pay for incidents: the incidents that it states, and the second proof, of the
credit (docs/attestation-format.md, sections 8 and 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attest.checks.case import Case, require
from ledger.attest.commitments import statement as formats
from ledger.attest.commitments.incident_claims import derived_root, logged
from ledger.attest.commitments.incident_credit import INCIDENTS_CIRCUIT, IncidentSignals, incident_summary, total_commit
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.crypto.pair import signals_hash
from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.domain.credits.compensation import Incident
from ledger.domain.credits.settlement import attestability
from ledger.domain.methods.ratio import missing_windows
from ledger.domain.methods.registry import METHODS
from ledger.domain.money import PARTS_PER_BILLION, format_minor_units
from ledger.domain.terms.compensation_terms import ImpactRule
from ledger.domain.terms.objective import Objective
from ledger.domain.time.instant import SECOND_NS

_NUMBERS = ("first_window", "windows", "good", "valid")


def stated_incidents(case: Case) -> tuple[Incident, ...]:
    """The incidents that a statement lists, with what follows from each.

    Raises ``BundleCheckFailed`` where they cannot be runs of windows of this period, or of its totals.
    """
    rule, listed = _rule(case), case.issued["trace"].get("incidents")
    require(isinstance(listed, list), "the trace lists no incidents, and the terms pay for them")
    windows, end, found = case.agreement.windows(case.period), -1, []
    for index, item in enumerate(listed):
        first, count, good, valid = _numbers(item, index)
        # Runs of windows that break the promise are as long as they can be: one that keeps it lies between two.
        fits = end < first and count > 0 and first + count <= len(windows) and 0 <= good <= valid
        require(fits, f"incident {index} is no run of windows of this period after the one before it")
        end = first + count
        span = windows[first].start_ns, windows[end - 1].end_ns
        found.append(Incident(rule.objective, first, count, *span, good, valid, valid * rule.price_per_request))
    _require_of_totals(case, rule, found)
    return tuple(found)


def require_replaced_credit(case: Case, context: Mapping[str, Any]) -> None:
    """Under terms that pay for incidents a replaced statement has the signals of its second proof, too."""
    said, due = context.get("prev_incident_signals"), case.agreement.compensation.impact is not None
    expected = due and case.proofs_before > 0
    require((said is not None) == expected, "exactly a replaced incident credit has prev_incident_signals")
    if said is not None:
        before = IncidentSignals(*(int(signal) for signal in said))
        require(before.ctx == case.previous_ctx, "the replaced signals of the incident credit are of another statement")
        require(before.terms_hash == case.terms_hash, "the replaced signals of the incident credit are of other terms")


def replaced_signals_hash(context: Mapping[str, Any]) -> bytes:
    """How the registry names the signals that are replaced: keccak256 of their words, zero where none are."""
    replaced = [*context.get("prev_signals", ()), *context.get("prev_incident_signals", ())]
    return signals_hash([int(signal) for signal in replaced])


def terms_and_tiers(case: Case) -> str:
    """The second proof is about the same statement and terms, and starts from the tiers' amount."""
    shown = case.incident_signals
    require(shown.ctx == case.ctx, "the incident proof is for another chain, registry, agreement, period or version")
    require(shown.terms_hash == case.terms_hash, "the incident proof is for other terms (termsHash)")
    require(shown.tier_credit == case.signals.credit, "the incident proof starts from another amount of the tiers")
    found = stated_incidents(case)
    require(shown.summary == incident_summary(logged(found)), "the incident proof is about other incidents (summary)")
    root = derived_root(case.agreement, _rule(case), case.seal_key, found)
    require(shown.incident_root == root, "the incident proof is about other incidents (incidentRoot)")
    return f"the second proof is over the {len(found)} incident(s) of the statement and the tiers of the first"


def tier_credit(case: Case) -> str:
    """Signal 1 of the first proof: what the tiers come to, exactly."""
    bps, salt = case.issued["trace"]["combined_bps"], case.bundle["credit_salt"]
    _require_salt(case, salt)
    amount = case.paid_by.compensation.base * bps
    expected = amount if salt is None else formats.tier_commit(case.ctx, amount, int(salt))
    require(case.signals.credit == expected, "the proof shows another amount of the tiers than the statement")
    shown = "shows" if salt is None else "commits to"
    return f"the proof {shown} {bps} basis points of the base by the tiers, before cap, minimum and rounding"


def total(case: Case) -> str:
    """Signal 1 of the second proof, which alone is the credit."""
    issued, salt = case.issued["credit"], case.incident_proof["credit_salt"]
    require(issued is not None, "the statement has no credit")
    _require_salt(case, salt)
    amount = int(issued["minor_units"])
    expected = amount if salt is None else total_commit(case.ctx, amount, int(salt))
    require(case.incident_signals.credit == expected, "the incident proof shows another credit than the statement")
    shown = f"a credit of {format_minor_units(amount, issued['currency'])} {issued['currency']}"
    return f"the second proof {'shows' if salt is None else 'commits to'} {shown}, incidents and tiers together"


def key(case: Case) -> str:
    proof, manifest = case.incident_proof, case.incident_proof["manifest"]
    circuit_id = case.incident_key.circuit_id().hex()
    require(manifest["circuit_id"] == circuit_id, "the manifest names another key (circuit_id)")
    require(manifest["circuit"] == proof["circuit"], "the manifest names another circuit")
    require(proof["circuit"] == INCIDENTS_CIRCUIT, f"the proof of an incident credit is of {INCIDENTS_CIRCUIT}")
    chain_id = int(case.bundle["context"]["chain_id"]) if case.bundle["context"] else 0
    allowed = not manifest["dev_unsafe"] or chain_id in TEST_CHAIN_IDS
    require(allowed, f"a development key is used on chain {chain_id}; it proves nothing there")
    return f"{manifest['circuit']}, circuit id {circuit_id[:16]}..."


def proof(case: Case) -> str:
    if not case.incident_proof_holds:
        second = case.incident_one
        check_proof(case.incident_key, second.signals, second.proof)
    return "the Groth16 proof of the incident credit holds for its six signals"


def _rule(case: Case) -> ImpactRule:
    rule = case.agreement.compensation.impact
    require(rule is not None, "the terms pay for no incidents")
    assert rule is not None  # noqa: S101 (for the type checker)
    return rule


def _numbers(item: Any, index: int) -> tuple[int, int, int, int]:
    found = [item.get(name) for name in _NUMBERS] if isinstance(item, Mapping) else []
    require(bool(found) and all(type(each) is int for each in found), f"incident {index} has not the numbers of one")
    first, count, good, valid = (int(each) for each in found if each is not None)
    return first, count, good, valid


def _require_salt(case: Case, salt: Any) -> None:
    committed = case.agreement.compensation.credit_visibility == "committed"
    require((salt is not None) == committed, "a credit salt belongs to a committed credit, and only there")


def _require_of_totals(case: Case, rule: ImpactRule, found: list[Incident]) -> None:
    """The requests of the incidents are among those of the period, each incident breaks the promise, and what is left
    keeps it: so do sums of windows that each keep it. Where the objective's windows do not fill the period, what lies
    behind the last of them is in the totals and in no window, and may be as bad as it is."""
    result = next(each for each in case.results if each.objective.id == rule.objective)
    good, bad = sum(each.good for each in found), sum(each.valid - each.good for each in found)
    left = result.good - good, result.valid - result.good - bad
    require(min(left) >= 0, "the incidents have more requests than the period")
    if attestability(case.agreement):
        return
    for index, each in enumerate(found):
        broken = _breaks(result.objective, each.good, each.valid - each.good)
        require(broken, f"incident {index} keeps the promise of {rule.objective}")
    unjudged = case.period.interval.duration_ns % ((result.objective.window_seconds or 1) * SECOND_NS)
    kept = unjudged > 0 or not _breaks(result.objective, *left)
    require(kept, "what the incidents leave of the period still breaks the promise")


def _breaks(objective: Objective, good: int, bad: int) -> bool:
    if METHODS[objective.method].breaches is missing_windows:
        return good * PARTS_PER_BILLION < (good + bad) * objective.target_ppb
    return bad > 0
