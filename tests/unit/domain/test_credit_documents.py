"""A credit's trace as a document: every member of it, of days worked out by hand. Verifiers read these names."""

from __future__ import annotations

from ledger.domain.time.instant import parse_instant_ns
from tests.unit.domain.samples import agreement, put
from tests.unit.domain.test_charges import line
from tests.unit.domain.test_charges import settled as settled_by_charges
from tests.unit.domain.test_charges import terms as terms_of_charges
from tests.unit.domain.test_compensation import trace as day
from tests.unit.domain.test_lost_time import SHORT, TABLE, TIMES, terms
from tests.unit.domain.test_lost_time import trace as hours
from tests.unit.domain.test_scope_caps import WORST
from tests.unit.domain.test_scope_caps import terms as terms_of_scopes
from tests.unit.domain.test_scope_caps import trace as in_scopes

FINE = (100, 0)


def exact(numerator: int, denominator: int = 1) -> dict[str, str]:
    return {"numerator": str(numerator), "denominator": str(denominator)}


def at(time: str) -> str:
    return str(parse_instant_ns(f"2023-06-14T{time}Z"))


def test_tiers_and_impacts() -> None:
    """580.00 CNY: 50 % of them for 101 of 110; 2.5 * 0.8 CNY for each of the 100 requests in the slow hour."""
    slow, failing = (FINE, (10, 90), FINE), ((1, 9), FINE, (0, 3))
    found = day(agreement(name="agreement-impact.yaml"), {1: slow, 2: failing})
    assert found.as_document() == {
        "currency": "CNY",
        "base": "58000",
        "tiers": [
            {
                "objective": "availability",
                "good": 101,
                "valid": 110,
                "target_ppb": 999_500_000,
                "tier": 3,
                "below_ppb": 950_000_000,
                "credit_bps": 5000,
            },
            {
                "objective": "ttft",
                "good": 110,
                "valid": 200,
                "target_ppb": 950_000_000,
                "tier": 2,
                "below_ppb": 900_000_000,
                "credit_bps": 1500,
            },
            {
                "objective": "response",
                "good": 100,
                "valid": 103,
                "target_ppb": 990_000_000,
                "tier": 1,
                "below_ppb": 990_000_000,
                "credit_bps": 500,
            },
        ],
        "tiers_combine": "best",
        "combined_bps": 5000,
        "tier_amount": exact(29_000),
        "price_per_request": exact(200),
        "incidents": [
            {
                "objective": "ttft",
                "first_window": 1,
                "windows": 1,
                "start_ns": at("01:00:00"),
                "end_ns": at("02:00:00"),
                "good": 10,
                "valid": 100,
                "amount": exact(20_000),
            }
        ],
        "impact_amount": exact(20_000),
        "rules_combine": "best",
        "combined_amount": exact(29_000),
        "cap": "290000",
        "capped_amount": exact(29_000),
        "minimum": "100",
        "payable": True,
        "rounding": "half_even",
        "credit": "29000",
    }


def test_a_day_that_keeps_everything() -> None:
    found = day(agreement(), {1: (FINE, FINE, FINE)}).as_document()
    assert found["tiers"][0] == {
        "objective": "availability",
        "good": 100,
        "valid": 100,
        "target_ppb": 999_500_000,
        "tier": None,
        "below_ppb": None,
        "credit_bps": 0,
    }
    assert [found[name] for name in ("combined_bps", "tier_amount", "impact_amount", "payable", "credit")] == [
        *(0, exact(0), None, False, "0")
    ]


def test_without_caps_and_rules_for_lost_time_there_are_none() -> None:
    found = day(agreement(lambda d: put(d, "compensation.caps", {})), {1: (FINE, FINE, FINE)})
    assert (found.cap, found.rules, found.caps, found.scopes) == (None, None, None, ())
    said = found.as_document()
    assert said["cap"] is None
    assert not {"rules", "caps", "charges", "scopes"} & set(said)


def test_a_cap_for_each_scope() -> None:
    """30 % of 1000.00 for each promise, of which 400.00 are left in eu."""
    found = in_scopes(terms_of_scopes(caps={"scope": "40 %"}), WORST).as_document()
    third = exact(30_000)
    assert found["scopes"] == [
        {
            "scope": "region=eu",
            "parts": [{"objective": "eu-up", "amount": third}, {"objective": "eu-fast", "amount": third}],
            "amount": exact(60_000),
            "percent_bps": 4000,
            "limit": exact(40_000),
            "left": exact(40_000),
        },
        {
            "scope": "region=us",
            "parts": [{"objective": "us-up", "amount": third}],
            "amount": third,
            "percent_bps": 4000,
            "limit": exact(40_000),
            "left": third,
        },
    ]
    assert (found["caps"], found["rules"], found["charges"], found["credit"]) == ([], [], None, "70000")


def test_lost_time_and_caps() -> None:
    """Of 8000.00 USD an hour is a 24th: fifty times the two hours lost, and twelve hours for them by the table."""
    rules = (TIMES, {**TABLE, "hourly_price": "1.50"})
    found = hours(terms(*rules, caps={"scope": "50 %", "contract": "3999.99"}), {3: 100, 4: 40, 9: 10}).as_document()
    two_hours = {
        "first_window": 3,
        "windows": 2,
        "start_ns": at("03:00:00"),
        "end_ns": at("05:00:00"),
        "good": 60,
        "valid": 200,
    }
    one_hour = {
        "first_window": 9,
        "windows": 1,
        "start_ns": at("09:00:00"),
        "end_ns": at("10:00:00"),
        "good": 90,
        "valid": 100,
    }
    hour_ns = 3600 * 10**9
    assert found["rules"] == [
        {
            "method": "multiplier-v1",
            "objective": "availability",
            "base": exact(800_000),
            "hourly_price": None,
            "missing": None,
            "incidents": [
                {**two_hours, "credited_ns": str(100 * hour_ns), "row": None, "amount": exact(10_000_000, 3)},
                {**one_hour, "credited_ns": str(50 * hour_ns), "row": None, "amount": exact(5_000_000, 3)},
            ],
            "amount": exact(5_000_000),
        },
        {
            "method": "step_table-v1",
            "objective": "availability",
            "base": None,
            "hourly_price": "150",
            "missing": None,
            "incidents": [
                {**two_hours, "credited_ns": str(12 * hour_ns), "row": 2, "amount": exact(12 * 150)},
                {**one_hour, "credited_ns": str(2 * hour_ns), "row": 1, "amount": exact(2 * 150)},
            ],
            "amount": exact(14 * 150),
        },
    ]
    assert found["caps"] == [
        {"level": "scope", "percent_bps": 5000, "limit": exact(400_000), "amount": exact(400_000)},
        {"level": "contract", "percent_bps": None, "limit": exact(399_999), "amount": exact(399_999)},
    ]
    assert (found["charges"], found["tiers"], found["combined_bps"], found["tier_amount"]) == (None, [], 0, None)


def test_a_shortfall() -> None:
    """2300 of 2400 are 95.8333... %: 4.1166... points below 99.95 %, of 8000.00 USD 329.33..."""
    (rule,) = hours(terms(SHORT), {3: 100}).as_document()["rules"]
    assert rule == {
        "method": "proportional-v1",
        "objective": "availability",
        "base": exact(800_000),
        "hourly_price": None,
        "missing": exact(247, 6000),
        "incidents": [],
        "amount": exact(98_800, 3),
    }


def test_charges() -> None:
    """990 of 1000 are below 99.95 % and not below 99 %; 80 of 100 below 90 %; 90 of 100 below 95 %."""
    lines = [line("10.00"), line("5.00", kind="tax"), line("20.00")]
    found = settled_by_charges(terms_of_charges(), *lines).trace
    assert found is not None
    said = found.as_document()
    assert said["base"] is None
    assert said["charges"] == {"period": "2023-06-14/P1D", "lines": lines}
    assert [tier["base"] for tier in said["tiers"]] == [{"lines": [0, 2], "amount": exact(3000)}] * 3
    assert [tier["credit_bps"] for tier in said["tiers"]] == [1000, 1500, 1500]
    assert said["tier_amount"] == exact(450)
