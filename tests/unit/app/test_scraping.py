"""From what endpoints say to the statement: rounds of scraping as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ledger.app.facts.earlier_batches import declared_by
from ledger.app.facts.observations import record_observations
from ledger.app.facts.scrape_restarts import ROUNDS, restarting
from ledger.app.facts.scraping import RecordedRound, longest_silence_s, record_round
from ledger.domain.record.naming import observations_stream
from ledger.domain.rows.observation import Reason
from ledger.domain.time.instant import DAY_NS, HOUR_NS, MINUTE_NS
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, WindowState
from ledger.errors import BadInput, ImplausibleCounts, RequestLogUnusable, TargetUnavailable
from ledger.ingest.facts import read_facts
from ledger.ingest.prometheus import OPENMETRICS, TEXT
from ledger.ingest.scrape import Exposition
from ledger.ingest.scraped_facts import read_mark, read_round
from tests.unit.app.conftest import Desk
from tests.unit.app.feeding import desk_of, figures, hand, judge, settle, sha256
from tests.unit.ingest.test_scraped_facts import ERRORS, LATENCY, OBJECTIVES, TOTAL

A, B = "pod-a:80", "pod-b:80"
Said = str | None
"""What a target answers; None: nothing."""


def ledger(*objectives: dict[str, Any], **changes: Any) -> Desk:
    return desk_of(objectives or OBJECTIVES[:1], **{"coverage_floor": "1", **changes})


def text(total: int, errors: int = 0, *more: str) -> str:
    counters = f"# TYPE {TOTAL} counter\n{TOTAL} {total}\n# TYPE {ERRORS} counter\n{ERRORS} {errors}\n"
    return counters + "".join(f"{each}\n" for each in more)


def buckets(*counts: int) -> str:
    bounds = ("0.25", "0.75", "+Inf")
    return "\n".join(
        [
            f"# TYPE {LATENCY} histogram",
            *(f'{LATENCY}_bucket{{le="{le}"}} {n}' for le, n in zip(bounds, counts, strict=True)),
        ]
    )


def scrape(
    of: Desk, hours: float, *answers: Said, names: Iterable[str] = (A, B), media_type: str = TEXT
) -> RecordedRound:
    """A round so many hours into the day, recorded a second later."""
    at_ns = of.period.interval.start_ns + round(hours * HOUR_NS)
    said = {
        name: TargetUnavailable("is down") if each is None else Exposition(media_type, each.encode())
        for name, each in zip(names, answers, strict=False)
    }
    of.clock.now = max(of.clock.now, at_ns) if of.clock.now > at_ns + DAY_NS else at_ns + 10**9
    return record_round(
        of.database,
        of.register().sla_id,
        read_round(of.agreement, at_ns, said),
        attestor=of.attestor,
        clock=of.clock,
        read_rows=read_facts,
        read_mark=read_mark,
    )


def day(of: Desk, answers: Callable[[int], tuple[Said, ...]], every_hours: float = 1, until: float = 24) -> None:
    of.clock.now = of.period.interval.start_ns
    for at in range(int(until / every_hours) + 1):
        scrape(of, at * every_hours, *answers(at))


def over(of: Desk) -> Desk:
    of.clock.now = of.period.interval.end_ns + DAY_NS
    return of


def test_two_processes_of_which_nothing_but_endpoints_is_known_settle_a_day() -> None:
    of = ledger(*OBJECTIVES)

    def answers(at: int) -> tuple[Said, ...]:
        return text(100 * at, 3 * at, buckets(90 * at, 99 * at, 100 * at)), text(10 * at, 0, buckets(at, at, at))

    day(of, answers)
    issued = settle(over(of))
    # 110 an hour, of which 3 fail; of 101 answers 91 are within 250 ms and 1 is not within 750 ms. 500 ms is no bound.
    assert figures(issued) == {
        "errors": (24 * 107, 24 * 110, "breached"),
        "response": (24 * 91, 24 * 101, "insufficient_data"),
    }
    assert issued.settlement.credit == 80_000


def test_a_restart_is_that_of_one_process_and_what_it_counted_since_counts() -> None:
    of = ledger()
    day(of, lambda at: (text(100 * at, at), text(50 if at == 12 else 1000 + at, 0)))
    cells = [window.cells[0] for window in judge(over(of))]
    # From 1011 down to 50 in the twelfth hour, and up to 1013 in the one after.
    assert cells[10:13] == [Cell(100, 1), Cell(99 + 50, 1), Cell(99 + 963, 1)]


def test_a_gap_of_scraping_has_no_data_and_is_never_good() -> None:
    of = ledger()
    of.clock.now = of.period.interval.start_ns
    for minute in (*range(0, 180, 10), *range(310, 1441, 10)):
        scrape(of, minute / 60, text(minute), text(0))
    windows = judge(over(of))
    # Nobody looked between 02:50 and 05:10, so neither the third hour nor the sixth is known whole.
    assert [at for at, window in enumerate(windows) if window.state is WindowState.NO_DATA] == [2, 3, 4, 5]
    assert windows[6].cells == (Cell(60, 0),)
    of = ledger(coverage_floor="99")
    day(of, lambda at: (text(at), None if 3 <= at <= 6 else text(0)))
    assert figures(settle(over(of)))["errors"][2] == "withheld"


def test_a_target_that_does_not_answer_shows_nothing_of_itself_by_those_that_do() -> None:
    of = ledger()
    found = scrape(of, 0, text(0), text(0)), scrape(of, 0.5, text(5), text(5))
    assert [each.complete is not None for each in found] == [False, True]
    partial = scrape(of, 1, text(10), None)
    assert partial.complete is None
    assert partial.batches["counters"].counts.accepted == 2
    # It answers again within what the agreement takes for silence: what it counted meanwhile is in its reading.
    found_again = scrape(of, 1.5, text(15), text(15))
    assert found_again.complete == Interval(*(of.period.interval.start_ns + at * HOUR_NS // 2 for at in (1, 3)))
    assert scrape(of, 3, text(20), text(20)).complete is None


@pytest.mark.parametrize(
    "named",
    [
        f"# TYPE {TOTAL} counter\n{TOTAL} 9\n",
        f"# TYPE {TOTAL} counter\n{TOTAL} 9\n# TYPE llm_failures_total counter\nllm_failures_total 9\n",
    ],
)
def test_a_metric_that_is_called_otherwise_is_not_measured_and_not_0(named: str) -> None:
    of = ledger()
    scrape(of, 0, text(0), text(0))
    assert scrape(of, 0.5, text(9), named).complete is None
    assert judge(over(of))[0].state is WindowState.NO_DATA


def test_another_set_of_targets_does_not_continue_the_round_before() -> None:
    """Who left took what he counted last with him; of who came nobody knows what he counted before."""
    of = ledger()
    scrape(of, 0, text(0), text(0))
    assert scrape(of, 0.25, text(1)).complete is None
    assert scrape(of, 0.5, text(1), text(1), text(1), names=(A, B, "pod-c:80")).complete is None
    assert scrape(of, 0.75, text(2), text(2)).complete is not None


def test_what_the_agreement_takes_for_silence_is_what_a_heartbeat_covers_or_a_window() -> None:
    of = ledger(source={"name": "prometheus", "coverage": "heartbeat", "heartbeat": "PT2M"})
    assert (longest_silence_s(of.agreement), longest_silence_s(ledger().agreement)) == (120, 3600)
    scrape(of, 0, text(0), text(0))
    assert scrape(of, 2 / 60, text(0), text(0)).complete is not None
    assert scrape(of, 4.1 / 60, text(0), text(0)).complete is None


def test_facts_of_others_do_not_hide_the_round_before() -> None:
    of = ledger(*OBJECTIVES)
    more = buckets(1, 1, 1)
    scrape(of, 0, text(0, 0, more), text(0, 0, more))
    row = {
        "counter": TOTAL,
        "series": {"pod": "x"},
        "at": "2023-06-14T00:10:00Z",
        "service": "example-chat",
        "value": 1,
    }
    hand(of, row, period=None)
    found = scrape(of, 0.5, text(0, 0, more), text(0, 0, more))
    assert {batch.declared_complete for batch in found.batches.values()} == {found.complete}
    assert found.complete is not None


def test_a_round_is_recorded_whole_or_not_at_all() -> None:
    of = ledger(*OBJECTIVES)
    sla_id, at_ns = of.register().sla_id, of.period.interval.start_ns + MINUTE_NS
    found = read_round(of.agreement, at_ns, {A: Exposition(TEXT, text(1, 0, buckets(1, 1, 1)).encode())})
    # The second log is of another service.
    found = replace(found, logs={**found.logs, "histograms": found.logs["histograms"].replace(b"example-chat", b"x")})
    with pytest.raises(RequestLogUnusable, match="no row of the log can be used"):
        record_round(
            of.database,
            sla_id,
            found,
            attestor=of.attestor,
            clock=of.clock,
            read_rows=read_facts,
            read_mark=read_mark,
        )
    with of.database.read() as tx:
        assert list(tx.events.stream(observations_stream(sla_id, of.agreement.source))) == []


def test_the_same_round_again_counts_once() -> None:
    of = ledger()
    first, second = scrape(of, 0, text(0), text(0)), scrape(of, 0, text(0), text(0))
    assert second.batches["counters"].receipt == first.batches["counters"].receipt
    scrape(of, 1, text(7), text(0))
    again = scrape(of, 1, text(7), text(0))
    assert again.complete is not None
    assert judge(over(of))[0].cells == (Cell(7, 0),)


def told(of: Desk) -> list[str]:
    """What the operator is told of processes that begin anew."""
    return restarting(
        of.database, of.register().sla_id, attestor=of.attestor, read_rows=read_facts, read_mark=read_mark
    )


def test_several_workers_behind_one_address_are_told_and_one_restart_is_not() -> None:
    of = ledger()
    scrape(of, 0, text(900, 3), text(50))
    scrape(of, 1, text(910, 3), text(5))
    assert told(of) == [], "b restarted once"
    for at in range(2, 8):
        # Two workers of a take turns.
        scrape(of, at, text(20 + at if at % 2 else 920 + at), text(5 + at))
    (said,) = told(of)
    assert said.startswith(f"{A}: began anew 3 times in 8 readings ({TOTAL}): its process restarts")
    assert "or several answer behind this address" in said
    # Once each has an address of its own it is passed over after as many rounds as are looked at.
    for at in range(ROUNDS):
        scrape(of, 8 + at / 10, text(1000 + at), text(100 + at))
    assert told(of) == []


def test_a_start_that_goes_back_is_told_at_once() -> None:
    of = ledger()
    for at, start_s in enumerate((1_686_000_000, 1_686_500_000, 1_686_000_000)):
        said = "".join(
            f"# TYPE {name} counter\n{name}_total {100 + at}\n{name}_created {start_s}\n"
            for name in (TOTAL.removesuffix("_total"), ERRORS.removesuffix("_total"))
        )
        scrape(of, at, f"{said}# EOF\n", names=[A], media_type=OPENMETRICS)
        assert len(told(of)) == (at == 2)
    (warning,) = told(of)
    assert warning.startswith(f"{A}: several processes answer behind this address ({ERRORS}, one of 2 series, began")


def test_buckets_that_take_turns_are_told_like_counters() -> None:
    of = ledger(OBJECTIVES[1])
    for at in range(7):
        worker = 100 * (at % 2)
        scrape(of, at, buckets(*[worker + at] * 3) + "\n", names=[A])
    (said,) = told(of)
    assert said.startswith(f"{A}: began anew 3 times in 7 readings ({LATENCY})")


def test_a_counter_that_cannot_be_blocks_its_period_and_is_not_passed_over() -> None:
    of = ledger()
    scrape(of, 0, text(0), text(0))
    found = scrape(of, 1, text(-4), text(0))
    assert found.batches["counters"].counts.rejected == {Reason.IMPLAUSIBLE: 1}
    with pytest.raises(ImplausibleCounts, match="whole number from 0, not -4"):
        judge(over(of))


def test_an_agreement_that_is_counted_otherwise_and_a_round_of_nothing_are_refused() -> None:
    of = desk_of([{"id": "up", "method": "total_ratio", "indicator": "availability", "target": "99"}])
    with pytest.raises(BadInput, match="no objective of this agreement is counted from counters"):
        longest_silence_s(of.agreement)
    with pytest.raises(BadInput, match=r"nothing was read: pod-a:80: is down"):
        scrape(ledger(), 0, None, None)


def batches() -> list[tuple[bytes, Interval | None]]:
    """The logs of a day as they were recorded: with a gap, a restart, a target that is down, and one round twice."""
    of = ledger(*OBJECTIVES)

    def answers(at: int) -> tuple[Said, ...]:
        more = buckets(2 * at, 3 * at, 4 * at)
        return text(40 * at, at, more), None if at == 9 else text(at % 7, 0, buckets(at % 7, at % 7, at % 7))

    of.clock.now = of.period.interval.start_ns
    for at in (*range(5), *range(8, 25), 24):
        scrape(of, at, *answers(at))
    sla_id = of.register().sla_id
    with of.database.read() as tx:
        events = list(tx.events.stream(observations_stream(sla_id, of.agreement.source)))
        return [(tx.batches.get(event.payload["digest"]), declared_by(event)) for event in events]


_BATCHES: list[tuple[bytes, Interval | None]] = []


def settled(order: Iterable[int], closed_after: int | None = None) -> str:
    of = over(ledger(*OBJECTIVES))
    registered = of.register()
    for count, at in enumerate(order):
        if count == closed_after:
            settle(of)
        data, complete = _BATCHES[at]
        with of.database.begin() as tx:
            record_observations(
                tx, registered, data, read_rows=read_facts, declared_complete=complete, now_ns=of.clock.now_ns()
            )
    return sha256(settle(of))


@examples(max_examples=8, deadline=None)
@given(st.data())
def test_the_logs_of_rounds_settle_alike_in_any_order(data: st.DataObject) -> None:
    if not _BATCHES:
        _BATCHES.extend(batches())
    straight = settled(range(len(_BATCHES)))
    order = data.draw(st.permutations(range(len(_BATCHES))))
    assert settled(order, data.draw(st.integers(0, len(order)))) == straight
