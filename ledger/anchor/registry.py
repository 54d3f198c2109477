"""The ``Anchor`` port over the registry contract, as the issuer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from ledger.anchor.chain import AnchorChain, Statement, signals_hash
from ledger.anchor.registration import registration_digest, sla_id
from ledger.anchor.signers import Signer
from ledger.anchor.verifier_key import refuse_dev_key
from ledger.app.ports.evidence import Anchored, Recording, Registration, Standing
from ledger.domain.time.instant import SECOND_NS, Clock, format_instant_ns
from ledger.errors import AnchorRefused, ChainUnavailable, NotFound

_RETRY_AFTER_S: Final = 5


class RegistryAnchor:
    """Registers and records as ``issuer``; deploys the verifier of a circuit, as ``deployer``, when it first needs it.

    Every call looks at the chain first, so repeating one after a crash changes nothing.
    """

    def __init__(self, chain: AnchorChain, *, issuer: Signer, deployer: Signer, clock: Clock) -> None:
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
        sla = sla_id(registration.issuer, registration.customer, registration.nonce)
        self._chain.register(
            self._issuer,
            registration,
            customer_signature,
            now_s=self._now_s(),
            effect=self._effect("register", sla, str(registration.terms_version)),
        )

    def record(self, recording: Recording, verification_key: Mapping[str, Any], *, dev_unsafe: bool) -> Anchored:
        statement = Statement(
            sla_id=bytes.fromhex(recording.sla_id[2:]),
            start_ns=recording.start_ns,
            end_ns=recording.end_ns,
            terms_version=recording.context.terms_version,
            statement_version=recording.context.statement_version,
            prev_ctx=recording.context.previous,
            prev_signals_hash=signals_hash(recording.previous_signals) if recording.previous_signals else bytes(32),
            circuit_id=recording.circuit_id,
            signals=recording.signals,
            proof=recording.proof,
            incident_proof=recording.incident_proof,
        )
        second = recording.incident_proof
        keys = [(recording.circuit_id, verification_key, dev_unsafe)]
        keys += [] if second is None else [(second.circuit_id, second.verification_key, second.dev_unsafe)]
        # Here as well as where a verifier is deployed: on a registry of others, one may be there already.
        refuse_dev_key(self.chain_id, dev_unsafe=any(dev for _, _, dev in keys))
        if self._chain.is_recorded(statement):
            return self._find(statement)
        for circuit_id, key, dev in keys:
            self._ensure_verifier(circuit_id, key, dev_unsafe=dev)
        # The context names agreement, period and versions.
        effect = self._effect("record", recording.signals[2].to_bytes(32, "big"))
        outcome = self._chain.verify_and_record(self._issuer, statement, now_s=self._now_s(), effect=effect)
        if outcome.recorded is None:
            return self._find(statement)
        return _anchored(outcome.tx_hash, outcome.block_number, outcome.block_hash)

    def standing(self, tx_hash: str) -> Standing | None:
        receipt = self._chain.receipt(tx_hash)
        if receipt is None or receipt["status"] != 1:
            return None
        placed = _anchored(bytes(receipt["transactionHash"]), receipt["blockNumber"], bytes(receipt["blockHash"]))
        # A node behind a balancer may be behind the one that gave the receipt.
        return Standing(placed, max(self._chain.latest_block() - placed.block_number + 1, 1))

    def signed_bytes(self, tx_hash: str) -> bytes | None:
        return self._chain.signed_bytes(tx_hash)

    def _registered_version(self, registration: Registration) -> int:
        try:
            return self._chain.sla_state(
                sla_id(registration.issuer, registration.customer, registration.nonce)
            ).terms_version
        except NotFound:
            return 0

    def _ensure_verifier(self, circuit_id: bytes, key: Mapping[str, Any], *, dev_unsafe: bool) -> None:
        with suppress(NotFound):
            retired_at_s = self._chain.verifier_of(circuit_id).retired_at_s
            if retired_at_s is not None:
                raise _retired(circuit_id, retired_at_s)
            return
        verifier = self._chain.deploy_verifier(
            self._deployer,
            key,
            dev_unsafe=dev_unsafe,
            now_s=self._now_s(),
            effect=self._effect("deploy-verifier", circuit_id),
        )
        self._chain.add_verifier(
            self._deployer,
            verifier,
            dev_unsafe=dev_unsafe,
            now_s=self._now_s(),
            effect=self._effect("add-verifier", circuit_id),
        )

    def _find(self, statement: Statement) -> Anchored:
        event = self._chain.find_recorded(statement.sla_id, statement.signals[2])
        if event is None:
            raise ChainUnavailable(
                "the registry holds this statement, but the node does not give its event; check that it keeps logs",
                retry_after_s=_RETRY_AFTER_S,
            )
        return _anchored(event.tx_hash, event.block_number, event.block_hash)

    def _effect(self, what: str, *about: bytes | str) -> str:
        """What the registry holds afterwards; another registry on the same chain holds other things."""
        names = (each if isinstance(each, str) else each.hex() for each in about)
        return "/".join((self.registry, what, *names))

    def _now_s(self) -> int:
        return self._clock.now_ns() // SECOND_NS


def _retired(circuit_id: bytes, retired_at_s: int) -> AnchorRefused:
    when = format_instant_ns(retired_at_s * SECOND_NS)
    return AnchorRefused(
        f"the registry retired the verifier of circuit {circuit_id.hex()} at {when}: it records no statement under it "
        "any more, of past periods neither. The statement stands in the log and can be verified offline; what was "
        "recorded stays. What to do for later periods: docs/operations.md, a retired circuit",
        error="CircuitRetired",
        circuit_id=circuit_id.hex(),
        retired_at=when,
    )


def _anchored(tx_hash: bytes, block_number: int, block_hash: bytes) -> Anchored:
    return Anchored("0x" + tx_hash.hex(), block_number, "0x" + block_hash.hex())
