"""Taking in the signature of the customer's probe over a telemetry root (``ledger.domain.terms.probe``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.app.access import Principal
from ledger.app.agreements.registering import timeline_of
from ledger.app.ports.evidence import TelemetrySignature
from ledger.app.ports.store import Database, Receipt, Transaction
from ledger.app.settlement.statements import issued_event
from ledger.domain.record.events import NewEvent, StoredEvent
from ledger.domain.record.naming import telemetry_stream
from ledger.domain.schema import fail
from ledger.domain.terms.probe import PROBE_SIGNATURE, PROBE_SIGNED, Probe
from ledger.domain.time.instant import Clock
from ledger.errors import NotFound, ProbeSignatureRefused


class VerifyTelemetry(Protocol):
    """EdDSA-BabyJubJub over a telemetry root: False on anything that does not hold, never an exception."""

    def __call__(self, key: tuple[int, int], telemetry_root: int, signature: TelemetrySignature) -> bool: ...


@dataclass(frozen=True, slots=True)
class ProbeDesk:
    """Takes in what probes signed, for one tenant."""

    database: Database
    verify: VerifyTelemetry
    clock: Clock

    def record(
        self, document: Mapping[str, Any], *, statement_id: str | None = None, principal: Principal | None = None
    ) -> Receipt:
        """Record a probe's signature; the same statement again gives the first receipt.

        ``statement_id`` is the statement that is meant, where that is said beside the document. Raises
        ``DocumentInvalid``, ``NotFound`` for a statement that is unknown or not the principal's to see, and
        ``ProbeSignatureRefused`` where its terms name no probe, nothing is sealed for it, or the probe did not sign
        what is.
        """
        PROBE_SIGNATURE.check(document, "")
        if statement_id not in (None, document["statement_id"]):
            raise fail(
                "statement_id", f"the signature is for {document['statement_id']}, and {statement_id} is asked for"
            )
        with self.database.begin() as tx:
            issued = issued_event(tx, document["statement_id"]).payload
            if principal is not None and not principal.may_see(issued["sla_id"]):
                raise NotFound(f"there is no statement {issued['statement_id']}", statement_id=issued["statement_id"])
            probe = _probe_of(tx, issued)
            _require_signed(probe, issued, document, self.verify)
            stream = telemetry_stream(int(issued["seal_key"]))
            known = list(tx.events.stream(stream))
            found = probe_signature(known, issued["telemetry_root"])
            if found is not None:
                return Receipt.of(found)
            payload = {
                **{name: issued[name] for name in ("sla_id", "statement_id", "seal_key", "telemetry_root")},
                **document["signature"],
            }
            event = NewEvent(PROBE_SIGNED, payload, occurred_at_ns=self.clock.now_ns())
            (receipt,) = tx.events.append(stream, [event], expected_version=len(known))
            return receipt


def probe_signature(signed: Sequence[StoredEvent], telemetry_root: str) -> StoredEvent | None:
    """The probe's signature over a root, among the events of a ``telemetry`` stream."""
    of_probe = (event for event in signed if event.type == PROBE_SIGNED)
    return next((event for event in of_probe if event.payload["telemetry_root"] == telemetry_root), None)


def _probe_of(tx: Transaction, issued: Mapping[str, Any]) -> Probe:
    probe: Probe | None = timeline_of(tx, issued["sla_id"]).documents[issued["terms_version"] - 1].probe
    if probe is None:
        raise ProbeSignatureRefused(
            f"the terms of {issued['statement_id']} name no probe, so nobody signs beside the collector; name "
            "one in the agreement (`probe`)",
            statement_id=issued["statement_id"],
        )
    return probe


def _require_signed(
    probe: Probe, issued: Mapping[str, Any], document: Mapping[str, Any], verify: VerifyTelemetry
) -> None:
    name, root = issued["statement_id"], issued["telemetry_root"]
    if root is None:
        raise ProbeSignatureRefused(f"nothing is sealed for {name}, so there is nothing to sign", statement_id=name)
    if document["telemetry_root"] != root:
        raise ProbeSignatureRefused(
            f"{name} is sealed as {root}, and {document['telemetry_root']} was signed; sign by its bundle and opening",
            statement_id=name,
            telemetry_root=root,
        )
    signature = document["signature"]
    r8 = int(signature["r8"]["x"]), int(signature["r8"]["y"])
    if not verify(probe.key, int(root), TelemetrySignature(r8, int(signature["s"]))):
        raise ProbeSignatureRefused(
            f"the key that the agreement names for the probe {probe.name} did not sign this root", statement_id=name
        )
