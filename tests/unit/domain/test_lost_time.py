"""Rules for lost time: what they refuse, and what holds whatever the windows say."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.domain.credits.charges import Base
from ledger.domain.credits.compensation import CreditTrace, credit_trace
from ledger.domain.credits.credit_lines import credit_shares
from ledger.domain.credits.lost_time import Lost, rule_step
from ledger.domain.credits.settlement import attestability, settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.incident_rules import MultiplierRule, ProportionalRule, StepTableRule, method_of
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.violations.violation import violations
from ledger.domain.windows.window import Cell, Window
from ledger.domain.windows.window_columns import WindowColumns
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import DAY_NS, agreement, put, windows

LOST = {"kind": "proportional", "method": "proportional-v1", "objective": "availability", "of": "lost_time"}
SHORT = {**LOST, "of": "shortfall"}
TIMES = {
    "kind": "multiplier",
    "method": "multiplier-v1",
    "objective": "availability",
    "factor": "50",
    "per": "incident",
}
TABLE = {
    "kind": "step_table",
    "method": "step_table-v1",
    "objective": "availability",
    "rows": [{"from_minutes": "0", "below_minutes": "120", "hours": "2"}, {"from_minutes": "120", "hours": "12"}],
}


def terms(*rules: dict[str, Any], **members: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "compensation.rules", list(rules))
        put(plain, "compensation.caps", {})
        put(plain, "compensation.minimum", "0")
        for name, value in members.items():
            put(plain, f"compensation.{name}", value)

    return agreement(change)


def judged(of: Agreement, bad: dict[int, int], **states: tuple[int, ...]) -> list[Window]:
    """Hours of 100 requests each, of which some fail."""
    cells = {hour: ((100 - bad.get(hour, 0), bad.get(hour, 0)), (100, 0), (100, 0)) for hour in range(24)}
    left_out = {hour for hours in states.values() for hour in hours}
    return windows(of, {hour: cell for hour, cell in cells.items() if hour not in left_out}, **states)


def trace(of: Agreement, bad: dict[int, int], **states: tuple[int, ...]) -> CreditTrace:
    found = settle(of, period_named(of, "2023-06-14/P1D"), judged(of, bad, **states)).trace
    assert found is not None
    return found


def earned(of: Agreement, bad: dict[int, int], **states: tuple[int, ...]) -> list[Fraction]:
    (step,) = trace(of, bad, **states).rules or ()
    return [incident.amount for incident in step.incidents]


@pytest.mark.parametrize(
    ("rule", "field", "said"),
    [
        ({**LOST, "objective": "nobody"}, "objective", "'nobody' is not an objective"),
        ({**SHORT, "affected": "share"}, "affected", "shortfall"),
        ({**SHORT, "pays": "always"}, "pays", "shortfall"),
        ({**SHORT, "denominator": "full"}, "denominator", "shortfall"),
        ({**TIMES, "factor": "0"}, "factor", "above 0"),
        ({**TIMES, "hourly_price": "0"}, "hourly_price", "above 0"),
        ({**TIMES, "hourly_price": "0.001"}, "hourly_price", "more than 2 decimal places"),
        ({**TIMES, "per": "period", "incident_cap": "100 %"}, "incident_cap", "single incidents"),
        ({**TIMES, "incident_cap": "100.01 %"}, "incident_cap", "at most 100"),
        ({**TIMES, "incident_cap": "100"}, "incident_cap", "a percentage"),
        ({**TIMES, "method": "multiplier-v2"}, "method", "multiplier-v1"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said) as error:
        terms(rule)
    assert error.value.data["field"] == f"compensation.rules[0].{field}"


def row(start: str, below: str | None = None, **credit: str) -> dict[str, str]:
    return {"from_minutes": start, **({} if below is None else {"below_minutes": below}), **credit}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("0", "9", hours="12"), row("10", hours="24")], r"rows\[0\] and rows\[1\] leave a gap: .* 9 .* at 10"),
        ([row("0", "10", hours="12"), row("9", hours="24")], r"rows\[0\] and rows\[1\] overlap: .* 10 .* at 9"),
        ([row("0", hours="12"), row("9", hours="24")], r"rows\[0\] and rows\[1\] overlap: rows\[0\] has no end"),
        ([row("0", "9", hours="12"), row("9", "60", hours="24")], "60 minutes and more without a row"),
        ([row("9", "9", hours="12"), row("9", hours="24")], "9 is not above 9"),
        ([row("0", "9", hours="12"), row("9", hours="12")], r"rows\[0\] and rows\[1\] contradict"),
        ([row("0", "9", hours="0"), row("9", hours="0")], r"rows\[0\] and rows\[1\] contradict"),
        ([row("0", "9", hours="12"), row("9", percent="100")], "one says hours, the other percent"),
        ([row("0")], "either hours or percent"),
        ([row("0", hours="1", percent="1")], "either hours or percent"),
    ],
)
def test_a_table_with_a_hole_or_a_contradiction_names_the_rows(rows: list[dict[str, str]], said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said):
        terms({**TABLE, "rows": rows})


def test_an_objective_has_one_rule_of_a_kind() -> None:
    with pytest.raises(DocumentInvalid, match="a second proportional rule for availability"):
        terms(LOST, SHORT)
    assert len(terms(LOST, {**LOST, "objective": "ttft"}, TIMES).compensation.incident_rules) == 3


@pytest.mark.parametrize("rule", [LOST, SHORT, TIMES, {**TIMES, "hourly_price": "1", "incident_cap": "5 %"}, TABLE])
def test_a_zero_base_is_refused_where_a_rule_pays_a_share_of_it(rule: dict[str, Any]) -> None:
    with pytest.raises(DocumentInvalid, match=r"0.00 USD is zero, and compensation.rules\[0\] is a share") as error:
        terms(rule, base="0.00")
    assert error.value.data["field"] == "compensation.base"


@pytest.mark.parametrize("rule", [{**TIMES, "hourly_price": "1"}, {**TABLE, "hourly_price": "1"}])
def test_a_price_needs_no_base(rule: dict[str, Any]) -> None:
    assert trace(terms(rule, base="0"), {3: 100}).credit > 0
    with pytest.raises(DocumentInvalid, match=r"caps\.service is a share of it"):
        terms(rule, base="0", caps={"service": "50 %"})


def test_lost_time_over_scheduled_or_full_time() -> None:
    # 8000.00 over 24 hours; one whole hour was lost, and two were planned.
    assert earned(terms(LOST), {3: 100}) == [Fraction(800_000, 24)]
    assert earned(terms(LOST), {3: 100}, excluded=(7, 8)) == [Fraction(800_000, 22)]
    assert earned(terms({**LOST, "denominator": "full"}), {3: 100}, excluded=(7, 8)) == [Fraction(800_000, 24)]
    # An hour without data is time that was to be available.
    assert earned(terms({**LOST, "pays": "always"}), {3: 100}, excluded=(7,)) == [Fraction(800_000, 23)]


@settings(max_examples=100)
@given(st.sets(st.integers(0, 23), min_size=1), st.sets(st.integers(0, 23), max_size=23), st.sampled_from([2, 3, 4]))
def test_lost_time_pays_no_more_than_the_base(bad: set[int], out: set[int], hours: int) -> None:
    """Whatever is excluded: an interval that is down may have excluded hours inside, and they were not lost."""

    def change(plain: dict[str, Any]) -> None:
        members = {
            "method": "interval_threshold-v1",
            "interval": f"PT{hours}H",
            "error_rate": "10",
            "boundary": "above",
        }
        put(
            plain,
            "objectives.0",
            {name: plain["objectives"][0][name] for name in ("id", "indicator", "target")} | members,
        )
        put(plain, "compensation.rules", [LOST])
        put(plain, "compensation.caps", {})

    of = agreement(change)
    down = [start for start in range(0, 24, hours) if (set(range(start, start + hours)) - out) & bad]
    scheduled = [hour for hour in range(24) if hour not in out]
    lost = [hour for hour in scheduled if hour // hours * hours in down]
    amounts = earned(of, dict.fromkeys(bad, 100), excluded=tuple(out))
    assert sum(amounts) == (Fraction(800_000 * len(lost), len(scheduled)) if lost else 0)


def test_only_the_share_of_requests_that_failed() -> None:
    assert earned(terms({**LOST, "affected": "share"}), {3: 100, 4: 50}) == [Fraction(800_000 * 2, 24) * Fraction(3, 4)]


@pytest.mark.parametrize(("pays", "amount"), [("breached", Fraction(0)), ("always", Fraction(800_000, 24))])
def test_a_month_that_met_its_target_pays_for_incidents_only_if_agreed(pays: str, amount: Fraction) -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "objectives.0.target", "50")
        put(plain, "compensation.rules", [{**LOST, "pays": pays}])

    assert earned(agreement(change), {3: 90}) == [amount]


@pytest.mark.parametrize(
    ("hours", "longer_than", "pays"), [(1, "PT1H", False), (2, "PT1H", True), (1, "PT59M", True), (1, "PT3600S", False)]
)
def test_longer_than_is_strict(hours: int, longer_than: str, pays: bool) -> None:
    rule = {**TIMES, "longer_than": longer_than, "hourly_price": "1"}
    assert (trace(terms(rule), dict.fromkeys(range(hours), 100)).credit > 0) is pays


def test_rounding_up_each_incident_or_all_together() -> None:
    # Two incidents of one hour, times 1.25, are 1.25 hours each and 2.5 together.
    rule = {**TIMES, "factor": "1.25", "round_up_to": "PT1H", "hourly_price": "1.00"}
    assert earned(terms(rule), {1: 100, 5: 100}) == [200, 200]
    assert earned(terms({**rule, "per": "period"}), {1: 100, 5: 100}) == [150, 150]
    assert earned(terms({**rule, "factor": "2"}), {1: 100, 5: 100}) == [200, 200]


def test_what_is_said_and_what_is_left_out_are_the_same_rule() -> None:
    left_out = terms(LOST).compensation.incident_rules
    said = terms({**LOST, "affected": "all", "pays": "breached", "denominator": "scheduled"})
    assert said.compensation.incident_rules == left_out == (ProportionalRule("availability", *[False] * 4),)


def test_at_most_24_rows() -> None:
    rows = [row(str(at), str(at + 1), hours=str(at + 1)) for at in range(23)]
    (rule,) = terms({**TABLE, "rows": [*rows, row("23", hours="24")]}).compensation.incident_rules
    assert isinstance(rule, StepTableRule)
    assert len(rule.rows) == 24
    with pytest.raises(DocumentInvalid, match="24"):
        terms({**TABLE, "rows": [*rows, row("23", "24", hours="24"), row("24", hours="25")]})


def test_what_a_multiplier_does_not_say_is_nothing() -> None:
    assert terms(TIMES).compensation.incident_rules == (
        MultiplierRule(
            objective="availability",
            factor_e9=50 * 10**9,
            together=False,
            longer_than_ns=0,
            round_up_ns=0,
            hourly_price=None,
            incident_cap_bps=None,
            full=False,
        ),
    )


HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    ("rule", "credited"),
    [
        ({**TIMES, "longer_than": "PT1H"}, [(0, None), (100 * HOUR_NS, None)]),
        (TABLE, [(2 * HOUR_NS, 1), (12 * HOUR_NS, 2)]),
        ({**TABLE, "hourly_price": "1.00"}, [(2 * HOUR_NS, 1), (12 * HOUR_NS, 2)]),
        ({**TABLE, "rows": [row("0", "120", percent="10"), row("120", percent="25")]}, [(None, 1), (None, 2)]),
        ({**TABLE, "rows": [row("61", hours="2")]}, [(None, None), (2 * HOUR_NS, 1)]),
        (LOST, [(None, None), (None, None)]),
    ],
)
def test_what_an_hour_and_two_are_credited_with_and_by_which_row(
    rule: dict[str, Any], credited: list[tuple[int | None, int | None]]
) -> None:
    (step,) = trace(terms(rule), {1: 100, 5: 100, 6: 100}).rules or ()
    assert [(incident.credited_ns, incident.row) for incident in step.incidents] == credited


def test_the_first_row_of_a_table_may_earn_nothing() -> None:
    """8000.00 USD: nothing below two hours, a ten-thousandth of them from there."""
    rows = [row("0", "120", percent="0"), row("120", percent="0.01")]
    assert earned(terms({**TABLE, "rows": rows}), {1: 100, 5: 100, 6: 100}) == [0, 80]


def test_a_table_credits_hours_of_the_base_or_percent() -> None:
    assert earned(terms(TABLE), {1: 100, 5: 100, 6: 100}) == [Fraction(800_000 * 2, 24), Fraction(800_000 * 12, 24)]
    percent = {**TABLE, "rows": [row("90", "150", percent="10"), row("150", percent="25")]}
    found = earned(terms(percent), {1: 100, 5: 100, 6: 100, 10: 100, 11: 100, 12: 100})
    assert found == [0, 80_000, 200_000]


def test_the_trace_says_every_step_and_only_where_there_are_such_rules() -> None:
    found = json.loads(json.dumps(trace(terms(TIMES, caps={"scope": "50 %"}), {3: 100}).as_document()))
    (step,) = found["rules"]
    assert step["method"] == "multiplier-v1"
    assert step["base"] == {"numerator": "800000", "denominator": "1"}
    assert step["incidents"][0]["credited_ns"] == str(50 * 3600 * 10**9)
    assert found["caps"] == [
        {
            "level": "scope",
            "percent_bps": 5000,
            "limit": {"numerator": "400000", "denominator": "1"},
            "amount": {"numerator": "400000", "denominator": "1"},
        }
    ]
    assert found["charges"] is None
    assert found["credit"] == "400000"
    old = trace(agreement(), {3: 100}).as_document()
    assert not {"rules", "caps", "charges"} & old.keys()
    assert all("base" not in tier for tier in old["tiers"])


def test_no_circuit_proves_them() -> None:
    reasons = " ".join(attestability(terms(LOST, TIMES, TABLE, caps={"scope": "50 %"})))
    for named in ("proportional-v1", "multiplier-v1", "step_table-v1"):
        assert f"no circuit works out {named}" in reasons
    assert reasons.endswith("a cap is a percentage of the base, and the circuit takes amounts")
    several = attestability(terms(LOST, {**LOST, "objective": "ttft"}))
    assert [reason for reason in several if "proportional" in reason] == ["no circuit works out proportional-v1"]
    assert attestability(agreement()) == ()


failures = st.dictionaries(st.integers(0, 23), st.integers(1, 100), max_size=8)
steady_rules = [
    LOST,
    {**LOST, "affected": "share", "pays": "always"},
    SHORT,
    TIMES,
    {**TIMES, "factor": "1.5", "per": "period", "round_up_to": "PT7H"},
]
# What is paid by the incident: two that grow together may earn less.
by_incident = [{**TIMES, "longer_than": "PT1H", "incident_cap": "10 %", "hourly_price": "12.34"}, TABLE]
any_rule = st.sampled_from(steady_rules + by_incident)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_rule, min_size=1, max_size=3, unique_by=lambda rule: rule["kind"]), failures)
def test_best_is_at_most_sum_caps_hold_and_lines_sum_to_the_credit(rules: list[dict[str, Any]], bad: Any) -> None:
    best = trace(terms(*rules), bad)
    total = trace(terms(*rules, rules_combine="sum"), bad)
    assert 0 <= best.combined_amount <= total.combined_amount
    capped_terms = terms(*rules, rules_combine="sum", caps={"scope": "40 %", "service": "2000.00", "contract": "15%"})
    capped = trace(capped_terms, bad)
    assert capped.credit <= 800_000 * 15 // 100
    assert [step.level for step in capped.caps or ()] == ["scope", "service", "contract"]
    for of in (terms(*rules), terms(*rules, rules_combine="sum"), capped_terms):
        found = trace(of, bad)
        shares = credit_shares(found, violations(of, judged(of, bad)))
        assert sum(share.minor_units for share in shares) == found.credit
        for step in found.rules or ():
            assert step.missing is not None or sum(i.amount for i in step.incidents) == step.amount


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(steady_rules), failures, st.integers(0, 23), st.integers(1, 100))
def test_more_failures_never_earn_less(rule: dict[str, Any], bad: Any, hour: int, more: int) -> None:
    of = terms(rule)
    worse = {**bad, hour: min(100, bad.get(hour, 0) + more)}
    assert trace(of, bad).combined_amount <= trace(of, worse).combined_amount


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([LOST, SHORT, TIMES, TABLE]), failures, st.integers(1, 10**8), st.integers(1, 10**8))
def test_a_base_cut_in_two_pays_the_same(rule: dict[str, Any], bad: Any, one: int, other: int) -> None:
    def amount(units: int) -> Fraction:
        return trace(terms(rule, base=f"{units // 100}.{units % 100:02}"), bad).combined_amount

    assert amount(one) + amount(other) == amount(one + other)


def test_a_step_says_its_rule_its_base_and_every_incident() -> None:
    rule = {**TIMES, "hourly_price": "1.00", "factor": "2"}
    (step,) = trace(terms(rule), {1: 100, 5: 90, 6: 100}).rules or ()
    start_ns = DAY_NS + HOUR_NS
    assert step.as_document() == {
        "method": "multiplier-v1",
        "objective": "availability",
        "base": None,
        "hourly_price": "100",
        "missing": None,
        "incidents": [
            {
                "first_window": 1,
                "windows": 1,
                "start_ns": str(start_ns),
                "end_ns": str(start_ns + HOUR_NS),
                "good": 0,
                "valid": 100,
                "credited_ns": str(2 * HOUR_NS),
                "row": None,
                "amount": {"numerator": "200", "denominator": "1"},
            },
            {
                "first_window": 5,
                "windows": 2,
                "start_ns": str(start_ns + 4 * HOUR_NS),
                "end_ns": str(start_ns + 6 * HOUR_NS),
                "good": 10,
                "valid": 200,
                "credited_ns": str(4 * HOUR_NS),
                "row": None,
                "amount": {"numerator": "400", "denominator": "1"},
            },
        ],
        "amount": {"numerator": "600", "denominator": "1"},
    }
    assert [incident.lost_ns for incident in step.incidents] == [HOUR_NS, 2 * HOUR_NS]


def test_a_shortfall_says_what_part_of_the_base_is_missing() -> None:
    # 2,400 requests, 100 of them bad, of a target of 99.95 %: 95.8333 % is 4.1166... points short.
    (step,) = trace(terms(SHORT), {1: 100}).rules or ()
    missing = Fraction(9_995, 10_000) - Fraction(23, 24)
    amount = 800_000 * missing
    assert step.as_document() == {
        "method": "proportional-v1",
        "objective": "availability",
        "base": {"numerator": "800000", "denominator": "1"},
        "hourly_price": None,
        "missing": {"numerator": str(missing.numerator), "denominator": str(missing.denominator)},
        "incidents": [],
        "amount": {"numerator": str(amount.numerator), "denominator": str(amount.denominator)},
    }


def test_a_row_of_a_table_is_said_with_what_it_credits() -> None:
    (step,) = trace(terms(TABLE), {1: 100}).rules or ()
    (incident,) = step.as_document()["incidents"]
    assert (incident["row"], incident["credited_ns"]) == (1, str(2 * HOUR_NS))
    by_percent = {**TABLE, "rows": [row("0", percent="12.5")]}
    (step,) = trace(terms(by_percent), {1: 100}).rules or ()
    (incident,) = step.as_document()["incidents"]
    assert (incident["row"], incident["credited_ns"]) == (1, None)
    assert incident["amount"] == {"numerator": "100000", "denominator": "1"}


def test_what_is_undecided_is_missing_from_no_shortfall() -> None:
    of = terms(SHORT)
    hours = judged(of, {})
    hours[1] = replace(hours[1], cells=(Cell(0, 90, 10), *hours[1].cells[1:]))
    found = settle(of, period_named(of, "2023-06-14/P1D"), hours).trace
    assert found is not None
    (step,) = found.rules or ()
    assert step.missing == Fraction(9_995, 10_000) - Fraction(2_310, 2_400)


def test_incidents_that_are_too_short_are_not_rounded_with_the_others() -> None:
    rule = {**TIMES, "factor": "1.25", "round_up_to": "PT1H", "hourly_price": "1.00", "per": "period"}
    longer = terms({**rule, "longer_than": "PT1H"})
    # Of one hour and two the two count: 2.5 hours, rounded up to 3.
    assert earned(longer, {1: 100, 5: 100, 6: 100}) == [0, 300]
    assert earned(longer, {1: 100, 5: 100}) == [0, 0]
    assert earned(longer, {}) == []


def test_a_factor_multiplies_what_of_the_base_falls_on_the_lost_time() -> None:
    half_more = {**TIMES, "factor": "1.5"}
    # 8000.00 over 24 hours, times 1.5.
    assert earned(terms(half_more), {1: 100, 5: 100, 6: 100}) == [50_000, 100_000]
    capped = terms({**half_more, "incident_cap": "10 %"})
    assert earned(capped, {1: 100, 5: 100, 6: 100}) == [50_000, 80_000]


def test_time_credited_for_one_of_several_is_whole_nanoseconds_rounded_down() -> None:
    rule = {**TIMES, "factor": "1.25", "round_up_to": "PT1H", "hourly_price": "1.00", "per": "period"}
    # Seven hours times 1.25 are nine, rounded up: the first has a seventh of them.
    (step,) = trace(terms(rule), dict.fromkeys((1, 5, 6, 7, 8, 9, 10), 100)).rules or ()
    assert [incident.credited_ns for incident in step.incidents] == [9 * HOUR_NS // 7, 9 * 6 * HOUR_NS // 7]
    assert [incident.amount for incident in step.incidents] == [Fraction(900, 7), Fraction(5_400, 7)]


def test_each_charge_is_divided_by_the_life_of_what_it_is_for() -> None:
    of = terms({**LOST, "pays": "always"})
    hours = judged(of, {1: 100})
    (rule,) = of.compensation.incident_rules
    result = settle(of, period_named(of, "2023-06-14/P1D"), hours).objectives[0]
    lost = Lost([range(1, 2)], WindowColumns.of(hours, HOUR_NS, 3), 0, result)
    half_a_day = Interval(DAY_NS - HOUR_NS, DAY_NS + 12 * HOUR_NS)
    day_before = Interval(DAY_NS - 24 * HOUR_NS, DAY_NS)
    parts = ((Fraction(240), half_a_day), (Fraction(480), None), (Fraction(80), day_before))
    step = rule_step(rule, lost, Base(Fraction(800), (0, 1, 2), parts))
    assert step.amount == Fraction(240, 12) + Fraction(480, 24)


@pytest.mark.parametrize("rule", [{**LOST, "pays": "always"}, TIMES, TABLE])
def test_of_no_windows_there_is_no_incident_and_no_time_to_divide_by(rule: dict[str, Any]) -> None:
    of = terms(rule)
    results = settle(of, period_named(of, "2023-06-14/P1D"), judged(of, {})).objectives
    found = credit_trace(of, results, ())
    assert [(step.incidents, step.amount) for step in found.rules or ()] == [((), 0)]


def test_rules_are_called_as_agreements_call_them() -> None:
    named = [method_of(rule) for rule in terms(LOST, TIMES, TABLE).compensation.incident_rules]
    assert named == ["proportional-v1", "multiplier-v1", "step_table-v1"]


def test_the_row_and_the_cap_that_pay_nothing_or_leave_something_out_are_named() -> None:
    first, ended = {"from_minutes": "0", "below_minutes": "60", "hours": "1"}, {"from_minutes": "60", "hours": "2"}
    middle = {**ended, "below_minutes": "90"}
    last = {"from_minutes": "90", "below_minutes": "120", "hours": "3"}
    for rule, field, said in (
        ({**TIMES, "incident_cap": "0 %"}, "incident_cap", "0 % would cap every credit at nothing"),
        ({**TABLE, "rows": [first, middle, last]}, "rows[2].below_minutes", "of 120 minutes and more"),
        ({**TABLE, "rows": [first, {**ended, "from_minutes": "61"}]}, "rows[1].from_minutes", "leave a gap: one ends"),
        (
            {**TABLE, "rows": [first, {**ended, "from_minutes": "59"}]},
            "rows[1].from_minutes",
            "overlap: one ends below",
        ),
    ):
        with pytest.raises(DocumentInvalid, match=said) as refused:
            terms(rule)
        assert refused.value.data["field"] == f"compensation.rules[0].{field}"
