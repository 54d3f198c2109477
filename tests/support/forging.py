"""A dishonest issuer: it holds every party's secrets and signs whatever it changed in a bundle again.

What it does not have is the trapdoor of the circuit's key and the reader's pins. Each step is explicit, so that a
test says how far the forger went: ``sign`` redoes the issuer's signature, ``log`` puts altered events into a log of
its own under the pinned log key, ``collect`` has the collector sign another root, ``agree`` has both parties sign
other terms, ``transact`` signs the anchor's transaction again.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from eth_account import Account

from ledger.app.bundles.building import signing_message
from ledger.attest.checks.case import Case
from ledger.attest.crypto import babyjub, evm_tx
from ledger.attest.crypto.pair import OneProof
from ledger.attest.crypto.signing import NoteKey
from ledger.domain.credits.restatement import carries_proof
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import payload_commitment
from ledger.domain.terms.agreement import Agreement
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.hasher import leaf_hash, node_hash
from ledger.merkle.note import parse_vkey
from tests.support.secrets import Secrets


class Forger:
    """A bundle under alteration: ``bundle`` is a deep copy, changed in place."""

    def __init__(self, bundle: Any, secrets: Secrets) -> None:
        self.bundle: dict[str, Any] = copy.deepcopy(dict(bundle))
        self.secrets = secrets

    @property
    def issued(self) -> dict[str, Any]:
        return self.bundle["statement"]["payload"]  # type: ignore[no-any-return]

    @property
    def seal(self) -> dict[str, Any]:
        return self.bundle["seals"][0]  # type: ignore[no-any-return]

    @property
    def proof(self) -> dict[str, Any]:
        return self.bundle["proof"]  # type: ignore[no-any-return]

    def sign(self) -> bytes:
        """The bundle's canonical bytes under a fresh signature of the issuer."""
        signature = self.secrets.key("issuer").sign(signing_message(self.bundle))
        self.bundle["issuer_signature"] = signature.hex()
        return canonical_bytes(self.bundle)

    def log(self, events: Sequence[dict[str, Any]] | None = None) -> Forger:
        """Log statement and seals, or ``events``, as they stand now: a new tree under the log's own key."""
        if events is None:
            events = [*self.bundle["seals"], *self.bundle.get("previous", ()), self.bundle["statement"]]
            events.sort(key=lambda event: event["seq"])
        for event in events:
            commitment = payload_commitment(event["payload"], bytes.fromhex(event["salt"]))
            event["header"]["payload_commitment"] = commitment.hex()
        leaves = [leaf_hash(canonical_bytes(event["header"])) for event in events]
        for position, event in enumerate(events):
            event["seq"] = position
            event["inclusion"] = [node.hex() for node in _path(position, leaves)]
        return self.checkpoint(Checkpoint(self.origin, len(leaves), _root(leaves)))

    def checkpoint(self, checkpoint: Checkpoint) -> Forger:
        """Sign a checkpoint with the log's key."""
        note = sign_checkpoint(checkpoint, [NoteKey(self.origin, self.secrets.key("log"))])
        self.bundle["log"]["checkpoint"] = note.decode()
        return self

    @property
    def origin(self) -> str:
        return parse_vkey(self.bundle["log"]["vkey"]).name

    def collect(self) -> Forger:
        """The collector signs the root as it stands now."""
        signature = babyjub.sign(self.secrets["collector"], int(self.bundle["telemetry"]["root"]))
        r8 = {"x": str(signature.r8[0]), "y": str(signature.r8[1])}
        self.bundle["telemetry"]["signature"] = {"r8": r8, "s": str(signature.s)}
        return self

    def agree(self) -> Forger:
        """Both parties sign the agreement as it stands now (their true customer would not)."""
        message = Agreement.from_document(self.bundle["agreement"]).signing_message
        signatures = {name: self.secrets.key(name).sign(message).hex() for name in ("issuer", "customer")}
        self.bundle["agreement"]["signatures"] = signatures
        return self

    def transact(self, *, by: str = "issuer-evm", type_: int = 2, **changes: Any) -> Forger:
        """Sign the anchor's transaction for the statement as it stands now; ``changes`` are fields of it."""
        context = self.bundle["context"]
        fields: dict[str, Any] = {
            "chainId": int(context["chain_id"]),
            "nonce": 7,
            "gas": 600_000,
            "to": context["registry"],
            "value": 0,
            "data": self.calldata(),
        }
        fees = {"maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 10**9, "type": 2}
        fields |= fees if type_ == 2 else {"gasPrice": 10**9}
        raw = bytes(Account.from_key(self.secrets[by]).sign_transaction(fields | changes).raw_transaction)
        return self.place(raw)

    def place(self, raw: bytes) -> Forger:
        """Put a raw transaction into the anchor, with its own hash."""
        self.bundle["anchor"]["raw_transaction"] = raw.hex()
        self.bundle["anchor"]["tx_hash"] = "0x" + evm_tx.keccak256(raw).hex()
        return self

    def calldata(self) -> bytes:
        """The recording of the statement as it stands now."""
        case = Case(self.bundle)
        span = case.period.interval
        proofs = sum(carries_proof(event["payload"]) for event in self.bundle.get("previous", ()))
        return evm_tx.record_calldata(
            evm_tx.Recording(
                sla_id=case.sla_id,
                start_ns=span.start_ns,
                end_ns=span.end_ns,
                terms_version=self.issued["terms_version"],
                statement_version=proofs + 1,
                prev_ctx=int(self.bundle["context"]["prev_ctx"]),
                prev_signals_hash=self.replaced_hash(),
                circuit_id=bytes.fromhex(self.proof["manifest"]["circuit_id"]),
                signals=tuple(int(signal) for signal in self.proof["signals"]),
                proof=bytes.fromhex(self.proof["proof"]),
                incidents=self.second(),
            )
        )

    def second(self) -> OneProof | None:
        """The second proof as the registry takes it, where the bundle has one."""
        proof = self.bundle.get("incident_proof")
        if proof is None:
            return None
        signals = tuple(int(signal) for signal in proof["signals"])
        return OneProof(bytes.fromhex(proof["manifest"]["circuit_id"]), signals, bytes.fromhex(proof["proof"]))

    def replaced_hash(self) -> bytes:
        """The hash by which the registry is told what the statement replaces."""
        context = self.bundle["context"]
        if "prev_signals" not in context:
            return bytes(32)
        replaced = [*context["prev_signals"], *context.get("prev_incident_signals", ())]
        return evm_tx.keccak256(b"".join(int(signal).to_bytes(32, "big") for signal in replaced))


def _root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, section 2.1, word by word."""
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return node_hash(_root(leaves[:split]), _root(leaves[split:]))


def _path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*_path(index, leaves[:split]), _root(leaves[split:])]
    return [*_path(index - split, leaves[split:]), _root(leaves[:split])]


def _split(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1
