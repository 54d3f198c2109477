"""IncidentCredit in integers: what the circuit computes from the logged incidents, and why it would refuse.

Amounts are in 10^-18 minor units (``E18``): coefficient and price are billionths, the tiers' amount 1/10000. Nothing is
lost before the one rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger.attest.commitments.inputs import CircuitInputs
from ledger.attest.commitments.statement import TIER_BITS, tier_commit
from ledger.attest.commitments.terms import AttestedTerms
from ledger.attest.crypto.field import require_element, require_uint
from ledger.attest.crypto.poseidon import poseidon, sponge, tag
from ledger.domain.attested import INCIDENTS, PRICE_BITS
from ledger.domain.money import Rounding, round_quotient
from ledger.errors import AttestationValueInvalid, ConstraintUnmet

SLOTS: Final = INCIDENTS
INCIDENTS_CIRCUIT: Final = f"incidents_{INCIDENTS}"
E18: Final = 10**18
_TIER_SCALE: Final = 10**14
_WINDOW_BITS: Final = 10
_SUM_BITS: Final = 38
_TERMS_USED: Final = 7
"""Inputs of termsHash up to the minimum; the others the circuit only hashes."""


@dataclass(frozen=True, slots=True)
class LoggedIncident:
    """A run of windows that the rule pays for: its first window counted from 0, and the requests in it.

    Raises AttestationValueInvalid unless windows have 10 bits, counts 38, and there is at least one window.
    """

    first: int
    windows: int
    good: int
    bad: int

    def __post_init__(self) -> None:
        require_uint(self.first, _WINDOW_BITS, "first")
        require_uint(self.windows, _WINDOW_BITS, "windows")
        require_uint(self.good, _SUM_BITS, "good")
        require_uint(self.bad, _SUM_BITS, "bad")
        if self.windows == 0:
            raise AttestationValueInvalid("an incident has at least one window", field="windows")

    def word(self) -> int:
        """first + windows * 2^10 + good * 2^20 + bad * 2^58."""
        return self.first | self.windows << 10 | self.good << 20 | self.bad << 58


@dataclass(frozen=True, slots=True)
class IncidentClaim:
    """The credit of a period with incidents.

    ``terms`` are exact. ``coefficient`` in billionths and ``price``, a request's in billionths of a minor unit, have 64
    bits; ``sum_rules``: tiers and incidents add up, otherwise the larger counts. ``tier_amount`` (1/10000 minor units)
    and ``tier_salt`` are those of the compliance proof with the same ``ctx``.
    """

    terms: AttestedTerms
    incidents: tuple[LoggedIncident, ...]
    seal_key: int
    coefficient: int
    price: int
    sum_rules: bool
    tier_amount: int
    tier_salt: int
    total_salt: int
    ctx: int


@dataclass(frozen=True, slots=True)
class IncidentSignals:
    """The public signals in their order."""

    summary: int
    credit: int
    ctx: int
    tier_credit: int
    terms_hash: int
    incident_root: int

    def as_tuple(self) -> tuple[int, ...]:
        return self.summary, self.credit, self.ctx, self.tier_credit, self.terms_hash, self.incident_root


@dataclass(frozen=True, slots=True)
class IncidentEvaluation:
    """What a proof shows, and the steps to it.

    ``amount`` is capped and in 10^-18 minor units, ``credit`` in minor units.
    """

    signals: IncidentSignals
    amount: int
    credit: int


def in_places(incidents: Sequence[LoggedIncident]) -> tuple[LoggedIncident, ...]:
    """Incidents as they stand in the places of the circuit.

    Where there are more of them than places, the last place has the rest together: the window in which the first of
    these begins, and their sums. The credit follows from sums alone, so it is the same (docs/adr/0018).
    """
    if len(incidents) <= SLOTS:
        return tuple(incidents)
    rest = incidents[SLOTS - 1 :]
    windows, good, bad = (sum(getattr(each, name) for each in rest) for name in ("windows", "good", "bad"))
    return *incidents[: SLOTS - 1], LoggedIncident(rest[0].first, windows, good, bad)


def incident_root(
    seal_key: int, coefficient: int, price: int, sum_rules: bool, incidents: Sequence[LoggedIncident]
) -> int:
    """incidentRoot = H(TAG incidents; sealKey, coefficient, price, sumRules, K, word_0 .. word_63) of K places."""
    placed = in_places(incidents)
    words = [each.word() for each in placed] + [0] * (SLOTS - len(placed))
    require_uint(coefficient, PRICE_BITS, "coefficient")
    require_uint(price, PRICE_BITS, "price")
    head = [require_element(seal_key, "seal_key"), coefficient, price, int(sum_rules), len(placed)]
    return sponge(tag("incidents"), [*head, *words])


def incident_summary(incidents: Sequence[LoggedIncident]) -> int:
    """Signal 0: how many places are taken, + 2^8 * the windows of all incidents."""
    return len(in_places(incidents)) | sum(each.windows for each in incidents) << 8


def total_commit(ctx: int, credit: int, salt: int) -> int:
    """Poseidon4(TAG total, ctx, credit, salt): the total where the terms hide amounts."""
    return poseidon([tag("total"), ctx, require_uint(credit, 64, "credit"), require_element(salt, "total_salt")])


def evaluate_incidents(claim: IncidentClaim) -> IncidentEvaluation:
    """Evaluate ``claim`` as the circuit does.

    Raises ConstraintUnmet (its data name the constraint) where no honest proof exists, and AttestationValueInvalid on
    a value outside its range.
    """
    terms = claim.terms
    _check(claim)
    root = incident_root(claim.seal_key, claim.coefficient, claim.price, claim.sum_rules, claim.incidents)
    tiers = require_uint(claim.tier_amount, TIER_BITS, "tier_amount") * _TIER_SCALE
    impact = sum(each.good + each.bad for each in claim.incidents) * claim.coefficient * claim.price
    combined = tiers + impact if claim.sum_rules else max(tiers, impact)
    amount = min(combined, terms.cap * E18)
    credit = round_quotient(amount, E18, terms.rounding) if amount > terms.minimum * E18 else 0
    shown, tier_shown = credit, claim.tier_amount
    if terms.credit_hidden:
        shown = total_commit(claim.ctx, credit, claim.total_salt)
        tier_shown = tier_commit(claim.ctx, claim.tier_amount, claim.tier_salt)
    signals = IncidentSignals(
        summary=incident_summary(claim.incidents),
        credit=shown,
        ctx=claim.ctx,
        tier_credit=tier_shown,
        terms_hash=terms.hash(),
        incident_root=root,
    )
    return IncidentEvaluation(signals, amount, credit)


def incident_inputs(claim: IncidentClaim, evaluation: IncidentEvaluation) -> CircuitInputs:
    """Input signals by their names in circuits/incident_credit.circom; ``evaluation`` is of this claim."""
    terms, signals = claim.terms, evaluation.signals
    numbers = terms.preimage()
    quotient, remainder = divmod(evaluation.amount, E18)
    placed = in_places(claim.incidents)
    used = [*placed, *[None] * (SLOTS - len(placed))]

    def column(name: str) -> list[int]:
        return [0 if each is None else getattr(each, name) for each in used]

    found: dict[str, Any] = {
        "ctx": signals.ctx,
        "tierCredit": signals.tier_credit,
        "termsHash": signals.terms_hash,
        "incidentRoot": signals.incident_root,
        "sealKey": claim.seal_key,
        "active": [int(each is not None) for each in used],
        **{name: column(name) for name in ("first", "windows", "good", "bad")},
        "coefficient": claim.coefficient,
        "price": claim.price,
        "sumRules": int(claim.sum_rules),
        "docHi": numbers[0],
        "docLo": numbers[1],
        "collector": numbers[2:4],
        "sumCapped": int(terms.sum_capped),
        "halfUp": int(terms.rounding is Rounding.HALF_UP),
        "halfEven": int(terms.rounding is Rounding.HALF_EVEN),
        "hidden": int(terms.credit_hidden),
        "cap": terms.cap,
        "minimum": terms.minimum,
        "otherTerms": numbers[_TERMS_USED:],
        "tierAmount": claim.tier_amount,
        "tierSalt": claim.tier_salt,
        "totalSalt": claim.total_salt,
        "quotient": quotient,
        "remainder": remainder,
    }
    return found


def _check(claim: IncidentClaim) -> None:
    if not claim.terms.exact:
        raise ConstraintUnmet(
            "these terms give a tier amount that is rounded; incidents need exact ones", constraint="exact_terms"
        )
    end = covered = 0
    for index, each in enumerate(claim.incidents):
        if each.first < end:
            raise ConstraintUnmet(
                f"incident {index} begins in window {each.first}, before the one before it has ended",
                constraint="incident_order",
                incident=index,
            )
        end = each.first + each.windows
        covered += each.windows
    if covered >= 1 << _WINDOW_BITS:
        raise ConstraintUnmet(
            f"the incidents have {covered} windows together, more than a period", constraint="incident_windows"
        )
