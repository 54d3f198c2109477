"""Registering a signed agreement and its later versions: the events of everything that is settled under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.app.ports.evidence import Attestor, Registration, VerifySignature
from ledger.app.ports.store import Receipt, Transaction
from ledger.app.work.outbox import Stage
from ledger.domain.credits.settlement import attestability
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import agreement_stream
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Terms, Timeline, check_notice
from ledger.domain.terms.termination import Notice
from ledger.domain.time.calendar import Period
from ledger.errors import AgreementNotSigned, IdempotencyConflict, NotFound, VersionConflict

AGREEMENT_REGISTERED = "agreement_registered"
AGREEMENT_TERMINATED = "agreement_terminated"


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
    if not signatures:
        raise AgreementNotSigned("the agreement is not signed: it has no signatures member", party="both")
    for name in ("issuer", "customer"):
        if name not in signatures:
            raise AgreementNotSigned(f"the {name} did not sign: signatures.{name} is missing", party=name)
        if not signature_holds(agreement, name, verify):
            raise AgreementNotSigned(f"signatures.{name} does not hold over this document", party=name)


def signature_holds(agreement: Agreement, name: str, verify: VerifySignature) -> bool:
    """Whether ``issuer`` or ``customer`` signed a document; False where its signature is missing."""
    signature = agreement.document.get("signatures", {}).get(name)
    party = agreement.issuer if name == "issuer" else agreement.customer
    return signature is not None and verify(
        party.ed25519_public_key, agreement.signing_message, bytes.fromhex(signature)
    )


def require_notice_signatures(notice: Notice, agreement: Agreement, verify: VerifySignature) -> None:
    """Raises ``AgreementNotSigned`` unless every signature of a notice holds, by the parties' keys in the terms."""
    for name, party in (("issuer", agreement.issuer), ("customer", agreement.customer)):
        signature = notice.document["signatures"].get(name)
        if signature is not None and not verify(
            party.ed25519_public_key, notice.signing_message, bytes.fromhex(signature)
        ):
            raise AgreementNotSigned(f"signatures.{name} does not hold over this notice", party=name)


@dataclass(frozen=True, slots=True)
class RegisteredTimeline:
    """All versions of an agreement, with the digests of their documents; each one's ``agreement`` ends where the next
    version or a notice ended it."""

    sla_id: str
    registered_at_ns: int
    timeline: Timeline
    versions: tuple[RegisteredAgreement, ...]
    digests: tuple[str, ...]

    def of_document(self, doc_sha256: str) -> RegisteredAgreement:
        """The version with this document; raises ``NotFound``."""
        if doc_sha256 in self.digests:
            return self.versions[self.digests.index(doc_sha256)]
        raise NotFound(
            f"no agreement {self.sla_id} with the document {doc_sha256} is registered here", sla_id=self.sla_id
        )

    def of(self, terms: Terms) -> RegisteredAgreement:
        """The version that some terms of ``timeline`` are of."""
        return self.versions[terms.version - 1]


def registration_of(
    agreement: Agreement,
    attestor: Attestor,
    first: Period,
    *,
    terms_version: int,
    first_start_ns: int | None = None,
) -> Registration | None:
    """What issuer and customer agree to on chain; ``first`` is the first period that will be recorded there.

    For a later version ``first`` is its own first period, and ``first_start_ns`` is where those of version 1 began.
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
        first_start_ns=first.interval.start_ns if first_start_ns is None else first_start_ns,
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
    stream = agreement_stream(sla_id)
    try:
        (receipt,) = tx.events.append(
            stream,
            [NewEvent(AGREEMENT_REGISTERED, payload, occurred_at_ns=now_ns)],
            expected_version=terms_version - 1,
            idempotency_key=f"agreement/{sla_id}/{terms_version}",
        )
    except IdempotencyConflict as conflict:
        known = next(tx.events.stream(stream, start=terms_version - 1))
        if known.payload["doc_sha256"] == payload["doc_sha256"]:
            raise
        raise _changed_meanwhile(sla_id) from conflict
    if payload["registration"] is not None:
        tx.outbox.add(receipt.event_id, Stage.REGISTER)
    return receipt


def terminate_agreement(
    tx: Transaction, found: RegisteredTimeline, notice: Notice, *, verify: VerifySignature, now_ns: int
) -> Receipt:
    """Append ``agreement_terminated``. The same notice again gives the first receipt.

    Raises ``AgreementNotSigned``, ``DocumentInvalid`` where the notice cannot end the agreement, and
    ``VersionConflict`` where its terms changed meanwhile.
    """
    newest = found.timeline.newest
    require_notice_signatures(notice, newest, verify)
    if found.timeline.notice is None or found.timeline.notice.document != notice.document:
        check_notice(found.timeline, notice, now_ns=now_ns)
    payload = {
        "sla_id": found.sla_id,
        "doc_sha256": newest.doc_sha256.hex(),
        "terms_version": len(found.versions),
        "effective_ns": str(newest.day_ns(notice.effective)),
        "notice": dict(notice.document),
        "document": dict(newest.document),
    }
    try:
        (receipt,) = tx.events.append(
            agreement_stream(found.sla_id),
            [NewEvent(AGREEMENT_TERMINATED, payload, occurred_at_ns=now_ns)],
            expected_version=len(found.versions),
            idempotency_key=f"termination/{found.sla_id}",
        )
    except IdempotencyConflict as conflict:
        # By another notice, which the look at the terms did not show.
        raise _changed_meanwhile(found.sla_id) from conflict
    return receipt


def _changed_meanwhile(sla_id: str) -> VersionConflict:
    return VersionConflict(f"{sla_id} was amended or ended meanwhile; try again", sla_id=sla_id)


def load_agreement(tx: Transaction, sla_id: str, attestor: Attestor) -> RegisteredAgreement:
    """The newest terms of an agreement; raises ``NotFound``."""
    return load_timeline(tx, sla_id, attestor).versions[-1]


def load_timeline(tx: Transaction, sla_id: str, attestor: Attestor) -> RegisteredTimeline:
    """All versions of an agreement; raises ``NotFound``."""
    events = list(tx.events.stream(agreement_stream(sla_id)))
    timeline = _timeline(sla_id, events)
    cut = {terms.version: terms.agreement for terms in timeline.terms}
    versions = []
    for event in events:
        if event.type == AGREEMENT_REGISTERED:
            found = registered_agreement(event.payload, attestor)
            versions.append(replace(found, agreement=cut.get(found.terms_version, found.agreement)))
    digests = tuple(event.payload["doc_sha256"] for event in events if event.type == AGREEMENT_REGISTERED)
    return RegisteredTimeline(sla_id, events[0].occurred_at_ns, timeline, tuple(versions), digests)


def timeline_of(tx: Transaction, sla_id: str) -> Timeline:
    """The versions of an agreement and its end, without what was registered on chain; raises ``NotFound``."""
    return _timeline(sla_id, list(tx.events.stream(agreement_stream(sla_id))))


def _timeline(sla_id: str, events: Sequence[StoredEvent]) -> Timeline:
    if not events:
        raise NotFound(f"no agreement {sla_id} is registered here", sla_id=sla_id)
    notice = events[-1].payload["notice"] if events[-1].type == AGREEMENT_TERMINATED else None
    return Timeline(
        tuple(
            Agreement.from_document(event.payload["document"]) for event in events if event.type == AGREEMENT_REGISTERED
        ),
        None if notice is None else Notice.from_document(notice),
    )


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
