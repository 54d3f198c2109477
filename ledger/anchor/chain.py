"""The registry and its verifiers on one chain: deploy, register, record, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth_typing import ChecksumAddress
from eth_utils import keccak, to_checksum_address
from web3 import Web3
from web3.contract import Contract
from web3.exceptions import BadFunctionCallOutput, Web3RPCError
from web3.types import EventData, TxReceipt

from ledger.anchor.abi import ContractName, contract_build
from ledger.anchor.addresses import registry_address
from ledger.anchor.foreign import read_signed_bytes
from ledger.anchor.logs import read_logs
from ledger.anchor.registration import abi_value
from ledger.anchor.sender import Call, Sender
from ledger.anchor.signers import Signer
from ledger.anchor.verifier_key import circuit_id, constructor_words, refuse_dev_key
from ledger.app.ports.evidence import IncidentProof, Registration
from ledger.domain.attested import PROOF_BYTES, SIGNAL_COUNT
from ledger.errors import AnchorRefused, ChainUnavailable, NotFound

# Limits, not prices: what is left over is not paid. Fixed, so that the same call signs to the same bytes.
_DEPLOY_REGISTRY_GAS: Final = 5_000_000
_DEPLOY_VERIFIER_GAS: Final = 2_500_000
_VERIFIER_GAS: Final = 200_000
_REGISTER_GAS: Final = 250_000
_REGISTER_GAS_PER_CIRCUIT: Final = 30_000
_RECORD_GAS: Final = 500_000
_RECORD_PAIR_GAS: Final = 900_000

_REGISTRY: Final = "registry"
_RETRY_AFTER_S: Final = 5
_LOG_BLOCKS: Final = 5_000
"""Blocks asked for their logs at a time: nodes refuse long ranges."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its proof, as ``verifyAndRecord`` takes it, or with both as ``verifyAndRecordWithIncidents``.

    Times in nanoseconds; ids and hashes 32 bytes; ``signals`` the six public signals in order; ``proof`` 256
    bytes in EVM order. Version 1 has ``prev_ctx`` 0 and a zero ``prev_signals_hash``; a later version names
    the recorded statement it replaces by both.
    """

    sla_id: bytes
    start_ns: int
    end_ns: int
    terms_version: int
    statement_version: int
    prev_ctx: int
    prev_signals_hash: bytes
    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes
    incident_proof: IncidentProof | None = None

    @property
    def all_signals(self) -> tuple[int, ...]:
        """Those of both proofs, whose hash names the statement."""
        return self.signals if self.incident_proof is None else (*self.signals, *self.incident_proof.signals)

    def abi_value(self) -> tuple[object, ...]:
        """The fields in the order of the Solidity struct."""
        return (
            self.sla_id,
            self.start_ns,
            self.end_ns,
            self.terms_version,
            self.statement_version,
            self.prev_ctx,
            self.prev_signals_hash,
            self.circuit_id,
            list(self.signals),
            _words(self.proof),
        )


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """A ``StatementRecorded`` event of the registry and where it stands."""

    sla_id: bytes
    ctx: int
    leaf: bytes
    start_ns: int
    end_ns: int
    terms_version: int
    statement_version: int
    circuit_id: bytes
    signals_hash: bytes
    proof_hash: bytes
    verifier: str
    tx_hash: bytes
    log_index: int
    block_number: int
    block_hash: bytes


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """``recorded`` is None if the same signals stood recorded already and the transaction changed nothing."""

    recorded: RecordedStatement | None
    tx_hash: bytes
    block_number: int
    block_hash: bytes
    gas_used: int


@dataclass(frozen=True, slots=True)
class DeployedVerifier:
    """A verifier contract of one verification key."""

    address: str
    circuit_id: bytes
    code_hash: bytes
    retired_at_s: int | None = None
    """When the registry retired it, Unix seconds."""


@dataclass(frozen=True, slots=True)
class SlaState:
    """What the registry holds about an agreement. Periods are recorded up to ``next_start_ns``."""

    issuer: str
    customer: str
    terms_version: int
    first_start_ns: int
    next_start_ns: int


def signals_hash(signals: tuple[int, ...]) -> bytes:
    """keccak256(abi.encode(signals)): of six signals, or of the twelve of two proofs."""
    return keccak(b"".join(signal.to_bytes(32, "big") for signal in signals))


def read_registry(contract: Contract, chain_id: int, function: str, *args: object) -> Any:
    """What a view of a registry gives. Raises ChainUnavailable."""
    try:
        return contract.functions[function](*args).call()
    except BadFunctionCallOutput:
        said = "no registry answers there"
    except Web3RPCError as error:
        said = str(error)
    raise ChainUnavailable(
        f"the registry {contract.address} on chain {chain_id} cannot be read: {said}; check SLA_LEDGER_REGISTRY and "
        "whether the node is up to date",
        registry=contract.address,
        retry_after_s=_RETRY_AFTER_S,
    )


class AnchorChain:
    """One registry on one chain. All sending methods raise AnchorRefused and ChainUnavailable.

    ``now_s`` is the current time in Unix seconds; on the embedded chain it becomes the block's time.
    """

    def __init__(self, w3: Web3, sender: Sender, registry: ChecksumAddress) -> None:
        self._w3 = w3
        self._sender = sender
        self.chain_id = sender.chain_id
        self.registry = registry
        self._contract = _contract(w3, "SlaAnchor", registry)

    @classmethod
    def deploy(
        cls, w3: Web3, sender: Sender, deployer: Signer, *, admin: str, registrar: str, now_s: int
    ) -> AnchorChain:
        """The registry of a deployer: deployed as its first transaction, or found there if it was before.

        Raises AnchorRefused if that first transaction went to something else.
        """
        address = registry_address(deployer.address)
        if not w3.eth.get_code(address):
            nonce = w3.eth.get_transaction_count(deployer.address)
            if nonce != 0 and sender.stored(_REGISTRY) is None:
                raise AnchorRefused(
                    f"{deployer.address} has sent {nonce} transactions, but the registry must be "
                    "its first: use a fresh deployer key",
                    deployer=deployer.address,
                    nonce=nonce,
                )
            data = _creation(w3, "SlaAnchor", to_checksum_address(admin), to_checksum_address(registrar))
            call = Call(None, data, _DEPLOY_REGISTRY_GAS, "deploy the registry", _REGISTRY)
            sender.send(deployer, call, now_s=now_s)
        return cls(w3, sender, address)

    def deploy_verifier(
        self,
        deployer: Signer,
        verification_key: Mapping[str, Any],
        *,
        dev_unsafe: bool,
        now_s: int,
        effect: str | None = None,
    ) -> DeployedVerifier:
        """Deploy the verifier of a key in the snarkjs JSON shape; ``dev_unsafe`` is the key manifest's mark.

        Raises DevKeyRefused off the test chains, VerificationKeyInvalid for a malformed or forgeable key.
        """
        refuse_dev_key(self.chain_id, dev_unsafe=dev_unsafe)
        words = constructor_words(verification_key)
        data = _creation(self._w3, "Groth16Verifier", list(words))
        call = Call(None, data, _DEPLOY_VERIFIER_GAS, "deploy the verifier", effect)
        receipt = self._sender.send(deployer, call, now_s=now_s)
        address = receipt["contractAddress"]
        if address is None:
            raise NotFound("the receipt of the verifier's deployment names no contract")
        code = self._w3.eth.get_code(address)
        return DeployedVerifier(address=address, circuit_id=circuit_id(words), code_hash=keccak(code))

    def add_verifier(
        self,
        registrar: Signer,
        verifier: DeployedVerifier,
        *,
        dev_unsafe: bool,
        now_s: int,
        effect: str | None = None,
    ) -> TxReceipt:
        """Make the registry use a verifier for its circuit. Raises DevKeyRefused off the test chains."""
        refuse_dev_key(self.chain_id, dev_unsafe=dev_unsafe)
        data = self._encode("addVerifier", verifier.address)
        call = Call(self.registry, data, _VERIFIER_GAS, "add the verifier", effect)
        return self._sender.send(registrar, call, now_s=now_s)

    def retire_verifier(self, registrar: Signer, circuit: bytes, *, now_s: int, effect: str | None = None) -> TxReceipt:
        """Have the registry accept no proof of a circuit any more, for good."""
        call = Call(
            self.registry, self._encode("retireVerifier", circuit), _VERIFIER_GAS, "retire the verifier", effect
        )
        return self._sender.send(registrar, call, now_s=now_s)

    def register(
        self,
        issuer: Signer,
        registration: Registration,
        customer_signature: bytes,
        *,
        now_s: int,
        effect: str | None = None,
    ) -> TxReceipt:
        """Register one version of an agreement's terms, as its issuer."""
        gas = _REGISTER_GAS + _REGISTER_GAS_PER_CIRCUIT * len(registration.circuit_ids)
        data = self._encode("register", abi_value(registration), customer_signature)
        call = Call(self.registry, data, gas, "register the terms", effect)
        return self._sender.send(issuer, call, now_s=now_s)

    def record_call(self, statement: Statement, effect: str | None = None) -> Call:
        """The call that records a statement. Raises ValueError for wrong lengths."""
        second = statement.incident_proof
        for proof in (statement,) if second is None else (statement, second):
            if len(proof.signals) != SIGNAL_COUNT or len(proof.proof) != PROOF_BYTES:
                raise ValueError(f"a statement has {SIGNAL_COUNT} signals and a proof of {PROOF_BYTES} bytes")
        if second is None:
            data = self._encode("verifyAndRecord", statement.abi_value())
            return Call(self.registry, data, _RECORD_GAS, "record the statement", effect)
        credit = (second.circuit_id, list(second.signals), _words(second.proof))
        data = self._encode("verifyAndRecordWithIncidents", statement.abi_value(), credit)
        return Call(self.registry, data, _RECORD_PAIR_GAS, "record the statement", effect)

    def verify_and_record(
        self, party: Signer, statement: Statement, *, now_s: int, effect: str | None = None
    ) -> RecordOutcome:
        """Have the registry check a statement's proof and record it, as issuer or customer."""
        receipt = self._sender.send(party, self.record_call(statement, effect), now_s=now_s)
        event = self._recorded_event()
        logs = [log for log in receipt["logs"] if log["topics"] and bytes(log["topics"][0]).hex() == event.topic[2:]]
        events = [_recorded(e) for e in map(event.process_log, logs) if self._emitted(e)]
        return RecordOutcome(
            recorded=events[0] if events else None,
            tx_hash=bytes(receipt["transactionHash"]),
            block_number=receipt["blockNumber"],
            block_hash=bytes(receipt["blockHash"]),
            gas_used=receipt["gasUsed"],
        )

    def recorded(self, sla_id: bytes, *, from_block: int, to_block: int) -> tuple[RecordedStatement, ...]:
        """The statements of an agreement recorded in a range of blocks, both ends included."""
        event = self._recorded_event()
        logs = read_logs(self._w3, self.registry, [event.topic, "0x" + sla_id.hex()], from_block, to_block)
        return tuple(_recorded(event.process_log(log)) for log in logs)

    def find_recorded(self, sla_id: bytes, ctx: int) -> RecordedStatement | None:
        """The recording of one statement, looked for from the newest block back; None where there is none."""
        to_block = self.latest_block()
        while to_block >= 0:
            from_block = max(to_block - _LOG_BLOCKS + 1, 0)
            for event in self.recorded(sla_id, from_block=from_block, to_block=to_block):
                if event.ctx == ctx:
                    return event
            to_block = from_block - 1
        return None

    def receipt(self, tx_hash: str) -> TxReceipt | None:
        """The receipt of a stored transaction, None where no block of the chain holds it."""
        return self._sender.standing(tx_hash)

    def signed_bytes(self, tx_hash: str) -> bytes | None:
        """See ``read_signed_bytes``."""
        return read_signed_bytes(self._w3, tx_hash)

    def latest_block(self) -> int:
        """Number of the newest block."""
        return self._w3.eth.block_number

    def sla_state(self, sla_id: bytes) -> SlaState:
        """Parties and progress of an agreement. Raises NotFound if it is not registered."""
        issuer, next_start, version, customer, first_start = self._read("slaOf", sla_id)
        if version == 0:
            raise NotFound("this agreement is not registered", sla_id="0x" + sla_id.hex())
        return SlaState(issuer, customer, version, first_start, next_start)

    def verifier_of(self, circuit: bytes) -> DeployedVerifier:
        """The verifier of a circuit and its code hash when added. Raises NotFound if there is none."""
        address, retired_at_s, code_hash = self._read("verifierOf", circuit)
        if int(address, 16) == 0:
            raise NotFound("no verifier was added for this circuit", circuit_id=circuit.hex())
        return DeployedVerifier(address, circuit, bytes(code_hash), retired_at_s or None)

    def is_recorded(self, statement: Statement) -> bool:
        """Whether this statement (its period, version and signals, whatever the proof) stands recorded."""
        ctx = statement.signals[2]
        slot = self._read(
            "recordOf",
            statement.sla_id,
            statement.start_ns,
            statement.end_ns,
            statement.statement_version,
            ctx,
            signals_hash(statement.all_signals),
        )
        return any(slot)

    def _encode(self, function: str, *args: object) -> bytes:
        return bytes.fromhex(self._contract.encode_abi(function, args=list(args))[2:])

    def _read(self, function: str, *args: object) -> Any:
        return read_registry(self._contract, self.chain_id, function, *args)

    def _recorded_event(self) -> Any:
        return self._contract.events["StatementRecorded"]()

    def _emitted(self, event: EventData) -> bool:
        return event["address"] == self.registry


def _words(proof: bytes) -> list[int]:
    return [int.from_bytes(proof[i : i + 32], "big") for i in range(0, len(proof), 32)]


def _contract(w3: Web3, name: ContractName, address: ChecksumAddress) -> Contract:
    return w3.eth.contract(address=address, abi=contract_build(name).abi)


def _creation(w3: Web3, name: ContractName, *args: object) -> bytes:
    build = contract_build(name)
    factory = w3.eth.contract(abi=build.abi, bytecode=build.bytecode)
    return bytes.fromhex(factory.constructor(*args).data_in_transaction[2:])


def _recorded(event: EventData) -> RecordedStatement:
    args = event["args"]
    return RecordedStatement(
        sla_id=bytes(args["slaId"]),
        ctx=args["ctx"],
        leaf=bytes(args["leaf"]),
        start_ns=args["start"],
        end_ns=args["end"],
        terms_version=args["termsVersion"],
        statement_version=args["statementVersion"],
        circuit_id=bytes(args["circuitId"]),
        signals_hash=bytes(args["signalsHash"]),
        proof_hash=bytes(args["proofHash"]),
        verifier=args["verifier"],
        tx_hash=bytes(event["transactionHash"]),
        log_index=event["logIndex"],
        block_number=event["blockNumber"],
        block_hash=bytes(event["blockHash"]),
    )
