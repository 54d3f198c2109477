"""Evidence that does not hold."""

from ledger.errors.tree import EvidenceInvalid


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
