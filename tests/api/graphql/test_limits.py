"""How large an operation may be, and that a refusal says nothing that helps to guess."""

from __future__ import annotations

import json
import time

import pytest
from graphql import get_introspection_query

from api.graphql.errors import LimitExceeded
from api.graphql.limits import Limits, parse_bounded
from tests.api.graphql.conftest import ADMIN, VIEWER, Asker, World, asker_over, codes, fill

PAGE = "statements(first: 100) { edges { node { id period state objectives { id good valid } credit { amount } } } }"


def refused_by(answer: object) -> str:
    (error,) = answer["errors"]  # type: ignore[index]
    assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert "data" not in answer  # type: ignore[operator]
    return str(error["extensions"]["data"]["limit"])


def nested(levels: int) -> str:
    return "{ a" * levels + " }" * levels


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        (fill("{ %s }", " ".join(f"a{n}: __typename" for n in range(31))), "aliases"),
        (fill("{ ...F } fragment F on Query { %s }", " ".join(f"a{n}: __typename" for n in range(31))), "aliases"),
        (nested(16), "depth"),
        ("{ a ...F0 } " + " ".join(f"fragment F{n} on Query {{ a {{ ...F{n + 1} }} }}" for n in range(20)), "depth"),
        (nested(65), "brackets"),
        (nested(5000), "brackets"),
        (fill('{ agreements(after: %s"x"%s) { edges { cursor } } }', "[" * 70, "]" * 70), "brackets"),
        (" ".join(f"fragment F{n} on Query {{ __typename }}" for n in range(31)) + " { __typename }", "fragments"),
        (" ".join(f"query Q{n} {{ __typename }}" for n in range(11)), "operations"),
        (fill("{ %s }", " ".join(f"a{n}: {PAGE}" for n in range(20))), "cost"),
        (
            fill("query ($n: Int! = 100) { %s }", " ".join(f"a{n}: {PAGE}" for n in range(20)).replace("100", "$n")),
            "cost",
        ),
        ("{ statements(first: 2147483647) { edges { node { id } } } }", "cost"),
    ],
)
def test_too_large_an_operation_is_refused_before_it_runs(ask: Asker, world: World, query: str, limit: str) -> None:
    assert refused_by(ask(query, operationName="Q0" if "Q0" in query else None)) == limit


def test_tokens_are_counted(ask: Asker) -> None:
    answer = ask(fill("{ %s }", "__typename " * 1001))
    assert codes(answer) == ["GRAPHQL_PARSE_FAILED"]
    assert "1000 tokens" in answer["errors"][0]["message"]
    assert "errors" not in ask(fill("{ %s }", "__typename " * 400))


@pytest.mark.slow
def test_what_the_limits_admit_is_validated_in_bounded_time(ask: Asker, world: World) -> None:
    """Fields under one key are compared pair by pair: the tokens are what bounds that."""
    started = time.perf_counter()
    ask(fill("{ %s }", "statements { edges { node { agreement { slaId } } } } " * 70))
    assert time.perf_counter() - started < 10


def test_a_bracket_in_a_string_or_comment_nests_nothing() -> None:
    text = "{" * 100
    for query in (f'{{ a(b: "{text}\\"{text}") }}', f"{{ a # {text}\n }}", f'{{ a(b: """{text}\\"""{text}""") }}'):
        parse_bounded(query, Limits())


def test_a_bracket_that_is_closed_in_a_string_still_nests() -> None:
    query = '{ a(b: "}") ' * 70
    with pytest.raises(LimitExceeded):
        parse_bounded(query, Limits())


def test_fragments_that_lead_in_a_circle_are_named(ask: Asker) -> None:
    query = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }"
    assert "GRAPHQL_VALIDATION_FAILED" in codes(ask(query))


def test_fragments_that_multiply_are_walked_once_and_counted_each_time(ask: Asker) -> None:
    doubling = " ".join(f"fragment F{n} on Statement {{ ...F{n + 1} ... {{ ...F{n + 1} }} }}" for n in range(25))
    query = fill("{ statements { edges { node { ...F0 } } } } %s fragment F25 on Statement { id }", doubling)
    assert refused_by(ask(query)) == "cost"


def test_a_page_of_everything_and_the_tools_introspection_are_within_the_limits(ask: Asker, world: World) -> None:
    assert "errors" not in ask(fill("{ %s }", PAGE), by=ADMIN)
    for deprecated in (False, True):
        query = get_introspection_query(specified_by_url=True, input_value_deprecation=deprecated)
        assert "errors" not in ask(query, by=VIEWER)


def test_introspection_in_a_circle_is_refused(ask: Asker) -> None:
    query = "{ __schema { types { fields { type { fields { type { fields { type { name } } } } } } } } }"
    assert codes(ask(query)) == ["GRAPHQL_VALIDATION_FAILED"]


def test_reports_cost_what_they_read(ask: Asker) -> None:
    report = 'slaReport(customerId: "default", timeWindow: {range: LAST_HOUR}) { p95LatencyMs }'
    assert refused_by(ask(fill("{ %s }", " ".join(f"r{n}: {report}" for n in range(11))))) == "cost"
    assert "errors" not in ask(fill("{ %s }", report))


@pytest.mark.parametrize(
    "query",
    [
        "{ statments { edges { cursor } } }",
        "{ statements(frist: 1) { edges { cursor } } }",
        "{ ... on Statment { id } }",
        "{ statements { edges { node { credt { amount } } } } }",
        '{ slaReport(customerId: "default", timeWindow: {rang: LAST_HOUR}) { from } }',
        '{ slaReport(customerId: "default", timeWindow: {range: LAST_HUOR}) { from } }',
        "{ agreements @inclde(if: true) { edges { cursor } } }",
    ],
)
def test_a_mistake_is_no_way_to_learn_names(ask: Asker, query: str) -> None:
    answer = ask(query, by=VIEWER)
    assert set(codes(answer)) == {"GRAPHQL_VALIDATION_FAILED"}
    assert "Did you mean" not in json.dumps(answer)


@pytest.mark.parametrize("window", [{"rang": "LAST_HOUR"}, {"range": "LAST_HUOR"}])
def test_nor_are_mistakes_in_variables(ask: Asker, window: dict[str, str]) -> None:
    query = 'query ($w: TimeWindow!) { slaReport(customerId: "default", timeWindow: $w) { from } }'
    answer = ask(query, variables={"w": window})
    assert codes(answer)
    assert "Did you mean" not in json.dumps(answer)
    assert "data" not in answer


def test_the_number_of_errors_is_bounded(ask: Asker) -> None:
    answer = ask(fill("{ %s }", " ".join(f"nothing{n}" for n in range(200))))
    assert len(answer["errors"]) <= 21


def test_limits_can_be_set(ledger: object) -> None:
    for ask in asker_over(ledger, limits=Limits(aliases=1)):
        assert refused_by(ask("{ a: __typename b: __typename }")) == "aliases"
