"""The customer's probe: a second signer of what the collector sealed, whose key the agreement names.

The collector's signature adds trust only where its holder is not the provider. A customer who opened a statement, and
compared the counts with what its own probe saw, signs the telemetry root with a key that the provider does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledger.domain.record.event_values import STATEMENT_ID
from ledger.domain.schema import Object, OneOf, Shape, fail
from ledger.domain.terms.agreement_schema import BYTES32, FIELD_ELEMENT, PROBE_REQUIRED

PROBE_SIGNED: Final = "telemetry_countersigned"
PROBE_SIGNATURE_FORMAT: Final = "sla-ledger/probe-signature/v1"
MAX_PROBE_SIGNATURE_BYTES: Final = 4096

_SIGNATURE: Mapping[str, Shape] = {"r8": Object({"x": FIELD_ELEMENT, "y": FIELD_ELEMENT}), "s": FIELD_ELEMENT}
SIGNATURE = Object(_SIGNATURE)

PROBE_PAYLOADS: Mapping[str, Mapping[str, Shape]] = {
    PROBE_SIGNED: {
        "sla_id": BYTES32,
        "statement_id": STATEMENT_ID,
        "seal_key": FIELD_ELEMENT,
        "telemetry_root": FIELD_ELEMENT,
        **_SIGNATURE,
    },
}

PROBE_SIGNATURE = Object(
    {
        "format": OneOf((PROBE_SIGNATURE_FORMAT,)),
        "statement_id": STATEMENT_ID,
        "telemetry_root": FIELD_ELEMENT,
        "signature": SIGNATURE,
    },
    title="sla-ledger probe signature v1",
)
"""The file in which a customer hands its signature in."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A second signer. Without the signature of one that is ``required`` a bundle does not verify."""

    name: str
    key: tuple[int, int]
    required: bool


def read_probe(document: Mapping[str, Any] | None, collector_key: tuple[int, int]) -> Probe | None:
    """The ``probe`` of an agreement; raises ``DocumentInvalid`` where it is no second signer."""
    if document is None:
        return None
    point = document["babyjubjub_public_key"]
    key = int(point["x"]), int(point["y"])
    if key == collector_key:
        raise fail("probe.babyjubjub_public_key", "it is the collector's key; a second signer has a key of its own")
    return Probe(document["name"], key, document["signature"] == PROBE_REQUIRED)
