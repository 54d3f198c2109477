"""What the registry must hold and answer, as a few Python dictionaries: the model of the stateful test.

Written from contracts/README.md and not from the Solidity. Each method says what one call comes to: None where it
changes something, ``"nothing"`` where it changes nothing, else the name of the error that refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.anchor.chain import Statement
from ledger.app.ports.evidence import Registration
from ledger.domain.attested import SCALAR_ORDER

NOTHING = "nothing"
HOUR_NS = 3600 * 10**9


@dataclass
class ModelAgreement:
    """Terms by version, and of each period the signals of its statements in the order of versions."""

    terms: list[Registration]
    periods: dict[tuple[int, int], list[tuple[int, ...]]] = field(default_factory=dict)

    @property
    def next_start(self) -> int:
        return max((end for _, end in self.periods), default=self.terms[0].first_start_ns)

    def in_force(self, start_ns: int) -> int:
        """The version in force at an instant, 0 before the first."""
        return sum(terms.effective_from_ns <= start_ns for terms in self.terms)


@dataclass
class ModelRegistry:
    """``agreements`` by slaId, ``heads`` by sender and log."""

    paused: bool = False
    agreements: dict[bytes, ModelAgreement] = field(default_factory=dict)
    verifiers: set[bytes] = field(default_factory=set)
    retired: set[bytes] = field(default_factory=set)
    batches: set[tuple[str, str, int, bytes, bytes]] = field(default_factory=set)
    heads: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)

    def register(self, sla: bytes, terms: Registration, sender: str, signed: bool, now_ns: int) -> str | None:
        known = self.agreements.get(sla)
        last = known.terms[-1] if known else None
        if self.paused:
            return "EnforcedPause"
        if sender != terms.issuer:
            return "NotIssuer"
        if not signed:
            return "CustomerSignatureInvalid"
        if terms.terms_version != (last.terms_version if last else 0) + 1:
            return "TermsVersionNotNext"
        if last is None:
            if terms.effective_from_ns > terms.first_start_ns:
                return "FirstTermsTooLate"
            self.agreements[sla] = ModelAgreement([terms])
            return None
        if terms.first_start_ns != last.first_start_ns:
            return "FirstStartChanged"
        if terms.effective_from_ns <= max(now_ns, last.effective_from_ns):
            return "AmendmentNotInFuture"
        assert known is not None
        known.terms.append(terms)
        return None

    def record(self, s: Statement, sender: str, *, ctx: int, proved: bool, now_ns: int) -> str | None:
        known = self.agreements.get(s.sla_id)
        if known is None:
            return "UnknownSla"
        if sender not in (known.terms[0].issuer, known.terms[0].customer):
            return "NotParty"
        if any(signal >= SCALAR_ORDER for signal in s.signals):
            return "SignalOutOfField"
        if s.signals[2] != ctx:
            return "CtxMismatch"
        versions = known.periods.get((s.start_ns, s.end_ns), [])
        if 1 <= s.statement_version <= len(versions) and versions[s.statement_version - 1] == s.signals:
            return NOTHING
        refused = (
            self._terms(known, s, now_ns)
            or self._version(known, s, versions)
            or self._proof(known.terms[s.terms_version - 1], s, proved)
        )
        if refused is None:
            known.periods.setdefault((s.start_ns, s.end_ns), []).append(s.signals)
        return refused

    def _terms(self, known: ModelAgreement, s: Statement, now_ns: int) -> str | None:
        if s.terms_version == 0 or {known.in_force(s.start_ns), known.in_force(s.end_ns - 1)} != {s.terms_version}:
            return "TermsNotInForce"
        terms = known.terms[s.terms_version - 1]
        if s.signals[4] != terms.terms_hash:
            return "TermsHashMismatch"
        windows = s.signals[0] >> 8 & 1023
        if windows == 0 or s.start_ns + windows * HOUR_NS != s.end_ns:
            return "PeriodLengthInvalid"
        return "PeriodNotOver" if s.end_ns > now_ns else None

    def _version(self, known: ModelAgreement, s: Statement, versions: list[tuple[int, ...]]) -> str | None:
        if s.statement_version == 1:
            if s.start_ns != known.next_start:
                return "PeriodNotContiguous"
            return "PreviousStatementUnknown" if s.prev_ctx else None
        if s.statement_version == 0 or s.start_ns >= known.next_start:
            return "StatementVersionInvalid"
        before = s.statement_version - 1
        if before > len(versions) or versions[before - 1][2] != s.prev_ctx:
            return "PreviousStatementUnknown"
        return None if before == len(versions) else "PreviousStatementReplaced"

    def _proof(self, terms: Registration, s: Statement, proved: bool) -> str | None:
        if s.circuit_id not in terms.circuit_ids:
            return "CircuitNotAccepted"
        if s.circuit_id not in self.verifiers:
            return "UnknownCircuit"
        if s.circuit_id in self.retired:
            return "CircuitRetired"
        return None if proved else "ProofInvalid"

    def retire(self, circuit_id: bytes, registrar: bool) -> str | None:
        if not registrar:
            return "AccessControlUnauthorizedAccount"
        if circuit_id not in self.verifiers:
            return "UnknownCircuit"
        if circuit_id in self.retired:
            return "CircuitRetired"
        self.retired.add(circuit_id)
        return None

    def pause(self, paused: bool, pauser: bool) -> str | None:
        if not pauser:
            return "AccessControlUnauthorizedAccount"
        if paused == self.paused:
            return "EnforcedPause" if paused else "ExpectedPause"
        self.paused = paused
        return None

    def anchor(self, sender: str, origin: str, size: int, root: bytes, batch: bytes) -> str | None:
        if self.paused:
            return "EnforcedPause"
        if (sender, origin, size, root, batch) in self.batches:
            return NOTHING
        last, last_root = self.heads.get((sender, origin), (0, b""))
        if size < last:
            return "CheckpointOlder"
        if size == last and root != last_root:
            return "CheckpointForked"
        self.heads[sender, origin] = (size, root)
        self.batches.add((sender, origin, size, root, batch))
        return None
