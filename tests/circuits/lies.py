"""What a dishonest prover may try with the inputs of PeriodCompliance.

Each lie changes the inputs of the plain claim and names the check it is aimed at, as written in
the circom source. Where it is ``committed``, the prover also commits to the false values: hashes and
division follow them, as they would for a provider who seals and signs what it pleases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ledger.attest.commitments.inputs import CircuitInputs, circuit_inputs
from ledger.attest.commitments.model import evaluate
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.domain.attested import SCALAR_ORDER as R
from tests.circuits.claims import plain_claim, plain_terms
from tests.circuits.lying_prover import commit

HIGH: Final = (1 << 28) - 1


@dataclass(frozen=True, slots=True)
class Lie:
    """A change of inputs and the check that should refuse it. Lies across a block boundary need an
    instance of two blocks."""

    name: str
    check: str
    change: Callable[[CircuitInputs], None]
    committed: bool
    blocks: int

    def inputs(self) -> CircuitInputs:
        """The inputs of this lie, carried through."""
        claim = plain_claim()
        if self.blocks == 2:
            windows = (WindowCounts((995, 960), (5, 35)),) * 30
            claim = plain_claim(windows=windows, block_salts=(1, 2), terms=plain_terms(floor_bps=0))
        inputs = circuit_inputs(claim, evaluate(claim))
        self.change(inputs)
        if self.committed:
            commit(inputs)
        return inputs


LIES: dict[str, Lie] = {}


def lie(
    check: str, committed: bool = True, blocks: int = 1
) -> Callable[[Callable[[CircuitInputs], None]], Callable[[CircuitInputs], None]]:
    """Register a change of inputs as a lie aimed at ``check``."""

    def register(change: Callable[[CircuitInputs], None]) -> Callable[[CircuitInputs], None]:
        LIES[change.__name__] = Lie(change.__name__, check, change, committed, blocks)
        return change

    return register


def _clear(inputs: CircuitInputs, index: int) -> None:
    """The window as if it had not been observed."""
    inputs["good"][index] = [0, 0, 0, 0]
    inputs["bad"][index] = [0, 0, 0, 0]
    inputs["observed"][index] = 0


# --- the lies that verified against the first sketch of this circuit --------------------------------


@lie("Excludes()(1 - observed[i], counts[i]);")
def good_traffic_invented_in_unused_tail_windows(inputs: CircuitInputs) -> None:
    inputs["good"][24] = [HIGH, HIGH, 0, 0]


@lie("Excludes()(observed[i] + excluded[i], observed[i] + excluded[i] - active[i]);")
def good_traffic_invented_in_an_observed_window_after_the_end(inputs: CircuitInputs) -> None:
    inputs["good"][24] = [HIGH, HIGH, 0, 0]
    inputs["observed"][24] = 1


@lie("Excludes()(1 - used, threshold[0]);")
def healthy_data_in_the_slot_that_carries_the_tiers(inputs: CircuitInputs) -> None:
    for name in ("threshold", "tierBps"):
        inputs[name][2], inputs[name][0] = inputs[name][0], [0, 0, 0, 0]
    for row in inputs["good"][:24]:
        row[2] = 1000


@lie("Range(64)(fee);")
def fee_that_wraps_to_one_minor_unit_of_credit(inputs: CircuitInputs) -> None:
    inputs["fee"] = 10_000 * pow(7, -1, R) % R
    inputs["tierBps"][0] = [7, 7, 7, 0]


@lie("Range(30)(threshold[k]);")
def threshold_minus_one(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [R - 1, 0, 0, 0]
    inputs["tierBps"][0] = [1000, 0, 0, 0]


@lie("AtMost(30, 1000000000)(target);")
def target_minus_one(inputs: CircuitInputs) -> None:
    inputs["target"][0] = R - 1


@lie("Range(64)(cap);")
def cap_that_wraps_to_nothing(inputs: CircuitInputs) -> None:
    inputs["cap"] = pow(10_000, -1, R)


@lie("AtMost(14, 10000)(tierBps[k]);")
def tier_above_one_hundred_percent(inputs: CircuitInputs) -> None:
    inputs["tierBps"][0][0] = 10_001


# --- windows and masks ------------------------------------------------------------------------------


@lie("Range(28)(bad[i][m]);")
def negative_bad_count(inputs: CircuitInputs) -> None:
    inputs["bad"][0][0] = R - 100


@lie("Range(28)(good[i][m]);")
def good_count_above_28_bits(inputs: CircuitInputs) -> None:
    inputs["good"][0][0] = 1 << 28


@lie("Excludes()(1 - observed[i], counts[i]);")
def bad_hour_unobserved_but_counted(inputs: CircuitInputs) -> None:
    inputs["observed"][3] = 0


@lie("Excludes()(observed[i] + excluded[i], observed[i] + excluded[i] - active[i]);")
def window_observed_and_excluded(inputs: CircuitInputs) -> None:
    inputs["excluded"][3] = 1


@lie("Excludes()(observed[i] + excluded[i], observed[i] + excluded[i] - active[i]);")
def window_excluded_outside_the_period(inputs: CircuitInputs) -> None:
    inputs["excluded"][24] = 1


@lie("Boolean()(observed[i]);")
def excluded_window_observed_minus_once(inputs: CircuitInputs) -> None:
    _clear(inputs, 3)
    inputs["observed"][3] = R - 1
    inputs["excluded"][3] = 1


@lie("Boolean()(excluded[i]);")
def observed_window_excluded_minus_once(inputs: CircuitInputs) -> None:
    inputs["excluded"][3] = R - 1


@lie("Boolean()(active[i]);")
def last_window_counted_twice(inputs: CircuitInputs) -> None:
    inputs["active"][24] = 2


@lie("Excludes()(active[i], 1 - active[i - 1]);")
def hole_in_the_active_windows(inputs: CircuitInputs) -> None:
    _clear(inputs, 5)
    inputs["active"][5] = 0


@lie("Same()(active[0], 1);")
def period_of_no_window(inputs: CircuitInputs) -> None:
    for index in range(25):
        _clear(inputs, index)
        inputs["active"][index] = 0


@lie("Same()(active[0], 1);")
def first_window_left_out(inputs: CircuitInputs) -> None:
    _clear(inputs, 0)
    inputs["active"][0] = 0


@lie("Zero()(uncovered);")
def coverage_below_the_floor(inputs: CircuitInputs) -> None:
    for index in range(3):
        _clear(inputs, index)


@lie("Excludes()(1 - used, good + bad);")
def counts_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["good"][0][3] = 1


@lie("Excludes()(active[i], 1 - activeBefore);", blocks=2)
def hole_in_the_active_windows_at_the_end_of_a_block(inputs: CircuitInputs) -> None:
    _clear(inputs, 24)
    inputs["active"][24] = 0


# --- terms ------------------------------------------------------------------------------------------


@lie("AtMost(14, 10000)(floorBps);")
def floor_above_one_hundred_percent(inputs: CircuitInputs) -> None:
    inputs["floorBps"] = R - 1


@lie("AtMost(30, 1000000000)(target);")
def target_above_one(inputs: CircuitInputs) -> None:
    inputs["target"][0] = 1_000_000_001


@lie("Excludes()(1 - used, target);")
def target_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["target"][3] = 1


@lie("Excludes()(1 - used, threshold[0]);")
def tiers_of_an_unused_objective(inputs: CircuitInputs) -> None:
    inputs["threshold"][3][0] = 990_000_000


@lie("Boolean()(used);")
def empty_slot_shown_as_met(inputs: CircuitInputs) -> None:
    inputs["used"][3] = 2


@lie("Excludes()(1 - falls[k], 1 - unusedTier[k]);")
def thresholds_rise(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [950_000_000, 990_000_000, 999_000_000, 0]


@lie("Excludes()(1 - falls[k], 1 - unusedTier[k]);")
def thresholds_repeat(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [999_000_000, 999_000_000, 0, 0]
    inputs["tierBps"][0] = [1000, 500, 0, 0]


@lie("Excludes()(1 - falls[k], 1 - unusedTier[k]);")
def hole_in_the_tiers(inputs: CircuitInputs) -> None:
    inputs["threshold"][0] = [999_000_000, 0, 950_000_000, 0]
    inputs["tierBps"][0] = [1000, 0, 10_000, 0]


@lie("Excludes()(unusedTier[k], tierBps[k]);")
def percentage_of_an_unused_tier(inputs: CircuitInputs) -> None:
    inputs["tierBps"][0][3] = 5


@lie("AtMost(30, 1000000000)(threshold[k]);")
def first_threshold_above_one(inputs: CircuitInputs) -> None:
    inputs["threshold"][0][0] = 1_000_000_001


@lie("Range(30)(threshold[k]);")
def later_threshold_negative(inputs: CircuitInputs) -> None:
    inputs["threshold"][0][2] = R - 1


@lie("Excludes()(halfUp, halfEven);")
def rounding_mode_three(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = inputs["halfEven"] = 1


@lie("Boolean()(sumCapped);")
def rounding_signed_as_half_up_proved_as_floor(inputs: CircuitInputs) -> None:
    """flags = 2 either way, so the terms hash is the signed one."""
    inputs["sumCapped"] = 2


@lie("Boolean()(halfUp);")
def half_up_signed_as_hidden_credit(inputs: CircuitInputs) -> None:
    inputs["halfUp"] = 4


@lie("Boolean()(halfEven);")
def half_even_signed_as_hidden_credit(inputs: CircuitInputs) -> None:
    inputs["halfEven"] = 2


@lie("Boolean()(exact);")
def exact_by_half(inputs: CircuitInputs) -> None:
    """Sixteen halves are the flag of a committed credit: signed as that, proved as neither."""
    inputs["exact"] = pow(2, -1, R)


@lie("Boolean()(hidden);")
def hidden_by_two(inputs: CircuitInputs) -> None:
    inputs["hidden"] = 2


# --- money ------------------------------------------------------------------------------------------


@lie("Range(64)(minimum);")
def minimum_minus_one(inputs: CircuitInputs) -> None:
    inputs["minimum"] = R - 1


@lie("Range(64)(fee);")
def fee_above_64_bits(inputs: CircuitInputs) -> None:
    inputs["fee"] = 1 << 64


@lie("Range(64)(cap);")
def cap_above_64_bits(inputs: CircuitInputs) -> None:
    inputs["cap"] = 1 << 64


# --- a false value that the circuit's own hashes and division do not follow ---------------------------


@lie("AtMost(14, 9999)(remainder);", committed=False)
def quotient_one_too_high(inputs: CircuitInputs) -> None:
    inputs["quotient"] += 1
    inputs["remainder"] += R - 10_000


@lie("AtMost(14, 9999)(remainder);", committed=False)
def quotient_one_too_low(inputs: CircuitInputs) -> None:
    inputs["quotient"] -= 1
    inputs["remainder"] += 10_000


@lie("Same()(amount, quotient * 10000 + remainder);", committed=False)
def quotient_of_another_amount(inputs: CircuitInputs) -> None:
    inputs["quotient"] += 1


@lie("Same()(baseCommit, base);", committed=False)
def fee_of_another_commitment(inputs: CircuitInputs) -> None:
    inputs["fee"] += 10_000
    inputs["quotient"] += 1000


@lie("Same()(telemetryRoot, root);", committed=False)
def counts_of_another_root(inputs: CircuitInputs) -> None:
    root = inputs["telemetryRoot"]
    for row in inputs["bad"]:
        row[0] = 0
    commit(inputs)
    inputs["telemetryRoot"] = root


@lie("Same()(termsHash, terms);", committed=False)
def terms_of_another_hash(inputs: CircuitInputs) -> None:
    signed = inputs["termsHash"]
    inputs["cap"] = 1000
    commit(inputs)
    inputs["termsHash"] = signed
