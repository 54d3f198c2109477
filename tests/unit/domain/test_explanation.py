"""An explanation is enough to redo a statement by hand: with plain whole numbers, from its figures alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.explanation import MAX_LISTED, Holdings, explain
from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.domain import samples
from tests.unit.domain.test_budget import judged

HOUR_NS = 3600 * 10**9
TIERS = [{"below": "99", "credit_percent": "10"}, {"below": "90", "credit_percent": "30"}]
DOWN = {"error_rate": "10", "boundary": "above"}
METHODS: Mapping[str, dict[str, Any]] = {
    "total_ratio": {},
    "exact_quantile": {"indicator": "response_latency", "quantile": "0.99", "threshold_ms": "3200"},
    "graded_score-v1": {
        "indicator": "response_latency",
        "grades": [{"at_most_ms": "1000", "score": "1"}, {"at_most_ms": "3000", "score": "0.5"}],
    },
    "interval_mean-v1": {"interval": "PT5M"},
    "downtime_minutes-v1": {**DOWN, "minimum_run": 2, "minimum_valid": 3},
    "interval_threshold-v1": {**DOWN, "interval": "PT5M", "denominator": "full"},
    "deployment_minutes-v1": {"indicator": "deployment_up", "denominator": "full"},
    "attainment-v1": {
        "slice": {"window": "PT5M", "step": "PT1M", "target": "95", "minimum_valid": 5, "consecutive": 3}
    },
}
"""Every method, with parameters that matter."""


def terms(method: str, rules: Sequence[Mapping[str, Any]] = (), **money: Any) -> Agreement:
    """One objective by a method, minute by minute."""

    def change(plain: dict[str, Any]) -> None:
        plain |= {"window": "PT1M", "coverage_floor": "50"}
        plain["effective"] = {"from": "2023-06-14", "until": "2023-12-14"}
        objective = {"id": "kept", "indicator": "availability", "target": "99", "method": method, **METHODS[method]}
        plain["objectives"] = [{**objective, "clause": "Annex 2, 3.1"}]
        tiered = {"kind": "tiered", "method": "tiered-v1", "tiers": {"kept": TIERS}}
        plain["compensation"] |= {"rules": list(rules) or [tiered], **money}

    return samples.agreement(change)


def issued_of(agreement: Agreement, found: Settlement) -> dict[str, Any]:
    """What a statement of it says, as far as an explanation reads it."""
    interval = found.period.interval
    return {
        **found.as_document(),
        "statement_id": "1f0c3a9b7e21.2023-06-14.v1",
        "sla_id": "0x" + "1f" * 32,
        "statement_version": 1,
        "terms_version": 1,
        "doc_sha256": agreement.doc_sha256.hex(),
        "period": str(found.period),
        "start_ns": str(interval.start_ns),
        "end_ns": str(interval.end_ns),
        "attestable": False,
    }


def payloads(agreement: Agreement, windows: Sequence[Window]) -> list[dict[str, Any]]:
    return [
        {
            "index": at,
            "start_ns": str(window.interval.start_ns),
            "end_ns": str(window.interval.end_ns),
            "state": str(window.state),
            "cells": {
                objective.id: cell.as_document()
                for objective, cell in zip(agreement.objectives, window.cells, strict=True)
            },
            "excluded_requests": {},
        }
        for at, window in enumerate(windows)
    ]


def explained(agreement: Agreement, windows: Sequence[Window], *, all_windows: bool = True) -> tuple[Any, Settlement]:
    """The explanation, once through JSON, so that nothing in it is more than that."""
    found = settle(agreement, agreement.period_starting(agreement.effective_from), windows)
    held = Holdings(windows=payloads(agreement, windows))
    document = explain(agreement, issued_of(agreement, found), held, all_windows=all_windows)
    return json.loads(json.dumps(document)), found


def by_hand(objective: Any) -> tuple[int, int]:
    """good and valid of an objective, from the listed units by the formula of its method."""
    units = objective["units"]["listed"]
    name = objective["method"]["name"]
    if name in ("total_ratio", "exact_quantile", "graded_score-v1", "deployment_minutes-v1"):
        good = sum(unit["good"] for unit in units)
        return good, good + sum(unit["bad"] + unit["undecided"] for unit in units)
    counted = [unit for unit in units if unit["counted"]]
    if name == "interval_mean-v1":
        lost = sum(
            (Fraction(unit["bad"] * 10**9, unit["good"] + unit["bad"]) for unit in counted if unit["bad"]), Fraction(0)
        )
        valid = len(counted) * 10**9
        return valid - -(-lost.numerator // lost.denominator), valid
    return len(counted) - sum(unit["lost"] for unit in units), len(counted)


def credit_by_hand(document: Any) -> int:
    """The credit from the explanation's steps, with whole numbers and fractions of them."""
    amount, credit, verdict = Fraction(0), 0, document["objectives"][0]["verdict"]
    assert verdict["holds"] == (int(verdict["left"]) >= int(verdict["right"]))
    percentages: list[int] = []
    amounts: list[Fraction] = []
    scopes: list[Fraction] = []
    base = Fraction(0)
    for step in document["credit"]["steps"]:
        if step["step"] == "base":
            base = Fraction(int(step["result"]))
        elif step["step"] == "tier":
            reached = [each["credit_bps"] for each in step["compared"] if int(each["left"]) < int(each["right"])]
            percentages.append(reached[-1] if reached else 0)
        elif step["step"] == "tiers":
            bps = max(percentages) if step["combine"] == "best" else min(sum(percentages), 10_000)
            amounts.append(base * bps / 10_000)
        elif step["step"] == "impact":
            price = fraction(step["price_per_request"])
            amounts.append(sum((each["valid"] * price for each in step["incidents"]), Fraction(0)))
        elif step["step"] == "rule":
            earned = [fraction(each["amount"]) for each in step["incidents"]]
            amounts.append(sum(earned, Fraction(0)))
        elif step["step"] == "combined":
            amount = max(amounts) if step["combine"] == "best" else sum(amounts, Fraction(0))
        elif step["step"] == "scope":
            parts = [fraction(each["amount"]) for each in step["parts"]]
            scopes.append(min(sum(parts, Fraction(0)), fraction(step["limit"])))
        elif step["step"] == "scopes":
            amount = sum(scopes, Fraction(0))
        elif step["step"] == "cap":
            amount = min(amount, fraction(step["limit"]))
        elif step["step"] == "minimum":
            amount = amount if amount > int(step["minimum"]) else Fraction(0)
        elif step["step"] == "rounding":
            credit, rest = divmod(amount.numerator, amount.denominator)
            above = 2 * rest > amount.denominator or (2 * rest == amount.denominator and credit % 2 == 1)
            credit += {"floor": 0, "half_even": above, "half_up": 2 * rest >= amount.denominator}[step["rounding"]]
    return credit


def by_rule(document: Any, step: Any) -> list[Fraction]:
    """What each incident earns by the factor or the table, from the figures of the step and of the coverage."""
    rule, states = step["terms"], document["coverage"]["states"]
    full = "with them" in rule["falls"]
    window_ns = document["coverage"]["window_seconds"] * 10**9
    price = None if rule["hourly_price"] is None else Fraction(int(rule["hourly_price"]), HOUR_NS)
    base = fraction(step["base"]) if step["base"] else Fraction(0)
    period_ns = window_ns * (len(states) if full else len(states) - states.count("e"))
    lengths = [int(each["end_ns"]) - int(each["start_ns"]) for each in step["incidents"]]
    if "rows" in rule:
        return [_by_row(rule["rows"], length, base, price or base / period_ns) for length in lengths]
    factor, unit = fraction(rule["factor"]), int(rule["round_up_ns"])
    paid = [length if length > int(rule["longer_than_ns"]) else 0 for length in lengths]
    if rule["rounded"] == "all together":
        whole = rounded_up(sum(paid) * factor, unit)
        credited = [Fraction(whole * length, sum(paid)) if length else Fraction(0) for length in paid]
    else:
        credited = [Fraction(rounded_up(length * factor, unit)) for length in paid]
    runs = [range(each["first_window"], each["first_window"] + each["windows"]) for each in step["incidents"]]
    not_excluded = [Fraction(sum(states[at] != "e" for at in run), len(run)) for run in runs]
    rates = [price or base / period_ns * part for part in not_excluded]
    earned = [time * rate for time, rate in zip(credited, rates, strict=True)]
    cap = rule["incident_cap_bps"]
    return earned if cap is None else [min(each, base * cap / 10_000) for each in earned]


def _by_row(rows: Any, length: int, base: Fraction, price: Fraction) -> Fraction:
    for row in rows:
        if int(row["from_ns"]) <= length and (row["below_ns"] is None or length < int(row["below_ns"])):
            return base * row["credit_bps"] / 10_000 if row["credit_ns"] is None else int(row["credit_ns"]) * price
    return Fraction(0)


def rounded_up(time: Fraction, unit: int) -> int:
    return -(-int(time) // unit) * unit if unit else int(time)


def fraction(ratio: Mapping[str, str]) -> Fraction:
    return Fraction(int(ratio["numerator"]), int(ratio["denominator"]))


CELLS = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 40), st.integers(0, 6))), min_size=1, max_size=40)


@pytest.mark.long
@pytest.mark.parametrize("method", sorted(METHODS))
@settings(max_examples=12, deadline=None)
@given(cells=CELLS, gone=st.sets(st.integers(0, 30), max_size=3))
def test_a_reader_comes_to_the_same_by_hand(method: str, cells: list[tuple[int, int] | None], gone: set[int]) -> None:
    agreement = terms(method, base="1000.01", rounding="half_even")
    padded = [*cells, *[(5, 0)] * (1440 - len(cells))]
    windows = judged(agreement, padded, excluded=sorted(gone))
    document, found = explained(agreement, windows)
    (objective,) = document["objectives"]
    assert by_hand(objective) == (objective["counts"]["good"], objective["counts"]["valid"])
    assert by_hand(objective) == (found.objectives[0].good, found.objectives[0].valid)
    assert credit_by_hand(document) == found.credit == int(document["credit"]["minor_units"])


def test_an_impact_rule_by_hand() -> None:
    rule = {
        "kind": "impact",
        "method": "impact-v1",
        "objective": "kept",
        "unit_price": "0.333",
        "level_coefficients": {"L1": "1", "L2": "2.5", "L3": "6", "L4": "15"},
    }
    agreement = terms("total_ratio", [rule], minimum="0", caps={})
    windows = judged(agreement, [(10, 0), (0, 7), (1, 6), *[(10, 0)] * 1437])
    document, found = explained(agreement, windows)
    assert found.credit
    assert credit_by_hand(document) == found.credit


def test_a_cap_for_each_scope_by_hand() -> None:
    tiers = dict.fromkeys(("eu", "us"), TIERS)
    money = {"minimum": "0", "tiers_combine": "sum", "caps": {"scope": "123.45", "contract": "200.01"}}

    def change(plain: dict[str, Any]) -> None:
        plain["objectives"] = [
            {"id": at, "indicator": "availability", "target": "99", "method": "total_ratio", "scope": {"region": at}}
            for at in tiers
        ]
        plain["effective"] = {"from": "2023-06-14", "until": "2023-12-14"}
        plain["compensation"] |= {"rules": [{"kind": "tiered", "method": "tiered-v1", "tiers": tiers}], **money}

    agreement = samples.agreement(change)
    windows = samples.windows(agreement, {3: ((1, 9), (80, 20)), 4: ((5, 5), (9, 1))})
    document, found = explained(agreement, windows)
    assert [step["step"] for step in document["credit"]["steps"]][-6:] == [
        *("scope", "scope", "scopes", "cap", "minimum", "rounding"),
    ]
    assert credit_by_hand(document) == found.credit == 20_001


def test_a_rule_for_lost_time_by_hand() -> None:
    rule = {"kind": "proportional", "method": "proportional-v1", "objective": "kept", "of": "lost_time"}
    agreement = terms("downtime_minutes-v1", [rule], minimum="0", caps={"contract": "50 %"})
    windows = judged(agreement, [(10, 0), *[(0, 7)] * 100, *[(10, 0)] * 1339])
    document, found = explained(agreement, windows)
    assert found.credit
    assert credit_by_hand(document) == found.credit
    (incident,) = next(step for step in document["credit"]["steps"] if step["step"] == "rule")["incidents"]
    # 100 of 1,440 minutes of the base of the day.
    assert fraction(incident["amount"]) == Fraction(agreement.compensation.base * 100, 1440)


BY_FACTOR = {"kind": "multiplier", "method": "multiplier-v1", "objective": "kept", "factor": "2.5"}
BY_TABLE = {"kind": "step_table", "method": "step_table-v1", "objective": "kept"}
ROWS = [
    {"from_minutes": "5", "below_minutes": "60", "hours": "4"},
    {"from_minutes": "60", "hours": "24"},
]
SHARES = [{"from_minutes": "3", "below_minutes": "50", "percent": "10"}, {"from_minutes": "50", "percent": "25.5"}]


@pytest.mark.parametrize(
    "rule",
    [
        {**BY_FACTOR, "per": "incident"},
        {**BY_FACTOR, "per": "incident", "longer_than": "PT5M", "round_up_to": "PT1H", "denominator": "full"},
        {**BY_FACTOR, "per": "period", "round_up_to": "PT1H", "hourly_price": "0.99"},
        {**BY_FACTOR, "per": "incident", "hourly_price": "9000", "incident_cap": "12.5 %"},
        {**BY_TABLE, "rows": ROWS},
        {**BY_TABLE, "rows": ROWS, "denominator": "full"},
        {**BY_TABLE, "rows": ROWS, "hourly_price": "1.25"},
        {**BY_TABLE, "rows": SHARES},
    ],
)
@pytest.mark.parametrize("gone", [(), (700, 701)])
def test_a_factor_and_a_table_stand_in_the_explanation(rule: dict[str, Any], gone: tuple[int, ...]) -> None:
    agreement = terms("downtime_minutes-v1", [rule], base="1000.01", minimum="0", caps={}, rounding="half_even")
    down = [*[(0, 7)] * 5, *[(10, 0)] * 20, *[(0, 7)] * 90, (10, 0), *[(0, 7)] * 4]
    document, found = explained(agreement, judged(agreement, [*down, *[(10, 0)] * (1440 - len(down))], excluded=gone))
    assert found.credit
    (step,) = (step for step in document["credit"]["steps"] if step["step"] == "rule")
    assert [fraction(each["amount"]) for each in step["incidents"]] == by_rule(document, step)
    assert credit_by_hand(document) == found.credit


@pytest.mark.parametrize("denominator", ["scheduled", "full"])
def test_no_share_of_the_base_falls_on_what_is_excluded_inside_an_incident(denominator: str) -> None:
    """Two intervals of five minutes are down, and three of these minutes were left out."""
    rule = {**BY_FACTOR, "per": "incident", "factor": "1", "denominator": denominator}
    agreement = terms("interval_threshold-v1", [rule], base="1000.01", minimum="0", caps={}, rounding="half_even")
    windows = judged(agreement, [*[(0, 7)] * 10, *[(10, 0)] * 1430], excluded=(1, 2, 7))
    document, found = explained(agreement, windows)
    (step,) = (step for step in document["credit"]["steps"] if step["step"] == "rule")
    (earned,) = by_rule(document, step)
    assert earned == fraction(step["amount"]) == Fraction(100_001 * 7, 1440 if denominator == "full" else 1437)
    assert credit_by_hand(document) == found.credit


def test_it_names_clause_method_formula_and_what_was_signed() -> None:
    document, _ = explained(terms("attainment-v1"), judged(terms("attainment-v1"), [(10, 0)] * 1440))
    (objective,) = document["objectives"]
    assert objective["clause"] == "Annex 2, 3.1"
    assert (objective["method"]["name"], objective["method"]["version"]) == ("attainment-v1", 1)
    assert "slices judged" in objective["method"]["formula"]
    assert objective["parameters"] == {"target": "99", "slice": METHODS["attainment-v1"]["slice"]}


def test_it_says_in_words_which_requests_an_objective_is_about() -> None:
    def change(plain: dict[str, Any]) -> None:
        plain["effective"]["from"] = "2023-06-14"
        plain["objectives"] = [plain["objectives"][0], {**plain["objectives"][0], "id": "short"}]
        plain["compensation"]["rules"][0]["tiers"] = {"short": TIERS}
        plain["objectives"][1]["where"] = {"input_tokens_at_most": 4096, "model": "chat-7b 2.1"}

    agreement = samples.agreement(change)
    document, _ = explained(agreement, samples.windows(agreement, {3: ((9, 1), (4, 0))}))
    whole, short = document["objectives"]
    assert whole["selects"] is None
    assert short["selects"] == (
        "only requests of at most 4096 input tokens, or that do not say how many, "
        "and of these only requests that name the model 'chat-7b 2.1'"
    )
    assert short["parameters"]["where"] == {"input_tokens_at_most": 4096, "model": "chat-7b 2.1"}
    assert (short["counts"]["good"], short["counts"]["valid"]) == (4, 4)


def test_lists_are_bounded_and_what_is_left_out_is_summed() -> None:
    agreement = terms("total_ratio")
    windows = judged(agreement, [(9, 1)] * 1440)
    document, _ = explained(agreement, windows, all_windows=False)
    units = document["objectives"][0]["units"]
    assert len(units["listed"]) == MAX_LISTED
    assert (units["total"], units["lost"]) == (1440, 1440)
    assert units["others"]["bad"] == 1440 - MAX_LISTED
    good = units["others"]["good"] + sum(unit["good"] for unit in units["listed"])
    assert good == document["objectives"][0]["counts"]["good"]


def test_only_what_was_bad_is_listed_unless_all_are_asked_for() -> None:
    agreement = terms("total_ratio")
    windows = judged(agreement, [(9, 1), *[(9, 0)] * 1439])
    short, _ = explained(agreement, windows, all_windows=False)
    assert [unit["first_window"] for unit in short["objectives"][0]["units"]["listed"]] == [0]
    whole, _ = explained(agreement, windows)
    assert len(whole["objectives"][0]["units"]["listed"]) == 1440


def test_missing_and_excluded_windows_are_told_with_what_took_them_out() -> None:
    agreement = terms("total_ratio")
    windows = judged(agreement, [(9, 0), None, None, *[(0, 0)] * 1437], excluded=[5, 6])
    found = settle(agreement, agreement.period_starting(agreement.effective_from), windows)
    held = payloads(agreement, windows)
    held[5] |= {"exclusions": {"gray-release": 0}, "excluded_requests": {"limited": 3}}
    coverage = explain(agreement, issued_of(agreement, found), Holdings(windows=held))["coverage"]
    assert coverage["states"][:8] == "onniieei"
    assert (coverage["no_data"], coverage["without_data"]["total"]) == (2, 2)
    (out,) = coverage["left_out"]["listed"]
    assert (out["first_window"], out["windows"], out["exclusions"]) == (5, 2, ["gray-release"])
    assert coverage["requests_left_out"]["by_clause"] == {"limited": 3}
    floor = coverage["floor"]
    assert (floor["left"], floor["right"], floor["holds"]) == (str(1436 * 10_000), str(1438 * 5_000), True)


def test_a_withheld_statement_has_no_steps_and_says_why() -> None:
    agreement = terms("total_ratio")
    document, found = explained(agreement, judged(agreement, [(9, 1)] * 10))
    assert (found.credit, document["credit"]) == (None, None)
    assert document["coverage"]["floor"]["holds"] is False
    assert "coverage is below the floor" in document["objectives"][0]["verdict"]["follows"]


def test_without_windows_as_in_a_bundle_the_rest_is_told() -> None:
    agreement = terms("total_ratio")
    windows = judged(agreement, [(9, 1)] * 1440)
    found = settle(agreement, agreement.period_starting(agreement.effective_from), windows)
    document = explain(agreement, issued_of(agreement, found), Holdings())
    assert document["objectives"][0]["units"] is document["coverage"]["states"] is document["violations"] is None
    assert credit_by_hand(document) == found.credit


def test_every_state_of_a_window_has_a_letter() -> None:
    agreement = terms("total_ratio")
    document, _ = explained(agreement, judged(agreement, [(1, 0), None, (0, 0), (1, 0)], excluded=[3]))
    assert set(document["coverage"]["states"]) == {"o", "n", "i", "e"}


def test_a_restatement_says_what_differs_and_from_which() -> None:
    agreement = terms("total_ratio")
    windows = judged(agreement, [(9, 1)] * 1440)
    found = settle(agreement, agreement.period_starting(agreement.effective_from), windows)
    link = {"statement_id": "1f0c3a9b7e21.2023-06-14.v1", "event_id": "e", "facts": []}
    delta = {"currency": "USD", "old": "1", "new": "3", "difference": "2"}
    issued = issued_of(agreement, found) | {
        "restates": link,
        "reason": "late facts",
        "objective_deltas": [],
        "credit_delta": delta,
    }
    document = explain(agreement, issued, Holdings())
    assert document["restatement"] == {
        "restates": link,
        "reason": "late facts",
        "objective_deltas": [],
        "credit_delta": delta,
    }


def test_the_sentence_about_confidence_decides_as_the_verdict_does() -> None:
    """With what is undecided as good, around the bound."""

    def change(plain: dict[str, Any]) -> None:
        plain |= {"window": "PT1H"}
        plain["objectives"] = [
            {"id": "kept", "method": "total_ratio", "indicator": "availability", "target": "99"}
            | {"confidence": "wilson-95"}
        ]
        plain["compensation"]["rules"] = [{"kind": "tiered", "method": "tiered-v1", "tiers": {"kept": TIERS}}]

    agreement, states = samples.agreement(change), set()
    for bad in range(10, 24):
        cell = Cell(1_000 - bad - 4, bad, 4)
        windows = [Window(each, WindowState.OBSERVED, (Cell(0, 0),)) for each in agreement.windows(_first(agreement))]
        windows[3] = Window(windows[3].interval, WindowState.OBSERVED, (cell,))
        (kept,) = explained(agreement, windows)[0]["objectives"]
        sentence = kept["verdict"]["confidence"].removeprefix("breached only where ").partition(": ")[0]
        formula = sentence.replace(" x ", " * ").replace("^", "**").replace("is above", ">")
        counts = {name: kept["counts"][name] for name in ("good", "valid", "undecided")}
        holds = eval(formula, {}, {**counts, "target": kept["verdict"]["target_ppb"]})
        missed = not kept["verdict"]["with_undecided"]["holds"]
        assert (kept["state"] == "breached") == (missed and holds)
        states.add(kept["state"])
    assert states == {"breached", "insufficient_data"}


def _first(agreement: Agreement) -> Period:
    return agreement.period_starting(agreement.effective_from)
