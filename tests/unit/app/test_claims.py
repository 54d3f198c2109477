"""Credits that are owed once they are claimed in time, and charges that finance hands in for their base."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.app.billing.claims import ClaimDesk, ClaimStatus
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.settlement.charges import ChargeDesk
from ledger.domain.record.naming import observations_stream
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.errors import (
    ChargesRefused,
    ClaimDeadlinePassed,
    ClaimRefused,
    DocumentInvalid,
    IdempotencyConflict,
    NotFound,
)
from tests.unit.app.conftest import Desk, make_desk, row
from tests.unit.app.test_restating import at_the_end, close, failed, hand_in, late, lines, owed, settle, statements
from tests.unit.app.test_stages import states

THIRTY_DAYS = {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}}
DAY = "2023-06-14/P1D"


def by_claim(**deadline: Any) -> Desk:
    return at_the_end(make_desk(settlement={**THIRTY_DAYS, **deadline}))


def with_charges(of: str = "period", **changes: Any) -> Desk:
    compensation = dict(make_desk().agreement.document["compensation"])
    del compensation["base"]
    return at_the_end(make_desk(compensation={**compensation, "charges": {"of": of}}, **changes))


def claims(desk: Desk) -> ClaimDesk:
    return ClaimDesk(desk.database, desk.attestor, desk.clock)


def charges(desk: Desk) -> ChargeDesk:
    return ChargeDesk(desk.database, desk.attestor, desk.clock)


def sla_id(desk: Desk) -> str:
    return desk.attestor.sla_id(desk.agreement)


def line(amount: str = "8000.00", **changes: Any) -> dict[str, Any]:
    return {"service": "example-chat", "kind": "recurring", "amount": amount, "currency": "USD", **changes}


@pytest.fixture
def desk() -> Desk:
    """Two hours failed on a day of an agreement that settles by claim; its statement is issued."""
    desk = by_claim()
    hand_in(desk, row("a"), failed("b", 3), failed("c", 10), failed("d", 10))
    close(desk)
    return desk


def name(desk: Desk) -> str:
    return str(statements(desk)[-1]["statement_id"])


def batches(desk: Desk) -> list[str]:
    with desk.database.read() as tx:
        stream = observations_stream(sla_id(desk), desk.agreement.source)
        return [event.payload["digest"] for event in tx.events.stream(stream)]


class TestClaims:
    def test_the_statement_says_what_would_be_credited_and_nothing_is_owed(self, desk: Desk) -> None:
        (statement,) = statements(desk)
        assert statement["credit"] == {"currency": "USD", "minor_units": "400000"}
        assert owed(desk) == 0
        found = claims(desk).of(name(desk))
        assert [(each.minor_units, each.status, each.scope) for each in found] == [
            (133_333, ClaimStatus.OPEN, "all"),
            (266_667, ClaimStatus.OPEN, "all"),
        ]
        assert {format_instant_ns(each.deadline_ns) for each in found} == {"2023-07-15T00:00:00Z"}

    def test_a_claim_in_time_issues_its_line(self, desk: Desk) -> None:
        _, second = claims(desk).of(name(desk))
        (batch,) = batches(desk)
        chosen = second.violation_id
        filed = claims(desk).file(name(desk), violation=chosen, evidence=batch, request="k1", by="customer")
        assert [(claim["claim_id"], claim["minor_units"]) for claim in filed] == [(second.claim_id, "266667")]
        assert owed(desk) == 266_667
        assert lines(desk, name(desk)) == [("w10", 266_667)]
        first, second = claims(desk).of(name(desk))
        assert (first.status, second.status) == (ClaimStatus.OPEN, ClaimStatus.FILED)
        assert second.filed is not None
        assert second.filed["evidence"] == batch
        # The rest, all at once.
        claims(desk).file(name(desk), request="k2")
        assert owed(desk) == 400_000

    def test_the_same_request_again_is_the_same_claim(self, desk: Desk) -> None:
        first = claims(desk).file(name(desk), request="k1")
        assert claims(desk).file(name(desk), request="k1") == first
        assert owed(desk) == 400_000
        with pytest.raises(IdempotencyConflict):
            claims(desk).file(name(desk), request="k1", evidence="cd" * 32)

    def test_evidence_that_nobody_handed_in_is_refused_by_name(self, desk: Desk) -> None:
        with pytest.raises(ClaimRefused, match=f"{'ab' * 32} is no batch of facts about this agreement") as error:
            claims(desk).file(name(desk), request="k1", evidence="ab" * 32)
        assert error.value.data["evidence"] == "ab" * 32
        assert {each.status for each in claims(desk).of(name(desk))} == {ClaimStatus.OPEN}
        assert owed(desk) == 0

    def test_a_duplicate_is_refused_with_its_line_and_the_deadline(self, desk: Desk) -> None:
        second = claims(desk).of(name(desk))[1]
        claims(desk).file(name(desk), violation=second.violation_id, request="k1")
        with pytest.raises(ClaimRefused, match="filed before") as error:
            claims(desk).file(name(desk), violation=second.violation_id, request="k2")
        assert error.value.data["line_id"] == f"{name(desk)}.l0001"
        assert error.value.data["deadline"] == "2023-07-15T00:00:00Z"

    @pytest.mark.parametrize(("at", "taken"), [("2023-07-14T23:59:50Z", True), ("2023-07-15T00:00:00Z", False)])
    def test_the_deadline_is_the_first_instant_that_is_too_late(self, desk: Desk, at: str, taken: bool) -> None:
        desk.clock.now = parse_instant_ns(at) - 10**9
        if taken:
            assert len(claims(desk).file(name(desk), request="k1")) == 2
            return
        with pytest.raises(ClaimRefused, match="claims were taken until 2023-07-15T00:00:00Z"):
            claims(desk).file(name(desk), request="k1")
        assert {each.status for each in claims(desk).of(name(desk))} == {ClaimStatus.TOO_LATE}
        assert owed(desk) == 0

    def test_each_incident_has_its_own_day_where_the_deadline_runs_from_it(self) -> None:
        desk = by_claim(deadline={"kind": "days_after_incident", "count": 15})
        hand_in(desk, row("a"), failed("b", 3), failed("c", 10))
        close(desk)
        assert {format_instant_ns(each.deadline_ns) for each in claims(desk).of(name(desk))} == {"2023-06-30T00:00:00Z"}

    def test_one_incident_that_broke_two_levels_is_claimed_at_the_better_one(self) -> None:
        desk = by_claim()
        slow = row("slow", at="2023-06-14T10:00:00Z", ttft_s=9.0, e2e_s=9.5)
        hand_in(desk, *(row(f"r{n}") for n in range(98)), slow, failed("b", 10))
        close(desk)
        (found,) = claims(desk).of(name(desk))
        # 98 of 99 answered in time is 98.98 %, below 99: 5 % of the base; 99 of 100 succeeded: 10 %.
        assert (found.objective, found.minor_units) == ("availability", 80_000)
        other = str(found.violation_id).replace("availability", "response")
        with pytest.raises(ClaimRefused, match="of one incident only the best level is paid"):
            claims(desk).file(name(desk), violation=other, request="k1")

    def test_what_was_claimed_follows_a_restatement_and_the_old_version_takes_no_claim(self, desk: Desk) -> None:
        second = claims(desk).of(name(desk))[1]
        old = name(desk)
        claims(desk).file(old, violation=second.violation_id, request="k1")
        late(desk, failed("e", 10), failed("f", 10))
        assert len(statements(desk)) == 2
        # Of 400000 the hour has 4 of 5 failures now, and 266667 was claimed of it.
        assert lines(desk, name(desk)) == [("w10", 320_000 - 266_667)]
        assert owed(desk) == 320_000
        with pytest.raises(ClaimRefused, match=f"{old} was replaced by {name(desk)}"):
            claims(desk).file(old, request="k2")
        claims(desk).file(name(desk), request="k3")
        assert owed(desk) == 400_000

    def test_a_line_that_was_taken_back_is_not_claimed_again(self, desk: Desk) -> None:
        (first, _) = claims(desk).file(name(desk), request="k1")
        CreditDesk(desk.database, desk.clock).reverse(first["line_id"], reason="a test account", request="r1")
        with pytest.raises(ClaimRefused, match="filed before"):
            claims(desk).file(name(desk), violation=first["violation_id"], request="k2")

    def test_an_agreement_that_settles_by_itself_takes_no_claims(self) -> None:
        desk = at_the_end(make_desk())
        hand_in(desk, failed("b", 3))
        close(desk)
        assert claims(desk).of(name(desk)) == ()
        with pytest.raises(ClaimRefused, match="settles by itself"):
            claims(desk).file(name(desk), request="k1")
        with pytest.raises(NotFound):
            claims(desk).of("nothing")

    def test_a_healthy_day_has_nothing_to_claim(self) -> None:
        desk = by_claim()
        hand_in(desk, row("a"))
        close(desk)
        with pytest.raises(ClaimRefused, match="credits nothing"):
            claims(desk).file(name(desk), request="k1")


class TestCharges:
    def test_a_period_waits_for_its_charges_and_is_settled_by_them(self) -> None:
        desk = with_charges()
        hand_in(desk, row("a"), failed("b", 3))
        close(desk)
        assert statements(desk) == []
        assert ("compensate", "pending") in states(desk)
        recorded = charges(desk).record(sla_id(desk), DAY, [line("1000.00"), line("50.00", kind="tax")], by="finance")
        assert recorded.version == 1
        settle(desk)
        (statement,) = statements(desk)
        # Half failed: 50 % of 1000.00, and no tax.
        assert statement["credit"] == {"currency": "USD", "minor_units": "50000"}
        assert statement["trace"]["charges"]["lines"][1]["kind"] == "tax"
        assert owed(desk) == 50_000

    def test_charges_that_are_in_before_the_closing_are_taken(self) -> None:
        desk = with_charges()
        hand_in(desk, failed("b", 3))
        charges(desk).record(sla_id(desk), DAY, [line()])
        close(desk)
        assert statements(desk)[0]["credit"]["minor_units"] == "400000"
        assert charges(desk).of(sla_id(desk), DAY).lines == [line()]

    def test_the_same_again_changes_nothing_and_others_restate(self) -> None:
        desk = with_charges()
        hand_in(desk, failed("b", 3))
        close(desk)
        first = charges(desk).record(sla_id(desk), DAY, [line("100.00")])
        assert charges(desk).record(sla_id(desk), DAY, [line("100.00")]).receipt == first.receipt
        settle(desk)
        assert charges(desk).record(sla_id(desk), DAY, [line("200.00")]).version == 2
        settle(desk)
        one, two = statements(desk)
        assert (one["credit"]["minor_units"], two["credit"]["minor_units"]) == ("5000", "10000")
        assert two["reason"] == f"the charges of {DAY} were recorded anew"
        assert owed(desk) == 10_000

    def test_the_day_before_where_the_contract_pays_by_it(self) -> None:
        desk = with_charges("previous_period")
        hand_in(desk, failed("b", 3))
        close(desk)
        charges(desk).record(sla_id(desk), DAY, [line("700.00")])
        settle(desk)
        assert statements(desk) == []
        charges(desk).record(sla_id(desk), "2023-06-13/P1D", [line("300.00")])
        settle(desk)
        assert statements(desk)[0]["credit"]["minor_units"] == "15000"

    def test_those_that_a_period_waits_for_are_taken_however_late(self) -> None:
        desk = with_charges()
        hand_in(desk, row("a"), failed("b", 3))
        close(desk)
        desk.clock.now = parse_instant_ns("2024-01-01T00:00:00Z")
        charges(desk).record(sla_id(desk), DAY, [line()])
        settle(desk)
        (statement,) = statements(desk)
        assert owed(desk) == int(statement["credit"]["minor_units"]) > 0

    def test_late_charges_are_refused_after_the_deadline(self) -> None:
        desk = with_charges()
        hand_in(desk, failed("b", 3))
        close(desk)
        charges(desk).record(sla_id(desk), DAY, [line()])
        settle(desk)
        desk.clock.now = parse_instant_ns("2023-07-15T00:00:00Z")
        with pytest.raises(ClaimDeadlinePassed):
            charges(desk).record(sla_id(desk), DAY, [line("1.00")])
        assert charges(desk).of(sla_id(desk), DAY).version == 1

    @pytest.mark.parametrize(
        ("lines", "period", "error", "said"),
        [
            ([line("0")], DAY, ChargesRefused, "have 0 of them"),
            ([line(currency="XXX")], DAY, DocumentInvalid, r"lines\[0\].currency"),
            ([line(currency="EUR")], DAY, DocumentInvalid, r"lines\[0\].rate: is missing"),
            ([], DAY, DocumentInvalid, "lines: must have 1 to"),
            ([line()], "2024-06-14/P1D", DocumentInvalid, "no period of this agreement starts on"),
        ],
    )
    def test_what_cannot_be_a_base_is_refused_and_not_recorded(
        self, lines: list[Any], period: str, error: type[Exception], said: str
    ) -> None:
        desk = with_charges()
        desk.register()
        with pytest.raises(error, match=said):
            charges(desk).record(sla_id(desk), period, lines)
        with pytest.raises(NotFound):
            charges(desk).of(sla_id(desk), DAY)

    def test_an_agreed_base_takes_no_charges(self, desk: Desk) -> None:
        with pytest.raises(ChargesRefused, match="is agreed on"):
            charges(desk).record(sla_id(desk), DAY, [line()])


REGIONS = ("eu", "us")
LEVELS = ("up", "fast")


def two_regions(combine: str) -> Desk:
    """Two levels of service promised in each of two regions, each by its own requests."""
    steps = {"up": ("99", "10"), "fast": ("99", "5")}
    objectives, tiers = [], {}
    for region in REGIONS:
        for level in LEVELS:
            latency = {"indicator": "first_token_latency", "threshold_ms": "800"}
            objectives.append(
                {
                    "id": f"{region}-{level}",
                    "method": "total_ratio",
                    "target": "99.9",
                    "where": {"region": region},
                    "scope": {"region": region},
                    **({"indicator": "availability"} if level == "up" else latency),
                }
            )
            below, percent = steps[level]
            tiers[f"{region}-{level}"] = [{"below": below, "credit_percent": percent}]
    compensation = {
        **make_desk().agreement.document["compensation"],
        "rules": [{"kind": "tiered", "method": "tiered-v1", "tiers": tiers}],
        "tiers_combine": combine,
        "caps": {},
        "minimum": "0",
    }
    desk = make_desk(objectives=objectives, compensation=compensation, settlement=THIRTY_DAYS)
    return at_the_end(desk)


def outage(region: str, hour: int, *, count: int = 2) -> list[dict[str, Any]]:
    """One incident that breaks both levels of a region: some requests fail, and some are slow."""
    at = f"2023-06-14T{hour:02}:00:00Z"
    down = [row(f"{region}-{hour}-d{n}", at=at, error_code=500, region=region) for n in range(count)]
    slow = [row(f"{region}-{hour}-s{n}", at=at, ttft_s=5.0, e2e_s=6.0, region=region) for n in range(count)]
    return down + slow


def claimed(desk: Desk) -> list[tuple[str | None, str, int]]:
    found = claims(desk).of(name(desk))
    assert len({each.claim_id for each in found}) == len(found)
    return [(each.objective, each.scope, each.minor_units) for each in found]


class TestDoubleCounting:
    """Of one incident the best single level is paid, and each scope and incident is claimed once."""

    def test_an_outage_of_both_regions_is_the_best_single_level(self) -> None:
        desk = two_regions("best")
        hand_in(desk, row("a", region="eu"), row("b", region="us"), *outage("eu", 3), *outage("us", 3))
        close(desk)
        found = claimed(desk)
        assert {objective for objective, _, _ in found} <= {"eu-up", "us-up"}
        assert sum(units for _, _, units in found) == 80_000
        filed = claims(desk).file(name(desk), request="k1")
        assert {(each["sla_id"], each["period"], each["scope"], each["objective"]) for each in filed} == {
            (sla_id(desk), DAY, scope, objective) for objective, scope, _ in found
        }
        with pytest.raises(ClaimRefused, match="filed before"):
            claims(desk).file(name(desk), request="k2")
        assert owed(desk) == 80_000

    def test_added_up_each_scope_and_level_is_a_claim_of_its_own(self) -> None:
        desk = two_regions("sum")
        hand_in(desk, row("a", region="eu"), row("b", region="us"), *outage("eu", 3), *outage("us", 3))
        close(desk)
        assert claimed(desk) == [
            ("eu-fast", "region=eu", 60_000),
            ("eu-up", "region=eu", 60_000),
            ("us-fast", "region=us", 60_000),
            ("us-up", "region=us", 60_000),
        ]

    def test_overlaps_counted_twice_uptime_monitor_287(self) -> None:
        """The same outage told by two batches of one source, and one that overlaps it, are one violation."""
        desk = two_regions("sum")
        hand_in(desk, row("a", region="eu"), *outage("eu", 3))
        hand_in(desk, *outage("eu", 3), *outage("eu", 4))
        close(desk)
        whole = claimed(desk)
        other = two_regions("sum")
        hand_in(other, row("a", region="eu"), *outage("eu", 3), *outage("eu", 4))
        close(other)
        assert whole == claimed(other)
        assert [objective for objective, _, _ in whole] == ["eu-fast", "eu-up"]

    def test_an_outage_in_one_region_is_none_of_the_other(self) -> None:
        desk = two_regions("sum")
        hand_in(desk, row("a", region="eu"), row("b", region="us"), *outage("eu", 3))
        close(desk)
        assert {scope for _, scope, _ in claimed(desk)} == {"region=eu"}
