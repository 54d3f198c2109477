"""The one error tree of sla-ledger.

Every error carries a stable ``code`` (for machines), a message a person can act on, and the ``data``
that made it. Transports (CLI, REST, GraphQL) translate an error exactly once: the CLI by its
``exit_code``, the API by its class. Nothing in this tree knows HTTP.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SlaLedgerError(Exception):
    """Root of the tree.

    ``code`` is stable across releases; ``exit_code`` is what the command line ends with;
    ``data`` holds the values that made the error, never secrets.
    """

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def as_dict(self) -> dict[str, Any]:
        """The error as plain values, for ``--json`` output and problem documents."""
        return {"code": self.code, "message": self.message, "data": self.data}


# --- input that cannot be used -----------------------------------------------------------------


class BadInput(SlaLedgerError):
    """The caller's input cannot be used as a whole; nothing was written."""

    code = "bad_input"
    exit_code = 2


class DocumentInvalid(BadInput):
    """A document (agreement, bundle, trust file) breaks its schema; ``data`` names file, line and field."""

    code = "document_invalid"


class ReferenceUnresolved(DocumentInvalid):
    """A document refers to another one by name, and none, or more than one, has that name."""

    code = "reference_unresolved"


class NoCounterpart(DocumentInvalid):
    """A valid document of another format says something that no agreement can say; ``data`` names the field."""

    code = "no_counterpart"


class RequestLogUnusable(BadInput):
    """A request log cannot be read as a whole (empty, not NDJSON, cut off, a giant line); nothing was counted."""

    code = "request_log_unusable"


class TelemetryUnusable(BadInput):
    """No sample of a batch of telemetry can be used; nothing was written. ``data`` names field and reason."""

    code = "telemetry_unusable"


class ServiceUnknown(BadInput):
    """Telemetry is about a service that no agreement names; ``data["field"]`` says where the name stands."""

    code = "service_unknown"


class BodyTooLarge(BadInput):
    """A body is larger than its route takes, as it came or unpacked; ``data`` has the limit in bytes."""

    code = "body_too_large"


class BodyTooSlow(BadInput):
    """A body did not come whole within the time it had; ``data`` has that time in seconds."""

    code = "body_too_slow"


class MediaTypeUnsupported(BadInput):
    """A body is of a media type or in an encoding that its route does not read; ``data`` lists those it reads."""

    code = "media_type_unsupported"


class TargetUnavailable(BadInput):
    """An endpoint to scrape cannot be asked: not an http URL, not an answer, or one that is too large or too slow."""

    code = "target_unavailable"


class CalendarInvalid(BadInput):
    """A zone, period, window or date cannot be used."""

    code = "calendar_invalid"


class InstantInvalid(BadInput):
    """A text is not an RFC 3339 instant with a zone."""

    code = "instant_invalid"


class IntervalInvalid(BadInput):
    """An interval does not end after it starts."""

    code = "interval_invalid"


class MoneyInvalid(BadInput):
    """A decimal text, percentage, amount or currency cannot be used."""

    code = "money_invalid"


class NotCanonical(BadInput):
    """A value has no RFC 8785 form here (NaN, -0, float, integer beyond 2^53, duplicate key)."""

    code = "not_canonical"


class VerifierKeyInvalid(BadInput):
    """A note key (``name+hash+base64``) is malformed, of an unknown type, or its hash does not fit it."""

    code = "verifier_key_invalid"


class KeyFileUnusable(BadInput):
    """A private key file is missing, malformed, already there, or readable by others than its owner."""

    code = "key_file_unusable"


class TilePathInvalid(BadInput):
    """A path is not the one spelling C2SP tlog-tiles allows for a tile."""

    code = "tile_path_invalid"


class OutsideTree(BadInput):
    """A leaf index or tree size lies outside the tree a proof or root was asked for."""

    code = "outside_tree"


class EventInvalid(BadInput):
    """An event cannot be appended: unknown type or schema version, bad payload, name or instant; ``data`` names it."""

    code = "event_invalid"


class AttestationValueInvalid(BadInput):
    """A number, key or text of an attestation is outside its range; ``data`` names the field."""

    code = "attestation_value_invalid"


class ExportInvalid(BadInput):
    """An export file is cut off, malformed or contradicts itself; ``data["line"]`` names the place."""

    code = "export_invalid"


class CircuitUnknown(BadInput):
    """``circuits.json`` has no circuit of that name, or none large enough for the period."""

    code = "circuit_unknown"


class SettingInvalid(BadInput):
    """A setting from an argument or the environment cannot be used; ``data["setting"]`` names it."""

    code = "setting_invalid"


class DataDirectoryInvalid(BadInput):
    """The data directory is missing, or holds no ledger that this version can open."""

    code = "data_directory_invalid"


class DataDirectoryInUse(BadInput):
    """Another process works the data directory; ``data`` has its path and that process's id."""

    code = "data_directory_in_use"


class AddressTaken(BadInput):
    """Another process listens on the address already, or this one may not; ``data`` has host and port."""

    code = "address_taken"


class WitnessRequestInvalid(BadInput):
    """A request to a witness breaks the format of C2SP tlog-witness."""

    code = "witness_request_invalid"


class WebhookInvalid(BadInput):
    """A webhook endpoint cannot be what was asked for; ``data`` names the field."""

    code = "webhook_invalid"


class ExclusionInvalid(BadInput):
    """Time cannot be excluded as was asked: an unknown clause, no ticket, no such time; ``data`` names the field."""

    code = "exclusion_invalid"


class QueryInvalid(BadInput):
    """A parameter of a query is unknown, given twice or out of its range; ``data["parameter"]`` names it."""

    code = "query_invalid"


class CursorInvalid(QueryInvalid):
    """A page cursor was not made by this service, or was made for another list."""

    code = "cursor_invalid"


# --- requests the present state refuses --------------------------------------------------------


class Refused(SlaLedgerError):
    """The request is well formed but the present state does not allow it."""

    code = "refused"


class VersionConflict(Refused):
    """Something else stands where this was to be written; ``data`` has the expected and the found version."""

    code = "version_conflict"


class IdempotencyConflict(Refused):
    """The idempotency key was used before for something else; nothing was written."""

    code = "idempotency_conflict"


class CreditLineRefused(Refused):
    """A credit line's state does not allow the change: taken back or booked before, or its proof is still due."""

    code = "credit_line_refused"


class ChargesRefused(Refused):
    """Charges of a period cannot be taken: a rule would have no base, or a statement stands on others already."""

    code = "charges_refused"


class ClaimRefused(Refused):
    """A credit cannot be claimed: too late, claimed before, or there is nothing to claim; ``data`` has the deadline."""

    code = "claim_refused"


class ExclusionRefused(Refused):
    """An exclusion cannot be recorded: its id is used up, or the agreement has as many as there can be."""

    code = "exclusion_refused"


class ReadOnlyTransaction(Refused):
    """A transaction that was opened for reading tried to write."""

    code = "read_only_transaction"


class WitnessConflict(Refused):
    """A witness has seen another tree than the request builds on; ``data["size"]`` is the one it knows."""

    code = "witness_conflict"


class LogBehindWitness(Refused):
    """A witness has seen more of this log, or another one: the database is an old copy, or the log forked."""

    code = "log_behind_witness"


class PeriodNotOver(Refused):
    """The period has not ended, or its grace has not; ``data["from_ns"]`` is when it may be closed."""

    code = "period_not_over"


class ClaimDeadlinePassed(Refused):
    """A fact about a closed period came after the deadline of its claims; ``data`` has the period and the deadline."""

    code = "claim_deadline_passed"


class PeriodNotBegun(Refused):
    """No window of the period has begun, or none of the agreement's periods runs."""

    code = "period_not_begun"


class PeriodClosed(Refused):
    """The period is closed: its windows were judged for its statement."""

    code = "period_closed"


class CollectorUnknown(Refused):
    """This ledger does not hold the key of the collector that the agreement names, so nothing can be sealed for it."""

    code = "collector_unknown"


class ConstraintUnmet(Refused):
    """The facts and terms break a constraint of the circuit: no honest proof exists.

    ``data["constraint"]`` names it.
    """

    code = "constraint_unmet"


class CoverageBelowFloor(ConstraintUnmet):
    """Too few windows were observed for the coverage floor of the terms; the statement is withheld."""

    code = "coverage_below_floor"


class AnchorRefused(Refused):
    """A contract refuses a transaction; ``data`` holds its custom error's name and arguments."""

    code = "anchor_refused"


class DevKeyRefused(Refused):
    """A key whose issuer can forge proofs was to be used on a chain that is not a test chain."""

    code = "dev_key_refused"


class ImplausibleCounts(Refused):
    """A count no honest source gives (negative, more good than all, beyond 2^28 - 1); settlement is blocked."""

    code = "implausible_counts"


class LogRolledBack(Refused):
    """The log is shorter than, or another than, what was signed before: it must not be signed.

    ``data`` has the log's size and the size and source of what is known from outside.
    """

    code = "log_rolled_back"


class NotErasable(Refused):
    """The event's payload class is one that is kept for good, or the event has no place in the log yet."""

    code = "not_erasable"


class Unauthenticated(SlaLedgerError):
    """Nobody known asks: no credentials, or such as do not hold (unknown, expired, forged)."""

    code = "unauthenticated"


class AccessDenied(SlaLedgerError):
    """Somebody known asks for what their scopes do not cover; ``data`` names the scope."""

    code = "access_denied"


class NotFound(SlaLedgerError):
    """What was asked for does not exist."""

    code = "not_found"


class PayloadErased(NotFound):
    """The payload was erased; header, log entry and proofs are there as before. ``data`` names the event."""

    code = "payload_erased"


# --- evidence that does not hold ---------------------------------------------------------------


class EvidenceInvalid(SlaLedgerError):
    """A signature, proof, key or path does not hold."""

    code = "evidence_invalid"


class AgreementNotSigned(EvidenceInvalid):
    """A signature of a party is missing or does not hold."""

    code = "agreement_not_signed"


class BundleCheckFailed(EvidenceInvalid):
    """A value of a bundle is not the one that follows from the rest."""

    code = "bundle_check_failed"


class TreeProofInvalid(EvidenceInvalid):
    """An inclusion or consistency proof does not lead to the root it was given for."""

    code = "tree_proof_invalid"


class TreeDamaged(EvidenceInvalid):
    """A stored tile is missing or has a wrong length; ``data`` names it."""

    code = "tree_damaged"


class LogInconsistent(EvidenceInvalid):
    """Log, checkpoint and stored events contradict each other."""

    code = "log_inconsistent"


class StorageDamaged(EvidenceInvalid):
    """Stored bytes are not those that were written (digest, form or length differs)."""

    code = "storage_damaged"


class NoteInvalid(EvidenceInvalid):
    """A signed note or checkpoint breaks its format."""

    code = "note_invalid"


class NoteUnverified(NoteInvalid):
    """A note is well formed, but no trusted key signed it, or a trusted key's signature is false."""

    code = "note_unverified"


class CosignatureInvalid(NoteInvalid):
    """A witness's cosignature is malformed, false, or of a time it cannot have."""

    code = "cosignature_invalid"


class QuorumUnmet(NoteUnverified):
    """Fewer trusted witnesses cosigned a checkpoint than the policy asks for."""

    code = "quorum_unmet"


class TlogProofInvalid(EvidenceInvalid):
    """A tlog-proof file breaks its format."""

    code = "tlog_proof_invalid"


class VerificationKeyInvalid(EvidenceInvalid):
    """A Groth16 verification key is malformed, or of a kind under which anyone can forge proofs."""

    code = "verification_key_invalid"


class ProofInvalid(EvidenceInvalid):
    """A Groth16 proof does not hold for its signals under its key; ``data["reason"]`` says where it fails."""

    code = "proof_invalid"


class TransactionInvalid(EvidenceInvalid):
    """A raw transaction is not canonical, not properly signed, or does not do what it is said to do."""

    code = "transaction_invalid"


# --- things outside that failed ----------------------------------------------------------------


class Unavailable(SlaLedgerError):
    """Something this process depends on (prover, chain, disk) did not answer or failed."""

    code = "unavailable"


class StorageUnavailable(Unavailable):
    """The database is locked, read-only, full, not reachable or of another version; nothing was written."""

    code = "storage_unavailable"


class NotSequencedYet(Unavailable):
    """An event is stored but has no place in the log yet, or the log has not reached a position in time."""

    code = "not_sequenced_yet"


class ProverUnavailable(Unavailable):
    """The prover's child process is not installed, died, ran out of time or answered with an error."""

    code = "prover_unavailable"


class WitnessesUnavailable(Unavailable):
    """Too few witnesses cosigned the new checkpoint; it is not published yet and will be tried again."""

    code = "witnesses_unavailable"


class BrokerUnavailable(Unavailable):
    """The broker took no message; the work is in the outbox and is told again."""

    code = "broker_unavailable"


class WebhookUnreachable(Unavailable):
    """No answer came from a webhook endpoint, or its address may not be asked."""

    code = "webhook_unreachable"


class NotYet(Unavailable):
    """What the work waits for has not happened; it is tried again after ``retry_after_s``, as often as it takes."""

    code = "not_yet"


class ChargesMissing(NotYet):
    """A period cannot be settled before finance has handed in its charges; ``data`` names the period."""

    code = "charges_missing"


class ChainUnavailable(NotYet):
    """The chain did not answer, or a transaction was not included in time; its bytes are stored for re-sending.

    A chain that is away for an hour is no reason to give up what is to be recorded there, so this waits.
    """

    code = "chain_unavailable"


class ClosingFailed(Unavailable):
    """Periods of some agreements are due and could not be closed; those of all others were."""

    code = "closing_failed"


class StageFailed(Unavailable):
    """A stage was tried as often as it is worth and is parked for an operator."""

    code = "stage_failed"
