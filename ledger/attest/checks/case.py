"""A bundle under examination: what it says, and what follows from its signed agreement.

Nothing here trusts the bundle. Numbers that can be derived (period, slaId, termsHash, seal key, ctx) are derived, and
the checks compare them with what the bundle says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ledger.app.ports.evidence import StatementContext
from ledger.attest.commitments import statement as formats
from ledger.attest.commitments import telemetry
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import context_value, sla_id
from ledger.attest.commitments.incident_credit import IncidentSignals
from ledger.attest.crypto.pair import OneProof, StatementName, statement_name
from ledger.attest.crypto.verification_key import VerificationKey, parse_verification_key
from ledger.domain.attested import BLOCK_WINDOWS, OBJECTIVES
from ledger.domain.credits.proration import terms_for
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.credits.settlement import may_leave_undecided, unattested_reasons
from ledger.domain.credits.verdict import ObjectiveResult, ObjectiveState
from ledger.domain.methods.registry import unit_of
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.indicators import REQUESTS
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.termination import Notice
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import coverage_ok
from ledger.errors import BundleCheckFailed


def require(holds: bool, message: str) -> None:
    """Raise ``BundleCheckFailed`` unless a condition holds."""
    if not holds:
        raise BundleCheckFailed(message)


def require_same(found: Any, expected: Any, message: str) -> None:
    """Raise ``BundleCheckFailed`` unless two documents have the same canonical bytes; to Python, 1 equals true."""
    require(canonical_bytes(found) == canonical_bytes(expected), message)


def bundle_events(bundle: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All logged events that a bundle holds, whichever member they stand in."""
    for member in bundle.values():
        for event in member if isinstance(member, list) else [member]:
            if isinstance(event, Mapping) and "header" in event:
                yield event


class Case:
    """Derived values of one bundle, each worked out when first asked for. Any of them may raise."""

    def __init__(self, bundle: Mapping[str, Any]) -> None:
        self.bundle = bundle
        self.issued: Mapping[str, Any] = bundle["statement"]["payload"]
        self.proof_holds = False
        """Set where the proof was found to hold together with others, and need not be looked at again."""
        self.incident_proof_holds = False
        """The same of the second proof, where there is one."""

    @cached_property
    def agreement(self) -> Agreement:
        """The terms, in force until what ended them."""
        terms, ended_by = Agreement.from_document(self.bundle["agreement"]), self.bundle.get("ended_by")
        if ended_by is None:
            return terms
        day = self.notice.effective if self.notice is not None else Agreement.from_document(ended_by).effective_from
        require(terms.effective_from < day < terms.effective_until, f"the terms are not in force on {day}")
        return terms.ending_on(day)

    @cached_property
    def notice(self) -> Notice | None:
        """The notice that ended the terms, if one did."""
        ended_by = self.bundle.get("ended_by")
        return Notice.from_document(ended_by) if ended_by is not None and ended_by["kind"] == "Termination" else None

    @cached_property
    def sla_id(self) -> bytes:
        return sla_id(self.agreement)

    @cached_property
    def period(self) -> Period:
        return period_named(self.agreement, self.issued["period"])

    @cached_property
    def paid_by(self) -> Agreement:
        """The terms with the base of this period, which of a part is its share."""
        return terms_for(self.agreement, self.period)

    @cached_property
    def window_count(self) -> int:
        return len(self.agreement.windows(self.period))

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why the statement carries no proof, by its terms and by counts that it leaves open; empty where it must
        carry one."""
        return unattested_reasons(self.agreement, self.results)

    @cached_property
    def withheld(self) -> bool:
        issued = self.issued
        return not coverage_ok(
            issued["observed"], issued["windows"], issued["excluded"], self.agreement.coverage_floor_bps
        )

    @cached_property
    def seal_key(self) -> int:
        return telemetry.seal_key(
            self.sla_id,
            self.agreement.doc_sha256,
            self.period.interval.start_ns,
            self.period.interval.end_ns,
            self.agreement.window_seconds,
        )

    @cached_property
    def terms_hash(self) -> int:
        return attested_terms(self.agreement).hash()

    @cached_property
    def earlier(self) -> tuple[Mapping[str, Any], ...]:
        """The payloads of the earlier versions of the statement, oldest first."""
        earlier = tuple(event["payload"] for event in self.bundle.get("previous", ()))
        version = self.issued["statement_version"]
        require(len(earlier) == version - 1, f"version {version} comes with the {version - 1} before it")
        return earlier

    @cached_property
    def proofs_before(self) -> int:
        """How many of the earlier versions carry a proof: a proof counts the others not."""
        return sum(carries_proof(issued) for issued in self.earlier)

    @cached_property
    def replaced(self) -> Mapping[str, Any]:
        """The payload of the version that the proof replaces, the last one before that carries a proof."""
        return next(issued for issued in reversed(self.earlier) if carries_proof(issued))

    @cached_property
    def previous_ctx(self) -> int:
        """The ctx of the version that the proof replaces, 0 for the first: each follows from the one before it."""
        previous = 0
        for version in range(1, self.proofs_before + 1):
            previous = self._ctx(version, previous)
        return previous

    @cached_property
    def ctx(self) -> int:
        return self._ctx(self.proofs_before + 1, self.previous_ctx)

    def _ctx(self, version: int, previous: int) -> int:
        context = self.bundle["context"]
        require(context is not None, "the bundle names no chain and registry")
        return context_value(
            self.agreement,
            self.period,
            StatementContext(
                int(context["chain_id"]), context["registry"], self.issued["terms_version"], version, previous
            ),
        )

    @cached_property
    def proof(self) -> Mapping[str, Any]:
        proof = self.bundle["proof"]
        require(proof is not None, "the bundle has no proof")
        return dict(proof)

    @property
    def circuit_name(self) -> str:
        """What the circuit over as many blocks as were sealed is called."""
        return f"compliance_{BLOCK_WINDOWS * len(self.bundle['seals'])}x{OBJECTIVES}"

    @cached_property
    def signals(self) -> formats.Signals:
        return formats.Signals(*(int(signal) for signal in self.proof["signals"]))

    @cached_property
    def verification_key(self) -> VerificationKey:
        return parse_verification_key(self.proof["verification_key"])

    @cached_property
    def one(self) -> OneProof:
        """The proof of the period as the registry takes it."""
        return OneProof(self.verification_key.circuit_id(), self.signals.as_tuple(), bytes.fromhex(self.proof["proof"]))

    @cached_property
    def incident_proof(self) -> Mapping[str, Any]:
        """The second proof, of a credit that incidents add to."""
        require("incident_proof" in self.bundle, "the bundle has no proof of its incident credit")
        return dict(self.bundle["incident_proof"])

    @cached_property
    def incident_signals(self) -> IncidentSignals:
        return IncidentSignals(*(int(signal) for signal in self.incident_proof["signals"]))

    @cached_property
    def incident_key(self) -> VerificationKey:
        return parse_verification_key(self.incident_proof["verification_key"])

    @cached_property
    def incident_one(self) -> OneProof:
        return OneProof(
            self.incident_key.circuit_id(),
            self.incident_signals.as_tuple(),
            bytes.fromhex(self.incident_proof["proof"]),
        )

    @cached_property
    def second(self) -> OneProof | None:
        """The second proof, where the terms ask for one."""
        return self.incident_one if self.agreement.compensation.impact is not None else None

    @cached_property
    def name(self) -> StatementName:
        """How registry and batches name the statement."""
        return statement_name(self.one, self.second)

    @cached_property
    def results(self) -> tuple[ObjectiveResult, ...]:
        """The objectives as the statement gives them, in the agreement's order."""
        listed = self.issued["objectives"]
        objectives = self.agreement.objectives
        require(
            [item["id"] for item in listed] == [objective.id for objective in objectives],
            "the statement's objectives are not the agreement's, in its order",
        )
        for item, objective in zip(listed, objectives, strict=True):
            require(item["target"] == objective.target, f"the target of {objective.id} is not the agreement's")
            unit = unit_of(objective)
            said = item.get("unit")
            require(
                said == (None if unit == REQUESTS else unit), f"{objective.id} counts {unit}, not {said or REQUESTS}"
            )
            # Nobody could check it: such a statement has neither proof nor seal.
            decided = not item.get("undecided") or may_leave_undecided(self.agreement, objective)
            require(decided, f"every count of {objective.id} is good or bad; its source leaves nothing undecided")
        return tuple(
            ObjectiveResult(
                objective, item["good"], item["valid"], ObjectiveState(item["state"]), item.get("undecided", 0)
            )
            for item, objective in zip(listed, objectives, strict=True)
        )
