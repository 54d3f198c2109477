"""Four verifiers under one question: what each library says alone, and what it says behind this project's checks.

``holds`` is how the project uses a verifier; ``alone`` is the library with as little as possible before it, so
that the table of the vectors can say honestly what the checks are for. None: the question cannot even be put to it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from web3 import Web3
from web3.exceptions import Web3Exception

from ledger.anchor.abi import contract_build
from ledger.anchor.verifier_key import constructor_words
from ledger.attest.crypto.groth16 import check_proof, well_formed
from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.prover_process import ProverProcess
from ledger.errors import ProofInvalid, ProverUnavailable, VerificationKeyInvalid
from tests.contracts.ground import DEPLOYER
from tests.support import node_packages

Key = Mapping[str, Any]
Signals = Sequence[int]
REFUSED = (VerificationKeyInvalid, ProofInvalid)


def _words(proof: bytes) -> list[int]:
    return [int.from_bytes(proof[at : at + 32], "big") for at in range(0, len(proof), 32)]


def well_put(key: Key, signals: Signals, proof: bytes) -> bool:
    """Whether key, signals and proof pass what stands before every verifier of this project."""
    try:
        well_formed(parse_verification_key(key), signals, proof)
    except REFUSED:
        return False
    return True


class PyEcc:
    """The verifier of this project, which has its checks inside."""

    name = "py-ecc"

    def holds(self, key: Key, signals: Signals, proof: bytes) -> bool:
        try:
            check_proof(parse_verification_key(key), signals, proof)
        except REFUSED:
            return False
        return True


class Groth16py:
    """arkworks in the prover's child process."""

    name = "groth16py"

    def __init__(self, process: ProverProcess) -> None:
        self._process = process

    def holds(self, key: Key, signals: Signals, proof: bytes) -> bool:
        return well_put(key, signals, proof) and self.alone(key, signals, proof) is True

    def alone(self, key: Key, signals: Signals, proof: bytes) -> bool | None:
        try:
            answer = self._process.request(
                "verify", 60, proof=proof.hex(), signals=list(signals), verification_key=dict(key)
            )
        except ProverUnavailable:
            return False
        return bool(answer["holds"])


class Solidity:
    """The contract on a node, whose pairing is not py-ecc as that of the embedded chain is; alone it gets words and no
    more, as any caller may send them."""

    name = "Solidity"

    def __init__(self, w3: Web3) -> None:
        self._build = contract_build("Groth16Verifier")
        self._deployed: dict[tuple[int, ...], str | None] = {}
        self._w3 = w3

    def holds(self, key: Key, signals: Signals, proof: bytes) -> bool:
        try:
            words = constructor_words(key)
        except VerificationKeyInvalid:
            return False
        address = self._deploy(words)
        if address is None or len(proof) != 256:
            return False
        contract: Any = self._w3.eth.contract(address=address, abi=self._build.abi)  # type: ignore[call-overload]
        try:
            return bool(contract.functions.verifyProof(_words(proof), list(signals)).call({"gas": 1_000_000}))
        except Web3Exception:
            return False

    def alone(self, key: Key, signals: Signals, proof: bytes) -> bool | None:
        try:
            address = self._deploy(tuple(_constructor_words(key)))
            data = b"".join(signal.to_bytes(32, "big") for signal in signals)
        except OverflowError:
            return None
        if address is None:
            return False
        selector = self._w3.keccak(text="verifyProof(uint256[8],uint256[6])")[:4]
        try:
            answer = self._w3.eth.call({"to": address, "data": selector + proof + data, "gas": 1_000_000})  # type: ignore[typeddict-item]
        except Web3Exception:
            return False
        return answer == (1).to_bytes(32, "big")

    def _deploy(self, words: tuple[int, ...]) -> str | None:
        """The contract of a key by its constructor's words, None where it refuses them."""
        if words not in self._deployed:
            data = self._build.bytecode + b"".join(word.to_bytes(32, "big") for word in words)
            fields = {"nonce": len(self._deployed), "gas": 3_000_000, "data": data, "chainId": self._w3.eth.chain_id}
            fees = {"maxFeePerGas": 10**10, "maxPriorityFeePerGas": 10**9, "value": 0, "type": 2}
            sent = self._w3.eth.send_raw_transaction(DEPLOYER.sign_transaction(fields | fees).raw_transaction)
            receipt = self._w3.eth.wait_for_transaction_receipt(sent, poll_latency=0.01)
            self._deployed[words] = receipt["contractAddress"] if receipt["status"] == 1 else None
        return self._deployed[words]


class Snarkjs:
    """snarkjs in Node.js, asked everything at once; it must be given all questions first."""

    name = "snarkjs"

    def __init__(self, questions: Sequence[tuple[Key, Signals, bytes]]) -> None:
        modules = node_packages.installed(node_packages.TOOLCHAIN)
        askable = [question for question in questions if len(question[2]) == 256]
        documents = [
            [key, [str(signal) for signal in signals], _document(_words(proof))] for key, signals, proof in askable
        ]
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "questions.json"
            path.write_text(json.dumps(documents))
            program = Path(__file__).with_name("snarkjs_verify.cjs")
            done = node_packages.node("node", program, modules, path, cwd=Path(scratch), timeout_s=300)
        if done.returncode:
            raise AssertionError(f"snarkjs ended with {done.returncode}: {done.stderr[-500:]}")
        verdicts = json.loads(done.stdout[done.stdout.rindex("[") :])
        self._verdicts = {_named(*question): verdict for question, verdict in zip(askable, verdicts, strict=True)}

    def holds(self, key: Key, signals: Signals, proof: bytes) -> bool:
        return well_put(key, signals, proof) and self.alone(key, signals, proof) is True

    def alone(self, key: Key, signals: Signals, proof: bytes) -> bool | None:
        """An error is a refusal."""
        verdict = self._verdicts.get(_named(key, signals, proof))
        return None if verdict is None else verdict is True


def _named(key: Key, signals: Signals, proof: bytes) -> str:
    return json.dumps([key, list(map(str, signals)), proof.hex()])


def _document(words: list[int]) -> dict[str, Any]:
    """The proof as snarkjs takes it, whatever its words are."""
    ax, ay, bx1, bx0, by1, by0, cx, cy = map(str, words)
    return {
        "protocol": "groth16",
        "curve": "bn128",
        "pi_a": [ax, ay, "1"],
        "pi_b": [[bx0, bx1], [by0, by1], ["1", "0"]],
        "pi_c": [cx, cy, "1"],
    }


def _constructor_words(key: Key) -> list[int]:
    """The constructor's words of a key as it stands: nothing is looked at, infinity is two zeros as in EIP-196."""

    def g1(point: Sequence[str]) -> list[int]:
        return [0, 0] if point[2] == "0" else [int(point[0]), int(point[1])]

    def g2(point: Sequence[Sequence[str]]) -> list[int]:
        (x0, x1), (y0, y1), z = point
        return [0] * 4 if z[0] == "0" else [int(x1), int(x0), int(y1), int(y0)]

    words = g1(key["vk_alpha_1"])
    for name in ("beta", "gamma", "delta"):
        words += g2(key[f"vk_{name}_2"])
    return [*words, *(word for point in key["IC"] for word in g1(point))]


__all__ = ["Groth16py", "PyEcc", "Snarkjs", "Solidity", "well_put"]
