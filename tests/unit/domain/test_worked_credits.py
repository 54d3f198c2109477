"""The money of the worked cases: exact tiers, floors for people, and a cap of half the base."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.output import percent_floored
from ledger.domain.credits.compensation import credit_trace
from ledger.domain.credits.settlement import settle
from ledger.domain.credits.verdict import ObjectiveResult, judge
from ledger.domain.money import format_minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, Window, WindowState
from tests.unit.domain.samples import agreement


def case(folder: Path, name: str) -> Any:
    return json.loads((folder / "sla/cases" / name).read_text())


def terms(given: Any, objective: dict[str, Any], **members: Any) -> Agreement:
    """An agreement with one objective, the tiers of a case and its base; the first tier begins at the target."""

    def change(plain: dict[str, Any]) -> None:
        tiers = given["tiers"]
        plain.update(members)
        plain["objectives"] = [{"id": "uptime", "indicator": "availability", "target": tiers[0]["lt"], **objective}]
        base = given.get("base", {"amount": "1000.00", "currency": "USD"})
        steps = [{"below": tier["lt"], "credit_percent": tier["credit_percent"]} for tier in tiers]
        plain["compensation"] |= {
            "base": base["amount"],
            "currency": base["currency"],
            "rules": [{"kind": "tiered", "method": "tiered-v1", "tiers": {"uptime": steps}}],
            "caps": {"service": f"{given['cap_percent']} %"} if "cap_percent" in given else {},
            "minimum": given.get("minimum_payout_gt", "0"),
            "rounding": given.get("rounding", "half_even").lower(),
        }

    return agreement(change)


def test_a_mean_of_intervals_earns_the_tier_of_the_mean(sla_fixtures: Path) -> None:
    found = case(sla_fixtures, "case_open_01_interval_mean_stedi.json")
    given, expected = found["input"], found["expected"]
    minutes = f"PT{given['interval_minutes']}M"
    objective = {"method": "interval_mean-v1", "interval": minutes}
    of = terms(given, objective, period="P30D", window=minutes)
    period = of.period_starting(of.effective_from)
    busy = given["groups"][0]
    cells = [Cell(busy["requests_per_interval"] - busy["errors_per_interval"], busy["errors_per_interval"])]
    cells = cells * busy["intervals"] + [Cell(0, 0)] * given["groups"][1]["intervals"]
    hours = [Window(at, WindowState.OBSERVED, (cell,)) for at, cell in zip(of.windows(period), cells, strict=True)]
    result = settle(of, period, hours)
    (uptime,), trace = result.objectives, result.trace
    assert trace is not None
    assert Fraction(100 * uptime.good, uptime.valid) == Fraction(expected["uptime_percent"])
    assert trace.combined_bps == int(expected["credit_percent"]) * 100
    assert trace.combined_amount == Fraction(expected["credit_unrounded"]) * 100
    assert format_minor_units(trace.credit, "USD") == expected["credit"]


def test_tiers_are_looked_up_by_the_exact_value(sla_fixtures: Path) -> None:
    found = case(sla_fixtures, "case_open_02_tier_boundaries_exact.json")
    of = terms(found["input"], {"method": "total_ratio"})
    floors = found["expected"]["display_2dp_floor"]
    for row in found["input"]["rows"]:
        good, valid = _counts(row)
        state = judge(good, valid, of.objectives[0].target_ppb)
        trace = credit_trace(of, [ObjectiveResult(of.objectives[0], good, valid, state)], ())
        assert trace.combined_bps == 100 * int(found["expected"]["credit_percent"][row["id"]]), row["id"]
        if row["id"] in floors:
            shown = Decimal(percent_floored(good, valid).removesuffix(" %"))
            assert str(shown)[: len(floors[row["id"]])] == floors[row["id"]]


def _counts(row: Any) -> tuple[int, int]:
    if row["kind"] == "counts":
        return row["total"] - row["bad"], row["total"]
    if row["kind"] == "interval_mean":
        lost = row["bad_intervals"] * Fraction(row["bad_error_rate"])
        uptime = 1 - lost / row["intervals"]
    else:
        uptime = Fraction(row["uptime_percent"]) / 100
    return uptime.numerator, uptime.denominator


@pytest.mark.long
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_minutes_down_and_a_cap_of_half_the_base(sla_fixtures: Path, name: str) -> None:
    found = case(sla_fixtures, "case_open_04_coreweave_minutes_cap.json")
    given, expected = found["input"], found["expected"]["rows"][name]
    objective = {"method": "downtime_minutes-v1", "error_rate": "99.9999999", "boundary": "above"}
    dates = {"from": f"{given['month']}-01", "until": "2027-01-01"}
    of = terms(given, objective, period="P1M", window="PT1M", effective=dates)
    period = period_named(of, f"{given['month']}-01/P1M")
    (row,) = (row for row in given["rows"] if row["id"] == name)
    outages = [Interval(*map(parse_instant_ns, pair)) for pair in row["outages"]]
    minutes = [
        Window(minute, WindowState.OBSERVED, (Cell(*((0, 1) if any(o.covers(minute) for o in outages) else (1, 0))),))
        for minute in of.windows(period)
    ]
    assert len(minutes) == found["expected"]["minutes_in_month"]
    result = settle(of, period, minutes)
    (uptime,), trace = result.objectives, result.trace
    assert trace is not None
    assert uptime.valid - uptime.good == expected["downtime_minutes"]
    assert trace.combined_bps == 100 * int(expected["credit_percent"])
    assert [(step.level, step.limit) for step in trace.caps or ()] == [("service", 400_000)]
    assert format_minor_units(trace.credit, "USD") == expected["credit"]
