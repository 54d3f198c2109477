"""Proving, by whichever prover was chosen; every proof is checked twice before it leaves here.

groth16py returns a proof even where the inputs break the circuit, and a program on PATH may answer anything. So a
proof counts only after groth16py's verifier and the independent one of :mod:`ledger.attest.crypto.groth16` both say
that it holds for these signals.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Protocol

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.crypto.groth16 import check_proof
from ledger.attest.proving.circuits import Circuit
from ledger.attest.proving.limits import Limits, Notify
from ledger.attest.proving.proof_makers import ProofMaker, ResidentMaker
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.errors import ProofInvalid

_VERIFY_TIMEOUT_S: Final = 60.0


class Keys(Protocol):
    """Where proving keys come from: ``ledger.attest.proving.zk_keys`` and ``ledger.attest.proving.ceremony_keys``."""

    @property
    def notify(self) -> Notify:
        """Takes sentences on what takes long."""

    def ensure(self, circuit: Circuit, process: ProverProcess) -> CircuitKey:
        """The key of ``circuit``. Raises ProverUnavailable, ProvingKeyRefused."""


class PublicSignals(Protocol):
    """The public signals of any circuit."""

    def as_tuple(self) -> tuple[int, ...]:
        """In the compiled order."""
        ...


class Groth16Prover:
    """A prover of one circuit. The key is made or loaded on first use and stays loaded.

    ``maker`` makes the proofs; without one, groth16py in the child process that also verifies them. Safe to share
    between threads; proofs are made one after the other. Use it as a context manager or call :meth:`close`.
    """

    def __init__(
        self, circuit: Circuit, keys: Keys, maker: ProofMaker | None = None, limits: Limits | None = None
    ) -> None:
        limits = limits or Limits()
        self.circuit = circuit
        self._keys = keys
        self._process = ProverProcess(memory_mb=limits.memory_mb, notify=keys.notify)
        self._maker = maker or ResidentMaker(self._process, limits)
        self._lock = threading.RLock()
        self._key: CircuitKey | None = None

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
            self._maker.warm(self.key())

    def prove(self, inputs: CircuitInputs, signals: PublicSignals) -> bytes:
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
            return self._maker.make(self.key(), inputs)

    def groth16py_holds(self, proof: bytes, signals: PublicSignals) -> bool:
        """groth16py's own verdict on ``proof``."""
        answer = self._process.request(
            "verify",
            _VERIFY_TIMEOUT_S,
            proof=proof.hex(),
            signals=list(signals.as_tuple()),
            verification_key=self.key().verification_key.document(),
        )
        return answer["holds"] is True

    def close(self) -> None:
        """Stop the child process."""
        self._maker.close()
        self._process.close()
