"""What is left of a row for a principal, whatever scopes it holds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ledger.app.access import FIELD_SCOPES, METRIC_SCOPES, Principal, Scope
from ledger.app.reading.queries import Queries
from ledger.app.reading.visible import COUNTS, VisibleQueries, public_terms, visible_agreement, visible_statement
from ledger.domain.record.naming import agreement_stream, statement_stream
from ledger.domain.time.calendar import first_date
from ledger.errors import AccessDenied, NotFound
from ledger.resources import resource_dir
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import (
    OTHER_SLA_ID,
    SLA_ID,
    SeededRandomness,
    StepClock,
    agreement,
    statement,
    statement_id,
)

scopes = st.frozensets(st.sampled_from(list(Scope)))
INDICATORS = {"availability": "availability", "ttft": "first_token_latency", "response": "response_latency"}
ROW: dict[str, Any] = {
    "id": "s",
    "sla_id": SLA_ID,
    "doc_sha256": "ab" * 32,
    "credit": {"currency": "USD", "minor_units": 5},
    "credit_delta": {"currency": "USD", "old": None, "new": 5, "difference": 5},
    "objective_deltas": [],
    "trace": {"steps": []},
    "unattested_reasons": ["a tier without a place in the circuit"],
    "attestation": {"signals": ["5"]},
    "anchor": {"leaf": "0x"},
    "roots": [{"node": "0x"}],
    "objectives": [
        {"id": name, "good": 9, "valid": 10, "target": "95", "state": "met"} for name in (*INDICATORS, "amended away")
    ],
}


@given(scopes)
def test_a_statement_keeps_what_the_scopes_cover_and_names_the_rest(held: frozenset[Scope]) -> None:
    seen = visible_statement(ROW, Principal("p", "t", held), INDICATORS)
    for name, needed in FIELD_SCOPES["statement"].items():
        assert (seen[name] is None) == (name in seen["withheld"]) == (not held >= needed)
    for result in seen["objectives"]:
        indicator = INDICATORS.get(result["id"])
        needed = set(METRIC_SCOPES.values()) if indicator is None else {METRIC_SCOPES[indicator]}
        for name in COUNTS:
            assert (result[name] is None) == (name in result["withheld"]) == (not held >= needed)
        assert (result["target"] is None) == ("target" in result["withheld"]) == (Scope.READ_THRESHOLDS not in held)
        assert result["state"] == "met"
    assert {**ROW, "objectives": None}.keys() == seen.keys() - {"withheld"}


@given(scopes, scopes)
def test_more_scopes_never_show_less(held: frozenset[Scope], more: frozenset[Scope]) -> None:
    def shown(principal: Principal) -> set[tuple[str, str]]:
        seen = visible_statement(ROW, principal, INDICATORS)
        rows = [("", seen), *((result["id"], result) for result in seen["objectives"])]
        return {(name, member) for name, row in rows for member, value in row.items() if value is not None}

    assert shown(Principal("p", "t", held)) <= shown(Principal("p", "t", held | more))


def test_public_terms_are_no_terms() -> None:
    document = yaml.safe_load((resource_dir("examples") / "agreement.yaml").read_text())
    terms = public_terms(document)
    text = str(terms)
    assert [each["id"] for each in terms["objectives"]] == ["availability", "ttft", "response"]
    for figure in ("99.95", "800", "3200", "8000.00", "4000.00", "credit", "percent", "tier"):
        assert figure not in text
    row = {"sla_id": SLA_ID, "document": document}
    assert visible_agreement(row, Principal("p", "t", frozenset()))["document"] == terms
    assert visible_agreement(row, Principal("p", "t", frozenset(Scope)))["document"] == document


class Bundles:
    def get(self, statement_id: str, tenant: str = "default") -> bytes:
        return b"{}"


@pytest.fixture
def queries() -> Queries:
    database = MemoryDatabase(StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        for sla_id in (SLA_ID, OTHER_SLA_ID):
            tx.events.append(agreement_stream(sla_id), [agreement(sla_id=sla_id)], expected_version=0)
            event = statement(sla_id=sla_id)
            tx.events.append(statement_stream(sla_id, first_date(event.payload["period"])), [event], expected_version=0)
    return Queries(
        database, bundles=Bundles(), chain_status=lambda: {"chain_id": 1, "registry": None, "transactions": []}
    )


def test_who_is_limited_to_an_agreement_does_not_learn_of_others(queries: Queries) -> None:
    limited = VisibleQueries(queries, Principal("p", "default", frozenset(Scope), frozenset({SLA_ID})))
    own, other = statement_id(), statement_id(sla_id=OTHER_SLA_ID)
    assert [row["sla_id"] for row in limited.agreements(after=None, limit=9).rows] == [SLA_ID]
    assert [row["id"] for row in limited.statements(None, after=None, limit=9).rows] == [own]
    assert [row["statement_id"] for row in limited.credits(None, after=None, limit=9).rows] == [own]
    assert limited.statement(own).row["id"] == own
    assert limited.bundle(own) == b"{}"
    assert limited.inclusion(own, None).size == 4
    for ask in (
        lambda: limited.agreement(OTHER_SLA_ID),
        lambda: limited.statements(OTHER_SLA_ID, after=None, limit=9),
        lambda: limited.credits(OTHER_SLA_ID, after=None, limit=9),
        lambda: limited.statement(other),
        lambda: limited.bundle(other),
        lambda: limited.inclusion(other, None),
        lambda: limited.require_statement(other),
    ):
        with pytest.raises(NotFound):
            ask()
    assert not any(event.shown for event in limited.events(0, limit=9).events)


def test_not_seen_reads_word_for_word_as_not_there(queries: Queries) -> None:
    limited = VisibleQueries(queries, Principal("p", "default", frozenset(Scope), frozenset({SLA_ID})))
    ghost = "0x" + "0" * 64
    for name, nobody, ask in (
        (OTHER_SLA_ID, ghost, limited.agreement),
        (statement_id(sla_id=OTHER_SLA_ID), "0" * 12 + ".2023-12-19.v1", limited.statement),
    ):
        errors = []
        for each in (name, nobody):
            with pytest.raises(NotFound) as caught:
                ask(each)
            errors.append((caught.value.message.replace(each, ""), sorted(caught.value.data)))
        assert errors[0] == errors[1]


def test_a_bundle_is_all_or_nothing(queries: Queries) -> None:
    for lacking in (Scope.READ_PROOFS, Scope.READ_CREDITS, Scope.READ_THRESHOLDS):
        with pytest.raises(AccessDenied) as caught:
            VisibleQueries(queries, Principal("p", "default", frozenset(Scope) - {lacking})).bundle(statement_id())
        assert caught.value.data == {"scope": str(lacking)}


def test_counts_of_terms_that_were_amended_need_every_metric(queries: Queries) -> None:
    uptime = Principal("p", "default", frozenset({Scope.READ_UPTIME}))
    (first, *_) = VisibleQueries(queries, uptime).statements(SLA_ID, after=None, limit=9).rows
    assert first["objectives"][0]["good"] is not None
    with queries._database.begin() as tx:
        tx.events.append(agreement_stream(SLA_ID), [agreement(2)], expected_version=1)
    (first, *_) = VisibleQueries(queries, uptime).statements(SLA_ID, after=None, limit=9).rows
    assert first["objectives"][0]["good"] is None
