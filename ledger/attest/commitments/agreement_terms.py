"""An agreement's terms as the circuit reads them."""

from __future__ import annotations

from ledger.attest.commitments.terms import AttestedObjective, AttestedTerms, AttestedTier
from ledger.domain.credits.settlement import attestability
from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.errors import AttestationValueInvalid, Refused


def attested_terms(agreement: Agreement) -> AttestedTerms:
    """The terms that ``termsHash`` binds.

    Raises ``Refused`` for an agreement that is not attestable, with the reasons in ``data``, and
    ``DocumentInvalid`` where the collector's key is no point of the curve's prime subgroup.
    """
    reasons = attestability(agreement)
    if reasons:
        raise Refused("this agreement cannot be attested: " + "; ".join(reasons), reasons=list(reasons))
    terms = agreement.compensation
    tiers = terms.tiered.tiers if terms.tiered else {}
    try:
        return AttestedTerms(
            doc_sha256=agreement.doc_sha256,
            collector=agreement.collector_key,
            objectives=tuple(
                AttestedObjective(
                    objective.target_ppb,
                    tuple(AttestedTier(tier.below_ppb, tier.credit_bps) for tier in tiers.get(objective.id, ())),
                )
                for objective in agreement.objectives
            ),
            cap=terms.cap,
            minimum=terms.minimum,
            floor_bps=agreement.coverage_floor_bps,
            sum_capped=terms.tiers_combine == "sum",
            rounding=terms.rounding,
            credit_hidden=terms.credit_visibility == "committed",
            exact=terms.impact is not None,
        )
    except AttestationValueInvalid as error:
        if error.data.get("field") == "collector":
            raise fail("collector.babyjubjub_public_key", error.message) from error
        raise
