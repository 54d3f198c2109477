"""What can be asked of a ledger that changes it: each one transaction, and everything that follows is work for later.

Safe to repeat: the keys that make it so come from what is asked (the agreement's document, the period), so that a
client which never got its answer asks again and gets the first receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, Protocol

from ledger.app.agreements.registering import (
    RegisteredAgreement,
    RegisteredTimeline,
    load_timeline,
    register_agreement,
    registration_of,
    require_signatures,
    terminate_agreement,
    timeline_of,
)
from ledger.app.billing.claims import ClaimDesk
from ledger.app.periods.closing import Cause, close_period
from ledger.app.ports.evidence import Attestor, Registration, VerifySignature
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.app.settlement.charges import ChargeDesk
from ledger.app.settlement.probe import ProbeDesk, VerifyTelemetry
from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import check_amendment
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.termination import Notice, unsigned_notice
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import Clock
from ledger.errors import AgreementNotSigned, NotFound, VersionConflict

EVM_SIGNATURE_BYTES: Final = 65


class RegistrationSigning(Protocol):
    """The customer's consent to what is registered on chain (EIP-712)."""

    def digest(self, registration: Registration) -> bytes:
        """The 32 bytes to sign, for the chain and registry of this ledger."""
        ...

    def typed_data(self, registration: Registration) -> dict[str, Any]:
        """The document that a wallet signs to the same effect (EIP-712)."""
        ...

    def signer(self, digest: bytes, signature: bytes) -> str | None:
        """The EIP-55 address that made a signature of 65 bytes; None where nobody can have."""
        ...


class AcceptedCollectors(Protocol):
    """Which collectors' reports can be sealed here."""

    def require(self, agreement: Agreement) -> None:
        """Raises ``CollectorUnknown``."""
        ...


@dataclass(frozen=True, slots=True)
class RegisteredReceipt:
    """A registered agreement. ``on_chain`` says whether its registration there follows."""

    sla_id: str
    doc_sha256: str
    on_chain: bool
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class RegistrationRequest:
    """What the customer is to sign so that statements can be recorded on chain: by its digest, or as a wallet does."""

    sla_id: str
    first_period: str
    digest: bytes
    typed_data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TerminatedAgreement:
    """An agreement that ends at the start of the local date ``effective``; ``signed_by`` says by whose notice."""

    sla_id: str
    effective: str
    signed_by: tuple[str, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ClosedPeriod:
    """A closed period; closing it again gives the same."""

    sla_id: str
    period: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Commands:
    """The writes of one tenant."""

    database: Database
    attestor: Attestor
    collectors: AcceptedCollectors
    signing: RegistrationSigning
    verify: VerifySignature
    clock: Clock
    verify_telemetry: VerifyTelemetry

    def of_tenant(self, tenant: str) -> Commands:
        return replace(self, database=self.database.of_tenant(tenant))

    @property
    def charges(self) -> ChargeDesk:
        """Takes and shows the charges that finance hands in."""
        return ChargeDesk(self.database, self.attestor, self.clock)

    @property
    def claims(self) -> ClaimDesk:
        """Takes and lists claims for credits."""
        return ClaimDesk(self.database, self.attestor, self.clock)

    @property
    def probes(self) -> ProbeDesk:
        """Takes in what customers' probes signed."""
        return ProbeDesk(self.database, self.verify_telemetry, self.clock)

    def registration_request(
        self, document: Mapping[str, Any], *, first_period: str | None = None
    ) -> RegistrationRequest | None:
        """What the customer signs for this document. Nothing is written; None where no circuit attests it.

        ``first_period`` is the first period that is to be recorded on chain, and so every one after it; without it the
        first one of the terms. Of an agreement that is registered, other terms are an amendment. Raises
        ``DocumentInvalid``, ``CalendarInvalid`` or ``AgreementNotSigned``.
        """
        agreement = Agreement.from_document(document)
        with self.database.read() as tx:
            found = self._found(tx, agreement)
        known = None if found is None else _version(found, agreement)
        if found is not None and (known is None or known.terms_version > 1):
            registration = self._amended(found, agreement) if known is None else known.registration
            named = str(_first(agreement))
        else:
            registration = self._registration(agreement, first_period)
            named = first_period or str(_first(agreement))
        if registration is None:
            return None
        digest, typed_data = self.signing.digest(registration), self.signing.typed_data(registration)
        return RegistrationRequest(self.attestor.sla_id(agreement), named, digest, typed_data)

    def register(
        self,
        document: Mapping[str, Any],
        *,
        first_period: str | None = None,
        customer_signature: bytes | None = None,
    ) -> RegisteredReceipt:
        """Register a signed agreement, and on chain where the customer signed that as well.

        Without ``customer_signature`` statements are issued and proved, but the registry will not take them. Raises
        ``AgreementNotSigned``, ``CollectorUnknown``, ``VersionConflict`` where the same parties and nonce have other
        terms already, and ``IdempotencyConflict`` where the same document came with another registration.
        """
        agreement = Agreement.from_document(document)
        require_signatures(agreement, self.verify)
        self.collectors.require(agreement)
        customer_signature = as_the_registry_takes_it(customer_signature)
        registration = None
        if customer_signature is not None:
            registration = self._registration(agreement, first_period)
            self._require_consent(agreement, registration, customer_signature)
        sla_id, doc_sha256 = self.attestor.sla_id(agreement), agreement.doc_sha256.hex()
        with self.database.begin() as tx:
            found = self._found(tx, agreement)
            if found is not None and found.timeline.documents[0].doc_sha256 != agreement.doc_sha256:
                raise VersionConflict(
                    f"{sla_id} has other terms already; hand these in as an amendment, or agree on a new nonce for "
                    "another agreement",
                    sla_id=sla_id,
                )
            receipt = register_agreement(
                tx,
                agreement,
                attestor=self.attestor,
                verify=self.verify,
                terms_version=1,
                registration=registration,
                customer_signature=customer_signature,
                now_ns=self.clock.now_ns(),
            )
        return RegisteredReceipt(sla_id, doc_sha256, registration is not None, receipt)

    def amend(
        self, sla_id: str, document: Mapping[str, Any], *, customer_signature: bytes | None = None
    ) -> RegisteredReceipt:
        """Register the next version of an agreement's terms, in force from their ``effective.from`` on.

        The same document again gives the first receipt. Raises ``NotFound``, ``AgreementNotSigned``,
        ``CollectorUnknown``, and ``DocumentInvalid`` where the terms cannot follow those before them.
        """
        agreement = Agreement.from_document(document)
        require_signatures(agreement, self.verify)
        self.collectors.require(agreement)
        customer_signature = as_the_registry_takes_it(customer_signature)
        if self.attestor.sla_id(agreement) != sla_id:
            raise fail("nonce", f"nonce and addresses are not those of the agreement {sla_id}")
        if customer_signature is not None:
            # A circuit's key may have to be made first, which takes minutes: not while others wait to write.
            self.attestor.circuit_ids(agreement)
        with self.database.begin() as tx:
            found, now_ns = load_timeline(tx, sla_id, self.attestor), self.clock.now_ns()
            known = _version(found, agreement)
            if known is None:
                check_amendment(found.timeline, agreement, now_ns=now_ns)
            version = len(found.versions) + 1 if known is None else known.terms_version
            registration = None
            if customer_signature is not None:
                registration = self._amended(found, agreement) if known is None else known.registration
                self._require_consent(agreement, registration, customer_signature)
            receipt = register_agreement(
                tx,
                agreement,
                attestor=self.attestor,
                verify=self.verify,
                terms_version=version,
                registration=registration,
                customer_signature=customer_signature,
                now_ns=now_ns,
            )
        return RegisteredReceipt(sla_id, agreement.doc_sha256.hex(), registration is not None, receipt)

    def notice(self, sla_id: str, *, effective: str, reason: str) -> dict[str, Any]:
        """What a party signs to end an agreement: the notice, which names the newest terms. Raises ``NotFound``."""
        with self.database.read() as tx:
            newest = timeline_of(tx, sla_id).newest
        return unsigned_notice(sla_id, newest.doc_sha256.hex(), effective, reason)

    def terminate(
        self, sla_id: str, *, effective: str, reason: str, signatures: Mapping[str, str]
    ) -> TerminatedAgreement:
        """End an agreement at the start of a local date, by a notice that one party or both signed.

        Raises ``NotFound``, ``AgreementNotSigned``, ``IdempotencyConflict`` where another notice ended it already, and
        ``DocumentInvalid`` where this one cannot.
        """
        with self.database.begin() as tx:
            found = load_timeline(tx, sla_id, self.attestor)
            doc_sha256 = found.timeline.newest.doc_sha256.hex()
            unsigned = unsigned_notice(sla_id, doc_sha256, effective, reason)
            notice = Notice.from_document({**unsigned, "signatures": dict(signatures)})
            receipt = terminate_agreement(tx, found, notice, verify=self.verify, now_ns=self.clock.now_ns())
        return TerminatedAgreement(sla_id, effective, notice.signed_by, receipt)

    def close(self, sla_id: str, period: str | date) -> ClosedPeriod:
        """Close a period by its name or first date. Raises ``NotFound``, ``PeriodNotOver``, ``DocumentInvalid``."""
        with self.database.begin() as tx:
            found = load_timeline(tx, sla_id, self.attestor)
            timeline = found.timeline
            terms, chosen = timeline.named(period) if isinstance(period, str) else timeline.starting(period)
            receipt = close_period(tx, found.of(terms), chosen, cause=Cause.REQUEST, now_ns=self.clock.now_ns())
        return ClosedPeriod(sla_id, str(chosen), receipt)

    def _found(self, tx: Transaction, agreement: Agreement) -> RegisteredTimeline | None:
        try:
            return load_timeline(tx, self.attestor.sla_id(agreement), self.attestor)
        except NotFound:
            return None

    def _amended(self, found: RegisteredTimeline, agreement: Agreement) -> Registration | None:
        """What a later version is on chain, where every version before it must be."""
        first = found.versions[0].registration
        missing = [version.terms_version for version in found.versions if version.registration is None]
        if first is None or missing:
            raise AgreementNotSigned(
                f"version {missing[0]} of the terms is not registered on chain, so no later one can be; leave the "
                "customer's registration signature out",
                party="customer",
            )
        return registration_of(
            agreement,
            self.attestor,
            _first(agreement),
            terms_version=len(found.versions) + 1,
            first_start_ns=first.first_start_ns,
        )

    def _registration(self, agreement: Agreement, first_period: str | None) -> Registration | None:
        first = _first(agreement) if first_period is None else period_named(agreement, first_period)
        return registration_of(agreement, self.attestor, first, terms_version=1)

    def _require_consent(self, agreement: Agreement, registration: Registration | None, signature: bytes) -> None:
        if registration is None:
            raise AgreementNotSigned(
                "no circuit attests statements of this agreement, so there is nothing to register on chain; leave the "
                "customer's registration signature out",
                party="customer",
            )
        signer = self.signing.signer(self.signing.digest(registration), signature)
        if signer != agreement.customer.evm_address:
            raise AgreementNotSigned(
                f"the registration is signed by {signer or 'nobody'}, not by the customer's evm_address "
                f"{agreement.customer.evm_address}, or for another chain, registry or first period",
                party="customer",
            )


def as_the_registry_takes_it(signature: bytes | None) -> bytes | None:
    """A wallet's signature with a v of 27 or 28; some wallets write 0 or 1 for these."""
    if signature is None or len(signature) != EVM_SIGNATURE_BYTES or signature[-1] > 1:
        return signature
    return signature[:-1] + bytes([signature[-1] + 27])


def _version(found: RegisteredTimeline, agreement: Agreement) -> RegisteredAgreement | None:
    """The version that has this document, if one does."""
    return next((each for each in found.versions if each.agreement.doc_sha256 == agreement.doc_sha256), None)


def _first(agreement: Agreement) -> Period:
    return next(agreement.periods.all())
