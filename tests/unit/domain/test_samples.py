"""Samples: a row in, counts out; identity, doubt, and what blocks settlement."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.settlement import settle
from ledger.domain.credits.verdict import ObjectiveState
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.samples import SampleBook
from ledger.domain.rows.observation import Reason, RowRejection, SampleRow, Verdict
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import REQUESTS, SAMPLES, format_of
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.domain.violations.recovery import recovery_samples
from ledger.domain.violations.violation import violations
from ledger.domain.windows.exclusions import Excluded
from ledger.domain.windows.window import MAX_COUNT, Cell, Window, WindowState
from ledger.errors import DocumentInvalid, ImplausibleCounts
from tests.unit.domain.samples import DAY_NS, HOUR_NS, agreement, row, windows

DAY = "2023-06-14/P1D"
JUDGED = {"method": "total_ratio", "evaluator": "factbench 2.1", "minimum_valid": 1}
FACTS = {**JUDGED, "indicator": "fact_consistency", "target": "98.2"}
SCORE = {**JUDGED, "indicator": "logical_consistency", "target": "84", "measure": {"score_of": "5"}}
LEAK = {"method": "total_ratio", "indicator": "gpu_memory_leak", "target": "100", "measure": {"at_most": "0.001"}}
SHARE = {"method": "total_ratio", "indicator": "metric_value", "target": "90", "measure": {"score_of": "1"}}
TOKENS = {"method": "total_ratio", "tokenizer": "cl100k_base", "measure": {"at_least": "80"}}
RATE = {**TOKENS, "indicator": "token_rate", "target": "95"}
OOM_4K = {"method": "total_ratio", "indicator": "oom_avoidance", "target": "98.8", "resource": "4K"}
NAMED = {"evaluator": "factbench 2.1", "tokenizer": "cl100k_base"}
UPTIME = {"method": "total_ratio", "indicator": "availability", "target": "99"}


def terms(*objectives: dict[str, Any]) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain["objectives"] = [{"id": f"o{at}", **objective} for at, objective in enumerate(objectives)]
        plain["compensation"]["rules"][0]["tiers"] = {"o0": [{"below": "50", "credit_percent": "10"}]}

    return agreement(change)


def sample(
    name: str = "s-1",
    *,
    at_s: float = 0,
    counts: tuple[int, int, int] | None = None,
    value: str | None = None,
    **changes: Any,
) -> SampleRow:
    said = {"indicator": "fact_consistency", "service": "example-chat", "resource": None, **NAMED, **changes}
    counts = (9, 1, 0) if counts is None and value is None else counts
    at_ns = DAY_NS + int(at_s * SECOND_NS)
    digest = hashlib.blake2b(f"{at_ns} {counts} {value} {sorted(said.items())}".encode(), digest_size=16).digest()
    return SampleRow(
        1,
        name,
        digest,
        at_ns=at_ns,
        counts=counts,
        value=None if value is None else Fraction(value),
        trace_id=None,
        **said,
    )


def cells(of: Agreement, *rows: SampleRow, spans: Any = None) -> list[Cell]:
    """The first window's cells."""
    return list(judged(of, *rows, spans=spans)[0].cells)


def judged(of: Agreement, *rows: SampleRow, spans: Any = None, within: Any = ()) -> Any:
    book = SampleBook(of, period_named(of, DAY), spans=spans)
    book.add_all(rows, within=within)
    return book.windows(Evaluator(of, period_named(of, DAY)).windows())


def refused(of: Agreement, item: SampleRow) -> Reason:
    result = SampleBook(of, period_named(of, DAY)).add(item)
    assert isinstance(result, RowRejection)
    return result.reason


def test_counts_are_taken_as_they_are() -> None:
    assert cells(terms(FACTS), sample(counts=(982, 17, 1))) == [Cell(982, 17, 1)]


@pytest.mark.parametrize(
    ("objective", "value", "expected"),
    [
        (RATE, "80", Cell(1, 0)),
        (RATE, "79.999999999999", Cell(0, 1)),
        (LEAK, "0.001", Cell(1, 0)),
        (LEAK, "0.0010000000000001", Cell(0, 1)),
        (LEAK, "-3", Cell(1, 0)),
        ({**SHARE, "measure": {"at_most": "0"}}, "-3", Cell(1, 0)),
        (SCORE, "5", Cell(1000, 0)),
        (SCORE, "4.2", Cell(840, 160)),
        (SCORE, "0", Cell(0, 1000)),
        (SCORE, "4.333", Cell(866, 133, 1)),
        ({**SHARE, "measure": {"score_of": "0.5"}}, "0", Cell(0, 1000)),
    ],
)
def test_a_value_is_counted_by_the_measure(objective: dict[str, Any], value: str, expected: Cell) -> None:
    assert cells(terms(objective), sample(value=value, indicator=objective["indicator"])) == [expected]


def test_a_judge_s_mean_of_4_2_of_5_is_a_target_of_84_percent() -> None:
    of = terms(SCORE)
    rows = [sample(f"s{at}", value=value, indicator="logical_consistency") for at, value in enumerate(("4.1", "4.3"))]
    (result,) = settle(of, period_named(of, DAY), judged(of, *rows)).objectives
    assert (result.good, result.valid, result.state) == (1680, 2000, ObjectiveState.MET)
    worse = [*rows, sample("s9", value="4.19", indicator="logical_consistency")]
    (result,) = settle(of, period_named(of, DAY), judged(of, *worse)).objectives
    assert (result.good, result.valid, result.state) == (2518, 3000, ObjectiveState.BREACHED)


def test_a_sample_counts_to_every_objective_of_its_indicator() -> None:
    assert cells(terms(FACTS, {**FACTS, "target": "50"}, OOM_4K), sample()) == [Cell(9, 1), Cell(9, 1), Cell(0, 0)]


@pytest.mark.parametrize(
    ("objective", "item", "reason"),
    [
        (FACTS, sample(service="other"), Reason.OTHER_SERVICE),
        (FACTS, sample(at_s=-1), Reason.OUTSIDE_PERIOD),
        (FACTS, sample(at_s=86_400), Reason.OUTSIDE_PERIOD),
        (FACTS, sample(indicator="hallucination"), Reason.NOT_PROMISED),
        (UPTIME, sample(indicator="availability"), Reason.NOT_PROMISED),
        (OOM_4K, sample(indicator="oom_avoidance", resource="8K"), Reason.NOT_PROMISED),
        (OOM_4K, sample(indicator="oom_avoidance"), Reason.NOT_PROMISED),
        (FACTS, sample(evaluator="factbench 2.0"), Reason.OTHER_EVALUATOR),
        (FACTS, sample(evaluator=None), Reason.OTHER_EVALUATOR),
        (RATE, sample(indicator="token_rate", value="90", tokenizer="o200k_base"), Reason.OTHER_TOKENIZER),
        (RATE, sample(indicator="token_rate", value="90", tokenizer=None), Reason.OTHER_TOKENIZER),
        (FACTS, sample(value="1"), Reason.MEASURE_MISSING),
        (FACTS, sample(counts=(11, -1, 0)), Reason.IMPLAUSIBLE),
        (FACTS, sample(counts=(-1, 11, 0)), Reason.IMPLAUSIBLE),
        (FACTS, sample(counts=(0, 0, -1)), Reason.IMPLAUSIBLE),
        (FACTS, sample(counts=(MAX_COUNT + 1, 0, 0)), Reason.IMPLAUSIBLE),
        (SCORE, sample(value="5.000000001", indicator="logical_consistency"), Reason.IMPLAUSIBLE),
        (RATE, sample(value="-0.1", indicator="token_rate"), Reason.IMPLAUSIBLE),
        (SHARE, sample(value="-0.1", indicator="metric_value"), Reason.IMPLAUSIBLE),
        (SHARE, sample(value="1.1", indicator="metric_value"), Reason.IMPLAUSIBLE),
    ],
)
def test_what_is_not_for_this_agreement_or_from_no_honest_source_is_rejected(
    objective: dict[str, Any], item: SampleRow, reason: Reason
) -> None:
    assert refused(terms(objective), item) is reason


@pytest.mark.parametrize(
    ("objective", "item", "field", "message"),
    [
        (FACTS, sample(service="x" * 99, at_s=-1), "service", f"'{'x' * 80}' is not 'example-chat'"),
        (FACTS, sample(at_s=-1), "at", "lies outside the period 2023-06-14/P1D"),
        (OOM_4K, sample(), "indicator", "no objective promises fact_consistency"),
        (FACTS, sample(indicator="hallucination", resource="8K"), "indicator", "no objective promises hallucination"),
        (
            OOM_4K,
            sample(indicator="oom_avoidance", resource="x" * 99),
            "indicator",
            f"no objective promises oom_avoidance of '{'x' * 80}'",
        ),
        (FACTS, sample(evaluator="x" * 99), "evaluator", f"'{'x' * 80}'; the agreement names factbench 2.1"),
        (FACTS, sample(evaluator=None), "evaluator", "the sample names none; the agreement names factbench 2.1"),
        (
            RATE,
            sample(indicator="token_rate", value="9", tokenizer="o200k_base"),
            "tokenizer",
            "'o200k_base'; the agreement names cl100k_base",
        ),
        (FACTS, sample(value="1"), "value", "no measure says which values are good; hand in counts"),
        (FACTS, sample(counts=(11, -1, 0)), "bad", f"-1 is not from 0 to {MAX_COUNT}; is good more than the total?"),
        (FACTS, sample(counts=(-1, 11, 0)), "good", f"-1 is not from 0 to {MAX_COUNT}"),
        (FACTS, sample(counts=(0, MAX_COUNT + 1, 0)), "bad", f"{MAX_COUNT + 1} is not from 0 to {MAX_COUNT}"),
        (FACTS, sample(counts=(0, 0, -1)), "undecided", f"-1 is not from 0 to {MAX_COUNT}"),
        (RATE, sample(value="-0.1", indicator="token_rate"), "value", "no token_rate is below 0"),
        (
            SHARE,
            sample(value="1.1", indicator="metric_value"),
            "value",
            "is more than the full score, and so more than 100 %",
        ),
    ],
)
def test_what_is_wrong_with_a_sample_is_named(
    objective: dict[str, Any], item: SampleRow, field: str, message: str
) -> None:
    found = SampleBook(terms(objective), period_named(terms(objective), DAY)).add(item)
    assert isinstance(found, RowRejection)
    assert (found.line, found.field, found.message) == (1, field, message)


def test_all_evaluators_that_the_agreement_names_are_told() -> None:
    of = terms(FACTS, {**FACTS, "evaluator": "factbench 3.0"})
    found = SampleBook(of, period_named(of, DAY)).add(sample(evaluator="factbench 2.0"))
    assert isinstance(found, RowRejection)
    assert found.message == "'factbench 2.0'; the agreement names factbench 2.1, factbench 3.0"


def test_a_value_needs_the_measure_of_every_objective_that_it_is_for() -> None:
    measured = {**FACTS, "measure": {"at_least": "1"}}
    assert cells(terms(measured), sample(value="1")) == [Cell(1, 0)]
    assert refused(terms(measured, FACTS), sample(value="1")) is Reason.MEASURE_MISSING


def test_the_largest_count_of_each_kind_is_taken() -> None:
    for counts in ((MAX_COUNT, 0, 0), (0, MAX_COUNT, 0), (0, 0, MAX_COUNT)):
        assert cells(terms(FACTS), sample(counts=counts)) == [Cell(*counts)]


def test_a_sample_of_another_evaluator_blocks_nothing() -> None:
    assert cells(terms(FACTS), sample("a", evaluator="factbench 2.0"), sample("b")) == [Cell(9, 1)]


def test_a_row_that_could_not_be_read_is_counted_and_given_back() -> None:
    book, unread = SampleBook(terms(FACTS), period_named(terms(FACTS), DAY)), RowRejection(3, Reason.MALFORMED, "", "")
    assert book.add(unread) is unread
    assert book.counts.rejected == {Reason.MALFORMED: 1}


def test_a_named_evaluator_and_a_named_resource_count() -> None:
    newer = {**FACTS, "evaluator": "factbench 3.0"}
    assert cells(terms(FACTS, newer), sample(evaluator="factbench 2.1")) == [Cell(9, 1), Cell(0, 0)]
    both = [RATE, {**RATE, "tokenizer": "o200k_base"}]
    rate = sample(value="80", indicator="token_rate", tokenizer="o200k_base")
    assert cells(terms(*both), rate) == [Cell(0, 0), Cell(1, 0)]
    assert cells(terms(OOM_4K), sample(indicator="oom_avoidance", resource="4K")) == [Cell(9, 1)]


def test_slo_generator_319_more_good_than_all_blocks_settlement_until_it_is_answered() -> None:
    of = terms(FACTS)
    lie = sample("a", counts=(11, -1, 0))
    with pytest.raises(ImplausibleCounts, match="good more than the total") as blocked:
        judged(of, lie, sample("b"))
    assert blocked.value.data["sample_id"] == "a"
    for rows in ([lie, sample("a", counts=(10, 0, 0))], [sample("a", counts=(10, 0, 0)), lie]):
        assert cells(of, *rows) == [Cell(10, 0)]


def test_a_lie_about_another_period_blocks_this_one_not() -> None:
    assert cells(terms(FACTS), sample("a", counts=(11, -1, 0), at_s=86_400), sample("b")) == [Cell(9, 1)]


# --- identity ----------------------------------------------------------------------------------


def test_verdicts_and_a_conflict_that_counts_once_as_bad_at_its_earliest_time() -> None:
    of = terms(FACTS)
    book = SampleBook(of, period_named(of, DAY))
    rows = [
        sample(at_s=7200, counts=(9, 1, 0)),
        sample(at_s=7200, counts=(9, 1, 0)),
        sample(at_s=3600, counts=(3, 2, 7)),
    ]
    assert not book.looks_around
    assert [book.add(each) for each in rows] == [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.CONFLICT]
    assert book.looks_around
    assert (book.counts.accepted, book.counts.duplicates, book.counts.conflicts) == (1, 1, 1)
    found = book.windows(Evaluator(of, period_named(of, DAY)).windows())
    assert [(at, window.cells[0]) for at, window in enumerate(found) if not window.empty] == [(1, Cell(0, 12))]


def test_every_batch_is_told_the_windows_whose_counts_stand_on_its_rows() -> None:
    """Those of its own samples, and of an id in conflict all that any of its bodies is in."""
    book = SampleBook(terms(FACTS), period_named(terms(FACTS), DAY))
    book.add_all([sample("a"), sample("b", at_s=3600 * 5)])
    book.add_all([sample("a", at_s=3600 * 9), sample("c", at_s=3600 * 2)])
    book.add_all([sample("d", at_s=3600 * 3)])
    assert book.reaches() == [{0, 5, 9}, {0, 2, 9}, {3}]


def test_bodies_for_two_objectives_conflict_for_both() -> None:
    rows = [sample(counts=(5, 0, 0)), sample(indicator="hallucination", counts=(3, 0, 0))]
    assert cells(terms(FACTS, {**FACTS, "indicator": "hallucination"}), *rows) == [Cell(0, 5), Cell(0, 3)]


def test_bodies_that_count_nothing_conflict_over_nothing() -> None:
    assert cells(terms(FACTS), sample(counts=(0, 0, 0)), sample(at_s=5, counts=(0, 0, 0))) == [Cell(0, 0)]


SOME = st.builds(
    lambda name, at, good, bad: sample(name, at_s=at, counts=(good, bad, 0)),
    st.sampled_from("abc"),
    st.sampled_from([0, 3599, 3600, 50_000]),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(st.lists(SOME, max_size=8).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_samples_changes_nothing(orders: tuple[list[SampleRow], list[SampleRow]]) -> None:
    of = terms(FACTS)
    assert judged(of, *orders[0]) == judged(of, *orders[1])


@given(st.lists(SOME, max_size=8))
def test_a_conflict_never_makes_more_good_or_fewer_valid(rows: list[SampleRow]) -> None:
    def sums(items: list[SampleRow]) -> tuple[int, int]:
        found = judged(terms(FACTS), *items)
        return sum(w.cells[0].good for w in found), sum(w.cells[0].valid for w in found)

    first: dict[str, SampleRow] = {}
    for each in rows:
        first.setdefault(each.sample_id, each)
    good, valid = sums(list(first.values()))
    assert sums(rows)[0] <= good
    assert sums(rows)[1] >= valid


# --- coverage ----------------------------------------------------------------------------------


def test_a_window_without_a_sample_log_has_no_data_though_its_request_log_is_complete() -> None:
    of = terms(FACTS, UPTIME)
    book = SampleBook(of, period_named(of, DAY), spans=[Interval(DAY_NS, DAY_NS + HOUR_NS)])
    evaluator = Evaluator(of, period_named(of, DAY))
    evaluator.add_all([row("a"), row("b", at_s=3600)])
    found = book.windows(evaluator.windows())
    assert [window.state for window in found[:2]] == [WindowState.OBSERVED, WindowState.NO_DATA]
    assert (found[0].cells, found[1].empty) == ((Cell(0, 0), Cell(1, 0)), True)


def test_a_sample_where_no_log_is_declared_complete_counts_to_nothing() -> None:
    book = SampleBook(terms(FACTS), period_named(terms(FACTS), DAY))
    book.add_all([sample("a"), sample("b", at_s=3600)])
    judged_windows = Evaluator(terms(FACTS), period_named(terms(FACTS), DAY)).windows()
    assert [window.cells[0] for window in book.windows(judged_windows)[:2]] == [Cell(9, 1), Cell(9, 1)]
    book.declare([Interval(DAY_NS, DAY_NS + HOUR_NS)])
    found = book.windows(judged_windows)
    assert [window.state for window in found[:2]] == [WindowState.OBSERVED, WindowState.NO_DATA]
    assert [window.cells[0] for window in found[:2]] == [Cell(9, 1), Cell(0, 0)]


def test_a_conflict_counts_in_a_window_that_was_observed_where_a_body_of_it_lies_in_one() -> None:
    book = SampleBook(terms(FACTS), period_named(terms(FACTS), DAY))
    book.add_all([sample("a"), sample("a", at_s=7200, counts=(0, 10, 0))])
    first, *others = Evaluator(terms(FACTS), period_named(terms(FACTS), DAY)).windows()
    unseen = Window(first.interval, WindowState.NO_DATA, first.cells)
    found = book.windows([unseen, *others])
    assert [(at, each.cells[0]) for at, each in enumerate(found) if not each.empty] == [(2, Cell(0, 10))]


def test_uptime_kuma_6475_a_monitor_that_was_down_gives_no_100_percent() -> None:
    of = terms({"method": "deployment_minutes-v1", "indicator": "deployment_up", "target": "99.9"})
    settlement = settle(of, period_named(of, DAY), judged(of, spans=[]))
    assert (settlement.coverage.observed, str(settlement.state)) == (0, "withheld")
    assert settlement.objectives[0].state is ObjectiveState.WITHHELD
    seen = settle(of, period_named(of, DAY), judged(of, spans=None))
    assert seen.objectives[0].state is ObjectiveState.NO_DATA


def test_a_row_outside_the_span_of_its_batch_is_rejected() -> None:
    span = Interval(DAY_NS, DAY_NS + HOUR_NS)
    elsewhere = Interval(DAY_NS + 5 * HOUR_NS, DAY_NS + 6 * HOUR_NS)
    book = SampleBook(terms(FACTS), period_named(terms(FACTS), DAY), spans=[span])
    assert book.add(sample("a"), within=[span, elsewhere]) is Verdict.ACCEPTED
    found = book.add(sample("b", at_s=3600), within=[span, elsewhere])
    assert isinstance(found, RowRejection)
    assert (found.reason, found.field) == (Reason.OUTSIDE_SPAN, "at")
    assert found.message == "lies outside the spans declared complete"
    assert book.counts.rejected == {Reason.OUTSIDE_SPAN: 1}


@pytest.mark.parametrize("method", ["interval_mean-v1", "attainment-v1"])
def test_sloth_133_an_idle_slice_spreads_nothing(method: str) -> None:
    more = {
        "interval_mean-v1": {"interval": "PT1H"},
        "attainment-v1": {"slice": {"window": "PT1H", "target": "80", "minimum_valid": 1}},
    }
    of = terms({**FACTS, "method": method, "target": "50", **more[method]})
    (result,) = settle(of, period_named(of, DAY), judged(of, sample(counts=(9, 1, 0)))).objectives
    assert result.state is ObjectiveState.MET
    assert (result.good, result.valid) == {
        "interval_mean-v1": (24 * 10**9 - 10**8, 24 * 10**9),
        "attainment-v1": (1, 1),
    }[method]


def test_a_sample_in_excluded_time_leaves_both_sides_and_a_conflict_only_with_every_body() -> None:
    of = terms(FACTS)
    half_hour = Interval(DAY_NS, DAY_NS + HOUR_NS // 2)
    excluded = Excluded((), ((half_hour, 0),))
    rows = [sample("in"), sample("out", at_s=1800), sample("both"), sample("both", at_s=3000, counts=(4, 0, 0))]
    book = SampleBook(of, period_named(of, DAY), excluded=excluded)
    book.add_all([*rows, sample("twice", at_s=5), sample("twice", at_s=6)])
    assert book.windows(Evaluator(of, period_named(of, DAY)).windows())[0].cells == (Cell(9, 1 + 10),)


# --- the format, and what only samples have ------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"sample_id":"a","indicator":"hallucination"}', SAMPLES),
        (b'\xef\xbb\xbf\r\n\n[1]\nnonsense\n{"indicator":"x","sample_id":1}\n', SAMPLES),
        (b'{"request_id":"a","sample_id":"b"}\n{"sample_id":"a","indicator":"x"}', REQUESTS),
        (b'{"request_id":"a"}', REQUESTS),
        (b"", REQUESTS),
        (b"\xff\n" * 200 + b'{"sample_id":"a","indicator":"x"}', REQUESTS),
        (b"[" * 100_000, REQUESTS),
        (b"[" * 100_000 + b'\n{"sample_id":"a","indicator":"x"}', SAMPLES),
        (b"x\n" * 99 + b'{"sample_id":"a","indicator":"x"}', SAMPLES),
        (b"x\n" * 100 + b'{"sample_id":"a","indicator":"x"}', REQUESTS),
    ],
)
def test_a_log_is_recognised_by_its_first_object(data: bytes, found: str) -> None:
    assert format_of(data) == found


@pytest.mark.parametrize("key", ["evaluator", "tokenizer", "resource"])
def test_a_request_objective_has_no_evaluator_no_tokenizer_and_no_resource(key: str) -> None:
    with pytest.raises(DocumentInvalid, match=f"{key}: only samples"):
        terms({**UPTIME, key: "x"})


def test_recovery_is_the_time_from_a_violation_opened_to_closed_and_an_open_one_has_none() -> None:
    of = agreement()
    bad = ((0, 5), (1, 0), (1, 0))
    found = recovery_samples(violations(of, windows(of, {2: bad, 3: bad, 5: bad, 23: bad, 4: ((5, 0),) * 3})))
    assert [(each.at_ns, each.seconds) for each in found] == [
        (DAY_NS + 4 * HOUR_NS, 7200),
        (DAY_NS + 6 * HOUR_NS, 3600),
    ]
    assert len({each.sample_id for each in found}) == 2
