"""Ports to the evidence makers: seals, proofs, the chain and signatures, with the values they exchange.

The use cases decide what is proved and recorded; adapters in ``ledger.attest`` and ``ledger.anchor`` know how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Window
from ledger.merkle.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class Seal:
    """Sealed windows of one period: field elements as docs/attestation-format.md section 5 defines them."""

    seal_key: int
    blocks: tuple[int, ...]
    root: int


@dataclass(frozen=True, slots=True)
class TelemetrySignature:
    """The collector's EdDSA-BabyJubJub signature over a telemetry root."""

    r8: tuple[int, int]
    s: int


@dataclass(frozen=True, slots=True)
class Salts:
    """Secret field elements of one period: one for each block, one for the base, one for the credit.

    Where incidents pay beside the tiers ``credit`` hides the tiers' amount, and ``total`` the credit.
    """

    blocks: tuple[int, ...]
    base: int
    credit: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class StatementContext:
    """Where and for which version a statement counts; ``previous`` is the ctx it replaces, 0 for the first.

    ``statement_version`` counts the versions of a period that carry a proof: the others are nowhere but in the log.
    """

    chain_id: int
    registry: str
    terms_version: int
    statement_version: int
    previous: int = 0


@dataclass(frozen=True, slots=True)
class Attestation:
    """A proof that every verifier at hand accepted.

    ``incident_proof``: the second one, of the credit, where the terms pay for incidents beside the tiers.
    """

    circuit: str
    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes
    proof_hash: bytes
    verification_key: Mapping[str, Any]
    dev_unsafe: bool
    incident_proof: Attestation | None = None


class Attestor(Protocol):
    """Seals periods and proves statements."""

    def sla_id(self, agreement: Agreement) -> str:
        """0x and 64 hex digits."""
        ...

    def terms_hash(self, agreement: Agreement) -> int: ...

    def circuit_ids(self, agreement: Agreement) -> tuple[bytes, ...]:
        """The circuits whose proofs the agreement's statements may carry: for its longest period, and for parts of one.

        Where a statement has two proofs, a pair of circuits has one id, and no circuit alone is among them.

        Makes the keys that are not there yet, which for a month of hours takes minutes.
        """
        ...

    def seal_key(self, agreement: Agreement, period: Period) -> int: ...

    def block_count(self, windows: int) -> int:
        """Blocks, and so block salts, of the smallest circuit that takes this many windows."""
        ...

    def seal(self, agreement: Agreement, period: Period, windows: Sequence[Window], salts: Sequence[int]) -> Seal: ...

    def seal_block(self, agreement: Agreement, period: Period, block: int, windows: Sequence[Window], salt: int) -> int:
        """The hash of one block over its own windows."""
        ...

    def attest(
        self,
        agreement: Agreement,
        period: Period,
        windows: Sequence[Window],
        salts: Salts,
        context: StatementContext,
    ) -> Attestation:
        """Prove and check one statement; slow. Raises ``Refused`` where no honest proof exists."""
        ...

    def context(self, agreement: Agreement, period: Period, context: StatementContext) -> int:
        """The ctx of a statement."""
        ...

    def leaf(self, recording: Recording) -> bytes:
        """The statement as a leaf of a batch root."""
        ...

    def recorded_proofs(self, raw_transaction: bytes) -> tuple[bytes, ...]:
        """The proofs that a signed transaction has the registry record, one or two; none where it is no recording, or
        one that says more."""
        ...

    def batch_root(self, leaves: Sequence[bytes]) -> bytes:
        """The root over leaves, in any order; zeros where there is none."""
        ...

    def batch_path(self, leaves: Sequence[bytes], leaf: bytes) -> tuple[bytes, ...]:
        """The siblings on the way from a leaf to that root, lowest first. Raises ``NotFound`` for another's leaf."""
        ...

    def batch_node(self, checkpoint: Checkpoint, batch_root: bytes) -> bytes:
        """What is anchored of a batch: its root bound to a checkpoint of the ledger."""
        ...


class Collector(Protocol):
    """Signs what it reported."""

    def sign(self, telemetry_root: int) -> TelemetrySignature: ...


@dataclass(frozen=True, slots=True)
class Registration:
    """One version of an agreement's terms for the registry; the customer signs it by EIP-712.

    Addresses are in EIP-55 form; nonce and circuit ids have 32 bytes; ``terms_hash`` is a field element.
    """

    issuer: str
    customer: str
    nonce: bytes
    terms_hash: int
    terms_version: int
    effective_from_ns: int
    first_start_ns: int
    window_seconds: int
    circuit_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class IncidentProof:
    """The second proof of a statement for the registry, with the key that its verifier needs."""

    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes
    verification_key: Mapping[str, Any]
    dev_unsafe: bool


@dataclass(frozen=True, slots=True)
class Recording:
    """A proved statement for the registry; ``previous_signals`` are those of the version it replaces, empty for the
    first, and twelve where that has two proofs."""

    sla_id: str
    start_ns: int
    end_ns: int
    context: StatementContext
    circuit_id: bytes
    signals: tuple[int, ...]
    proof: bytes
    previous_signals: tuple[int, ...] = ()
    incident_proof: IncidentProof | None = None


@dataclass(frozen=True, slots=True)
class Anchored:
    """Where a transaction stands."""

    tx_hash: str
    block_number: int
    block_hash: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A transaction that succeeded and stands in the chain; ``confirmations`` counts its block and those after it."""

    placed: Anchored
    confirmations: int


class Anchor(Protocol):
    """The registry contract on its chain; transactions are stored before they are sent."""

    @property
    def chain_id(self) -> int: ...

    @property
    def registry(self) -> str: ...

    def registration_digest(self, registration: Registration) -> bytes:
        """The 32 bytes that the customer signs."""
        ...

    def register(self, registration: Registration, customer_signature: bytes) -> None:
        """Register a version of the terms; a version that is registered already is left as it is."""
        ...

    def record(self, recording: Recording, verification_key: Mapping[str, Any], *, dev_unsafe: bool) -> Anchored:
        """Verify and record on chain; recording the same signals again changes nothing.

        What a reorganisation dropped is sent again, byte for byte. Raises ``AnchorRefused``, ``DevKeyRefused``, and
        ``ChainUnavailable`` where it is not included yet.
        """
        ...

    def standing(self, tx_hash: str) -> Standing | None:
        """Where a transaction stands now; None where no block of the chain holds it or it failed.

        Raises ``ChainUnavailable``.
        """
        ...

    def signed_bytes(self, tx_hash: str) -> bytes | None:
        """A transaction of somebody else as it was signed; None for a type that no bundle's reader takes.

        Raises ``ChainUnavailable`` where the node does not give it, or gives another.
        """
        ...


class VerifySignature(Protocol):
    """Ed25519 verification: False on anything that does not hold, never an exception."""

    def __call__(self, public_key: bytes, message: bytes, signature: bytes) -> bool: ...


class RootPublisher(Protocol):
    """The batch side of a registry on some chain, in the name of one account."""

    @property
    def chain_id(self) -> int: ...

    @property
    def registry(self) -> str: ...

    @property
    def issuer(self) -> str:
        """The account that publishes, in EIP-55 form."""
        ...

    def publish(self, checkpoint: Checkpoint, batch_root: bytes) -> Standing:
        """Publish a batch; the same again changes nothing. Where its transaction stands now.

        Raises ``AnchorRefused``, and ``ChainUnavailable`` where it is not included yet.
        """
        ...
