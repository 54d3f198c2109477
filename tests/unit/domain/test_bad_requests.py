"""The worst requests of a violation: the failed ones, then the slowest, and no more than can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.domain.rows.observation import RequestColumns, RequestRow, SampleRow
from ledger.domain.violations.bad_requests import MAX_KEPT, WorstRequests
from ledger.domain.violations.violation import violations
from tests.unit.domain import samples

DIGEST = "ab" * 32


def worst(rows: Sequence[RequestRow], *, objective: str = "availability", batch: str = DIGEST) -> list[tuple[str, int]]:
    """(id, line) of the worst requests of the hour from 03:00 on, where everything is missed."""
    agreement = samples.agreement()
    found = [
        each
        for each in violations(agreement, samples.windows(agreement, {3: ((0, 9), (0, 9), (0, 9))}))
        if each.objective.id == objective
    ]
    looking = WorstRequests(agreement, found)
    looking.take(batch, rows)
    (kept,) = looking.worst()
    return [(each.request_id, each.line) for each in kept]


def at(hour: float, name: str, line: int, **changes: object) -> RequestRow:
    return samples.row(name, at_s=hour * 3600, **changes)._replace(line=line)  # type: ignore[arg-type]


def test_failed_requests_of_its_hour_by_time() -> None:
    rows = [at(3.5, "b", 1, code=500), at(3.1, "a", 2, code=429), at(3.2, "good", 3), at(4, "later", 4, code=500)]
    assert worst(rows) == [("a", 2), ("b", 1)]


def test_of_latencies_the_slowest_that_missed() -> None:
    rows = [
        at(3.1, "slow", 1, first_token_ms=900),
        at(3.2, "slower", 2, first_token_ms=5000),
        at(3.3, "fast", 3, first_token_ms=800),
        # Failed requests are valid to no latency.
        at(3.4, "failed", 4, code=500),
    ]
    assert worst(rows, objective="ttft") == [("slower", 2), ("slow", 1)]


def test_an_id_with_two_bodies_counts_as_failed() -> None:
    rows = [at(3.1, "twice", 1), at(3.1, "twice", 2), at(3.2, "twice", 3, response_ms=901), at(3.3, "once", 4)]
    assert worst(rows) == [("twice", 3)]


def test_there_are_at_most_so_many_whatever_comes() -> None:
    rows = [at(3 + n / 1000, f"r{n:03}", n + 1, code=500) for n in range(900)]
    expected = [(f"r{n:03}", n + 1) for n in range(MAX_KEPT)]
    assert worst(rows) == expected
    assert worst(rows[::-1]) == expected


def test_columns_are_looked_through_as_rows_are() -> None:
    rows = [at(3.1, "a", 1, code=500), at(3.2, "b", 2), at(3.3, "c", 3, code=0)]
    columns = RequestColumns(
        1,
        [each.request_id for each in rows],
        [each.service for each in rows],
        [each.started_at_ns for each in rows],
        [each.error_code for each in rows],
        [each.first_token_ns for each in rows],
        [each.response_ns for each in rows],
        b"a\nb\nc\n",
    )
    agreement = samples.agreement()
    found = violations(agreement, samples.windows(agreement, {3: ((0, 9), (9, 0), (9, 0))}))
    looking = WorstRequests(agreement, found)
    looking.take(DIGEST, [columns])
    ((first, second),) = looking.worst()
    assert (first.request_id, first.line, first.error_code) == ("a", 1, 500)
    assert (second.request_id, second.line, second.error_code) == ("c", 3, 0)


def test_other_services_and_excluded_codes_are_no_evidence() -> None:
    assert worst([at(3.1, "a", 1, code=500, service="other")]) == []
    agreement = samples.agreement(name="agreement-excluding-429.yaml")
    found = violations(agreement, samples.windows(agreement, {3: ((0, 9),) * len(agreement.objectives)}))
    looking = WorstRequests(agreement, [each for each in found if each.objective.id == "availability"])
    looking.take(DIGEST, [at(3.1, "limited", 1, code=429), at(3.2, "failed", 2, code=500)])
    assert [[each.request_id for each in kept] for kept in looking.worst()] == [["failed"]]


def test_bad_samples_are_named_by_their_ids() -> None:
    def promise(plain: dict[str, Any]) -> None:
        plain["objectives"].append(
            {
                "id": "true",
                "method": "total_ratio",
                "indicator": "hallucination",
                "target": "95",
                "evaluator": "judge v2",
                "minimum_valid": 1,
            }
        )

    agreement = samples.agreement(promise)
    found = violations(agreement, samples.windows(agreement, {3: ((9, 0), (9, 0), (9, 0), (0, 9))}))
    looking = WorstRequests(agreement, found)
    at_ns = found[0].interval.start_ns

    def sample(name: str, line: int, counts: tuple[int, int, int], evaluator: str = "judge v2") -> SampleRow:
        return SampleRow(
            line, name, b"", "example-chat", at_ns, "hallucination", counts, None, evaluator, None, "trace"
        )

    looking.take(
        DIGEST, [sample("good", 1, (5, 0, 0)), sample("bad", 2, (4, 1, 0)), sample("other", 3, (0, 5, 0), "x")]
    )
    ((kept,),) = looking.worst()
    assert (kept.request_id, kept.line, kept.error_code, kept.latency_ns) == ("bad", 2, None, None)
