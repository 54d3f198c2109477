"""What can be asked of a ledger that changes it: each one transaction, and everything that follows is work for later.

Safe to repeat: the keys that make it so come from what is asked (the agreement's document, the period), so that a
client which never got its answer asks again and gets the first receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

from ledger.app.agreements import load_agreement, register_agreement, registration_of, require_signatures
from ledger.app.charges import ChargeDesk
from ledger.app.claims import ClaimDesk
from ledger.app.closing import Cause, close_period
from ledger.app.evidence import Attestor, Registration, VerifySignature
from ledger.app.ports import Database, Receipt
from ledger.domain.agreement import Agreement
from ledger.domain.calendar import Period
from ledger.domain.instant import Clock
from ledger.domain.naming import agreement_stream
from ledger.domain.window import period_named
from ledger.errors import AgreementNotSigned, VersionConflict


class RegistrationSigning(Protocol):
    """The customer's consent to what is registered on chain (EIP-712)."""

    def digest(self, registration: Registration) -> bytes:
        """The 32 bytes to sign, for the chain and registry of this ledger."""
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
    """What the customer is to sign so that statements can be recorded on chain."""

    sla_id: str
    first_period: str
    digest: bytes


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

    def registration_request(
        self, document: Mapping[str, Any], *, first_period: str | None = None
    ) -> RegistrationRequest | None:
        """What the customer signs for this document. Nothing is written; None where no circuit attests it.

        ``first_period`` is the first period that is to be recorded on chain, and so every one after it; without it the
        first one of the terms. Raises ``DocumentInvalid`` or ``CalendarInvalid``.
        """
        agreement = Agreement.from_document(document)
        registration = self._registration(agreement, first_period)
        if registration is None:
            return None
        named = first_period or str(_first(agreement))
        return RegistrationRequest(self.attestor.sla_id(agreement), named, self.signing.digest(registration))

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
        registration = None
        if customer_signature is not None:
            registration = self._registration(agreement, first_period)
            self._require_consent(agreement, registration, customer_signature)
        sla_id, doc_sha256 = self.attestor.sla_id(agreement), agreement.doc_sha256.hex()
        with self.database.begin() as tx:
            for event in tx.events.stream(agreement_stream(sla_id)):
                if event.payload["doc_sha256"] != doc_sha256:
                    raise VersionConflict(
                        f"{sla_id} has other terms already, and this version takes no amendments; agree on a new nonce "
                        "for new terms",
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

    def close(self, sla_id: str, period: str | date) -> ClosedPeriod:
        """Close a period by its name or first date. Raises ``NotFound``, ``PeriodNotOver``, ``DocumentInvalid``."""
        with self.database.begin() as tx:
            registered = load_agreement(tx, sla_id, self.attestor)
            agreement = registered.agreement
            chosen = period_named(agreement, period) if isinstance(period, str) else agreement.period_starting(period)
            receipt = close_period(tx, registered, chosen, cause=Cause.REQUEST, now_ns=self.clock.now_ns())
        return ClosedPeriod(sla_id, str(chosen), receipt)

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


def _first(agreement: Agreement) -> Period:
    return next(agreement.periods.all())
