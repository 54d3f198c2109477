"""States of statements that no circuit proves are worked out again from what they say, and lies about them refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ledger.attest.checks.case import Case
from ledger.attest.checks.statement_checks import verdict
from ledger.domain.credits.settlement import settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import Window
from ledger.errors import BundleCheckFailed
from tests.support import examples
from tests.unit.domain import samples

MEMORY = {"id": "memory", "method": "total_ratio", "indicator": "oom_avoidance", "target": "98"}
UPTIME = {"id": "memory", "method": "total_ratio", "indicator": "availability", "target": "98"}


def case(objective: dict[str, Any], *counts: int, **said: Any) -> Case:
    """A bundle of a day in which one hour had these counts; ``said`` is what its result says instead."""
    bundle = copy.deepcopy(dict(examples.bundle()))
    tiers = {"memory": [{"below": "98", "credit_percent": "10"}]}
    rules = [{"kind": "tiered", "method": "tiered-v1", "tiers": tiers}]
    document = bundle["agreement"]
    bundle["agreement"] = {
        **document,
        "objectives": [objective],
        "compensation": {**document["compensation"], "rules": rules},
    }
    agreement = Agreement.from_document(bundle["agreement"])
    issued = bundle["statement"]["payload"]
    period = period_named(agreement, issued["period"])
    cells = [samples.Cell(0, 0)] * agreement.window_count(period)
    cells[3] = samples.Cell(*counts)
    windows = [
        Window(interval, samples.WindowState.OBSERVED, (cell,))
        for interval, cell in zip(agreement.windows(period), cells, strict=True)
    ]
    settlement = settle(agreement, period, windows)
    issued |= settlement.as_document() | {
        "attestable": not settlement.not_attestable,
        "unattested_reasons": list(settlement.not_attestable),
    }
    issued["objectives"][0].update(said)
    if settlement.not_attestable:
        bundle |= dict.fromkeys(("context", "base", "credit_salt", "anchor", "proof"))
    return Case(bundle)


WILSON = {"confidence": "wilson-95"}
LITTLE = {"minimum_valid": 50}


@pytest.mark.parametrize(
    ("objective", "counts", "state"),
    [
        (MEMORY, (95, 1), "met"),
        (MEMORY, (90, 1, 5), "insufficient_data"),
        (MEMORY, (90, 5, 1), "breached"),
        (MEMORY, (99, 0, 1), "met"),
        (MEMORY | LITTLE, (10, 39), "insufficient_data"),
        (MEMORY | LITTLE, (10, 40), "breached"),
        (MEMORY | WILSON, (97, 3), "insufficient_data"),
        (MEMORY | WILSON, (80, 20), "breached"),
        (UPTIME | LITTLE, (10, 39), "insufficient_data"),
    ],
)
def test_the_state_of_an_honest_statement_holds_and_no_other(
    objective: dict[str, Any], counts: tuple[int, ...], state: str
) -> None:
    assert f" {state};" in verdict(case(objective, *counts))
    for other in {"met", "breached", "insufficient_data", "no_data", "withheld"} - {state}:
        with pytest.raises(BundleCheckFailed):
            verdict(case(objective, *counts, state=other))


def test_who_says_that_counts_are_open_says_that_there_is_no_proof_and_the_other_way_round() -> None:
    hidden = case(MEMORY, 90, 1, 5)
    del hidden.bundle["statement"]["payload"]["objectives"][0]["undecided"]
    with pytest.raises(BundleCheckFailed, match="attestable is not what the terms say"):
        verdict(hidden)
    with pytest.raises(BundleCheckFailed, match="attestable is not what the terms say"):
        verdict(case(MEMORY, 90, 6, undecided=5))


def test_more_is_not_good_than_was_valid() -> None:
    with pytest.raises(BundleCheckFailed, match="more good requests than valid ones"):
        verdict(case(MEMORY, 90, 1, 5, undecided=7))
