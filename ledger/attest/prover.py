"""Proving with groth16py in its child process, every proof checked twice before it leaves here.

groth16py returns a proof even where the inputs break the circuit. So a proof counts only after its
own verifier and the independent one of :mod:`ledger.attest.groth16` both say that it holds.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

from ledger.attest.circuits import Circuit
from ledger.attest.groth16 import check_proof
from ledger.attest.inputs import CircuitInputs
from ledger.attest.prover_process import ProverProcess
from ledger.attest.statement import Signals
from ledger.attest.zk_keys import CircuitKey, KeyCache
from ledger.errors import ProofInvalid

_LOAD_TIMEOUT_S: Final = 120.0
_VERIFY_TIMEOUT_S: Final = 60.0


class Groth16Prover:
    """A prover of one circuit. The key is made or loaded on first use and stays loaded.

    Safe to share between threads; proofs are made one after the other. Use it as a context manager or
    call :meth:`close`.
    """

    def __init__(self, circuit: Circuit, keys: KeyCache, prove_timeout_s: float = 300.0) -> None:
        self.circuit = circuit
        self._keys = keys
        self._prove_timeout_s = prove_timeout_s
        self._process = ProverProcess()
        self._lock = threading.RLock()
        self._key: CircuitKey | None = None
        self._loaded_generation = 0

    def __enter__(self) -> Groth16Prover:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def key(self) -> CircuitKey:
        """The circuit's key; made now if there is none. Raises ProverUnavailable."""
        with self._lock:
            if self._key is None:
                self._key = self._keys.ensure(self.circuit, self._process)
            return self._key

    def warm(self) -> None:
        """Load the key now instead of with the first proof. Raises ProverUnavailable."""
        with self._lock:
            key = self.key()
            if self._loaded_generation != self._process.generation or self._loaded_generation == 0:
                self._process.request(
                    "load",
                    _LOAD_TIMEOUT_S,
                    proving_key=str(key.proving_key),
                    verification_key=key.verification_key.document(),
                )
                self._loaded_generation = self._process.generation

    def prove(self, inputs: CircuitInputs, signals: Signals) -> bytes:
        """A proof of 256 bytes that ``inputs`` satisfy the circuit with public ``signals``.

        Raises ProofInvalid if they do not, or if the two verifiers disagree (which must never be
        passed over); ProverUnavailable if the child fails or takes too long.
        """
        proof = self.prove_unchecked(inputs)
        holds = self.groth16py_holds(proof, signals)
        try:
            check_proof(self.key().verification_key, signals.as_tuple(), proof)
        except ProofInvalid as error:
            if holds:
                raise ProofInvalid(
                    f"groth16py accepts a proof that py-ecc refuses ({error.message}); do not use this "
                    "toolchain and report the case",
                    reason="verifiers_disagree",
                ) from error
            raise ProofInvalid(
                f"the inputs do not satisfy {self.circuit.name} with the signals stated, so there is no proof",
                reason="unsatisfied",
            ) from error
        if not holds:
            raise ProofInvalid(
                "py-ecc accepts a proof that groth16py refuses; do not use this toolchain and report the case",
                reason="verifiers_disagree",
            )
        return proof

    def prove_unchecked(self, inputs: CircuitInputs) -> bytes:
        """256 bytes that are a proof only if ``inputs`` satisfy the circuit. For tests that lie."""
        with self._lock:
            self.warm()
            answer = self._process.request("prove", self._prove_timeout_s, inputs=inputs)
        return bytes.fromhex(answer["proof"])

    def groth16py_holds(self, proof: bytes, signals: Signals) -> bool:
        """groth16py's own verdict on ``proof``."""
        with self._lock:
            self.warm()
            answer = self._process.request(
                "verify", _VERIFY_TIMEOUT_S, proof=proof.hex(), signals=list(signals.as_tuple())
            )
        return answer["holds"] is True

    def close(self) -> None:
        """Stop the child process."""
        self._process.close()
