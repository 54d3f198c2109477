"""Deadlines as providers publish them, in the agreement's zone; and what is too late."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.credits.claims import accepts_until_ns, deadline_ns
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.settlement_terms import CLOSING, read_closing
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement


def monthly(settlement: dict[str, Any] | None, zone: str = "UTC") -> Agreement:
    """The example by calendar months."""

    def change(plain: dict[str, Any]) -> None:
        plain.update(period="P1M", timezone=zone, grace="PT1H")
        if settlement is not None:
            plain["settlement"] = settlement

    return agreement(change)


def claim(kind: str, count: int) -> dict[str, Any]:
    return {"mode": "claim", "deadline": {"kind": kind, "count": count}}


@pytest.mark.parametrize(
    ("kind", "count", "first", "too_late"),
    [
        ("days_after_period", 30, "2023-01-01", "2023-03-03T00:00:00Z"),
        ("days_after_period", 1, "2023-12-01", "2024-01-02T00:00:00Z"),
        ("months_after_period", 2, "2023-11-01", "2024-02-01T00:00:00Z"),
        ("months_after_period", 3, "2023-01-01", "2023-05-01T00:00:00Z"),
        ("billing_cycles", 1, "2023-01-01", "2023-03-01T00:00:00Z"),
        ("billing_cycles", 2, "2023-01-01", "2023-04-01T00:00:00Z"),
    ],
)
def test_a_deadline_that_runs_from_the_period(kind: str, count: int, first: str, too_late: str) -> None:
    terms = monthly(claim(kind, count))
    period = period_named(terms, f"{first}/P1M")
    assert format_instant_ns(deadline_ns(terms, period, period.interval.start_ns + 1)) == too_late
    assert format_instant_ns(accepts_until_ns(terms, period)) == too_late


@pytest.mark.parametrize(
    ("ended", "too_late"),
    [
        ("2023-01-10T08:00:00Z", "2023-02-15T00:00:00Z"),
        ("2023-01-10T23:59:59Z", "2023-02-15T00:00:00Z"),
        ("2023-01-11T00:00:00Z", "2023-02-15T00:00:00Z"),
        ("2023-01-11T00:00:00.000000001Z", "2023-02-16T00:00:00Z"),
    ],
)
def test_days_after_an_interruption_without_its_own_day(ended: str, too_late: str) -> None:
    terms = monthly(claim("days_after_incident", 35))
    period = period_named(terms, "2023-01-01/P1M")
    assert format_instant_ns(deadline_ns(terms, period, parse_instant_ns(ended))) == too_late
    # Of the period the last incident decides: it may end with it.
    assert format_instant_ns(accepts_until_ns(terms, period)) == "2023-03-08T00:00:00Z"


def test_the_day_is_that_of_the_zone_and_not_a_number_of_hours() -> None:
    terms = monthly(claim("days_after_period", 30), "America/New_York")
    period = period_named(terms, "2023-02-01/P1M")
    # The clocks went forward on 12 March: from 05:00Z to 04:00Z.
    assert format_instant_ns(period.interval.end_ns) == "2023-03-01T05:00:00Z"
    assert format_instant_ns(accepts_until_ns(terms, period)) == "2023-03-31T04:00:00Z"


def test_months_after_a_day_that_the_later_month_has_not() -> None:
    terms = agreement(lambda d: d.update(settlement=claim("months_after_period", 1)))
    period = period_named(terms, "2023-01-30/P1D")
    assert format_instant_ns(accepts_until_ns(terms, period)) == "2023-02-28T00:00:00Z"


def test_an_agreement_that_says_nothing_settles_by_itself_and_takes_facts_for_thirty_days() -> None:
    silent, said = monthly(None), monthly({"mode": "automatic"})
    assert silent.settlement == said.settlement
    assert str(silent.settlement.deadline) == "30 days after the end of the period"
    assert not silent.settlement.by_claim
    period = period_named(silent, "2023-01-01/P1M")
    assert format_instant_ns(accepts_until_ns(silent, period)) == "2023-03-03T00:00:00Z"


def test_credits_that_are_owed_by_themselves_may_take_facts_for_another_time() -> None:
    said = monthly({**claim("days_after_period", 45), "mode": "automatic"}).settlement
    assert (said.by_claim, str(said.deadline)) == (False, "45 days after the end of the period")


@pytest.mark.parametrize(
    ("kind", "most", "said"),
    [
        ("days_after_period", 1100, "days after the end of the period"),
        ("months_after_period", 36, "months after the end of the period"),
        ("billing_cycles", 36, "billing cycles after that of the incident"),
        ("days_after_incident", 1100, "days after the end of the incident"),
    ],
)
def test_a_deadline_lies_at_most_three_years_ahead(kind: str, most: int, said: str) -> None:
    assert str(monthly(claim(kind, most)).settlement.deadline) == f"{most} {said}"
    with pytest.raises(DocumentInvalid) as error:
        monthly(claim(kind, most + 1))
    assert error.value.data["field"] == "settlement.deadline.count"


@pytest.mark.parametrize(
    ("closing", "waits_s"),
    [
        (None, None),
        ({"when": "grace"}, None),
        ({"when": "watermark", "at_latest": "PT3601S"}, 3_601),
        ({"when": "watermark", "at_latest": "PT9999H"}, 9_999 * 3_600),
    ],
)
def test_a_closing_waits_for_the_grace_or_for_the_source_until_then(
    closing: dict[str, str] | None, waits_s: int | None
) -> None:
    assert read_closing(closing, 3_600) == waits_s
    if closing is not None:
        CLOSING.check(closing, "closing")


@pytest.mark.parametrize("at_latest", ["PT3600S", "PT1H", "PT59M"])
def test_a_closing_that_would_wait_for_nothing_is_refused(at_latest: str) -> None:
    with pytest.raises(DocumentInvalid, match=f"{at_latest} after the end is not later than the grace of 3600 s") as no:
        read_closing({"when": "watermark", "at_latest": at_latest}, 3_600)
    assert no.value.data["field"] == "closing.at_latest"


def test_a_closing_of_no_length_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="'PT0H' is not a window length") as error:
        read_closing({"when": "watermark", "at_latest": "PT0H"}, 3_600)
    assert error.value.data["field"] == "closing.at_latest"


@pytest.mark.parametrize("at_latest", ["PT10000H", "P7D", "7 days"])
def test_a_closing_waits_for_a_length_of_time(at_latest: str) -> None:
    with pytest.raises(DocumentInvalid) as error:
        CLOSING.check({"when": "watermark", "at_latest": at_latest}, "closing")
    assert error.value.data["field"] == "closing.at_latest"


@pytest.mark.parametrize(
    ("settlement", "field"),
    [
        ({"mode": "claim"}, "settlement.deadline"),
        ({"mode": "never"}, "settlement.mode"),
        (claim("days_after_period", 0), "settlement.deadline.count"),
        (claim("business_days", 5), "settlement.deadline.kind"),
    ],
)
def test_terms_that_no_one_can_keep_are_refused(settlement: dict[str, Any], field: str) -> None:
    with pytest.raises(DocumentInvalid) as error:
        monthly(settlement)
    assert error.value.data["field"] == field


@pytest.mark.parametrize(
    ("kind", "count", "period", "grace", "kept"),
    [
        ("days_after_period", 3, "P1D", "PT72H", False),
        ("days_after_period", 4, "P1D", "PT72H", True),
        ("days_after_period", 3, "P1D", "PT71H", True),
        # Three days of grace pass three days of billing cycles.
        ("billing_cycles", 3, "P1D", "PT72H", False),
        ("billing_cycles", 4, "P1D", "PT72H", True),
        ("billing_cycles", 1, "P1M", "PT72H", True),
        # What ends on the first of 31 days has its statement on the 35th.
        ("days_after_incident", 33, "P1M", "PT72H", False),
        ("days_after_incident", 34, "P1M", "PT72H", True),
        ("days_after_incident", 1, "P1D", "PT1H", True),
        ("days_after_incident", 3, "P1D", "PT72H", False),
        ("days_after_incident", 4, "P1D", "PT72H", True),
        ("months_after_period", 1, "P1M", "PT671H", True),
        # 28 days of February.
        ("months_after_period", 1, "P1M", "PT672H", False),
    ],
)
def test_claims_are_taken_after_the_first_statement_can_be_there(
    kind: str, count: int, period: str, grace: str, kept: bool
) -> None:
    deadline = {"kind": kind, "count": count}

    def change(plain: dict[str, Any]) -> None:
        plain |= {"period": period, "grace": grace, "settlement": {"mode": "claim", "deadline": deadline}}

    if kept:
        assert agreement(change).settlement.by_claim
        return
    with pytest.raises(DocumentInvalid, match=rf": {count} [a-z ]+ comes before the first statement"):
        agreement(change)
