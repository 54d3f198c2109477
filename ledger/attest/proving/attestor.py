"""The ``Attestor`` port over this package's circuits: seals, termsHash, proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ledger.app.ports.evidence import Attestation, Recording, Salts, Seal, StatementContext
from ledger.attest.commitments import statement, telemetry
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import context_value, sla_id, window_counts
from ledger.attest.commitments.incident_claims import incident_claim
from ledger.attest.commitments.incident_credit import INCIDENTS_CIRCUIT, evaluate_incidents, incident_inputs
from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.crypto.batch import NO_STATEMENTS, Batch, batch_node
from ledger.attest.crypto.evm_tx import decode_transaction, recorded_proofs
from ledger.attest.crypto.pair import OneProof, pair_id, statement_name
from ledger.attest.proving.circuits import Circuit
from ledger.attest.proving.prover import Groth16Prover, PublicSignals
from ledger.domain.credits.proration import terms_for
from ledger.domain.credits.settlement import attestability
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Window
from ledger.errors import Refused
from ledger.merkle.checkpoint import Checkpoint


class CircuitAttestor:
    """Seals with the smallest circuit that takes a period and proves with that circuit's prover.

    ``provers`` maps circuit names; without one for a circuit its statements can be sealed but not proved here.
    A prover makes or loads its key when a proof or a registration first needs it, and stays.
    """

    def __init__(self, circuits: Sequence[Circuit], provers: Mapping[str, Groth16Prover]) -> None:
        self._circuits = sorted((each for each in circuits if each.windows), key=lambda circuit: circuit.windows)
        self._provers = provers

    def sla_id(self, agreement: Agreement) -> str:
        return "0x" + sla_id(agreement).hex()

    def terms_hash(self, agreement: Agreement) -> int:
        return attested_terms(agreement).hash()

    def circuit_ids(self, agreement: Agreement) -> tuple[bytes, ...]:
        if attestability(agreement):
            return ()
        # A part of a period, at the start or where a notice cuts it, may fit a smaller circuit than the whole.
        needed = self.circuits_up_to(agreement.most_windows)
        ids = tuple(self._provers[name].key().circuit_id for name in needed if name in self._provers)
        if agreement.compensation.impact is None:
            return ids
        incidents = self._prover(INCIDENTS_CIRCUIT).key().circuit_id
        return tuple(pair_id(each, incidents) for each in ids)

    def circuits_up_to(self, windows: int) -> tuple[str, ...]:
        """The smallest circuit for so many windows and every smaller one, by name. Raises ``Refused``."""
        largest = self._circuit_for(windows)
        return tuple(circuit.name for circuit in self._circuits if circuit.windows <= largest.windows)

    def seal_key(self, agreement: Agreement, period: Period) -> int:
        return telemetry.seal_key(
            sla_id(agreement),
            agreement.doc_sha256,
            period.interval.start_ns,
            period.interval.end_ns,
            agreement.window_seconds,
        )

    def block_count(self, windows: int) -> int:
        return self._circuit_for(windows).blocks

    def seal(self, agreement: Agreement, period: Period, windows: Sequence[Window], salts: Sequence[int]) -> Seal:
        key = self.seal_key(agreement, period)
        blocks = telemetry.block_hashes(key, window_counts(windows), salts)
        return Seal(key, blocks, telemetry.telemetry_root(key, len(windows), blocks))

    def seal_block(self, agreement: Agreement, period: Period, block: int, windows: Sequence[Window], salt: int) -> int:
        words = [window.word() for window in window_counts(windows)]
        return telemetry.block_hash(self.seal_key(agreement, period), block, words, salt)

    def attest(
        self,
        agreement: Agreement,
        period: Period,
        windows: Sequence[Window],
        salts: Salts,
        context: StatementContext,
    ) -> Attestation:
        circuit = self._circuit_for(len(windows)).name
        prover = self._prover(circuit)
        claim = PeriodClaim(
            terms=attested_terms(agreement),
            windows=window_counts(windows),
            seal_key=self.seal_key(agreement, period),
            block_salts=salts.blocks,
            fee=terms_for(agreement, period).compensation.base,
            base_salt=salts.base,
            credit_salt=salts.credit,
            ctx=context_value(agreement, period, context),
        )
        evaluation = evaluate(claim)
        found = _attestation(circuit, prover, circuit_inputs(claim, evaluation), evaluation.signals)
        rule = agreement.compensation.impact
        if rule is None:
            return found
        incidents = incident_claim(agreement, rule, claim, evaluation.bps, windows, salts)
        total = evaluate_incidents(incidents)
        prover, inputs = self._prover(INCIDENTS_CIRCUIT), incident_inputs(incidents, total)
        second = _attestation(INCIDENTS_CIRCUIT, prover, inputs, total.signals)
        return replace(found, incident_proof=second)

    def context(self, agreement: Agreement, period: Period, context: StatementContext) -> int:
        return context_value(agreement, period, context)

    def leaf(self, recording: Recording) -> bytes:
        second = recording.incident_proof
        name = statement_name(
            OneProof(recording.circuit_id, recording.signals, recording.proof),
            None if second is None else OneProof(second.circuit_id, second.signals, second.proof),
        )
        return name.leaf(recording.signals[2])

    def recorded_proofs(self, raw_transaction: bytes) -> tuple[bytes, ...]:
        return recorded_proofs(decode_transaction(raw_transaction))

    def _prover(self, circuit: str) -> Groth16Prover:
        try:
            return self._provers[circuit]
        except KeyError:
            raise Refused(f"no prover for the circuit {circuit} is set up here", circuit=circuit) from None

    def batch_root(self, leaves: Sequence[bytes]) -> bytes:
        return Batch.of(leaves).root if leaves else NO_STATEMENTS

    def batch_path(self, leaves: Sequence[bytes], leaf: bytes) -> tuple[bytes, ...]:
        return Batch.of(leaves).path(leaf)

    def batch_node(self, checkpoint: Checkpoint, batch_root: bytes) -> bytes:
        return batch_node(checkpoint, batch_root)

    def _circuit_for(self, windows: int) -> Circuit:
        for circuit in self._circuits:
            if windows <= circuit.windows:
                return circuit
        raise Refused(f"no circuit takes a period of {windows} windows", windows=windows)


def _attestation(circuit: str, prover: Groth16Prover, inputs: CircuitInputs, signals: PublicSignals) -> Attestation:
    proof, key = prover.prove(inputs, signals), prover.key()
    return Attestation(
        circuit=circuit,
        circuit_id=key.circuit_id,
        signals=signals.as_tuple(),
        proof=proof,
        proof_hash=statement.proof_hash(proof),
        verification_key=key.verification_key.document(),
        dev_unsafe=key.manifest["dev_unsafe"] is not False,
    )
