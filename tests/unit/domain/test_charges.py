"""Charges handed in by finance: what is refused, what is the base, and what a credit of them shows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.charges import (
    CHARGE_LINES,
    CHARGES,
    Charges,
    base_of,
    chargeable_period,
    charges_for,
    charges_period,
    paid_by,
    read_charges,
    require_bases,
    require_payable,
)
from ledger.domain.credits.credit_lines import credit_shares
from ledger.domain.credits.settlement import Settlement, attestability, settle
from ledger.domain.money import currency_exponent, format_minor_units
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.objective import Scope
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS, format_instant_ns, parse_instant_ns
from ledger.domain.violations.violation import violations
from ledger.errors import ChargesMissing, ChargesRefused, DocumentInvalid
from tests.unit.domain.samples import agreement, put, windows

DAY = "2023-06-14/P1D"
MIDNIGHT = "2023-06-14T00:00:00Z"


def terms(of: str = "period", **members: Any) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        del plain["compensation"]["base"]
        put(plain, "compensation.charges", {"of": of})
        for path, value in members.items():
            put(plain, path.replace("__", "."), value)

    return agreement(change)


def line(amount: str = "100.00", **members: Any) -> dict[str, Any]:
    return {"service": "example-chat", "kind": "recurring", "amount": amount, "currency": "USD", **members}


def charges(of: Agreement, *lines: dict[str, Any]) -> Charges:
    CHARGE_LINES.check(list(lines), "lines")
    return read_charges(of, period_named(of, DAY), list(lines))


def settled(of: Agreement, *lines: dict[str, Any]) -> Settlement:
    bad = {3: ((990, 10), (80, 20), (90, 10))}
    return settle(of, period_named(of, DAY), windows(of, bad), charges(of, *lines) if lines else None)


RATE = {"rate": "1.10", "source": "European Central Bank", "date": "2023-06-14"}


@pytest.mark.parametrize(
    ("bad", "field", "said"),
    [
        (line(currency="XTS"), "lines[0].currency", "not an ISO 4217"),
        (line(currency="EUR"), "lines[0].rate", "is missing: the line is in EUR, and credits are in USD"),
        (line(rate=RATE), "lines[0].rate", "converts USD to itself"),
        (line(currency="EUR", rate={**RATE, "rate": "0"}), "lines[0].rate.rate", "above 0"),
        (line(currency="EUR", rate={**RATE, "date": "2023-02-30"}), "lines[0].rate.date", "not a date"),
        (line(currency="JPY", amount="0.5", rate=RATE), "lines[0].amount", "more than 0 decimal places"),
        (line(amount="-1"), "lines[0].amount", "plain decimal"),
        (line(kind="refund"), "lines[0].kind", "is not one of recurring"),
        (
            line(life={"from": "2023-06-14T00:00:00Z", "until": "2023-06-14T00:00:00Z"}),
            "lines[0].life",
            "is not after 2023-06-14T00:00:00Z",
        ),
        (line(life={"from": "2023-06-14", "until": "2023-06-15T00:00:00Z"}), "lines[0].life.from", "not an instant"),
        (
            line(life={"from": "2023-06-13T23:59:59Z", "until": "2023-06-14T12:00:00Z"}),
            "lines[0].life.from",
            "2023-06-13T23:59:59Z lies outside 2023-06-14/P1D",
        ),
        (
            line(life={"from": "2023-06-14T12:00:00Z", "until": "2023-06-15T00:00:01Z"}),
            "lines[0].life.until",
            "2023-06-15T00:00:01Z lies outside 2023-06-14/P1D",
        ),
        (line(colour="red"), "lines[0].colour", "unknown key"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(bad: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said) as error:
        charges(terms(), bad)
    assert error.value.data["field"] == field


@pytest.mark.parametrize(
    "lines",
    [
        [line("0.00")],
        [line(kind="one_time"), line(kind="tax"), line(kind="credit")],
        [line(service="other")],
    ],
)
def test_charges_that_leave_no_base_are_refused_with_the_clause(lines: list[dict[str, Any]]) -> None:
    with pytest.raises(ChargesRefused, match=r"compensation.rules\[0\].tiers.availability pays a share") as error:
        settled(terms(), *lines)
    assert error.value.data["clause"] == "compensation.rules[0].tiers.availability"


def test_the_refusal_says_which_base_is_lacking() -> None:
    with pytest.raises(ChargesRefused) as error:
        require_bases(terms(), charges(terms(), line("0.00")))
    assert error.value.data == {
        "clause": "compensation.rules[0].tiers.availability",
        "objective": "availability",
        "scope": "all",
        "base": "0",
    }


def test_without_charges_there_is_no_credit_and_no_zero() -> None:
    assert terms().compensation.base == 0
    with pytest.raises(
        ChargesMissing, match="2023-06-14/P1D is settled by the charges of 2023-06-14/P1D, and none"
    ) as error:
        settled(terms())
    assert error.value.data == {"period": DAY, "retry_after_s": 3600}


FULL = line(
    service="s" * 120,
    region="r" * 120,
    model="m" * 120,
    currency="EUR",
    rate={**RATE, "source": "b" * 200},
    life={"from": "2023-06-14T02:00:00.000000000+02:00", "until": "2023-06-15T02:00:00.000000000+02:00"},
)
"""Everything that a line can say, as long as it may be."""


def test_a_line_may_say_all_that_an_invoice_says() -> None:
    CHARGES.check({"period": DAY, "lines": [FULL] * 1000}, "body")
    (found,) = charges(terms(), FULL).lines
    assert found.life == period_named(terms(), DAY).interval
    assert (found.service, found.region, found.model, found.amount) == ("s" * 120, "r" * 120, "m" * 120, 11_000)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"lines": [FULL] * 1001}, "body.lines"),
        ({"lines": []}, "body.lines"),
        ({"period": "June"}, "body.period"),
        ({"period": f"{DAY}~"}, "body.period"),
        ({"lines": [FULL | {"service": "s" * 121}]}, "body.lines[0].service"),
        ({"lines": [FULL | {"service": "s\u200b"}]}, "body.lines[0].service"),
        ({"lines": [FULL | {"rate": {**RATE, "source": "b" * 201}}]}, "body.lines[0].rate.source"),
        ({"lines": [FULL | {"rate": {**RATE, "source": "\u202ebank"}}]}, "body.lines[0].rate.source"),
        ({"colour": "red"}, "body.colour"),
    ],
)
def test_what_is_too_much_or_cannot_be_read_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(DocumentInvalid) as error:
        CHARGES.check({"period": DAY, "lines": [FULL], **change}, "body")
    assert error.value.data["field"] == field


@pytest.mark.parametrize(("change", "said"), [("both", "contradict each other"), ("none", "are both missing")])
def test_the_base_comes_from_one_place(change: str, said: str) -> None:
    def edit(plain: dict[str, Any]) -> None:
        if change == "both":
            put(plain, "compensation.charges", {"of": "period"})
        else:
            del plain["compensation"]["base"]

    with pytest.raises(DocumentInvalid, match=f"base and charges {said}: ") as error:
        agreement(edit)
    assert error.value.data["field"] == "compensation.base"


def test_the_trace_shows_the_charges_as_they_were_handed_in() -> None:
    euros = line("1000.00", currency="EUR", rate=RATE)
    found = settled(terms(), line("8000.00"), euros, line("55.00", kind="tax"))
    assert found.trace is not None
    shown = found.trace.as_document()
    assert shown["base"] is None
    assert shown["charges"] == {"period": DAY, "lines": [line("8000.00"), euros, line("55.00", kind="tax")]}
    assert shown["tiers"][0]["base"] == {"lines": [0, 1], "amount": {"numerator": "910000", "denominator": "1"}}
    # 15 % of 9100.00 for the first token.
    assert found.credit == 136_500
    assert attestability(terms()) == ("the base are charges that finance records, which no circuit commits to",)


def test_lines_of_a_sum_over_scopes_go_to_the_violations_of_each() -> None:
    both = {"compensation__tiers_combine": "sum", "compensation__caps": {}}
    of = terms(objectives__1__scope={"region": "eu"}, **both)
    found = settled(of, line("100.00", region="eu"), line("900.00", region="us"))
    assert found.trace is not None
    shares = credit_shares(found.trace, violations(of, windows(of, {3: ((990, 10), (80, 20), (90, 10))})))
    # 10 % of 1000.00 for availability, 15 % of 100.00 for the first token, 5 % of 1000.00 for the response.
    by_objective = {share.violation.objective.id: share.minor_units for share in shares if share.violation}
    assert by_objective == {"availability": 10_000, "ttft": 1_500, "response": 15_000}
    assert found.credit == 26_500


def test_the_month_before_and_the_one_before_the_first() -> None:
    of = terms("previous_period", period="P1M")
    assert str(charges_period(of, period_named(of, "2023-03-01/P1M"))) == "2023-02-01/P1M"
    first = charges_period(of, period_named(of, "2023-01-01/P1M"))
    assert str(first) == "2022-12-01/P1M"
    assert chargeable_period(of, "2022-12-01/P1M") == first
    with pytest.raises(DocumentInvalid, match="no period of this agreement starts on 2022-11-01"):
        chargeable_period(of, "2022-11-01/P1M")
    own = terms()
    assert str(charges_period(own, period_named(own, DAY))) == DAY
    with pytest.raises(DocumentInvalid, match="no period"):
        chargeable_period(own, "2022-12-31/P1D")
    with pytest.raises(DocumentInvalid, match="asks for P1M"):
        chargeable_period(own, "2023-06-14/P1M")


def test_a_line_in_two_scopes_counts_once() -> None:
    of = terms()
    found = charges(of, line("1.00", region="eu", model="a"), line("2.00", region="eu"), line("4.00"))
    eu, a = Scope(region="eu"), Scope(model="a")
    assert base_of(found, "example-chat", [eu, a]).amount == 300
    assert base_of(found, "example-chat", [a]).lines == (0,)
    assert base_of(found, "example-chat", [Scope()]).amount == 700
    assert base_of(found, "other", [Scope()]).amount == 0
    assert (str(Scope()), str(eu), str(Scope("eu", "a"))) == ("all", "region=eu", "region=eu model=a")


@given(
    st.integers(1, 10**9),
    st.sampled_from(["JPY", "USD", "KWD", "CLF"]),
    st.sampled_from(["JPY", "USD", "KWD", "CLF"]),
    st.integers(1, 10**12),
)
def test_a_rate_is_applied_exactly_whatever_the_decimals(units: int, own: str, credit: str, rate_e9: int) -> None:
    of = terms(compensation__currency=credit, compensation__caps={}, compensation__minimum="0")
    rate = {**RATE, "rate": f"{rate_e9 // 10**9}.{rate_e9 % 10**9:09}"}
    said = line(format_minor_units(units, own), currency=own, **({} if own == credit else {"rate": rate}))
    (found,) = charges(of, said).lines
    value = Fraction(units, 10 ** currency_exponent(own)) * (1 if own == credit else Fraction(rate_e9, 10**9))
    assert found.amount == value * 10 ** currency_exponent(credit)


# --- a period that is cut ---------------------------------------------------------------------------

MARCH = "2023-03-01/P1M"


def cut(day: int, of: str = "period") -> tuple[Agreement, Agreement]:
    """Terms that end inside March 2023, and those that follow them on the same grid."""
    members = {"period": "P1M", "window": "PT1H", "partial_periods": "prorate", "anchor": "2023-01-01"}
    before = terms(of, **members)
    after = terms(of, **members, effective={"from": f"2023-03-{day:02}", "until": "2024-01-01"})
    return before.ending_on(after.effective_from), after


def parts_of_march(day: int, *lines: dict[str, Any], of: str = "period") -> list[Charges]:
    before, after = cut(day, of)
    first = before.periods.at(before.day_ns(before.effective_until.replace(2023, 3, 1)))
    second = after.periods.at(after.starts_ns)
    assert first is not None
    assert second is not None
    return [charges_for(before, first, list(lines)), charges_for(after, second, list(lines))]


@given(
    st.integers(2, 31),
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 30 * 86_400), st.integers(1, 86_400)), max_size=4),
    st.sampled_from(["period", "previous_period"]),
)
def test_the_charges_of_two_parts_sum_to_those_of_the_whole(
    day: int, said: list[tuple[int, int, int]], of: str
) -> None:
    month = "03" if of == "period" else "02"
    lines = [line("100.01"), line("77.77", currency="EUR", rate=RATE)]
    last_s = (30 if month == "03" else 27) * 86_400
    for units, start_s, length_s in said:
        start_ns = parse_instant_ns(f"2023-{month}-01T00:00:00Z") + min(start_s, last_s) * SECOND_NS
        life = {"from": format_instant_ns(start_ns), "until": format_instant_ns(start_ns + length_s * SECOND_NS)}
        lines.append(line(format_minor_units(units, "USD"), life=life))
    of_whole = terms(of, period="P1M", window="PT1H")
    whole = charges_for(of_whole, period_named(of_whole, MARCH), lines)
    first, second = parts_of_march(day, *lines, of=of)
    assert {first.period, second.period} == {whole.period}
    for at, each in enumerate(whole.lines):
        assert first.lines[at].amount + second.lines[at].amount == each.amount
    assert (
        sum(base_of(part, "example-chat", [Scope()]).amount for part in (first, second))
        == base_of(whole, "example-chat", [Scope()]).amount
    )


def test_a_line_is_shared_by_the_life_of_what_it_is_for() -> None:
    # From 9 to 13 March a quarter lies before the 10th; of the month 9 of 31 days do.
    life = {"from": "2023-03-09T00:00:00Z", "until": "2023-03-13T00:00:00Z"}
    first, second = parts_of_march(10, line("100.00", life=life), line("31.01"))
    assert [each.amount for each in first.lines] == [2500, 900]  # 900.29
    assert [each.amount for each in second.lines] == [7500, 2201]
    assert first.documents == second.documents


def test_of_the_month_before_each_part_has_its_share_by_its_own_time() -> None:
    life = {"from": "2023-02-01T00:00:00Z", "until": "2023-02-02T00:00:00Z"}
    first, second = parts_of_march(10, line("31.01", life=life), of="previous_period")
    assert (first.period, first.lines[0].amount, second.lines[0].amount) == ("2023-02-01/P1M", 900, 2201)
    assert (first.lines[0].life, second.lines[0].life) == (None, None)


def test_a_part_that_a_resource_was_not_there_in_pays_nothing_for_it() -> None:
    life = {"from": "2023-03-20T00:00:00Z", "until": "2023-03-21T00:00:00Z"}
    first, second = parts_of_march(10, line("100.00", life=life))
    assert (first.lines[0].amount, second.lines[0].amount) == (0, 10_000)
    # Which is no invoice without a charge: that of the whole month is refused if it has none.
    require_bases(cut(10)[0], first)
    assert (first.shared, second.shared) == (True, True)
    of = terms(period="P1M", window="PT1H")
    with pytest.raises(ChargesRefused, match="for 2023-03-01/P1M"):
        require_bases(of, charges_for(of, period_named(of, MARCH), [line("0.00")]))


def test_charges_are_handed_in_for_the_whole_and_the_part_says_so() -> None:
    _, after = cut(10)
    assert str(chargeable_period(after, MARCH)) == MARCH
    with pytest.raises(DocumentInvalid, match="2023-03-10/P22D is a part of 2023-03-01/P1M; hand in the charges of"):
        chargeable_period(after, "2023-03-10/P22D")


def test_the_month_after_a_cut_one_is_paid_by_all_of_it() -> None:
    _, after = cut(10, "previous_period")
    assert str(charges_period(after, period_named(after, "2023-04-01/P1M"))) == MARCH
    assert str(charges_period(after, period_named(after, "2023-03-10/P22D"))) == "2023-02-01/P1M"


@pytest.mark.parametrize(
    ("of", "charged", "paid"),
    [
        ("period", "2023-03-01/P1M", "2023-03-01/P1M"),
        ("previous_period", "2023-03-01/P1M", "2023-04-01/P1M"),
        # The first period is paid by the month before the agreement, and nothing by the last.
        ("previous_period", "2022-12-01/P1M", "2023-01-01/P1M"),
        ("previous_period", "2023-12-01/P1M", None),
        ("period", "2022-12-01/P1M", None),
    ],
)
def test_which_period_the_charges_of_one_pay(of: str, charged: str, paid: str | None) -> None:
    agreed = terms(of, period="P1M", window="PT1H")
    whole = terms(period="P1M", window="PT1H", effective={"from": "2022-01-01", "until": "2024-01-01"})
    found = paid_by(agreed, period_named(whole, charged))
    assert (found and str(found)) == paid


def test_charges_of_another_length_pay_nothing_and_those_of_a_whole_each_of_its_parts() -> None:
    weeks = terms(period="P1W", window="PT1H")
    for first in ("2023-01-01", "2023-01-08"):
        assert paid_by(terms(period="P1M", window="PT1H"), period_named(weeks, f"{first}/P1W")) is None
    before, after = cut(10)
    march = charges_period(after, period_named(after, "2023-03-10/P22D"))
    assert [str(paid_by(each, march)) for each in (before, after)] == ["2023-03-01/P9D", "2023-03-10/P22D"]


BY_HOURS = {"kind": "step_table", "method": "step_table-v1", "objective": "availability"}


def test_what_lived_a_second_could_earn_more_in_an_hour_than_what_was_there_all_day() -> None:
    by_hours = {**BY_HOURS, "rows": [{"from_minutes": "0", "hours": "3"}]}
    of = terms(compensation__rules=[by_hours], compensation__caps={})
    amount = "2000000000000.00"
    second = {"from": "2023-06-14T00:00:00Z", "until": "2023-06-14T00:00:01Z"}
    whole = {"from": "2023-06-14T00:00:00Z", "until": "2023-06-15T00:00:00Z"}
    require_payable(of, charges(of, line(amount), line(amount, life=whole)))
    with pytest.raises(ChargesRefused, match=r"\[0\].rows: of charges of 200000000000000 minor units"):
        require_payable(of, charges(of, line(amount, life=second)))
    euros = line("2000000000000.01", currency="EUR", rate={**RATE, "rate": "0.999999999"}, life=second)
    with pytest.raises(ChargesRefused, match="of charges of 199999999800000 minor units"):
        require_payable(of, charges(of, euros))
    with pytest.raises(ChargesRefused, match="pays a share of the recurring charges"):
        require_payable(of, charges(of, line("0.00")))
