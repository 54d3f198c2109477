"""Incidents and the proof of their credit for ``outsider``: sections 8, 11 and 12 of docs/attestation-format.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from tests.vectors.outsider_credit import fraction, price, rounded, trace
from tests.vectors.outsider_hashes import R, h, poseidon, tag
from tests.vectors.outsider_terms import Period, Terms, ppb, scaled, seconds

LISTED = ("first_window", "windows", "good", "valid")


class Rule(NamedTuple):
    """The impact rule in billionths; ``objective`` by position."""

    objective: int
    coefficient: int
    price: int
    sums: bool


def rule_of(terms: Terms) -> Rule | None:
    ids = [each["id"] for each in terms.objectives]
    for rule in terms.paid["rules"]:
        if rule["kind"] == "impact":
            coefficient = scaled(rule["level_coefficients"][terms.doc["business_level"]], 10**9)
            unit = scaled(rule["unit_price"], 10**9) * terms.money("1")
            return Rule(ids.index(rule["objective"]), coefficient, unit, terms.paid["rules_combine"] == "sum")
    return None


def full_trace(terms: Terms, period: Period, results: list[Any], said: Any) -> dict[str, Any]:
    """Every step of a credit of tiers and of the incidents that a statement lists."""
    rule, found = rule_of(terms), trace(terms, period, results)
    if rule is None:
        return found
    objective, spans = terms.objectives[rule.objective], terms.window_spans(period)
    per_request, end, listed = Fraction(rule.coefficient * rule.price, 10**18), -1, []
    left = [results[rule.objective]["good"], results[rule.objective]["valid"] - results[rule.objective]["good"]]
    assert isinstance(said["incidents"], list)
    for each in said["incidents"]:
        first, count, good, valid = (each[name] for name in LISTED)
        assert all(type(value) is int for value in (first, count, good, valid))
        assert end < first
        assert count > 0
        assert 0 <= good <= valid
        end = first + count
        assert end <= len(spans)
        left = [left[0] - good, left[1] - (valid - good)]
        assert terms.reasons or breaks(objective, good, valid - good)
        numbers = dict(zip(LISTED, (first, count, good, valid), strict=True))
        times = {"start_ns": str(spans[first].start), "end_ns": str(spans[end - 1].end)}
        listed.append({"objective": objective["id"], **numbers, **times, "amount": fraction(valid * per_request)})
    assert min(left) >= 0
    filled = len(spans) * terms.window % seconds(objective["window"]) == 0 if "window" in objective else True
    assert terms.reasons or not filled or not breaks(objective, *left)
    impact = sum((each["valid"] for each in listed), 0) * per_request
    tiers = found["tier_amount"]
    amounts = [impact] + ([] if tiers is None else [Fraction(int(tiers["numerator"]), int(tiers["denominator"]))])
    combined = sum(amounts, Fraction(0)) if rule.sums else max(amounts)
    capped = min(combined, Fraction(terms.cap))
    payable = capped > terms.money(terms.paid["minimum"])
    return found | {
        "price_per_request": price(terms),
        "incidents": listed,
        "impact_amount": fraction(impact),
        "combined_amount": fraction(combined),
        "capped_amount": fraction(capped),
        "payable": payable,
        "credit": str(rounded(capped, terms.paid["rounding"]) if payable else 0),
    }


def counted(terms: Terms, counts: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The incidents of good and bad counts of every window: as long as they can be, with first window, number of
    windows, good and valid."""
    rule = rule_of(terms)
    assert rule is not None
    objective, found = terms.objectives[rule.objective], list[tuple[int, ...]]()
    step = seconds(objective["window"]) // terms.window if "window" in objective else 1
    for first in range(0, len(counts) - step + 1, step):
        group = counts[first : first + step]
        good, bad = (sum(each[side] for each in group) for side in (0, 1))
        if not breaks(objective, good, bad):
            continue
        run: tuple[int, ...] = (first, len(group), good, good + bad)
        if found and found[-1][0] + found[-1][1] == first:
            begin, *before = found.pop()
            run = (begin, *(one + other for one, other in zip(before, run[1:], strict=True)))
        found.append(run)
    return found


def breaks(objective: Any, good: int, bad: int) -> bool:
    if objective["method"] == "deployment_minutes-v1":
        return bad > 0
    return good * 10**9 < (good + bad) * ppb(objective["target"])


def require_second(terms: Terms, seal_key: int, said: Any, first: list[int], second: Any) -> None:
    """The signals of the second proof, but for its ctx, follow from the statement and the first."""
    rule, signals = rule_of(terms), [int(signal) for signal in second["signals"]]
    assert rule is not None
    assert all(signal < R for signal in signals)
    listed = said["trace"]["incidents"]
    if listed[64:]:
        sums = {name: sum(each[name] for each in listed[63:]) for name in LISTED[1:]}
        listed = [*listed[:63], {"first_window": listed[63]["first_window"], **sums}]
    assert signals[0] == len(listed) + (sum(each["windows"] for each in listed) << 8)
    assert (signals[2], signals[3], signals[4]) == (first[2], first[1], terms.hash)
    packed = [
        each["first_window"] | each["windows"] << 10 | each["good"] << 20 | (each["valid"] - each["good"]) << 58
        for each in listed
    ]
    head = [seal_key, rule.coefficient, rule.price, int(rule.sums), len(packed)]
    assert signals[5] == h("incidents", [*head, *packed, *[0] * (64 - len(packed))])
    require_amount(terms, second["credit_salt"], "total", signals[2], int(said["credit"]["minor_units"]), signals[1])


def require_amount(terms: Terms, salt: str | None, name: str, ctx: int, amount: int, signal: int) -> None:
    """A signal is an amount, or the commitment that the salt opens, as the terms say."""
    assert (salt is not None) == (terms.paid["credit_visibility"] == "committed")
    assert signal == (amount if salt is None else poseidon(tag(name), ctx, amount, int(salt)))
