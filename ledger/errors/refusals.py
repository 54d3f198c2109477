"""Requests that are well formed, and that the present state or what is asked for refuses."""

from ledger.errors.tree import NotFound, Refused


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


class ProbeSignatureRefused(Refused):
    """The signature of a probe cannot be taken: the terms name none, nothing is sealed, or it signed something else."""

    code = "probe_signature_refused"


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


class PayloadErased(NotFound):
    """The payload was erased; header, log entry and proofs are there as before. ``data`` names the event."""

    code = "payload_erased"


class ProvingKeyRefused(Refused):
    """A proving key is not the one that was pinned, or not of the circuit here; no proof is made with it."""

    code = "proving_key_refused"
