"""Byte formats of a statement: identifiers, commitments, summary, public signals, leaf.

The words of docs/attestation-format.md, one function each. Values are range-checked, never reduced:
every function raises AttestationValueInvalid naming the field that does not fit.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Final

from ledger.attest.crypto.field import require_bytes, require_element, require_uint
from ledger.attest.crypto.keccak import address_word, bytes32_word, keccak256, keccak_text, uint_word
from ledger.attest.crypto.poseidon import poseidon, tag
from ledger.domain.attested import OBJECTIVES, PROOF_BYTES
from ledger.errors import AttestationValueInvalid

TIER_BITS: Final = 78
"""Bits of an amount in 1/10000 minor units: 64 of the base and 14 of the basis points."""

_COUNT_BITS: Final = 10
_N_SHIFT, _OBSERVED_SHIFT, _EXCLUDED_SHIFT, _IDLE_SHIFT = 8, 18, 28, 38
_SUMMARY_BITS: Final = 48


def sla_id(issuer: str, customer: str, nonce: bytes) -> bytes:
    """keccak256(abi.encode(address issuer, address customer, bytes32 nonce)); EIP-55 addresses."""
    return keccak256(address_word(issuer, "issuer") + address_word(customer, "customer") + bytes32_word(nonce, "nonce"))


@dataclass(frozen=True, slots=True)
class Context:
    """Where and for what a statement counts: chain, registry, agreement, period, version.

    ``previous`` is the context of the statement this one replaces, 0 for the first.
    """

    chain_id: int
    registry: str
    sla_id: bytes
    start_ns: int
    end_ns: int
    terms_version: int
    statement_version: int
    previous: int = 0

    def value(self) -> int:
        """ctx, a field element of 248 bits; the registry contract computes the same."""
        if not self.start_ns < self.end_ns:
            raise AttestationValueInvalid("a period must end after it starts", field="end_ns")
        if self.terms_version < 1 or self.statement_version < 1:
            raise AttestationValueInvalid(
                "terms and statement versions count from 1", field="terms_version or statement_version"
            )
        encoded = (
            keccak_text("sla-ledger/ctx/v1")
            + uint_word(self.chain_id, 256, "chain_id")
            + address_word(self.registry, "registry")
            + bytes32_word(self.sla_id, "sla_id")
            + uint_word(self.start_ns, 64, "start_ns")
            + uint_word(self.end_ns, 64, "end_ns")
            + uint_word(self.terms_version, 32, "terms_version")
            + uint_word(self.statement_version, 32, "statement_version")
            + uint_word(self.previous, 256, "previous")
        )
        return int.from_bytes(keccak256(encoded), "big") >> 8


def base_commit(seal_key: int, fee: int, salt: int) -> int:
    """Poseidon4(TAG base, sealKey, fee, salt): the base of credits without showing it."""
    require_uint(fee, 64, "fee")
    return poseidon([tag("base"), seal_key, fee, salt])


def credit_commit(ctx: int, credit: int, salt: int) -> int:
    """Poseidon4(TAG credit, ctx, credit, salt): the credit signal where the terms hide the amount."""
    require_uint(credit, 64, "credit")
    return poseidon([tag("credit"), ctx, credit, salt])


def tier_commit(ctx: int, amount_e4: int, salt: int) -> int:
    """The same of an exact amount, in 1/10000 minor units: 64 bits times 10000."""
    require_uint(amount_e4, TIER_BITS, "amount_e4")
    return poseidon([tag("credit"), ctx, amount_e4, salt])


class State(IntEnum):
    """What a proof says about one objective slot."""

    UNUSED = 0
    NO_DATA = 1
    MET = 2
    BREACHED = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """What a proof shows: the state of each slot and how much of the period stands behind it.

    ``idle`` counts observed windows whose counts are all zero: a bad hour entered as zeros shows.
    Raises AttestationValueInvalid on numbers no circuit would give.
    """

    states: tuple[State, ...]
    windows: int
    observed: int
    excluded: int
    idle: int

    def __post_init__(self) -> None:
        if len(self.states) != OBJECTIVES or not all(isinstance(s, State) for s in self.states):
            raise AttestationValueInvalid(f"a summary has {OBJECTIVES} states", field="states")
        for name in ("windows", "observed", "excluded", "idle"):
            require_uint(getattr(self, name), _COUNT_BITS, name)
        if self.windows == 0 or self.observed + self.excluded > self.windows or self.idle > self.observed:
            raise AttestationValueInvalid(
                "a summary needs windows >= 1, observed + excluded <= windows and idle <= observed",
                field="summary",
            )

    def encode(self) -> int:
        """state_m << 2m | N << 8 | observed << 18 | excluded << 28 | idle << 38."""
        states = sum(state << 2 * m for m, state in enumerate(self.states))
        return (
            states
            | self.windows << _N_SHIFT
            | self.observed << _OBSERVED_SHIFT
            | self.excluded << _EXCLUDED_SHIFT
            | self.idle << _IDLE_SHIFT
        )

    @classmethod
    def decode(cls, signal: int) -> Summary:
        """The one summary whose encoding is ``signal``."""
        require_uint(signal, _SUMMARY_BITS, "summary")
        mask = (1 << _COUNT_BITS) - 1
        return cls(
            states=tuple(State(signal >> 2 * m & 3) for m in range(OBJECTIVES)),
            windows=signal >> _N_SHIFT & mask,
            observed=signal >> _OBSERVED_SHIFT & mask,
            excluded=signal >> _EXCLUDED_SHIFT & mask,
            idle=signal >> _IDLE_SHIFT & mask,
        )


@dataclass(frozen=True, slots=True)
class Signals:
    """The six public signals in the compiled order. Each is a canonical field element."""

    summary: int
    credit: int
    ctx: int
    telemetry_root: int
    terms_hash: int
    base_commit: int

    def __post_init__(self) -> None:
        for name in self.__slots__:
            require_element(getattr(self, name), name)

    def as_tuple(self) -> tuple[int, ...]:
        """The signals in order, as verifiers take them."""
        return astuple(self)

    def digest(self) -> bytes:
        """keccak256(abi.encode(uint256[6]))."""
        return keccak256(b"".join(value.to_bytes(32, "big") for value in self.as_tuple()))


def proof_hash(proof: bytes) -> bytes:
    """keccak256 of the 256 proof bytes. Proofs are malleable: this names bytes, not a statement."""
    return keccak256(require_bytes(proof, PROOF_BYTES, "proof"))
