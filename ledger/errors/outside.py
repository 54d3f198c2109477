"""Things outside this process that failed."""

from ledger.errors.tree import NotYet, Unavailable


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


class SealingFailed(Unavailable):
    """Blocks of some agreements are over and could not be sealed; those of all others were."""

    code = "sealing_failed"


class StageFailed(Unavailable):
    """A stage was tried as often as it is worth and is parked for an operator."""

    code = "stage_failed"
