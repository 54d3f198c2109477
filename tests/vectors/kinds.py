"""One honest bundle of every kind that a statement can be of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from ledger.attest.crypto import babyjub
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from tests.support.office import PROBE, Evidence, Office, failed, row
from tests.unit.app.conftest import signed_agreement

DAY = "2023-06-14"
PAID: Mapping[str, Any] = signed_agreement()["compensation"]
OBJECTIVES: list[dict[str, Any]] = signed_agreement()["objectives"]


def until(kind: str, count: int, mode: str = "claim") -> dict[str, Any]:
    """Terms by which claims and facts are taken so long."""
    return {"settlement": {"mode": mode, "deadline": {"kind": kind, "count": count}}}


JUNE = {
    "period": "P30D",
    "window": "PT48H",
    "effective": {"from": "2023-06-01", "until": "2023-07-31"},
    **until("billing_cycles", 2),
}
MAINTENANCE: Mapping[str, Any] = {
    "maintenance": {
        "cap_minutes": 300,
        "classes": [
            {"id": "release", "reason": "a version", "longest": "PT2H", "at_most": {"count": 2, "per": "month"}},
            {"id": "rotation", "reason": "hosts", "notice": "PT1H", "automatic": True},
        ],
    },
    "carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}],
}


def at(hour: int, day: str = DAY) -> str:
    return f"{day}T{hour:02}:30:00Z"


def day(*rows: dict[str, Any], span: Interval | None = None, **terms: Any) -> Evidence:
    """A day with these requests, settled at its end."""
    office = Office(**terms).at_the_end()
    return office.hand_in(*(rows or (row("a", at(10)),)), span=span).close().evidence()


def some_hours(first: int, until: int) -> Interval:
    return Interval(*(parse_instant_ns(f"{DAY}T{hour:02}:00:00Z") for hour in (first, until)))


def paid(**changes: Any) -> dict[str, Any]:
    return {"compensation": {**deepcopy(dict(PAID)), **changes}}


def a_week_sealed_as_it_goes() -> Evidence:
    terms = {"period": "P1W", "effective": {"from": "2023-06-12", "until": "2023-07-10"}, "grace": "PT1H"}
    zone = {"timezone": "America/New_York", "day_start": "08:00", **until("months_after_period", 8)}
    office = Office(first="2023-06-12", **terms, **zone)
    office.hand_in(row("a", at(10)), failed("b", at(11, "2023-06-18")))
    return office.seal_as_it_goes().close().evidence()


def a_month_in_which_clocks_go_back() -> Evidence:
    terms = {"period": "P1M", "effective": {"from": "2023-10-01", "until": "2023-12-01"}, "timezone": "Europe/Berlin"}
    terms |= until("days_after_incident", 35)
    office = Office(first="2023-10-01", **terms).at_the_end()
    return office.hand_in(row("a", at(10, "2023-10-29"))).close().evidence()


def restated(**terms: Any) -> Office:
    office = Office(**terms).at_the_end().hand_in(row("a", at(10))).close()
    office.hand_in(failed("late", at(11))).settle()
    return office.hand_in(failed("later", at(12))).settle()


def settled_after_withheld() -> Evidence:
    office = Office().at_the_end().close()
    return office.hand_in(row("a", at(10))).settle().evidence()


def maintained(told: str, **said: Any) -> Evidence:
    """Two hours of maintenance and one in dispute are left out."""
    office = Office(**MAINTENANCE).at(told)
    office.exclude("release-7", "release", f"{DAY}T10:00:00Z", 120, announced_at_ns=parse_instant_ns(told), **said)
    office.exclude("rotation-1", "rotation", f"{DAY}T16:00:00Z", 200, announced_at_ns=parse_instant_ns(told))
    office.at_the_end().exclude("dispute-1", "dispute", f"{DAY}T09:30:00Z", 90)
    return office.hand_in(failed("a", at(10)), row("b", at(3))).close().evidence()


def probed(signature: str, *, signs: bool) -> Evidence:
    point = dict(zip("xy", map(str, babyjub.public_key(PROBE)), strict=True))
    probe = {"name": "customer-probe", "babyjubjub_public_key": point, "signature": signature}
    office = Office(probe=probe).at_the_end().hand_in(row("a", at(10))).close()
    return (office.probe_signs(office.statements()[-1]) if signs else office).evidence()


def parts() -> Office:
    """Terms that are amended in the middle of June, and ended by a notice in July."""
    office = Office(first="2023-06-01", **JUNE).at("2023-06-05T00:00:00Z")
    changed = {"effective": {"from": "2023-06-15", "until": "2023-07-31"}, "anchor": "2023-06-01"}
    office.amend(**{**JUNE, **changed, "partial_periods": "prorate", **paid(base="9000.07")})
    office.at("2023-07-02T00:00:00Z").end_on("2023-07-11", "customer")
    whole = Interval(parse_instant_ns("2023-06-01T00:00:00Z"), parse_instant_ns("2023-07-11T00:00:00Z"))
    office.hand_in(failed("a", at(0, "2023-06-14")), row("b", at(0, "2023-07-01")), span=whole)
    office.at("2023-08-01T00:00:00Z")
    for name in ("2023-06-01/P14D", "2023-06-15/P16D", "2023-07-01/P10D"):
        office.close(name)
    return office


def published(*chains: int) -> Evidence:
    return Office().at_the_end().hand_in(failed("a", at(10))).close().evidence(published_on=chains)


def undecided() -> Evidence:
    objective = {"id": "memory", "method": "total_ratio", "indicator": "oom_avoidance", "target": "90"}
    terms = {"objectives": [OBJECTIVES[0], objective], **paid(rules=[])}
    said = {"service": "example-chat", "indicator": "oom_avoidance", "at": at(3)}
    sample = {"sample_id": "s", **said, "good": 8, "bad": 1, "undecided": 2}
    office = Office(**terms).at_the_end().hand_in(row("a", at(10)))
    return office.hand_in(body=json.dumps(sample).encode() + b"\n").close().evidence()


def many_objectives(count: int, **more: Any) -> dict[str, Any]:
    return {"objectives": [{**OBJECTIVES[0], "id": f"o{number}", **more} for number in range(count)], **paid(rules=[])}


def first_objective(**more: Any) -> dict[str, Any]:
    return {"objectives": [{**OBJECTIVES[0], **more}, *OBJECTIVES[1:]]}


def by_minute() -> dict[str, Any]:
    found = {name: OBJECTIVES[0][name] for name in ("id", "indicator", "target")}
    found |= {"method": "downtime_minutes-v1", "error_rate": "10", "boundary": "above", "minimum_valid": 1}
    return {"objectives": [found, *OBJECTIVES[1:]], "window": "PT1M"}


TIERS = PAID["rules"][0]
IMPACT = {
    "kind": "impact",
    "method": "impact-v1",
    "objective": "availability",
    "unit_price": "0.5",
    "level_coefficients": {"L2": "2"},
}
LOST = {"kind": "proportional", "method": "proportional-v1", "objective": "availability", "of": "lost_time"}
FIVE_TIERS = [{"below": str(99 - step), "credit_percent": str(5 + step)} for step in range(5)]
TWO_SCOPES = [{**OBJECTIVES[0], "scope": {"region": "eu"}}, {**OBJECTIVES[1], "scope": {"region": "us"}}]
TWO_TIERS = {**TIERS, "tiers": {name: TIERS["tiers"][name] for name in ("availability", "ttft")}}

KINDS: Mapping[str, Callable[[], Evidence]] = {
    "met": day,
    "breached": lambda: day(failed("a", at(10)), row("b", at(11))),
    "slow": lambda: day(row("a", at(10), ttft_s=0.9), row("b", at(11), e2e_s=9.0)),
    "sealed long after": lambda: Office().at("2023-08-01T00:00:00Z").hand_in(row("a", at(10))).close().evidence(),
    "no data": lambda: day(row("a", at(10), service="another")),
    "withheld": lambda: day(span=some_hours(3, 17)),
    "part of it missing": lambda: day(coverage_floor="58.33", span=some_hours(3, 17)),
    "a committed credit": lambda: day(failed("a", at(10)), **paid(credit_visibility="committed")),
    "a sum without caps": lambda: day(failed("a", at(10)), **paid(tiers_combine="sum", caps={}, rounding="half_up")),
    "half a unit": lambda: day(failed("a", at(10)), **paid(base="0.05", minimum="0", rounding="half_even")),
    "at the minimum": lambda: day(failed("a", at(10)), **paid(minimum="4000.00")),
    "yen": lambda: day(
        failed("a", at(10)), **paid(currency="JPY", base="33333", caps={}, minimum="1", rounding="floor")
    ),
    "two caps": lambda: day(failed("a", at(10)), **paid(caps={"service": "10.00", "contract": "4000.00"})),
    "claims for days": lambda: day(failed("a", at(10)), **until("days_after_period", 45)),
    "no rule": lambda: day(failed("a", at(10)), **paid(rules=[])),
    "four objectives": lambda: day(**many_objectives(4)),
    "a week sealed as it goes": a_week_sealed_as_it_goes,
    "a month in which clocks go back": a_month_in_which_clocks_go_back,
    "the first of three versions": lambda: restated().evidence(restated().statements()[0]),
    "the second of three versions": lambda: restated().evidence(restated().statements()[1]),
    "the third of three versions": lambda: restated().evidence(),
    "settled after it was withheld": settled_after_withheld,
    "announced maintenance": lambda: maintained(f"{DAY}T08:00:00Z"),
    "maintenance logged too late": lambda: maintained(f"{DAY}T11:00:00Z"),
    "maintenance nobody approved": lambda: maintained(f"{DAY}T08:00:00Z", approved_by=None),
    "a probe that must sign": lambda: probed("required", signs=True),
    "a probe that may sign": lambda: probed("shown", signs=True),
    "a probe that did not sign": lambda: probed("shown", signs=False),
    "a probe that had to sign": lambda: probed("required", signs=False),
    "a part before an amendment": lambda: parts().evidence(parts().statements()[0]),
    "a part after an amendment": lambda: parts().evidence(parts().statements()[1]),
    "a part before a notice": lambda: parts().evidence(),
    "published on two chains": lambda: published(10, 31337),
    "published on a chain nobody pins": lambda: published(10, 99),
    "incidents, published": lambda: (
        Office(**paid(rules=[TIERS, IMPACT])).at_the_end().hand_in(failed("a", at(10))).close()
    ).evidence(published_on=[10]),
    "withheld, and published": lambda: Office().at_the_end().close().evidence(published_on=[10]),
    "counts left open": undecided,
    "five objectives": lambda: day(**many_objectives(5)),
    "with confidence": lambda: day(failed("a", at(10)), **first_objective(confidence="wilson-95")),
    "too little volume": lambda: day(failed("a", at(10)), **first_objective(minimum_valid=2)),
    "by the minute": lambda: day(failed("a", at(10)), **by_minute()),
    "an impact rule": lambda: day(failed("a", at(10)), row("b", at(12)), **paid(rules=[TIERS, IMPACT])),
    "incidents alone": lambda: day(failed("a", at(10)), failed("b", at(11)), **paid(rules=[IMPACT], base="0.00")),
    "no incidents": lambda: day(**paid(rules=[TIERS, IMPACT])),
    "incidents of longer windows": lambda: day(
        *(failed(f"f{hour}", at(hour)) for hour in (3, 4, 6, 13)),
        **paid(rules=[IMPACT]),
        **first_objective(window="PT2H"),
    ),
    "incidents whose windows do not fill the day": lambda: day(
        *(failed(f"f{hour}", at(hour)) for hour in (3, 21, 23)),
        **paid(rules=[IMPACT]),
        **first_objective(window="PT5H"),
    ),
    "more incidents than places": lambda: day(
        *(failed(f"f{place}", f"{DAY}T{place // 6:02}:{place % 6 * 10 + 1:02}:00Z") for place in range(70)),
        window="PT5M",
        **paid(rules=[TIERS, IMPACT]),
    ),
    "a committed credit of incidents": lambda: day(
        failed("a", at(10)), failed("b", at(15)), **paid(rules=[IMPACT], credit_visibility="committed")
    ),
    "a restated credit of incidents": lambda: restated(**paid(rules=[TIERS, IMPACT], rules_combine="sum")).evidence(),
    "an impact rule under a cap in percent": lambda: day(
        failed("a", at(10)), **paid(rules=[TIERS, IMPACT], caps={"service": "50 %"})
    ),
    "a rule for lost time": lambda: day(failed("a", at(10)), **paid(rules=[TIERS, LOST])),
    "a cap in percent": lambda: day(failed("a", at(10)), **paid(caps={"service": "5 %"})),
    "caps of scopes": lambda: day(
        failed("a", at(10)),
        objectives=TWO_SCOPES,
        **paid(rules=[TWO_TIERS], tiers_combine="sum", caps={"scope": "100.00"}),
    ),
    "five tiers": lambda: day(failed("a", at(10)), **paid(rules=[{**TIERS, "tiers": {"availability": FIVE_TIERS}}])),
    "rolling periods": lambda: day(
        failed("a", at(10)),
        period="P2D",
        step="P1D",
        first="2023-06-13",
        **paid(rules=[], base="0"),
        **until("billing_cycles", 3, "automatic"),
    ),
}
"""By name; what each costs is a fraction of a second, but for the month."""


@cache
def evidence(name: str) -> Evidence:
    return KINDS[name]()
