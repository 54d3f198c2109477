"""What a dishonest prover may try with the inputs of IncidentCredit: each lie names the check it is aimed at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ledger.attest.commitments.incident_credit import evaluate_incidents, incident_inputs
from ledger.attest.commitments.inputs import CircuitInputs
from ledger.domain.attested import SCALAR_ORDER as R
from tests.circuits.incident_claims import E18, commit_incidents, plain_incidents

COLUMNS: Final = ("active", "first", "windows", "good", "bad")


@dataclass(frozen=True, slots=True)
class IncidentLie:
    """A change of inputs and the check that should refuse it. ``committed``: hashes and division follow the change."""

    name: str
    check: str
    change: Callable[[CircuitInputs], None]
    committed: bool

    def inputs(self) -> CircuitInputs:
        claim = plain_incidents()
        inputs = incident_inputs(claim, evaluate_incidents(claim))
        self.change(inputs)
        if self.committed:
            commit_incidents(inputs)
        return inputs


INCIDENT_LIES: dict[str, IncidentLie] = {}

Change = Callable[[CircuitInputs], None]


def lie(check: str, committed: bool = True) -> Callable[[Change], Change]:
    def register(change: Change) -> Change:
        INCIDENT_LIES[change.__name__] = IncidentLie(change.__name__, check, change, committed)
        return change

    return register


def _put(inputs: CircuitInputs, slot: int, *values: int) -> None:
    for name, value in zip(COLUMNS, values, strict=True):
        inputs[name][slot] = value


# --- the list of incidents --------------------------------------------------------------------------


@lie("Excludes()(active[i], 1 - apart[i]);")
def an_incident_paid_twice(inputs: CircuitInputs) -> None:
    _put(inputs, 3, 1, 10, 4, 7, 3)


@lie("Excludes()(active[i], 1 - apart[i]);")
def incidents_in_another_order(inputs: CircuitInputs) -> None:
    """The same sum under another root."""
    _put(inputs, 0, 1, 9, 1, 0, 500)
    _put(inputs, 1, 1, 3, 2, 900, 100)


@lie("Excludes()(active[i], 1 - apart[i]);")
def an_incident_that_begins_in_the_last_window_of_another(inputs: CircuitInputs) -> None:
    inputs["first"][1] = 4


@lie("Same()(incidentRoot, root);", committed=False)
def an_incident_dropped_under_the_logged_root(inputs: CircuitInputs) -> None:
    inputs["active"][2] = 0
    for name in COLUMNS[1:]:
        inputs[name][2] = 0
    inputs["quotient"] -= 10 * 120


@lie("Excludes()(1 - active[i], word[i]);")
def requests_in_a_slot_without_an_incident(inputs: CircuitInputs) -> None:
    inputs["bad"][63] = 1_000_000


@lie("Excludes()(active[i], noWindow[i]);")
def an_incident_of_no_window(inputs: CircuitInputs) -> None:
    inputs["windows"][1] = 0


@lie("Excludes()(active[i], 1 - active[i - 1]);")
def a_hole_in_the_list(inputs: CircuitInputs) -> None:
    """The same incidents and sum under another root."""
    _put(inputs, 4, 1, 20, 1, 5, 5)


@lie("Boolean()(active[i]);")
def an_incident_counted_as_none(inputs: CircuitInputs) -> None:
    """active = 2 on the last and -1 would be three of four: the count in the summary is free."""
    inputs["active"][2] = 2


@lie("Range(10)(first[i]);")
def an_incident_before_the_period(inputs: CircuitInputs) -> None:
    inputs["first"][0] = R - 1


@lie("Range(10)(windows[i]);")
def an_incident_of_minus_one_window(inputs: CircuitInputs) -> None:
    inputs["windows"][2] = R - 1


@lie("Range(10)(covered);")
def more_windows_than_a_period(inputs: CircuitInputs) -> None:
    inputs["first"][2] = 1000
    inputs["windows"][2] = 1023


@lie("Range(38)(good[i]);")
def requests_that_wrap_to_a_small_amount(inputs: CircuitInputs) -> None:
    """valid * coefficient * price comes to one minor unit modulo r."""
    wanted = E18 * pow(inputs["coefficient"] * inputs["price"], -1, R) % R
    others = sum(inputs["good"]) - inputs["good"][0] + sum(inputs["bad"])
    inputs["good"][0] = (wanted - others) % R
    inputs["tierAmount"] = 0


@lie("Range(38)(bad[i]);")
def negative_bad_requests(inputs: CircuitInputs) -> None:
    inputs["bad"][1] = R - 400


# --- the rule and the terms -------------------------------------------------------------------------


@lie("Range(64)(coefficient);")
def coefficient_that_wraps_to_nothing(inputs: CircuitInputs) -> None:
    inputs["coefficient"] = pow(1510 * inputs["price"], -1, R)
    inputs["tierAmount"] = 0


@lie("Range(64)(price);")
def price_that_wraps_to_nothing(inputs: CircuitInputs) -> None:
    inputs["price"] = pow(1510 * inputs["coefficient"], -1, R)
    inputs["tierAmount"] = 0


@lie("Boolean()(sumRules);")
def rules_summed_more_than_once(inputs: CircuitInputs) -> None:
    inputs["sumRules"] = 2


@lie("Boolean()(sumCapped);")
def a_signed_rounding_proved_as_floor(inputs: CircuitInputs) -> None:
    inputs["sumCapped"] = 2


@lie("Boolean()(halfUp);")
def half_up_signed_as_committed(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = 4


@lie("Boolean()(halfEven);")
def half_even_signed_as_committed(inputs: CircuitInputs) -> None:
    inputs["halfEven"] = 2


@lie("Excludes()(halfUp, halfEven);")
def rounding_mode_three(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = inputs["halfEven"] = 1


@lie("Boolean()(hidden);")
def terms_that_are_not_exact(inputs: CircuitInputs) -> None:
    """Minus two eighths and the sixteen of this circuit cancel: the hash of terms whose tier amount is rounded."""
    inputs["hidden"] = R - 2


@lie("Range(64)(cap);")
def cap_that_wraps_to_nothing(inputs: CircuitInputs) -> None:
    inputs["cap"] = pow(E18, -1, R)


@lie("Range(64)(minimum);")
def minimum_minus_one(inputs: CircuitInputs) -> None:
    inputs["minimum"] = R - 1


@lie("Same()(termsHash, terms);", committed=False)
def terms_of_another_hash(inputs: CircuitInputs) -> None:
    signed = inputs["termsHash"]
    inputs["cap"] = 1000
    commit_incidents(inputs)
    inputs["termsHash"] = signed


# --- money ------------------------------------------------------------------------------------------


@lie("Range(78)(tierAmount);")
def tier_amount_that_wraps_to_one_unit(inputs: CircuitInputs) -> None:
    inputs["tierAmount"] = pow(10**14, -1, R)
    inputs["good"], inputs["bad"] = [0] * 64, [0] * 64


@lie("Same()(tierCredit, shownTier);", committed=False)
def another_tier_amount_than_the_compliance_proof_shows(inputs: CircuitInputs) -> None:
    shown = inputs["tierCredit"]
    inputs["tierAmount"] = 3_000_000_000
    commit_incidents(inputs)
    inputs["tierCredit"] = shown


@lie("AtMost(60, 999999999999999999)(remainder);", committed=False)
def quotient_one_too_high(inputs: CircuitInputs) -> None:
    """Of an amount that is nearly one more, so that LessThan(60) has bits for the negative remainder."""
    inputs["price"] += 397_351
    commit_incidents(inputs)
    inputs["quotient"] += 1
    inputs["remainder"] += R - E18


@lie("AtMost(60, 999999999999999999)(remainder);", committed=False)
def quotient_one_too_low(inputs: CircuitInputs) -> None:
    inputs["quotient"] -= 1
    inputs["remainder"] += E18


@lie("Same()(amount, quotient * 1000000000000000000 + remainder);", committed=False)
def quotient_of_another_amount(inputs: CircuitInputs) -> None:
    inputs["quotient"] -= 1
