"""Registering a signed agreement: the first event of everything that is settled under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.app.evidence import Attestor, Registration, VerifySignature
from ledger.app.outbox import Stage
from ledger.app.ports import Receipt, Transaction
from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.events import NewEvent, StoredEvent
from ledger.domain.naming import agreement_stream
from ledger.domain.settlement import attestability
from ledger.errors import AgreementNotSigned, NotFound


@dataclass(frozen=True, slots=True)
class RegisteredAgreement:
    """An agreement as the ledger holds it."""

    sla_id: str
    terms_version: int
    agreement: Agreement
    registration: Registration | None
    customer_signature: bytes | None


def require_signatures(agreement: Agreement, verify: VerifySignature) -> None:
    """Raises ``AgreementNotSigned`` unless both parties' Ed25519 signatures hold over the canonical document."""
    signatures = agreement.document.get("signatures")
    if signatures is None:
        raise AgreementNotSigned("the agreement is not signed: it has no signatures member", party="both")
    for name, party in (("issuer", agreement.issuer), ("customer", agreement.customer)):
        if not verify(party.ed25519_public_key, agreement.signing_message, bytes.fromhex(signatures[name])):
            raise AgreementNotSigned(f"signatures.{name} does not hold over this document", party=name)


def registration_of(
    agreement: Agreement, attestor: Attestor, first: Period, *, terms_version: int
) -> Registration | None:
    """What issuer and customer agree to on chain; ``first`` is the first period that will be recorded there.

    None for an agreement that no circuit attests: nothing of it could be recorded.
    """
    if attestability(agreement):
        return None
    return Registration(
        issuer=agreement.issuer.evm_address,
        customer=agreement.customer.evm_address,
        nonce=agreement.nonce,
        terms_hash=attestor.terms_hash(agreement),
        terms_version=terms_version,
        effective_from_ns=first.interval.start_ns,
        first_start_ns=first.interval.start_ns,
        window_seconds=agreement.window_seconds,
        circuit_ids=attestor.circuit_ids(agreement),
    )


def register_agreement(
    tx: Transaction,
    agreement: Agreement,
    *,
    attestor: Attestor,
    verify: VerifySignature,
    terms_version: int,
    registration: Registration | None,
    customer_signature: bytes | None,
    now_ns: int,
) -> Receipt:
    """Append ``agreement_registered`` and queue its registration on chain, if there is one to make.

    Registering the same document again gives the first receipt. Raises ``AgreementNotSigned``, and
    ``VersionConflict`` where another version of the terms was registered meanwhile.
    """
    require_signatures(agreement, verify)
    sla_id = attestor.sla_id(agreement)
    payload = {
        "sla_id": sla_id,
        "doc_sha256": agreement.doc_sha256.hex(),
        "terms_version": terms_version,
        "document": dict(agreement.document),
        "registration": None
        if registration is None or customer_signature is None
        else {
            "first_start_ns": str(registration.first_start_ns),
            "effective_from_ns": str(registration.effective_from_ns),
            "circuit_ids": [circuit_id.hex() for circuit_id in registration.circuit_ids],
            "customer_signature": customer_signature.hex(),
        },
    }
    (receipt,) = tx.events.append(
        agreement_stream(sla_id),
        [NewEvent("agreement_registered", payload, occurred_at_ns=now_ns)],
        expected_version=terms_version - 1,
        idempotency_key=f"agreement/{sla_id}/{terms_version}",
    )
    if payload["registration"] is not None:
        tx.outbox.add(receipt.event_id, Stage.REGISTER)
    return receipt


def load_agreement(tx: Transaction, sla_id: str, attestor: Attestor) -> RegisteredAgreement:
    """The newest terms of an agreement; raises ``NotFound``."""
    newest: StoredEvent | None = None
    for event in tx.events.stream(agreement_stream(sla_id)):
        newest = event
    if newest is None:
        raise NotFound(f"no agreement {sla_id} is registered here", sla_id=sla_id)
    return registered_agreement(newest.payload, attestor)


def registered_agreement(payload: Mapping[str, Any], attestor: Attestor) -> RegisteredAgreement:
    """The agreement of an ``agreement_registered`` payload."""
    agreement = Agreement.from_document(payload["document"])
    stored = payload["registration"]
    if stored is None:
        return RegisteredAgreement(payload["sla_id"], payload["terms_version"], agreement, None, None)
    registration = Registration(
        issuer=agreement.issuer.evm_address,
        customer=agreement.customer.evm_address,
        nonce=agreement.nonce,
        terms_hash=attestor.terms_hash(agreement),
        terms_version=payload["terms_version"],
        effective_from_ns=int(stored["effective_from_ns"]),
        first_start_ns=int(stored["first_start_ns"]),
        window_seconds=agreement.window_seconds,
        circuit_ids=tuple(bytes.fromhex(circuit_id) for circuit_id in stored["circuit_ids"]),
    )
    return RegisteredAgreement(
        payload["sla_id"],
        payload["terms_version"],
        agreement,
        registration,
        bytes.fromhex(stored["customer_signature"]),
    )
