from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.compensation_terms import NO_CAP
from ledger.domain.terms.period_names import period_named
from ledger.errors import DocumentInvalid
from tests.unit.domain.samples import agreement, document, put

TIERS = "compensation.rules.0.tiers.availability"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("apiVersion", "sla-ledger/v2", "apiVersion"),
        ("nonce", "0x12", "nonce"),
        ("surprise", 1, "surprise"),
        ("parties.issuer.email", "a@b", "parties.issuer.email"),
        ("objectives.0.target", "0", "objectives[0].target"),
        ("objectives.0.target", "100.1", "objectives[0].target"),
        ("objectives.0.target", "NaN", "objectives[0].target"),
        ("objectives.0.target", 99.95, "objectives[0].target"),
        ("objectives.0.target", "99.95000001", "objectives[0].target"),
        ("objectives.0.method", "median", "objectives[0].method"),
        ("objectives.1.quantile", "0.96", "objectives[1].quantile"),
        ("objectives.1.threshold_ms", "0", "objectives[1].threshold_ms"),
        ("objectives.1.id", "availability", "objectives[1].id"),
        ("objectives", [], "objectives"),
        ("timezone", "Mars/Base", "timezone"),
        ("effective.from", "2023-02-30", "effective.from"),
        ("effective.until", "2023-01-01", "effective.until"),
        ("effective.until", "9999-12-31", "effective.until"),
        ("effective.from", "0001-01-01", "effective.from"),
        ("period", "P0D", "period"),
        ("period", "P2M", None),
        ("window", "PT7M", "window"),
        ("window", "PT0S", "window"),
        ("missing_windows", "bad", "missing_windows"),
        ("coverage_floor", "100.01", "coverage_floor"),
        ("exclusions", [{"id": "a", "error_codes": [True], "reason": "r"}], "exclusions[0].error_codes[0]"),
        ("exclusions", [{"id": "a", "error_codes": [1], "reason": "r"}] * 2, "exclusions[1]"),
        ("compensation.currency", "XXX", "compensation.currency"),
        ("compensation.base", "8000.001", "compensation.base"),
        ("compensation.base", "-1", "compensation.base"),
        ("compensation.base", str(2**64), "compensation.base"),
        ("compensation.rounding", "ceil", "compensation.rounding"),
        (f"{TIERS}.0.below", "99.96", "compensation.rules[0].tiers.availability[0].below"),
        (f"{TIERS}.1.below", "99.95", "compensation.rules[0].tiers.availability[1]"),
        (f"{TIERS}.1.credit_percent", "10", "compensation.rules[0].tiers.availability[1]"),
        (f"{TIERS}.0.credit_percent", "0", "compensation.rules[0].tiers.availability[0].credit_percent"),
        (f"{TIERS}.0.credit_percent", "100.5", "compensation.rules[0].tiers.availability[0].credit_percent"),
        ("compensation.rules.0.tiers.speed", [{"below": "9", "credit_percent": "1"}], None),
    ],
)
def test_the_wrong_field_is_named(path: str, value: object, field: str | None) -> None:
    plain = document()
    put(plain, path, value)
    if path == "period" and value == "P2M":
        put(plain, "effective.until", "2023-02-15")
        field = "period"
    with pytest.raises(DocumentInvalid) as caught:
        Agreement.from_document(plain)
    assert caught.value.data["field"] == (field or "compensation.rules[0].tiers.speed")
    assert caught.value.exit_code == 2


BEATING = {"name": "gateway", "coverage": "heartbeat"}


@pytest.mark.parametrize(
    ("source", "longest_s"),
    [
        ({"name": "gateway", "coverage": "complete_log"}, None),
        (BEATING, 3600),
        ({**BEATING, "heartbeat": "PT1M"}, 60),
        ({**BEATING, "heartbeat": "PT24H"}, 86_400),
    ],
)
def test_a_heartbeat_covers_what_was_agreed_else_a_window(source: dict[str, str], longest_s: int | None) -> None:
    plain = document()
    put(plain, "source", source)
    assert Agreement.from_document(plain).heartbeat_longest_s == longest_s


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{TIERS}.1.below", "99.95", "below 99.95 pays 25 %, after below 99.95 pays 10 %: thresholds must fall"),
        (f"{TIERS}.1.credit_percent", "9", "below 99 pays 9 %, after below 99.95 pays 10 %"),
        (f"{TIERS}.0.below", "99.96", "99.96 is above the target"),
        ("compensation.currency", "XXX", "'XXX' is not an ISO 4217 currency code"),
        ("compensation.base", "0", "0 USD is zero, and compensation.rules[0].tiers.availability is a share of it"),
        ("window", "PT48H", "a window of 172800 s is longer than the period 2023-01-01/P1D of 86400 s"),
        ("effective.until", "2023-01-01", "2023-01-01 is not later than effective.from, 2023-01-01"),
        ("effective.until", "2123-12-31", "2123-12-31 is more than 100 years after 2023-01-01"),
        ("objectives.1.quantile", "0.96", "0.96 and the target 95 %"),
        ("source.heartbeat", "PT1M", "source.heartbeat: has no effect with coverage complete_log"),
        ("source", {**BEATING, "heartbeat": "PT25H"}, "source.heartbeat: PT25H is more than a day"),
        ("source", {**BEATING, "heartbeat": "PT0S"}, "source.heartbeat: 'PT0S'"),
        ("source", {**BEATING, "coverage": "rows"}, "source.coverage: "),
        ("closing", {"when": "watermark"}, "closing.at_latest: "),
        ("closing", {"when": "grace", "at_latest": "PT99H"}, "closing.at_latest: "),
        ("closing", {"when": "watermark", "at_latest": "PT72H"}, "PT72H after the end is not later than the grace"),
        ("closing", {"when": "watermark", "at_latest": "PT0H"}, "closing.at_latest: 'PT0H'"),
        ("closing", {"when": "noon"}, "closing.when: "),
        ("exclusions", [{"id": "a", "error_codes": [1, 7], "reason": "r"}] * 2, "'a' has the error codes [1, 7]"),
    ],
)
def test_terms_that_contradict_themselves_are_refused_with_clause_and_value(
    path: str, value: object, said: str
) -> None:
    plain = document()
    put(plain, path, value)
    with pytest.raises(DocumentInvalid) as caught:
        Agreement.from_document(plain)
    assert said in caught.value.message
    assert caught.value.message.startswith(f"{caught.value.data['field']}: ")


DAY_LONG = {"id": "availability", "indicator": "availability", "target": "99.95"}


@pytest.mark.parametrize(
    ("members", "field", "seconds"),
    [
        ({"method": "total_ratio", "window": "PT48H"}, "window", 172_800),
        ({"method": "interval_mean-v1", "interval": "PT25H"}, "interval", 90_000),
        (
            {"method": "interval_threshold-v1", "interval": "PT25H", "error_rate": "5", "boundary": "above"},
            "interval",
            90_000,
        ),
        ({"method": "attainment-v1", "slice": {"window": "PT25H", "target": "95"}}, "slice.window", 90_000),
        (
            {"method": "attainment-v1", "slice": {"window": "PT2H", "step": "PT1H", "target": "95", "consecutive": 24}},
            "slice.consecutive",
            90_000,
        ),
    ],
)
def test_what_is_longer_than_every_period_is_refused(members: dict[str, Any], field: str, seconds: int) -> None:
    plain = document()
    put(plain, "objectives.0", {**DAY_LONG, **members})
    with pytest.raises(DocumentInvalid, match=f"takes {seconds} s, which is longer than every period") as caught:
        Agreement.from_document(plain)
    assert caught.value.data["field"] == f"objectives[0].{field}"


def test_minutes_in_a_row_may_fill_the_period_and_no_more() -> None:
    plain = document()
    put(plain, "window", "PT1M")
    down = {"method": "downtime_minutes-v1", "error_rate": "5", "boundary": "above"}
    put(plain, "objectives.0", {**DAY_LONG, **down, "minimum_run": 1440})
    Agreement.from_document(plain)
    put(plain, "objectives.0.minimum_run", 1441)
    with pytest.raises(DocumentInvalid, match="takes 86460 s"):
        Agreement.from_document(plain)


@pytest.mark.parametrize("path", ["nonce", "parties.customer", "compensation.rules", "service.class"])
def test_a_missing_field_is_named(path: str) -> None:
    plain = document()
    *parents, last = path.split(".")
    target: Any = plain
    for key in parents:
        target = target[key]
    del target[last]
    with pytest.raises(DocumentInvalid, match="is missing") as caught:
        Agreement.from_document(plain)
    assert caught.value.data["field"] == path


def test_numbers_become_exact_integers() -> None:
    terms = agreement()
    availability, ttft, response = terms.objectives
    assert (availability.target_ppb, ttft.target_ppb, response.target_ppb) == (999_500_000, 950_000_000, 990_000_000)
    assert (availability.threshold_ns, ttft.threshold_ns, response.threshold_ns) == (None, 800 * 10**6, 3200 * 10**6)
    assert terms.compensation.base == 800_000
    assert terms.compensation.minimum == 100
    assert terms.coverage_floor_bps == 9900


def test_the_impact_price_is_the_coefficient_of_the_level_times_the_unit_price() -> None:
    impact = agreement(name="agreement-impact.yaml").compensation.impact
    assert impact is not None
    assert impact.price_per_request == Fraction(5, 2) * Fraction(4, 5) * 100  # fen


def test_the_cap_is_the_smallest_of_the_caps() -> None:
    assert agreement(lambda d: put(d, "compensation.caps", {"scope": "9", "contract": "7"})).compensation.cap == 700
    assert agreement(lambda d: put(d, "compensation.caps", {})).compensation.cap == NO_CAP


def test_signatures_are_outside_what_is_signed() -> None:
    bare = agreement()
    signed = agreement(lambda d: put(d, "signatures", {"issuer": "ab" * 64, "customer": "cd" * 64}))
    assert signed.doc_sha256 == bare.doc_sha256
    assert signed.signing_message == bare.signing_message


def test_every_other_member_is_inside() -> None:
    bare = agreement()
    assert agreement(lambda d: put(d, "nonce", "0x" + "11" * 32)).doc_sha256 != bare.doc_sha256
    assert agreement(lambda d: put(d, "parties.customer.name", "x")).doc_sha256 != bare.doc_sha256


def test_another_service_is_another_unsigned_document() -> None:
    signed = agreement(lambda d: put(d, "signatures", {"issuer": "ab" * 64, "customer": "cd" * 64}))
    other = signed.for_service("groq_70b")
    assert other.service == "groq_70b"
    assert other.doc_sha256 != signed.doc_sha256
    assert "signatures" not in other.document


def test_windows_fill_the_period() -> None:
    terms = agreement()
    period = period_named(terms, "2023-12-19/P1D")
    windows = terms.windows(period)
    assert len(windows) == 24
    assert (windows[0].start_ns, windows[-1].end_ns) == (period.interval.start_ns, period.interval.end_ns)


@pytest.mark.parametrize(("day", "hours"), [("2023-03-26", 23), ("2023-03-27", 24), ("2023-10-29", 25)])
def test_days_with_a_clock_change_have_other_hours(day: str, hours: int) -> None:
    terms = agreement(lambda d: put(d, "timezone", "Europe/Berlin"))
    assert len(terms.windows(period_named(terms, f"{day}/P1D"))) == hours


def test_windows_that_do_not_fill_a_day_with_a_clock_change_are_refused_at_once() -> None:
    plain = document()
    put(plain, "timezone", "Europe/Berlin")
    put(plain, "window", "PT2H")
    with pytest.raises(DocumentInvalid, match="2023-03-26") as caught:
        Agreement.from_document(plain)
    assert caught.value.data["field"] == "window"


def test_a_period_has_a_bounded_number_of_windows() -> None:
    plain = document()
    put(plain, "period", "P1W")
    put(plain, "window", "PT1S")
    with pytest.raises(DocumentInvalid, match="604800 windows"):
        Agreement.from_document(plain)


def test_periods_start_on_the_grid_from_the_first_effective_day() -> None:
    weekly = agreement(lambda d: put(d, "period", "P1W"))
    assert weekly.period_starting(date(2023, 1, 8)).first == date(2023, 1, 8)
    for first in (date(2023, 1, 9), date(2022, 12, 25), date(2023, 12, 31)):
        with pytest.raises(DocumentInvalid):
            weekly.period_starting(first)


def test_months_may_start_on_another_day_than_the_first() -> None:
    def from_the_fifteenth(plain: dict[str, Any]) -> None:
        put(plain, "period", "P1M")
        put(plain, "effective.from", "2023-01-15")

    monthly = agreement(from_the_fifteenth)
    assert monthly.period_starting(date(2023, 2, 15)).interval.duration_ns == 28 * 86_400 * 10**9
    with pytest.raises(DocumentInvalid):
        monthly.period_starting(date(2023, 2, 1))


HIDDEN = ["a\0b", "a\nb", "a\x1b[31m", "a\x85", "a\u202eb", "\u2066a", "a\u200b", "a\u2028", "\ufeffa", "a\ud800"]


@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
@pytest.mark.parametrize(
    "path", ["parties.issuer.name", "parties.customer.name", "collector.name", "service.name", "source.name"]
)
def test_names_hold_no_control_or_invisible_characters(path: str, hidden: str) -> None:
    with pytest.raises(DocumentInvalid, match=r"holds the control or invisible character U\+") as caught:
        agreement(lambda plain: put(plain, path, hidden))
    assert caught.value.data["field"] == path


def test_the_reason_of_a_clause_holds_none_either() -> None:
    clause = {"id": "a", "error_codes": [1], "reason": "x\u202ey"}
    with pytest.raises(DocumentInvalid, match=r"exclusions\[0\]\.reason: .*U\+202E"):
        agreement(lambda plain: put(plain, "exclusions", [clause]))


@pytest.mark.parametrize("name", ["Größe & Söhne", "株式会社", "نمونه\u200cها", "🏳️\u200d🌈 AG", "O'Neil <x>"])
def test_names_may_be_written_in_any_script(name: str) -> None:
    assert agreement(lambda plain: put(plain, "parties.issuer.name", name)).issuer.name == name


def test_a_day_that_the_zone_skipped_is_named_with_its_field() -> None:
    def change(plain: dict[str, Any]) -> None:
        put(plain, "timezone", "Pacific/Apia")
        put(plain, "effective", {"from": "2011-12-01", "until": "2012-01-01"})

    with pytest.raises(DocumentInvalid, match="timezone: 2011-12-30 does not exist in Pacific/Apia"):
        agreement(change)
