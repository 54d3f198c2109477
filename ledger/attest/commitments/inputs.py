"""The circuit's input signals for a claim, by their names in circuits/period_compliance.circom."""

from __future__ import annotations

from typing import Any

from ledger.attest.commitments.model import Evaluation, PeriodClaim
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.domain.attested import BLOCK_WINDOWS
from ledger.domain.money import BASIS_POINTS, Rounding

CircuitInputs = dict[str, Any]
"""Signal name -> int or nested lists of ints."""

_OUTSIDE = WindowCounts(observed=False)


def circuit_inputs(claim: PeriodClaim, evaluation: Evaluation) -> CircuitInputs:
    """Inputs of the instance with ``len(claim.block_salts)`` blocks; ``evaluation`` is of this claim."""
    terms, signals = claim.terms, evaluation.signals
    capacity = BLOCK_WINDOWS * len(claim.block_salts)
    inside = len(claim.windows)
    windows = [*claim.windows, *[_OUTSIDE] * (capacity - inside)]
    doc_hi, doc_lo = terms.doc_halves
    quotient, remainder = divmod(evaluation.amount_e4, BASIS_POINTS)
    return {
        "ctx": signals.ctx,
        "telemetryRoot": signals.telemetry_root,
        "termsHash": signals.terms_hash,
        "baseCommit": signals.base_commit,
        "sealKey": claim.seal_key,
        "blockSalt": list(claim.block_salts),
        "good": [[good for good, _ in window.pairs()] for window in windows],
        "bad": [[bad for _, bad in window.pairs()] for window in windows],
        "observed": [int(window.observed) for window in windows],
        "excluded": [int(window.excluded) for window in windows],
        "active": [1] * inside + [0] * (capacity - inside),
        "docHi": doc_hi,
        "docLo": doc_lo,
        "collector": list(terms.collector),
        "sumCapped": int(terms.sum_capped),
        "halfUp": int(terms.rounding is Rounding.HALF_UP),
        "halfEven": int(terms.rounding is Rounding.HALF_EVEN),
        "hidden": int(terms.credit_hidden),
        "exact": int(terms.exact),
        "cap": terms.cap,
        "minimum": terms.minimum,
        "floorBps": terms.floor_bps,
        "used": list(terms.used()),
        "target": list(terms.targets()),
        "threshold": [list(row) for row in terms.thresholds()],
        "tierBps": [list(row) for row in terms.bps()],
        "fee": claim.fee,
        "baseSalt": claim.base_salt,
        "creditSalt": claim.credit_salt,
        "quotient": quotient,
        "remainder": remainder,
    }
