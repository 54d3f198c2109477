"""Rows that come as columns are judged as the same rows one by one."""

from __future__ import annotations

import itertools
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.rows.observation import (
    DIGEST_BYTES,
    IdRepeated,
    RequestColumns,
    RequestRow,
    RowRejection,
    Rows,
    one_by_one,
)
from ledger.domain.time.interval import Interval
from tests.unit.domain.samples import DAY_NS, HOUR_NS, row
from tests.unit.domain.test_identity import EXCLUDING, PERIOD

LONG = "an id of more than sixty-four characters " + "x" * 40
SPANS = [
    [],
    [Interval(DAY_NS, DAY_NS + 12 * HOUR_NS)],
    [Interval(DAY_NS, DAY_NS + 1), Interval(DAY_NS + 2, 2 * DAY_NS)],
]
ROW = st.builds(
    row,
    st.sampled_from(["a", "b", "c", "d", "e", LONG, LONG + "y"]),
    at_s=st.sampled_from([0, 0, 3599, 3600, 40_000, 86_399, 86_400, -1]),
    code=st.sampled_from([None, None, None, 429, 500]),
    first_token_ms=st.sampled_from([799, 800, 801]),
    response_ms=st.sampled_from([1, 10**5]),
    service=st.sampled_from(["example-chat"] * 9 + ["other"]),
)


def columns(rows: list[RequestRow]) -> RequestColumns:
    """Rows as columns; each says what it is in a body of its own."""
    bodies = [repr(each[1:2] + each[3:]).encode() for each in rows]
    return RequestColumns(
        1,
        [each.request_id for each in rows],
        [each.service for each in rows],
        [each.started_at_ns for each in rows],
        [each.error_code for each in rows],
        [each.first_token_ns for each in rows],
        [each.response_ns for each in rows],
        b"".join(body + b"\n" for body in bodies),
    )


def cut(rows: list[RequestRow], at: list[int]) -> list[RequestColumns]:
    edges = sorted({0, len(rows), *(min(edge, len(rows)) for edge in at)})
    return [columns(rows[start:end]) for start, end in itertools.pairwise(edges)]


def judged(batches: list[Rows], spans: list[Interval], *, distinct: bool) -> Any:
    evaluator = Evaluator(EXCLUDING, PERIOD, spans=spans, distinct=distinct)
    for batch in batches:
        evaluator.add_all(batch)
    counts = evaluator.counts
    verdicts = (counts.accepted, counts.duplicates, counts.conflicts, counts.rejected)
    return verdicts, evaluator.windows(), evaluator.excluded_requests(), evaluator.uncounted_requests()


@given(st.lists(ROW, min_size=1, max_size=12), st.lists(st.integers(1, 11), max_size=3), st.sampled_from(SPANS))
def test_columns_are_judged_as_their_rows(rows: list[RequestRow], at: list[int], spans: list[Interval]) -> None:
    batches: list[Rows] = [cut(rows, at)]
    alone: list[Rows] = [list(one_by_one(batch)) for batch in batches]
    expected = judged(alone, spans, distinct=False)
    assert judged(batches, spans, distinct=False) == expected
    repeats = expected[0][1] + expected[0][2]
    for form in (batches, alone):
        if repeats:
            with pytest.raises(IdRepeated):
                judged(form, spans, distinct=True)
        else:
            assert judged(form, spans, distinct=True) == expected


def test_rows_of_columns_are_the_rows() -> None:
    rows = [row("a", at_s=5, code=429), row("b", first_token_ms=3)]
    made = columns(rows)
    found, bodies = list(made.rows()), made.bodies()
    assert [each._replace(body_digest=b"", line=0) for each in found] == [
        each._replace(body_digest=b"", line=0, body=bodies[at]) for at, each in enumerate(rows)
    ]
    assert [each.line for each in found] == [1, 2]
    body = made.canonical_bodies.split(b"\n")[1]
    assert found[1].body_digest == blake2b(body, digest_size=DIGEST_BYTES).digest()


def test_rejections_between_columns_keep_their_place() -> None:
    refused = RowRejection(2, "malformed", "", "")  # type: ignore[arg-type]
    assert [each.line for each in one_by_one([columns([row("a")]), refused, columns([row("b")])])] == [1, 2, 1]
