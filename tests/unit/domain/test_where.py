"""Objectives that are about some of the requests: which ones count, and what becomes of rows that do not say it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.credits.settlement import attestability
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import Reason, RowRejection
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.where import Where
from ledger.domain.violations.bad_requests import WorstRequests
from ledger.domain.violations.violation import violations
from ledger.errors import DocumentInvalid
from ledger.ingest.request_log import RequestLog
from tests.unit.domain.samples import agreement, windows

DAY = "2023-06-14/P1D"
MODEL = "chat-7b 2.1"
SHORT = {"input_tokens_at_most": 4096}
FIXED = {"model": MODEL}
EU = {"region": "eu-central"}
TTFT = {"method": "total_ratio", "indicator": "first_token_latency", "threshold_ms": "800", "target": "95"}
UPTIME = {"method": "total_ratio", "indicator": "availability", "target": "99.9"}
CLAUSES = [{"id": "rate-limit", "error_codes": [429], "reason": "over the agreed rate"}]
SLOW = 0.9


def terms(*objectives: dict[str, Any], clauses: Sequence[dict[str, Any]] = ()) -> Agreement:
    def change(plain: dict[str, Any]) -> None:
        plain["objectives"] = [{"id": f"o{at}", **objective} for at, objective in enumerate(objectives)]
        plain["exclusions"] = list(clauses)
        plain["compensation"]["rules"] = []

    return agreement(change)


def line(
    request_id: str = "r", *, at: str = "08:00:00", code: int | None = None, ttft_s: float = 0.1, **said: Any
) -> str:
    """A row of a log; ``said`` are its members ``input_tokens`` and ``model``."""
    latencies = {"ttft_s": ttft_s, "e2e_s": 2.5} if code is None else {}
    started_at = f"2023-06-14T{at}.000000000Z"
    body = {"request_id": request_id, "started_at": started_at, "service": "example-chat", "error_code": code}
    return json.dumps({**body, **latencies, **said}, separators=(",", ":"))


def log(*lines: str) -> RequestLog:
    return RequestLog(io.BytesIO("".join(f"{each}\n" for each in lines).encode()), "log")


def judged(of: Agreement, *lines: str, distinct: bool = False) -> Evaluator:
    evaluator = Evaluator(of, period_named(of, DAY), distinct=distinct)
    evaluator.add_all(log(*lines).in_bulk())
    return evaluator


def totals(evaluator: Evaluator) -> list[tuple[int, int]]:
    """(good, bad) of each objective over the day."""
    cells = zip(*(window.cells for window in evaluator.windows()), strict=True)
    return [(sum(cell.good for cell in each), sum(cell.bad for cell in each)) for each in cells]


def counted(where: dict[str, Any], *lines: str) -> tuple[int, int]:
    """(good, bad) of a first-token objective with this selector; the same row by row and in columns."""
    of = terms({**TTFT, "where": where})
    (by_rows,), (in_columns,) = (totals(judged(of, *lines, distinct=distinct)) for distinct in (False, True))
    assert by_rows == in_columns
    return by_rows


# --- which rows count ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "said", "selected"),
    [
        (SHORT, {"input_tokens": 0}, True),
        (SHORT, {"input_tokens": 4095}, True),
        (SHORT, {"input_tokens": 4096}, True),
        (SHORT, {"input_tokens": 4097}, False),
        (SHORT, {"input_tokens": 10**30}, False),
        # else a provider would hide what was slow by not saying how long it was
        (SHORT, {}, True),
        (SHORT, {"input_tokens": None}, True),
        # nobody asks for the model here, whatever it is
        (SHORT, {"input_tokens": 1, "model": ["no", "text"]}, True),
        (FIXED, {"model": MODEL}, True),
        (FIXED, {"model": MODEL.upper()}, False),
        (FIXED, {"model": f"{MODEL} "}, False),
        (FIXED, {"model": ""}, False),
        (FIXED, {}, False),
        (FIXED, {"model": None}, False),
        (FIXED, {"model": MODEL, "input_tokens": "many"}, True),
        (SHORT | FIXED, {"model": MODEL, "input_tokens": 4096}, True),
        (SHORT | FIXED, {"model": MODEL, "input_tokens": 4097}, False),
        (SHORT | FIXED, {"model": "other", "input_tokens": 1}, False),
        (SHORT | FIXED, {"model": MODEL}, True),
        (SHORT | FIXED, {"input_tokens": 1}, False),
        (EU, {"region": "eu-central"}, True),
        (EU, {"region": "us-east"}, False),
        (EU, {"region": "EU-Central"}, False),
        # else one failure would break the promise of every region
        (EU, {}, False),
        (EU, {"region": None}, False),
        (EU, {"model": 7, "region": "eu-central"}, True),
        (EU | SHORT, {"region": "eu-central"}, True),
        (EU | SHORT, {"region": "eu-central", "input_tokens": 5000}, False),
        (EU | FIXED, {"region": "eu-central", "model": MODEL}, True),
        (EU | FIXED, {"region": "eu-central", "model": "other"}, False),
        (EU | FIXED, {"region": "us-east", "model": MODEL}, False),
    ],
)
@pytest.mark.parametrize("ttft_s", [0.1, SLOW])
def test_a_row_counts_where_it_is_selected(
    where: dict[str, Any], said: dict[str, Any], selected: bool, ttft_s: float
) -> None:
    slow = ttft_s == SLOW
    assert counted(where, line(ttft_s=ttft_s, **said)) == ((int(not slow), int(slow)) if selected else (0, 0))


@pytest.mark.parametrize(
    "model", ['a "quoted" name', "back\\slash", "comma, brace } and [", "ünïcode ✓", '","model":"x']
)
def test_a_model_is_found_however_its_name_is_spelt(model: str) -> None:
    assert counted({"model": model}, line(model=model), line("s", model="x", free=f'"model":"{model}"')) == (1, 0)


def test_a_member_of_something_in_the_row_is_not_the_rows() -> None:
    hidden = line(usage={"input_tokens": 9999, "model": MODEL}, error_msg='"input_tokens":9999,')
    assert counted(SHORT, hidden) == (1, 0)
    assert counted(FIXED, hidden) == (0, 0)


@pytest.mark.parametrize("spelling", ["4.096e3", "4096.0", "40960e-1"])
def test_a_count_is_the_same_in_every_spelling(spelling: str) -> None:
    slow = line(ttft_s=SLOW, input_tokens=4096)
    assert counted(SHORT, slow.replace('"input_tokens":4096', f'"input_tokens":{spelling}')) == (0, 1)


def test_each_objective_has_its_own_selector() -> None:
    of = terms(UPTIME, {**UPTIME, "where": SHORT}, {**TTFT, "where": FIXED}, TTFT, clauses=CLAUSES)
    rows = [
        line("a", model=MODEL, input_tokens=10),
        line("b", model="other", input_tokens=5000, ttft_s=SLOW),
        line("c", code=500, input_tokens=10),
        line("d", code=500, input_tokens=5000),
        line("e", code=429, input_tokens=10),
        line("f", code=429, input_tokens=5000),
    ]
    for distinct in (False, True):
        evaluator = judged(of, *rows, distinct=distinct)
        assert totals(evaluator) == [(2, 2), (1, 1), (1, 0), (1, 1)]
        assert evaluator.excluded_requests() == {"rate-limit": 2}
        assert [each.by_clause for each in evaluator.left_out()][8] == {"rate-limit": 2}
        # Nor does a clause ask who selects what it takes out.
        alone = judged(terms({**UPTIME, "where": SHORT}, clauses=CLAUSES), rows[-1], distinct=distinct)
        assert (totals(alone), alone.excluded_requests()) == ([(0, 0)], {"rate-limit": 1})


def test_regions_are_promised_apart_and_one_without_where_counts_what_names_none() -> None:
    """``scope`` says which charges pay for it, ``where`` which requests are its own; neither implies the other."""
    of = terms(
        UPTIME,
        {**UPTIME, "where": EU, "scope": {"region": "eu"}},
        {**UPTIME, "where": {"region": "us-east"}},
        {**UPTIME, "scope": {"region": "eu"}},
    )
    rows = [line("a", region="eu-central"), line("b", code=500, region="us-east"), line("c", code=500)]
    for distinct in (False, True):
        assert totals(judged(of, *rows, distinct=distinct)) == [(1, 2), (1, 0), (0, 1), (1, 2)]


def test_grades_are_given_to_the_requests_that_are_selected() -> None:
    grades = [{"at_most_ms": "3000", "score": "0.75"}]
    graded = {"method": "graded_score-v1", "indicator": "response_latency", "target": "90", "grades": grades}
    of = terms({**graded, "where": SHORT})
    rows = [line("a"), line("b", input_tokens=5000), line("c", code=500), line("d", code=500, input_tokens=5000)]
    assert totals(judged(of, *rows)) == totals(judged(of, *rows, distinct=True)) == [(750, 1250)]


def test_repeats_are_told_by_the_failures_that_are_selected() -> None:
    azure = {**UPTIME, "repeat_window": "PT5M"}
    of = terms({**azure, "where": SHORT}, azure)
    rows = [
        line("a", code=500, at="08:00:00", input_tokens=5000),
        line("b", code=500, at="08:01:00", input_tokens=10),
        line("c", code=500, at="08:05:30", input_tokens=10),
        line("d", at="08:05:40", input_tokens=5000),
    ]
    assert totals(judged(of, *rows)) == totals(judged(of, *rows, distinct=True)) == [(0, 1), (1, 2)]


def test_a_failure_that_one_objective_selects_is_a_repeat_to_it_alone() -> None:
    azure = {**UPTIME, "repeat_window": "PT5M"}
    rows = [line("a", code=500, input_tokens=5000), line("b", code=500, at="08:01:00", input_tokens=5000)]
    for distinct in (False, True):
        assert totals(judged(terms({**azure, "where": SHORT}, azure), *rows, distinct=distinct)) == [(0, 0), (0, 1)]


def test_columns_reach_the_windows_of_their_rows() -> None:
    rows = [line("a"), line("b", at="09:30:00"), line("c", at="23:59:59")]
    assert judged(terms(TTFT), *rows, distinct=True).reaches() == [{8, 9, 23}]


# --- rows that cannot be used --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "said", "field", "message"),
    [
        (SHORT, {"input_tokens": "550"}, "input_tokens", 'must be a whole number from 0, not "550"'),
        (SHORT, {"input_tokens": -1}, "input_tokens", "must be a whole number from 0, not -1"),
        (SHORT, {"input_tokens": 5.5}, "input_tokens", 'must be a whole number from 0, not "5.5"'),
        (SHORT, {"input_tokens": True}, "input_tokens", "must be a whole number from 0, not true"),
        (SHORT, {"input_tokens": [1]}, "input_tokens", "must be a whole number from 0, not [1]"),
        (FIXED, {"model": 7}, "model", "must be text, not 7"),
        (FIXED, {"model": False}, "model", "must be text, not false"),
        (FIXED, {"model": {"name": MODEL}}, "model", 'must be text, not {"name": "chat-7b 2.1"}'),
        (SHORT | FIXED, {"input_tokens": 1, "model": 7}, "model", "must be text, not 7"),
        (EU, {"region": 7}, "region", "must be text, not 7"),
        (EU, {"region": ["eu", "us"]}, "region", 'must be text, not ["eu", "us"]'),
        (FIXED, {"model": ["m" * 36]}, "model", f'must be text, not ["{"m" * 36}"]'),
        (FIXED, {"model": ["m" * 37]}, "model", f'must be text, not ["{"m" * 35}...'),
        (EU | FIXED, {"region": ["eu-central"], "model": MODEL}, "region", 'must be text, not ["eu-central"]'),
    ],
)
def test_a_member_of_a_wrong_type_is_refused_with_field_and_reason(
    where: dict[str, Any], said: dict[str, Any], field: str, message: str
) -> None:
    of = terms({**TTFT, "where": where})
    (row,) = log(line(**said))
    assert Evaluator(of).add(row) == RowRejection(1, Reason.FIELD_INVALID, field, message)
    other = line("other", model=MODEL, region="eu-central")
    for distinct in (False, True):
        evaluator = judged(of, line(**said), other, distinct=distinct)
        assert (evaluator.counts.accepted, evaluator.counts.rejected) == (1, {Reason.FIELD_INVALID: 1})
        assert totals(evaluator) == [(1, 0)]
    # Where nobody asks, the member is free.
    assert judged(terms(TTFT), line(**said)).counts.accepted == 1


def test_a_row_that_is_refused_is_no_conflict() -> None:
    evaluator = judged(terms({**TTFT, "where": SHORT}), line(input_tokens="x"), line(input_tokens=1))
    assert (evaluator.counts.accepted, evaluator.counts.conflicts, totals(evaluator)) == (1, 0, [(1, 0)])


# --- conflicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_conflict_fails_each_objective_that_selects_one_of_its_bodies(order: tuple[int, int]) -> None:
    of = terms(UPTIME, {**UPTIME, "where": SHORT}, {**UPTIME, "where": FIXED}, clauses=CLAUSES)
    bodies = [line(code=429, input_tokens=10, model="other"), line(input_tokens=5000, model="other")]
    evaluator = judged(of, *(bodies[at] for at in order))
    assert (evaluator.counts.conflicts, totals(evaluator)) == (1, [(0, 1), (0, 1), (0, 0)])


def test_a_conflict_is_evidence_where_it_counts() -> None:
    of = terms({**UPTIME, "where": SHORT}, {**UPTIME, "where": FIXED})
    looking = WorstRequests(of, violations(of, windows(of, {8: ((0, 9), (0, 9))})))
    rows = [
        line("a", input_tokens=10, model="other"),
        line("a", input_tokens=5000, model="other"),
        line("b", code=500, input_tokens=5000, model=MODEL),
        line("c", code=500, input_tokens="?", model=MODEL),
    ]
    looking.take("00" * 32, log(*rows).in_bulk())
    assert [[(each.request_id, each.conflict) for each in found] for found in looking.worst()] == [
        [("a", True)],
        [("b", False)],
    ]


# --- in any order --------------------------------------------------------------------------------

TOKENS = st.sampled_from([None, 0, 4096, 4097])
MODELS = st.sampled_from([None, MODEL, "other"])
REGIONS = st.sampled_from([None, "eu-central", "us-east"])


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    said = {"input_tokens": draw(TOKENS), "model": draw(MODELS), "region": draw(REGIONS)}
    code = draw(st.sampled_from([None, None, 429, 500]))
    ttft_s = draw(st.sampled_from([0.1, 0.8, SLOW]))
    return {"code": code, "ttft_s": ttft_s, **{key: value for key, value in said.items() if value is not None}}


WHERES = st.sampled_from([SHORT, FIXED, SHORT | FIXED, EU, EU | FIXED, EU | SHORT | FIXED])


@given(st.lists(rows(), min_size=1, max_size=8), WHERES, WHERES)
def test_counts_are_those_of_a_plain_count(
    found: list[dict[str, Any]], up: dict[str, Any], fast: dict[str, Any]
) -> None:
    of = terms({**UPTIME, "where": up}, {**TTFT, "where": fast}, clauses=CLAUSES)
    lines = [line(f"r{at}", **each) for at, each in enumerate(found)]
    valid_up = [each for each in found if _selected(up, each) and each["code"] != 429]
    valid_fast = [each for each in found if _selected(fast, each) and each["code"] is None]
    good_up = sum(each["code"] is None for each in valid_up)
    good_fast = sum(each["ttft_s"] <= 0.8 for each in valid_fast)
    expected = [(good_up, len(valid_up) - good_up), (good_fast, len(valid_fast) - good_fast)]
    assert totals(judged(of, *lines)) == totals(judged(of, *lines, distinct=True)) == expected


def _selected(where: dict[str, Any], row: dict[str, Any]) -> bool:
    named = all(row.get(key) == where[key] for key in ("model", "region") if key in where)
    return named and ("input_tokens_at_most" not in where or row.get("input_tokens", 0) <= 4096)


@given(st.data(), st.lists(st.tuples(st.sampled_from("abc"), rows()), min_size=1, max_size=8), WHERES)
def test_the_order_of_rows_changes_nothing(
    data: st.DataObject, found: list[tuple[str, dict[str, Any]]], where: dict[str, Any]
) -> None:
    of = terms({**UPTIME, "where": where}, {**TTFT, "where": where}, clauses=CLAUSES)
    lines = [line(request_id, **each) for request_id, each in found]
    one, other = judged(of, *lines), judged(of, *data.draw(st.permutations(lines)))
    assert (one.counts, totals(one)) == (other.counts, totals(other))


# --- the agreement -------------------------------------------------------------------------------


def test_the_selector_is_read_and_needs_nothing_else() -> None:
    (objective,) = terms({**TTFT, "where": SHORT | FIXED}).objectives
    assert objective.where == Where(4096, MODEL)
    (objective,) = terms({**TTFT, "where": EU}).objectives
    assert objective.where == Where(None, None, "eu-central")
    assert terms(TTFT).objectives[0].where is None


@pytest.mark.parametrize(
    "where",
    [
        {"input_tokens_at_most": 1},
        {"input_tokens_at_most": 2**53 - 1},
        {"model": "m" * 120, "region": "r" * 120},
    ],
)
def test_the_smallest_and_the_largest_are_taken(where: dict[str, Any]) -> None:
    (objective,) = terms({**TTFT, "where": where}).objectives
    assert objective.where == Where(**where)


def test_a_selector_leaves_counts_sums_that_can_be_proved() -> None:
    assert attestability(terms({**TTFT, "where": SHORT | FIXED})) == attestability(terms(TTFT)) == ()


@pytest.mark.parametrize(
    ("objective", "field", "message"),
    [
        ({**TTFT, "where": {}}, "objectives[0].where", "say input_tokens_at_most, model or region"),
        ({**TTFT, "where": {"input_tokens_at_most": 0}}, "objectives[0].where.input_tokens_at_most", ""),
        ({**TTFT, "where": {"input_tokens_at_most": 2**53}}, "objectives[0].where.input_tokens_at_most", ""),
        ({**TTFT, "where": {"model": "m" * 121}}, "objectives[0].where.model", "1 to 120 characters"),
        ({**TTFT, "where": {"region": "m" * 121}}, "objectives[0].where.region", "1 to 120 characters"),
        ({**TTFT, "where": {"model": "m\u200b"}}, "objectives[0].where.model", "invisible character U+200B"),
        ({**TTFT, "where": {"region": "m\u200b"}}, "objectives[0].where.region", "invisible character U+200B"),
        ({**TTFT, "where": {"input_tokens_at_most": "4096"}}, "objectives[0].where.input_tokens_at_most", ""),
        ({**TTFT, "where": {"model": ""}}, "objectives[0].where.model", ""),
        ({**TTFT, "where": {"region": ""}}, "objectives[0].where.region", ""),
        ({**TTFT, "where": {"output_tokens": 1}}, "objectives[0].where", "output_tokens"),
        (
            {"method": "total_ratio", "indicator": "metric_value", "target": "98", "where": SHORT},
            "objectives[0].where",
            "only requests are selected, and metric_value comes from samples",
        ),
        (
            {"method": "deployment_minutes-v1", "indicator": "deployment_up", "target": "99", "where": FIXED},
            "objectives[0].where",
            "only requests are selected, and deployment_up comes from samples",
        ),
    ],
)
def test_a_selector_that_says_nothing_is_refused(objective: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        terms(objective)
    assert str(refused.value).startswith(field)
    assert message in str(refused.value)


def test_the_selector_says_itself_in_words() -> None:
    assert str(Where(4096, None)) == "only requests of at most 4096 input tokens, or that do not say how many"
    assert str(Where(None, MODEL)) == "only requests that name the model 'chat-7b 2.1'"
    assert str(Where(None, None, "eu-central")) == "only requests that name the region 'eu-central'"
    assert str(Where(4096, MODEL)) == (
        "only requests of at most 4096 input tokens, or that do not say how many, "
        "and of these only requests that name the model 'chat-7b 2.1'"
    )
