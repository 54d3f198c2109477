"""Writes to the life of an agreement: the next version of its terms, and the notice that ends it.

Both take effect later than now. Either may be repeated: the same document or notice again gives the first receipt.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.params import JSONBody

from api.parameters import SlaId
from api.rest.routes import writes
from api.rest.values import Word
from api.rest.writing import (
    AgreementRegistered,
    RegistrationSignature,
    Told,
    Written,
    registered_answer,
    signature_bytes,
    written,
)
from ledger.app.access import Scope
from ledger.domain.terms.termination import notice_message

_SIGNATURE = "^[0-9a-f]{128}$"
_Effective: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$", description="Local date at whose start the agreement ends")
]
_Reason: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
_Signature: TypeAlias = (
    Annotated[str, msgspec.Meta(pattern=_SIGNATURE, description="Ed25519 over the notice's message, in hex")] | None
)


class Amendment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole document of the next version, signed by both parties; in force from its ``effective.from``."""

    document: Annotated[
        dict[str, Any], msgspec.Meta(description="The document that the parties sign (docs/agreement.schema.json)")
    ]
    registration_signature: RegistrationSignature = None


class NoticeAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an agreement is to end, and why."""

    effective: _Effective
    reason: _Reason


class NoticeGiven(NoticeAsked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same with the signature of the party that terminates, or of both."""

    issuer_signature: _Signature = None
    customer_signature: _Signature = None


class NoticeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a party signs to end an agreement."""

    notice: Annotated[dict[str, Any], msgspec.Meta(description="The notice before anybody signed it")]
    message: Annotated[str, msgspec.Meta(description="The bytes that are signed with Ed25519, in hex")]


class AgreementTerminated(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement ends at the start of a local date."""

    sla_id: Word
    effective: str
    signed_by: list[str]
    receipt: Written


@writes(
    "/v1/agreements/{sla_id:str}/amendments",
    summary="Amend an agreement",
    tag="agreements",
    scopes=(Scope.WRITE_AGREEMENTS,),
    status=202,
)
def amend_agreement(commands: Told, sla_id: SlaId, data: JSONBody[Amendment]) -> AgreementRegistered:
    """Register the next version of the terms. A period that it falls into is split, each part by its own terms."""
    signature = signature_bytes(data.registration_signature)
    return registered_answer(commands.amend(sla_id, data.document, customer_signature=signature))


@writes(
    "/v1/agreements/{sla_id:str}/termination-message",
    summary="What a party signs to end an agreement",
    tag="agreements",
    scopes=(Scope.WRITE_AGREEMENTS,),
    problems=(400, 404, 413, 503),
)
def termination_message(commands: Told, sla_id: SlaId, data: JSONBody[NoticeAsked]) -> NoticeMessage:
    """Work out the notice, which names the newest terms, and the bytes to sign. Nothing is written."""
    notice = commands.notice(sla_id, effective=data.effective, reason=data.reason)
    return NoticeMessage(notice=notice, message=notice_message(notice).hex())


@writes(
    "/v1/agreements/{sla_id:str}/terminate",
    summary="End an agreement",
    tag="agreements",
    scopes=(Scope.WRITE_AGREEMENTS,),
    status=202,
)
def terminate_agreement(commands: Told, sla_id: SlaId, data: JSONBody[NoticeGiven]) -> AgreementTerminated:
    """End an agreement by a notice that one party or both signed. The period it falls into ends with it."""
    given = {"issuer": data.issuer_signature, "customer": data.customer_signature}
    ended = commands.terminate(
        sla_id,
        effective=data.effective,
        reason=data.reason,
        signatures={name: signature for name, signature in given.items() if signature is not None},
    )
    return AgreementTerminated(
        sla_id=ended.sla_id,
        effective=ended.effective,
        signed_by=list(ended.signed_by),
        receipt=written(ended.receipt),
    )


HANDLERS = (amend_agreement, termination_message, terminate_agreement)
