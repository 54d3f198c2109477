"""Who sees what by GraphQL: a lie is tried in every form the language has."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from graphql import build_schema, is_object_type

from api.graphql import gate
from api.graphql.context import RequestContext
from api.graphql.limits import Limits
from api.graphql.route import GraphQLRequest, run
from api.graphql.schema import Schemas, sdl_file
from ledger.app.access import FIELD_SCOPES, ROLE_SCOPES, Principal, Role, Scope
from ledger.app.reading.queries import Queries
from ledger.app.reading.sla_report import LatencyCache
from ledger.errors import StorageUnavailable
from tests.api.graphql.conftest import (
    ADMIN,
    FINANCE,
    NOTHING,
    OPERATOR,
    VIEWER,
    Asker,
    Violations,
    World,
    codes,
    fill,
    holding,
)

CANARIES = ("80000", "800.00", "99.95", "8000.00", "10 % of", "credit_percent", str(2**200), "0101010101")
"""Texts of the credit, its steps, the targets, the terms and the proof of the statements of ``world``."""

STATEMENT = "{ statement(id: $id) { %s } }"

ATTACKS = {
    "plain": "query ($id: ID!) { statement(id: $id) { id credit { amount minorUnits } } }",
    "alias": "query ($id: ID!) { harmless: statement(id: $id) { id: credit { period: amount } } }",
    "fragment": "query ($id: ID!) { statement(id: $id) { ...F } } fragment F on Statement { id credit { ...M } } "
    "fragment M on Money { amount }",
    "inline fragment": "query ($id: ID!) { statement(id: $id) { id ... on Statement { ... { credit { amount } } } } }",
    "fragment on the root": "query ($id: ID!) { ...Q } "
    "fragment Q on Query { statement(id: $id) { credit { amount } } }",
    "include by variable": "query ($id: ID!, $yes: Boolean = true) "
    "{ statement(id: $id) { id credit @include(if: $yes) { amount } } }",
    "skip by literal": "query ($id: ID!) { statement(id: $id) { id credit @skip(if: false) { amount } } }",
    "included fragment": "query ($id: ID!, $no: Boolean = false) { statement(id: $id) { id ...F @skip(if: $no) } } "
    "fragment F on Statement { trace }",
    "auth that claims less": 'query ($id: ID!) { statement(id: $id) { id credit @auth(scope: "sla:read:uptime") '
    "{ amount } } }",
    "twice under one key": "query ($id: ID!) { statement(id: $id) { x: credit { __typename } ... { x: credit "
    "{ amount } } } }",
    "typename below": "query ($id: ID!) { statement(id: $id) { __typename credit { __typename amount } } }",
    "target": "query ($id: ID!) { statement(id: $id) { objectives { id t: targetPercent } } }",
    "terms": "query ($id: ID!) { statement(id: $id) { agreement { service document } } }",
    "proof": "query ($id: ID!) { statement(id: $id) { attestation { signals proof } anchor { leaf } roots { node } } }",
    "credits": "query ($id: ID!) { credits { edges { node { credit { amount } } } } statement(id: $id) { id } }",
    "credits by alias": "query ($id: ID!) { statements: credits { edges { node { x: credit { minorUnits } } } } "
    "statement(id: $id) { id } }",
    "all lists": "query ($id: ID!) { statements { edges { cursor node { credit { amount } trace } } } "
    "agreements { edges { node { document } } } statement(id: $id) { id } }",
}


@pytest.mark.parametrize("query", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_viewer_never_obtains_a_credit_or_a_threshold(ask: Asker, world: World, query: str) -> None:
    variables = {"id": world.statements[0]}
    seen = json.dumps(ask(query, by=ADMIN, variables=variables))
    assert any(canary in seen for canary in CANARIES), "the attack asks for nothing worth hiding"
    answer = ask(query, by=VIEWER, variables=variables)
    assert not any(canary in json.dumps(answer) for canary in CANARIES)
    assert set(codes(answer)) == {"FORBIDDEN"}


@pytest.mark.parametrize(
    "query",
    [
        '{ statement(id: "nothing") { id } }',
        '{ credits(slaId: "x") { edges { cursor } } }',
        '{ statements(after: "credits") { edges { node { id } } } }',
        "{ statements(first: 0) { edges { node { credit { amount } } } } }",
        "{ statement { credit } }",
        "{ statement(id: {}) { id } }",
        "query ($id: Int!) { statement(id: $id) { credit { amount } } }",
    ],
)
def test_the_text_of_an_error_holds_no_canary(ask: Asker, world: World, query: str) -> None:
    answer = ask(query, by=VIEWER)
    assert answer["errors"]
    assert not any(canary in json.dumps(answer) for canary in CANARIES)


def test_a_denied_field_is_null_and_its_neighbours_are_there(ask: Asker, world: World) -> None:
    query = "{ statements { edges { node { id credit { amount } state } } } }"
    answer = ask(query, by=VIEWER)
    nodes = [edge["node"] for edge in answer["data"]["statements"]["edges"]]
    assert nodes == [{"id": name, "credit": None, "state": "settled"} for name in world.statements]
    assert [error["path"] for error in answer["errors"]] == [
        ["statements", "edges", index, "node", "credit"] for index in range(2)
    ]
    assert {error["extensions"]["scope"] for error in answer["errors"]} == {"sla:read:credits"}
    assert "key viewer" in answer["errors"][0]["message"]


def test_a_field_of_two_scopes_names_those_that_are_lacking(ask: Asker, world: World) -> None:
    query = "{ agreements { edges { node { document } } } }"
    (error,) = ask(query, by=FINANCE)["errors"]
    assert error["extensions"]["data"]["scopes"] == ["sla:read:thresholds"]
    (error,) = ask(query, by=VIEWER)["errors"]
    assert error["extensions"]["data"]["scopes"] == ["sla:read:credits", "sla:read:thresholds"]


def test_strictly_one_denied_field_refuses_the_operation(ask: Asker, ask_strictly: Asker, world: World) -> None:
    query = "{ agreements { edges { node { slaId } } } credits { edges { cursor } } }"
    for answer in (ask_strictly(query, by=VIEWER), ask(query, by=VIEWER, extensions={"strict": True})):
        assert codes(answer) == ["FORBIDDEN"]
        assert "data" not in answer
    assert ask(query, by=VIEWER)["data"]["agreements"]["edges"]
    assert "errors" not in ask_strictly(query, by=ADMIN)


def test_what_is_not_selected_needs_no_scope(ask_strictly: Asker, world: World) -> None:
    query = """
      query Mine($no: Boolean = false) {
        statements { edges { node { id credit @include(if: $no) { amount } ...F @include(if: $no) } } }
      }
      query Other { credits { edges { cursor } } statements { edges { node { ...F } } } }
      fragment F on Statement { trace }
    """
    assert "errors" not in ask_strictly(query, by=VIEWER, operationName="Mine")
    assert codes(ask_strictly(query, by=VIEWER, operationName="Other")) == ["FORBIDDEN", "FORBIDDEN"]
    assert codes(ask_strictly(query, by=VIEWER, operationName="Mine", variables={"no": True})) == ["FORBIDDEN"] * 2


def test_the_operation_that_is_checked_is_the_one_that_runs(ask: Asker, world: World) -> None:
    query = "query A { agreements { edges { cursor } } } query B { credits { edges { cursor } } }"
    # Strawberry alone would run the first.
    assert codes(ask(query, by=VIEWER)) == ["GRAPHQL_VALIDATION_FAILED"]
    assert ask(query, by=VIEWER, operationName="B")["data"] == {"credits": None}
    assert codes(ask(query, by=VIEWER, operationName="C")) == ["GRAPHQL_VALIDATION_FAILED"]
    assert codes(ask(query, by=VIEWER, operationName="")) == ["GRAPHQL_VALIDATION_FAILED"]


def test_a_scope_in_the_query_narrows(ask: Asker, world: World) -> None:
    query = 'query ($s: String = "sla:read:credits") { statements { edges { node { state @auth(scope: $s) id } } } }'
    assert "errors" not in ask(query, by=ADMIN)
    answer = ask(query, by=VIEWER)
    assert answer["data"] == {"statements": None}, "state cannot be null, so what holds it is"
    assert set(codes(answer)) == {"FORBIDDEN"}
    assert "errors" not in ask(query, by=VIEWER, variables={"s": "sla:read:uptime"})
    assert codes(ask(query, by=OPERATOR, variables={"s": "no such scope"}))


def test_every_scope_in_the_query_counts(ask: Asker, world: World) -> None:
    both = '@auth(scope: "sla:read:uptime") @auth(scope: "sla:read:credits")'
    answer = ask(fill("{ statements %s { edges { cursor } } }", both), by=VIEWER)
    assert answer["data"] == {"statements": None}
    assert codes(answer) == ["FORBIDDEN"]
    merged = '{ statements { edges { cursor } } ... { statements @auth(scope: "x") { pageInfo { hasNextPage } } } }'
    assert ask(merged, by=OPERATOR)["data"] == {"statements": None}


def test_customers_write_the_directive_as_they_know_it(ask: Asker, world: World) -> None:
    query = """{ slaReport(customerId: "default", timeWindow: {range: LAST_HOUR}) {
        uptimePercent @auth(scope: "sla:read:uptime") p95LatencyMs @auth(scope: "sla:read:latency") } }"""
    assert ask(query, by=VIEWER) == {"data": {"slaReport": {"uptimePercent": None, "p95LatencyMs": None}}}


def test_the_directive_stands_on_fields_alone(ask: Asker, world: World) -> None:
    query = '{ ...F @auth(scope: "sla:read:uptime") } fragment F on Query { agreements { edges { cursor } } }'
    assert codes(ask(query)) == ["GRAPHQL_VALIDATION_FAILED"]


INTROSPECTION = '{ __schema { types { name fields { name } } } credit: __type(name: "Credit") { name } }'


def names_in(answer: Any) -> set[str]:
    kinds = answer["data"]["__schema"]["types"]
    return {f"{kind['name']}.{found['name']}" for kind in kinds for found in kind["fields"] or ()}


def test_introspection_shows_nothing_forbidden(ask: Asker) -> None:
    everything = build_schema(sdl_file()["docs/schema.graphql"])
    whole = {
        f"{kind.name}.{name}"
        for kind in everything.type_map.values()
        if is_object_type(kind) and not kind.name.startswith("__")
        for name in kind.fields
    }
    hidden = {"Statement.credit", "Statement.trace", "Query.credits", "ObjectiveResult.targetPercent", "Money.amount"}
    admin, viewer = ask(INTROSPECTION, by=ADMIN), ask(INTROSPECTION, by=VIEWER)
    assert whole <= names_in(admin)
    assert hidden <= names_in(admin) - names_in(viewer)
    assert (admin["data"]["credit"], viewer["data"]["credit"]) == ({"name": "Credit"}, None)
    assert not {name for name in names_in(viewer) if "redit" in name or "arget" in name or "rice" in name}
    assert "ObjectiveResult.good" not in names_in(ask(INTROSPECTION, by=FINANCE)), "finance sees no metrics"
    assert {name for name in names_in(ask(INTROSPECTION, by=NOTHING)) if name.startswith("Query.")} == {
        "Query.slaReport"
    }


def test_what_one_role_was_answered_warms_nothing_for_another(ask: Asker, world: World) -> None:
    query = '{ statements { edges { node { credit { amount } } } } __type(name: "Money") { name } }'
    for _ in range(3):
        assert "800.00" in json.dumps(ask(query, by=ADMIN))
        viewer = ask(query, by=VIEWER)
        assert "800.00" not in json.dumps(viewer)
        assert viewer["data"]["__type"] is None
        assert set(codes(viewer)) == {"FORBIDDEN"}


def test_scopes_follow_the_credentials_without_a_restart(ask: Asker, world: World) -> None:
    query = "{ credits { edges { node { credit { amount } } } } }"
    same_subject = holding(Scope.READ_AGREEMENTS)
    assert ask(query, by=same_subject)["data"] == {"credits": None}
    assert "errors" not in ask(query, by=holding(Scope.READ_CREDITS))
    assert ask(query, by=same_subject)["data"] == {"credits": None}


def test_a_fragment_does_not_change_the_code_of_an_error(ask: Asker, world: World) -> None:
    plain = ask('{ credits { edges { cursor } } statement(id: "x") { id } }', by=VIEWER)
    split = ask(
        "{ ...A ...B } fragment A on Query { credits { edges { cursor } } } "
        'fragment B on Query { statement(id: "x") { id } }',
        by=VIEWER,
    )
    assert codes(plain) == codes(split) == ["FORBIDDEN", "NOT_FOUND"]
    assert [error["message"] for error in plain["errors"]] == [error["message"] for error in split["errors"]]


@pytest.mark.parametrize("role", Role)
def test_every_field_is_given_or_withheld_as_the_policy_says(ask: Asker, world: World, role: Role) -> None:
    principal = Principal(f"key {role}", "default", ROLE_SCOPES[role])
    query = """query ($id: ID!, $sla: ID!) {
      statement(id: $id) {
        credit { amount } trace unattested_reasons: unattestedReasons
        credit_delta: creditDelta { old { amount } difference { amount } }
        objective_deltas: objectiveDeltas { id good { difference } newState }
        attestation { proof } anchor { leaf } roots { node } objectives { targetPercent }
      }
      agreement(slaId: $sla) { document }
    }"""
    answer = ask(query, by=principal, variables={"id": world.statements[0], "sla": world.sla_id})
    statement, agreement = answer["data"]["statement"], answer["data"]["agreement"]
    if statement["objective_deltas"] is not None:
        assert statement["objective_deltas"] == [
            {"id": "availability", "good": {"difference": "-1"}, "newState": "breached"}
        ]
    if statement["credit_delta"] is not None:
        assert statement["credit_delta"] == {"old": None, "difference": {"amount": "800.00"}}
    found = {("statement", name): statement[name] for name in FIELD_SCOPES["statement"]}
    found["objective_result", "target"] = statement["objectives"][0]["targetPercent"]
    found["agreement", "document"] = agreement["document"]
    for (resource, member), value in found.items():
        assert (value is not None) == principal.holds(*FIELD_SCOPES[resource][member]), (resource, member)


def test_counts_need_the_scope_of_what_their_objective_measures(ask: Asker, world: World) -> None:
    query = "{ statements(first: 1) { edges { node { objectives { id state good valid attainmentPercent } } } } }"
    answer = ask(query, by=holding(Scope.READ_AGREEMENTS, Scope.READ_UPTIME))
    availability, ttft, _ = answer["data"]["statements"]["edges"][0]["node"]["objectives"]
    assert (availability["good"], availability["attainmentPercent"]) == (999_949, "99.9949")
    assert (ttft["state"], ttft["good"], ttft["valid"], ttft["attainmentPercent"]) == ("met", None, None, None)
    assert {error["extensions"]["scope"] for error in answer["errors"]} == {"sla:read:latency"}
    finance = ask(query, by=FINANCE)
    assert {error["extensions"]["code"] for error in finance["errors"]} == {"FORBIDDEN"}
    assert finance["data"]["statements"]["edges"][0]["node"]["objectives"][0]["good"] is None


@pytest.mark.parametrize("terms", ["unknown", "amended"])
def test_counts_under_terms_that_are_not_at_hand_need_every_metric(ask: Asker, ledger: Any, terms: str) -> None:
    if terms == "unknown":
        ledger.statement("0x" + "77" * 32)
    else:
        ledger.statement(ledger.agreement(1), doc_sha256="cd" * 32)
    query = "{ statements { edges { node { objectives { good } } } } }"
    assert codes(ask(query, by=holding(Scope.READ_AGREEMENTS, Scope.READ_UPTIME))) == ["FORBIDDEN"]
    assert "errors" not in ask(query, by=VIEWER)


def test_a_guest_sees_its_agreements_alone(ask: Asker, ledger: Any) -> None:
    mine, others = sorted([ledger.agreement(1), ledger.agreement(2)])
    days = [ledger.statement(sla_id, day) for day in range(4) for sla_id in (mine, others)]
    guest = holding(*ROLE_SCOPES[Role.CUSTOMER_ADMIN], sla_ids=frozenset({mine}))
    answer = ask("{ agreements { edges { node { slaId } } } credits(first: 3) { edges { node { slaId } } } }", by=guest)
    assert {edge["node"]["slaId"] for part in answer["data"].values() for edge in part["edges"]} == {mine}
    assert len(answer["data"]["credits"]["edges"]) == 3, "a page is full though it passes over others'"
    for query in ('{ agreement(slaId: "%s") { slaId } }', '{ statements(slaId: "%s") { edges { cursor } } }'):
        there, nowhere = (ask(query % sla_id, by=guest) for sla_id in (others, "0x" + "ff" * 32))
        assert codes(there) == codes(nowhere) == ["NOT_FOUND"]
        assert json.dumps(there).replace(others, "") == json.dumps(nowhere).replace("0x" + "ff" * 32, "")
    assert codes(ask(fill('{ statement(id: "%s") { id } }', days[1]), by=guest)) == ["NOT_FOUND"]


def test_another_tenant_sees_nothing_also_with_everything_warm(ask: Asker, world: World) -> None:
    stranger = holding(*Scope, tenant="other")
    query = "query ($id: ID!) { statement(id: $id) { id agreement { service } } statements { edges { cursor } } }"
    for _ in range(2):
        assert "errors" not in ask(query, by=OPERATOR, variables={"id": world.statements[0]})
        answer = ask(query, by=stranger, variables={"id": world.statements[0]})
        assert answer["data"] == {"statement": None, "statements": {"edges": []}}
        assert codes(answer) == ["NOT_FOUND"]


# --- the second layer, and what happens when a part fails -------------------------------------------


def context_of(world: World, principal: Principal, **options: Any) -> RequestContext:
    queries = Queries(world.ledger.database, bundles=world.ledger, chain_status=lambda: world.ledger.chain)
    return RequestContext(principal, queries, Violations(), now_ns=lambda: 0, latency_cache=LatencyCache(), **options)


def test_without_the_gate_the_resolvers_still_refuse(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schemas().of(frozenset(Scope))  # the operator's, as if it were taken for the viewer by mistake
    monkeypatch.setattr(gate, "select", lambda *_: gate.Selection())
    for query in ATTACKS.values():
        asked = GraphQLRequest(query, None, {"id": world.statements[0]}, strict=False)
        answer = run(schema, asked, context_of(world, VIEWER))
        assert not any(canary in json.dumps(answer) for canary in CANARIES)
        assert set(codes(answer)) == {"FORBIDDEN"}


def test_rows_hold_nothing_forbidden_when_they_reach_the_types(world: World) -> None:
    context = context_of(world, VIEWER)
    row = context.seen("statement", context.queries.statement(world.statements[0]).row)
    assert (row["credit"], row["trace"], row["attestation"], row["anchor"]) == (None, None, None, None)


def test_where_the_gate_fails_nothing_runs(
    ask: Asker, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise LookupError("secret of the inside")

    monkeypatch.setattr(gate, "select", broken)
    answer = ask("{ credits { edges { node { credit { amount } } } } }", by=ADMIN)
    assert "data" not in answer
    assert codes(answer) == ["INTERNAL"]
    assert "secret" not in json.dumps(answer)
    assert "secret of the inside" in caplog.text


def test_a_refused_operation_reads_nothing(world: World) -> None:
    class Counting(Queries):
        reads = 0

        def agreements(self, **_: Any) -> Any:
            Counting.reads += 1

    context = context_of(world, VIEWER, strict=True)
    context.queries = Counting(world.ledger.database, bundles=world.ledger, chain_status=lambda: world.ledger.chain)
    asked = GraphQLRequest("{ agreements { edges { cursor } } credits { edges { cursor } } }", None, {}, strict=True)
    assert "data" not in run(Schemas().of(VIEWER.scopes), asked, context)
    assert Counting.reads == 0


def test_a_denial_is_logged_as_no_fault(ask: Asker, world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ask('{ credits { edges { cursor } } statement(id: "x") { id } }', by=VIEWER)
    assert not [record for record in caplog.records if record.levelno > logging.INFO or record.exc_info]


def test_a_fault_of_ours_says_nothing_of_itself_and_is_logged(
    ask: Asker, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(Queries, "agreements", broken)
    answer = ask("{ agreements { edges { cursor } } statements { edges { cursor } } }")
    assert codes(answer) == ["INTERNAL"]
    assert "hunter2" not in json.dumps(answer)
    assert answer["data"]["statements"]["edges"]
    assert "hunter2" in caplog.text


def test_a_database_that_does_not_answer_is_named(ask: Asker, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise StorageUnavailable("the database is locked; try again")

    monkeypatch.setattr(Queries, "agreements", gone)
    assert codes(ask("{ agreements { edges { cursor } } }")) == ["STORAGE_UNAVAILABLE"]


def test_what_was_loaded_belongs_to_one_request(world: World) -> None:
    first, second = context_of(world, OPERATOR), context_of(world, holding(*Scope, tenant="other"))
    assert first.agreement(world.sla_id) is first.agreement(world.sla_id)
    assert second.agreement(world.sla_id) is not first.agreement(world.sla_id)


def test_many_errors_are_cut_and_counted(ask: Asker, ledger: Any) -> None:
    sla_id = ledger.agreement(1)
    for day in range(25):
        ledger.statement(sla_id, day)
    query = fill(
        "{ %s }", " ".join(f"a{n}: statements {{ edges {{ node {{ credit {{ amount }} trace }} }} }}" for n in range(5))
    )
    answer = ask(query, by=VIEWER)
    assert len(answer["errors"]) == 201
    assert answer["errors"][-1]["message"] == "50 more errors are not shown"


def test_the_default_limits_admit_a_page_of_everything() -> None:
    assert Limits().cost >= 100 * 60
