"""Writes: agreements are registered and periods closed. What follows is work of the outbox, so the answer is 202.

Every write may be repeated: its idempotency key follows from what is asked (agreement, period), and the first receipt
comes again. A client need not send one.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from api.parameters import SlaId
from api.rest.routes import writes
from api.rest.values import Digest, Word
from ledger.app.access import Scope
from ledger.app.commands import Commands, RegisteredReceipt
from ledger.app.ports.store import Receipt
from ledger.domain.time.calendar import parse_date
from ledger.errors import BadInput

Told: TypeAlias = NamedDependency[Commands]
"""The type of a handler's ``commands`` argument."""

FirstDate: TypeAlias = Annotated[str, PathParameter(description="First local date of the period, such as 2023-12-19")]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """Where the event stands. ``seq`` is its place in the log, null until the sequencer has given it one."""

    event_id: str
    version: Annotated[int, msgspec.Meta(description="Version in its stream, counted from 0")]
    seq: int | None


class AgreementRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement is in the ledger."""

    sla_id: Word
    doc_sha256: Digest
    on_chain: Annotated[bool, msgspec.Meta(description="Whether its registration on chain follows")]
    receipt: Written


class RegistrationDigest(msgspec.Struct, frozen=True, kw_only=True):
    """What the customer's EVM key signs, so that statements can be recorded on chain (EIP-712)."""

    sla_id: Word
    first_period: Annotated[str, msgspec.Meta(description="First period that will be recorded on chain")]
    digest: Word
    typed_data: Annotated[
        dict[str, Any], msgspec.Meta(description="The same for wallets: `eth_signTypedData_v4` signs this document")
    ]


class PeriodClosed(msgspec.Struct, frozen=True, kw_only=True):
    """The period is closed; its settlement follows."""

    sla_id: Word
    period: str
    receipt: Written


_Document: TypeAlias = Annotated[
    dict[str, Any], msgspec.Meta(description="The document that the parties sign (docs/agreement.schema.json)")
]
_FirstPeriod: TypeAlias = Annotated[
    str | None,
    msgspec.Meta(description="First period to be recorded on chain, such as 2023-12-19/P1D; null: the first there is"),
]
RegistrationSignature: TypeAlias = (
    Annotated[
        str,
        msgspec.Meta(
            pattern="^0x[0-9a-f]{130}$",
            description="The customer's signature over the registration digest: r, s and v",
        ),
    ]
    | None
)


class AgreementWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signed agreement. Without ``registration_signature`` its statements are not recorded on chain."""

    document: _Document
    first_period: _FirstPeriod = None
    registration_signature: RegistrationSignature = None


class DigestAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agreement, signed or not, whose registration is to be signed."""

    document: _Document
    first_period: _FirstPeriod = None


@writes(
    "/v1/agreements",
    summary="Register an agreement",
    tag="agreements",
    scopes=(Scope.WRITE_AGREEMENTS,),
    status=202,
    problems=(400, 409, 413, 503),
)
def register_agreement(commands: Told, data: JSONBody[AgreementWrite]) -> AgreementRegistered:
    """Register a document that both parties signed. The same one again gives the first receipt."""
    signature = signature_bytes(data.registration_signature)
    return registered_answer(
        commands.register(data.document, first_period=data.first_period, customer_signature=signature)
    )


def signature_bytes(text: RegistrationSignature) -> bytes | None:
    """A signature from its hex with 0x."""
    return None if text is None else bytes.fromhex(text[2:])


def registered_answer(registered: RegisteredReceipt) -> AgreementRegistered:
    """What is answered once a version of an agreement is in the ledger."""
    return AgreementRegistered(
        sla_id=registered.sla_id,
        doc_sha256=registered.doc_sha256,
        on_chain=registered.on_chain,
        receipt=written(registered.receipt),
    )


@writes(
    "/v1/agreements/registration-digest",
    summary="What the customer signs for the chain",
    tag="agreements",
    scopes=(Scope.WRITE_AGREEMENTS,),
    problems=(400, 413, 503),
)
def registration_digest(commands: Told, data: JSONBody[DigestAsked]) -> RegistrationDigest:
    """Work out the EIP-712 digest of an agreement's registration. Nothing is written."""
    request = commands.registration_request(data.document, first_period=data.first_period)
    if request is None:
        raise BadInput("no circuit attests statements of this agreement, so there is nothing to register on chain")
    return RegistrationDigest(
        sla_id=request.sla_id,
        first_period=request.first_period,
        digest="0x" + request.digest.hex(),
        typed_data=dict(request.typed_data),
    )


@writes(
    "/v1/agreements/{sla_id:str}/periods/{first:str}/close",
    summary="Close a period",
    tag="agreements",
    scopes=(Scope.WRITE_PERIODS,),
    status=202,
    problems=(400, 404, 409, 503),
)
def close_period(commands: Told, sla_id: SlaId, first: FirstDate) -> PeriodClosed:
    """Close a period that is over, which settles it. Again gives the first receipt."""
    closed = commands.close(sla_id, parse_date(first))
    return PeriodClosed(sla_id=closed.sla_id, period=closed.period, receipt=written(closed.receipt))


HANDLERS = (register_agreement, registration_digest, close_period)


def written(receipt: Receipt) -> Written:
    """A receipt as answers have it."""
    return Written(event_id=receipt.event_id, version=receipt.version, seq=receipt.seq)
