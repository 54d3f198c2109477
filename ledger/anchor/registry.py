"""The ``Anchor`` port over the registry contract, as the issuer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_account.signers.local import LocalAccount

from ledger.anchor.chain import AnchorChain, Statement
from ledger.anchor.registration import registration_digest, sla_id
from ledger.app.evidence import Anchored, Recording, Registration
from ledger.domain.instant import SECOND_NS, Clock
from ledger.errors import ChainUnavailable, NotFound


class RegistryAnchor:
    """Registers and records as ``issuer``; deploys the verifier of a circuit, as ``deployer``, when it first needs it.

    Every call looks at the chain first, so repeating one after a crash changes nothing.
    """

    def __init__(self, chain: AnchorChain, *, issuer: LocalAccount, deployer: LocalAccount, clock: Clock) -> None:
        self._chain = chain
        self._issuer = issuer
        self._deployer = deployer
        self._clock = clock

    @property
    def chain_id(self) -> int:
        return self._chain.chain_id

    @property
    def registry(self) -> str:
        return self._chain.registry

    def registration_digest(self, registration: Registration) -> bytes:
        return registration_digest(registration, self.chain_id, self.registry)

    def register(self, registration: Registration, customer_signature: bytes) -> None:
        if self._registered_version(registration) >= registration.terms_version:
            return
        self._chain.register(self._issuer, registration, customer_signature, now_s=self._now_s())

    def record(self, recording: Recording, verification_key: Mapping[str, Any], *, dev_unsafe: bool) -> Anchored:
        statement = Statement(
            sla_id=bytes.fromhex(recording.sla_id[2:]),
            start_ns=recording.start_ns,
            end_ns=recording.end_ns,
            terms_version=recording.context.terms_version,
            statement_version=recording.context.statement_version,
            prev_ctx=recording.context.previous,
            prev_signals_hash=bytes(32),
            circuit_id=recording.circuit_id,
            signals=recording.signals,
            proof=recording.proof,
        )
        if self._chain.is_recorded(statement):
            return self._find(statement)
        self._ensure_verifier(recording.circuit_id, verification_key, dev_unsafe=dev_unsafe)
        outcome = self._chain.verify_and_record(self._issuer, statement, now_s=self._now_s())
        return _anchored(outcome.tx_hash, outcome.block_number, outcome.block_hash)

    def _registered_version(self, registration: Registration) -> int:
        try:
            return self._chain.sla_state(
                sla_id(registration.issuer, registration.customer, registration.nonce)
            ).terms_version
        except NotFound:
            return 0

    def _ensure_verifier(self, circuit_id: bytes, key: Mapping[str, Any], *, dev_unsafe: bool) -> None:
        try:
            self._chain.verifier_of(circuit_id)
        except NotFound:
            verifier = self._chain.deploy_verifier(self._deployer, key, dev_unsafe=dev_unsafe, now_s=self._now_s())
            self._chain.add_verifier(self._deployer, verifier, dev_unsafe=dev_unsafe, now_s=self._now_s())

    def _find(self, statement: Statement) -> Anchored:
        for event in self._chain.recorded(statement.sla_id, from_block=0, to_block=self._chain.latest_block()):
            if event.ctx == statement.signals[2]:
                return _anchored(event.tx_hash, event.block_number, event.block_hash)
        raise ChainUnavailable("the registry holds this statement, but the chain does not give its event; try again")

    def _now_s(self) -> int:
        return self._clock.now_ns() // SECOND_NS


def _anchored(tx_hash: bytes, block_number: int, block_hash: bytes) -> Anchored:
    return Anchored("0x" + tx_hash.hex(), block_number, "0x" + block_hash.hex())
