"""What the circuit of incident credits is asked to prove of a period: its incidents, by the agreement's impact rule."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.app.ports.evidence import Salts
from ledger.attest.commitments.incident_credit import IncidentClaim, LoggedIncident, incident_root
from ledger.attest.commitments.model import PeriodClaim
from ledger.domain.credits.compensation import Incident, incidents
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.compensation_terms import ImpactRule
from ledger.domain.windows.window import Window
from ledger.errors import Refused


def incident_claim(
    agreement: Agreement, rule: ImpactRule, period: PeriodClaim, bps: int, windows: Sequence[Window], salts: Salts
) -> IncidentClaim:
    """The second claim of a statement whose first one is ``period``, with tiers of ``bps`` of its base.

    Raises ``Refused`` where nothing was sealed to hide the total with.
    """
    if salts.total is None:
        raise Refused("this period was sealed without a salt for its total, so its incident credit cannot be proved")
    return IncidentClaim(
        terms=period.terms,
        incidents=logged(incidents(agreement, rule, windows)),
        seal_key=period.seal_key,
        coefficient=rule.coefficient_e9,
        price=rule.price_e9,
        sum_rules=sums(agreement),
        tier_amount=period.fee * bps,
        tier_salt=period.credit_salt,
        total_salt=salts.total,
        ctx=period.ctx,
    )


def derived_root(agreement: Agreement, rule: ImpactRule, seal_key: int, found: Sequence[Incident]) -> int:
    """incidentRoot as it follows from an agreement and the incidents of a period."""
    return incident_root(seal_key, rule.coefficient_e9, rule.price_e9, sums(agreement), logged(found))


def sums(agreement: Agreement) -> bool:
    """Whether tiers and incidents add up; otherwise the larger one counts."""
    return agreement.compensation.rules_combine == "sum"


def logged(found: Sequence[Incident]) -> tuple[LoggedIncident, ...]:
    """Incidents as the circuit takes them; raises AttestationValueInvalid on numbers that it has no room for."""
    return tuple(LoggedIncident(each.first_window, each.windows, each.good, each.valid - each.good) for each in found)
