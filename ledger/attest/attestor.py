"""The ``Attestor`` port over this package's circuits: seals, termsHash, proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.app.evidence import Attestation, Recording, Salts, Seal, StatementContext
from ledger.attest import statement, telemetry
from ledger.attest.agreement_terms import attested_terms
from ledger.attest.attestation_context import context_value, sla_id, window_counts
from ledger.attest.batch import NO_STATEMENTS, Batch, batch_node
from ledger.attest.circuits import Circuit
from ledger.attest.inputs import circuit_inputs
from ledger.attest.model import PeriodClaim, evaluate
from ledger.attest.prover import Groth16Prover
from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.proration import terms_for
from ledger.domain.settlement import attestability
from ledger.domain.window import Window
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
        return tuple(self._provers[name].key().circuit_id for name in needed if name in self._provers)

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
        circuit = self._circuit_for(len(windows))
        prover = self._provers.get(circuit.name)
        if prover is None:
            raise Refused(f"no prover for the circuit {circuit.name} is set up here", circuit=circuit.name)
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
        proof = prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
        key = prover.key()
        return Attestation(
            circuit=circuit.name,
            circuit_id=key.circuit_id,
            signals=evaluation.signals.as_tuple(),
            proof=proof,
            proof_hash=statement.proof_hash(proof),
            verification_key=key.verification_key.document(),
            dev_unsafe=key.manifest["dev_unsafe"] is not False,
        )

    def context(self, agreement: Agreement, period: Period, context: StatementContext) -> int:
        return context_value(agreement, period, context)

    def leaf(self, recording: Recording) -> bytes:
        signals = statement.Signals(*recording.signals)
        return statement.leaf(signals, statement.proof_hash(recording.proof), recording.circuit_id)

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
