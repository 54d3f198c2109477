"""The signature of the customer's probe: handed in by whoever holds its key."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.parameters import StatementId
from api.rest.routes import writes
from api.rest.writing import Told, Written, written
from ledger.app.access import Principal, Scope
from ledger.domain.terms.probe import PROBE_SIGNATURE_FORMAT

_ELEMENT = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9]\d{0,76})$", description="Field element as a decimal string")]


class SignaturePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of Baby Jubjub."""

    x: _ELEMENT
    y: _ELEMENT


class TelemetrySignatureWrite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """EdDSA-BabyJubJub-Poseidon over a telemetry root."""

    r8: SignaturePoint
    s: _ELEMENT


class ProbeSignatureWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that `sla-ledger probe sign` writes."""

    format: Annotated[str, msgspec.Meta(pattern=f"^{PROBE_SIGNATURE_FORMAT}$")]
    statement_id: Annotated[str, msgspec.Meta(max_length=100, description="The statement of the path")]
    telemetry_root: _ELEMENT
    signature: TelemetrySignatureWrite


class ProbeSigned(msgspec.Struct, frozen=True):
    """The signature is in the log, and in the bundle of its statement from now on."""

    statement_id: str
    receipt: Written


@writes(
    "/v1/statements/{statement_id:str}/probe-signature",
    summary="Hand in the probe's signature",
    tag="statements",
    scopes=(Scope.WRITE_CLAIMS, Scope.READ_PROOFS),
    problems=(400, 404, 409, 413, 503),
)
def sign_as_probe(
    commands: Told,
    principal: NamedDependency[Principal],
    statement_id: StatementId,
    data: JSONBody[ProbeSignatureWrite],
) -> ProbeSigned:
    """Record what the agreement's probe signed over the statement's telemetry root; again gives the first receipt.

    Refused (409) where the terms name no probe, or its key did not sign this root.
    """
    receipt = commands.probes.record(msgspec.to_builtins(data), statement_id=statement_id, principal=principal)
    return ProbeSigned(statement_id, written(receipt))


HANDLERS = (sign_as_probe,)
