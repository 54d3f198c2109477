"""Write groth16.json: one real proof under a throwaway development key, for tests without a prover.

``python -m tests.vectors.make_groth16`` makes another key and so another, equally valid file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ledger.attest.commitments.inputs import circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.proving.circuits import circuit_named
from ledger.attest.proving.prover import Groth16Prover
from ledger.attest.proving.zk_keys import KeyCache
from ledger.resources import resource_dir
from tests.circuits.claims import plain_claim


def main() -> None:
    """Make the key in a scratch folder, prove the plain claim, write what a verifier needs."""
    claim = plain_claim()
    evaluation = evaluate(claim)
    circuits = resource_dir("circuits")
    with tempfile.TemporaryDirectory() as scratch:
        keys = KeyCache(Path(scratch), circuits, print)
        with Groth16Prover(circuit_named(circuits, "compliance_25x4"), keys) as prover:
            proof = prover.prove(circuit_inputs(claim, evaluation), evaluation.signals)
            key = prover.key()
    document = {
        "verification_key": key.verification_key.document(),
        "circuit_id": key.circuit_id.hex(),
        "signals": [str(value) for value in evaluation.signals.as_tuple()],
        "proof": proof.hex(),
    }
    path = Path(__file__).with_name("groth16.json")
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
