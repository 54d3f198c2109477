"""The prover's child process: the only module that imports groth16py (GPL-3.0).

``python -m ledger.attest.proving.prover_child`` reads one JSON request per line from standard input and
answers each with one JSON line on what was standard output; compiler and library output goes to
standard error. It ends when its input does.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import groth16py

Answer = dict[str, Any]


class Child:
    """Operations over one proving key, kept loaded between requests."""

    def __init__(self) -> None:
        self._key: Any = None
        self._verifier: Any = None

    def toolchain(self) -> Answer:
        """Versions that a proving key depends on."""
        root = Path(groth16py.circomlib_path(2))
        digest = hashlib.sha256()
        for path in sorted(root.rglob("*.circom")):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return {"groth16py": groth16py.__version__, "circomlib_sha256": digest.hexdigest()}

    def setup(self, main: str, proving_key: str) -> Answer:
        """Compile ``main``, make a single-party key, save it, and keep it loaded."""
        self._key, key = groth16py.setup_circom(main, [groth16py.circomlib_path(2)])
        self._key.save(proving_key)
        self._verifier = groth16py.Verifier(key)
        return {"verification_key": json.loads(key.to_json())}

    def import_zkey(self, main: str, zkey: str, proving_key: str) -> Answer:
        """Take a ceremony's key for the circuit ``main``, save it, and keep it loaded."""
        self._key, key = groth16py.import_zkey(zkey, main, [groth16py.circomlib_path(2)])
        self._key.save(proving_key)
        self._verifier = groth16py.Verifier(key)
        return {"verification_key": json.loads(key.to_json())}

    def load(self, proving_key: str, verification_key: dict[str, Any]) -> Answer:
        """Load a saved key; takes seconds for large circuits."""
        self._verifier = _verifier(verification_key)
        self._key = groth16py.ProvingKey.load(proving_key)
        return {}

    def prove(self, inputs: dict[str, Any]) -> Answer:
        """A proof, which holds only if the inputs satisfy the circuit: groth16py does not look."""
        if self._key is None:
            raise RuntimeError("no proving key is loaded")
        return {"proof": bytes(groth16py.prove(self._key, inputs)).hex()}

    def verify(self, proof: str, signals: list[int], verification_key: dict[str, Any] | None = None) -> Answer:
        """groth16py's verdict under the loaded key, or under the one given. What it refuses to
        decode does not hold."""
        verifier = self._verifier if verification_key is None else _verifier(verification_key)
        try:
            return {"holds": bool(verifier.verify(bytes.fromhex(proof), signals))}
        except (groth16py.EncodingError, groth16py.VerificationError, ValueError, OverflowError) as error:
            return {"holds": False, "refused": f"{type(error).__name__}: {error}"}


def _verifier(document: dict[str, Any]) -> Any:
    return groth16py.Verifier(groth16py.VerifyingKey.from_snarkjs(json.dumps(document)))


def _answer(operations: dict[str, Callable[..., Answer]], line: str) -> Answer:
    try:
        request = json.loads(line)
        return {"ok": True, **operations[request.pop("op")](**request)}
    except (KeyboardInterrupt, SystemExit):
        raise
    # Whatever else a request raises is the answer, a panic of the library included, which is no Exception; the
    # process goes on with the next request.
    except BaseException as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Serve requests until end of input."""
    # circom prints to file descriptor 1, so the answers get a descriptor of their own.
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(2, 1)
        child = Child()
        operations = {
            operation.__name__: operation
            for operation in (child.toolchain, child.setup, child.import_zkey, child.load, child.prove, child.verify)
        }
        for line in sys.stdin:
            answers.write(json.dumps(_answer(operations, line)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
