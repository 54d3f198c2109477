"""One request counts once: duplicates, conflicts, and that neither order nor batching matters."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import BodyBook, Reason, RequestRow, Verdict, request_id_digest
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Window
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, row

EXCLUDING = agreement(name="agreement-excluding-429.yaml")
PERIOD = period_named(EXCLUDING, "2023-06-14/P1D")

# Few ids, times and codes, so that repeats and contradictions are common; some rows lie outside the day.
ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["a", "b", "c", "an id of more than sixty-four characters " + "x" * 40]),
        at_s=st.sampled_from([-1, 0, 3599, 3600, 40_000, 86_399, 86_400]),
        code=st.sampled_from([None, None, 429, 500]),
        first_token_ms=st.sampled_from([800, 801]),
        service=st.sampled_from(["example-chat", "example-chat", "other"]),
    ),
    max_size=14,
)


def result(rows: list[RequestRow]) -> tuple[Any, ...]:
    evaluator = Evaluator(EXCLUDING, PERIOD)
    evaluator.add_all(rows)
    counts = evaluator.counts
    verdicts = (counts.accepted, counts.duplicates, counts.conflicts, counts.rejected)
    return verdicts, evaluator.windows(), evaluator.excluded_requests()


@given(ROWS, st.randoms())
def test_the_order_of_rows_changes_neither_counts_nor_windows(rows: list[RequestRow], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert result(shuffled) == result(rows)


@given(ROWS, st.lists(st.integers(0, 14), max_size=3), st.randoms())
def test_cutting_a_log_into_batches_changes_no_count(rows: list[RequestRow], cuts: list[int], random: Any) -> None:
    """Each batch is classified with only what a store keeps of the batches before it."""
    usable = [r for r in rows if r.service == EXCLUDING.service]
    random.shuffle(usable)
    edges = [0, *sorted(min(cut, len(usable)) for cut in cuts), len(usable)]
    store: dict[bytes, set[bytes]] = {}
    counts = dict.fromkeys(Verdict, 0)
    for start, end in itertools.pairwise(edges):
        book = BodyBook(store)
        for item in usable[start:end]:
            digest = request_id_digest("tenant", "gateway-log", str(PERIOD), item.request_id)
            counts[book.classify(digest, item.body_digest)] += 1
        for id_digest, body in book.new:
            store.setdefault(id_digest, set()).add(body)
    ids = {item.request_id for item in usable}
    bodies = {(item.request_id, item.body_digest) for item in usable}
    assert counts[Verdict.ACCEPTED] == len(ids)
    assert counts[Verdict.CONFLICT] == len(bodies) - len(ids)
    assert counts[Verdict.DUPLICATE] == len(usable) - len(bodies)
    assert store.keys() == {request_id_digest("tenant", "gateway-log", str(PERIOD), request_id) for request_id in ids}


@given(ROWS)
def test_sending_everything_again_adds_only_duplicates(rows: list[RequestRow]) -> None:
    (accepted, duplicates, conflicts, _), windows, _ = result(rows)
    (again_accepted, again_duplicates, again_conflicts, _), again_windows, _ = result([*rows, *rows])
    usable = accepted + duplicates + conflicts
    assert (again_accepted, again_conflicts, again_windows) == (accepted, conflicts, windows)
    assert again_duplicates == duplicates + usable


def counted(*rows: RequestRow) -> dict[int, tuple[tuple[int, int], ...]]:
    """(good, bad) by hour, hours without requests left out."""
    evaluator = Evaluator(EXCLUDING, PERIOD)
    evaluator.add_all(rows)

    def pairs(window: Window) -> tuple[tuple[int, int], ...]:
        return tuple((cell.good, cell.bad) for cell in window.cells)

    return {hour: pairs(window) for hour, window in enumerate(evaluator.windows()) if not window.empty}


def test_a_conflicting_id_counts_once_as_failed_in_the_hour_of_its_earliest_start() -> None:
    late, early = row(at_s=7200), row(at_s=3600)
    failed = {1: ((0, 1), (0, 0), (0, 0))}
    assert counted(late, early) == counted(early, late) == failed


def test_three_bodies_under_one_id_still_count_once() -> None:
    assert counted(row(at_s=7200), row(at_s=3600), row(at_s=10)) == {0: ((0, 1), (0, 0), (0, 0))}


def test_no_clause_takes_a_conflicting_id_out() -> None:
    assert counted(row(code=429)) == {}
    assert counted(row(code=429), row(code=429, at_s=5)) == {0: ((0, 1), (0, 0), (0, 0))}
    assert counted(row(), row(code=429)) == counted(row(code=429), row()) == {0: ((0, 1), (0, 0), (0, 0))}


def test_rows_that_were_rejected_make_no_conflict() -> None:
    inside, outside, foreign = row(), row(at_s=86_400), row(service="other")
    assert counted(outside, foreign, inside) == {0: ((1, 0), (1, 0), (1, 0))}


def test_an_id_sent_again_from_before_the_period_does_not_take_a_failure_out_of_it() -> None:
    failure, earlier = row(code=500), row(at_s=-1)
    assert counted(failure, earlier) == counted(earlier, failure) == {0: ((0, 1), (0, 0), (0, 0))}


def test_rows_outside_the_span_of_their_own_batch_are_rejected_though_another_batch_declares_it() -> None:
    morning, evening = (Interval(DAY_NS + hour * HOUR_NS, DAY_NS + (hour + 12) * HOUR_NS) for hour in (0, 12))
    evaluator = Evaluator(EXCLUDING, PERIOD, spans=[morning, evening])
    evaluator.add_all([row("a"), row("b", at_s=13 * 3600)], within=[morning])
    evaluator.add_all([row("c"), row("b", at_s=14 * 3600)], within=[evening])
    evaluator.add_all([row("d"), row("e", at_s=14 * 3600)], within=[])
    evaluator.add(row("f"))
    counts = evaluator.counts
    assert (counts.accepted, counts.conflicts, counts.rejected) == (5, 0, {Reason.OUTSIDE_SPAN: 2})


def test_ids_of_two_tenants_sources_or_periods_never_meet() -> None:
    scopes = [("a", "bc", "p"), ("ab", "c", "p"), ("a", "b", "cp"), ("a", "bc", "q"), ("a", "bd", "p")]
    assert len({request_id_digest(*scope, "id") for scope in scopes}) == len(scopes)
