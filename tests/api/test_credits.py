"""Violations, windows, credit lines and the finance file over HTTP, seen by whoever may see what."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from litestar.testing import TestClient

import api.finishing
from api.auth.callers import LOCAL_OPERATOR, Authentication, Caller
from api.edge import Edge
from api.rest import credit_lines
from ledger.app.access import ROLE_SCOPES, Principal, Role, Scope
from ledger.app.billing.exports import verify_credit_export

Client = TestClient[Any]
As = Callable[..., Client]
KEY = {"Idempotency-Key": "k1"}


@pytest.fixture
def as_(app: Edge) -> As:
    """A client that acts as a role, or with scopes, limited to some agreements if they are named."""

    def client(*scopes: Scope, role: Role | None = None, sla_ids: frozenset[str] | None = None) -> Client:
        held = frozenset(scopes) if role is None else ROLE_SCOPES[role]
        principal = Principal("somebody", "default", held, sla_ids)
        caller = Caller(principal)
        edge = Edge(app.app, app.served, authentication=Authentication(caller, {}, lambda _text: ""))
        return TestClient(edge, base_url="http://127.0.0.1")

    return client


def walk(client: Client, path: str, **query: Any) -> list[Any]:
    items, cursor = [], None
    while True:
        page = client.get(path, params={**query, **({"cursor": cursor} if cursor else {})})
        assert page.status_code == 200, page.text
        items += page.json()["items"]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return items


class TestViolations:
    def test_a_violation_with_its_evidence(self, ledger: Any, client: Client) -> None:
        sla_id = ledger.agreement(1)
        name = ledger.violation(sla_id, ended_by="met")
        ledger.credit_line(sla_id, ledger.statement(sla_id), violation_id=name, minor_units="1234")
        found = client.get(f"/v1/violations/{name}").json()
        assert found == client.get("/v1/violations").json()["items"][0]
        assert (found["state"], found["ended_by"], found["target_percent"]) == ("closed", "met", "99.95")
        assert found["start"]["rfc3339"] == "2023-12-01T03:00:00Z"
        assert found["end"]["rfc3339"] == "2023-12-01T04:00:00Z"
        assert (found["good"], found["bad"], found["worst"]) == (7, 3, {"window": 3, "good": 7, "valid": 10})
        assert found["signals"][0]["summary"] == "DRAM_ACTIVE 0.91"
        assert found["credit"] == {"currency": "USD", "minor_units": "1234", "amount": "12.34"}
        assert found["withheld"] == []

    def test_filters_and_pages(self, ledger: Any, client: Client) -> None:
        sla_id, other = ledger.agreement(1), ledger.agreement(2)
        names = [ledger.violation(sla_id, hour, ended_by="met") for hour in (3, 10, 20)]
        opened = ledger.violation(other, 5, kind="violation_opened", objective="ttft", indicator="first_token_latency")
        assert [each["id"] for each in walk(client, "/v1/violations", limit=2)] == [names[0], opened, *names[1:]]
        assert [each["id"] for each in walk(client, "/v1/violations", sla_id=sla_id, limit=1)] == names
        assert [each["id"] for each in walk(client, "/v1/violations", state="open")] == [opened]
        assert [each["id"] for each in walk(client, "/v1/violations", objective="ttft")] == [opened]
        cursor = client.get("/v1/violations", params={"limit": 1}).json()["next_cursor"]
        for query in ({"state": "closed"}, {"sla_id": sla_id}, {"objective": "ttft"}):
            refused = client.get("/v1/violations", params={"cursor": cursor, **query})
            assert (refused.status_code, refused.json()["code"]) == (400, "cursor_invalid")

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ("state=half", 400),
            ("of_state=open", 400),
            ("objective=A", 400),
            ("sla_id=0x" + "00" * 32, 404),
            ("limit=0", 400),
        ],
    )
    def test_what_cannot_be_asked(self, client: Client, query: str, status: int) -> None:
        assert client.get(f"/v1/violations?{query}").status_code == status

    def test_a_viewer_sees_neither_target_nor_credit(self, ledger: Any, as_: As) -> None:
        sla_id = ledger.agreement(1)
        name = ledger.violation(sla_id, ended_by="met")
        ledger.credit_line(sla_id, ledger.statement(sla_id), violation_id=name)
        found = as_(role=Role.OPERATIONS_VIEWER).get(f"/v1/violations/{name}").json()
        assert (found["target_percent"], found["credit"], found["withheld"]) == (
            None,
            None,
            ["clause", "credit", "target"],
        )
        assert found["bad"] == 3

    def test_counts_need_the_scope_of_their_indicator(self, ledger: Any, as_: As) -> None:
        sla_id = ledger.agreement(1)
        name = ledger.violation(sla_id, ended_by="met", objective="ttft", indicator="first_token_latency")
        found = as_(Scope.READ_VIOLATIONS, Scope.READ_UPTIME).get(f"/v1/violations/{name}").json()
        assert [found[each] for each in ("good", "valid", "bad", "worst")] == [None] * 4
        assert found["windows"] == 1

    def test_a_guest_sees_its_agreement_alone(self, ledger: Any, as_: As) -> None:
        sla_id, other = ledger.agreement(1), ledger.agreement(2)
        mine, theirs = ledger.violation(sla_id, ended_by="met"), ledger.violation(other, ended_by="met")
        for agreement in (sla_id, other):
            statement = ledger.statement(agreement)
            ledger.credit_line(agreement, statement)
        client = as_(role=Role.OPERATOR, sla_ids=frozenset({sla_id}))
        assert [each["id"] for each in walk(client, "/v1/violations")] == [mine]
        assert [each["sla_id"] for each in walk(client, "/v1/credit-lines")] == [sla_id]
        assert verify_credit_export(io.BytesIO(client.get("/v1/exports/credits.csv").content)).lines == 1
        for path in (
            f"/v1/violations/{theirs}",
            f"/v1/violations?sla_id={other}",
            f"/v1/credit-lines?sla_id={other}",
            f"/v1/windows?sla_id={other}&period=2023-12-01/P1D",
        ):
            assert client.get(path).status_code == 404

    def test_finance_sees_no_violations(self, as_: As) -> None:
        assert as_(role=Role.FINANCE).get("/v1/violations").status_code == 403


class TestWindows:
    def test_windows_by_index_with_attainment(self, ledger: Any, client: Client) -> None:
        sla_id = ledger.agreement(1)
        for index in range(3):
            ledger.window(sla_id, index, good=index, bad=1 if index else 0)
        found = walk(client, "/v1/windows", sla_id=sla_id, period="2023-12-01/P1D", limit=2)
        assert [each["index"] for each in found] == [0, 1, 2]
        assert [each["objectives"][0]["attainment_percent"] for each in found] == [None, "50.0000", "66.6666"]
        assert [each["id"] for each in found[0]["objectives"]] == ["availability", "ttft", "response"]
        assert walk(client, "/v1/windows", sla_id=sla_id, period="2023-12-02/P1D") == []

    def test_counts_of_latency_need_their_scope(self, ledger: Any, as_: As) -> None:
        sla_id = ledger.agreement(1)
        ledger.window(sla_id)
        (found,) = walk(as_(Scope.READ_UPTIME), "/v1/windows", sla_id=sla_id, period="2023-12-01/P1D")
        assert [each["good"] for each in found["objectives"]] == [10, None, None]

    @pytest.mark.parametrize("query", ["", "?period=2023-12-01/P1D", "?sla_id=0x" + "00" * 32, "?period=x&sla_id=y"])
    def test_both_names_are_needed(self, client: Client, query: str) -> None:
        assert client.get(f"/v1/windows{query}").status_code == 400


class TestCreditLines:
    @pytest.fixture
    def line_id(self, ledger: Any) -> str:
        sla_id = ledger.agreement(1)
        line_id: str = ledger.credit_line(sla_id, ledger.statement(sla_id), proof_due=False)
        return line_id

    def test_the_credits_of_statements_are_as_before(self, client: Client, line_id: str) -> None:
        (credit,) = client.get("/v1/credits").json()["items"]
        assert set(credit) == {"statement_id", "sla_id", "period", "credit", "status", "proof_hash", "seq"}
        assert credit["status"] == "issued"

    def test_a_line_is_taken_back_and_the_truth_is_the_sum(self, client: Client, line_id: str) -> None:
        made = client.post(f"/v1/credit-lines/{line_id}/reverse", json={"reason": "counted in error"}, headers=KEY)
        assert made.status_code == 200, made.text
        entry = made.json()
        assert (entry["reverses"], entry["credit"]["amount"], entry["status"]) == (line_id, "-800.00", "void")
        again = client.post(f"/v1/credit-lines/{line_id}/reverse", json={"reason": "counted in error"}, headers=KEY)
        assert again.json() == entry
        found = walk(client, "/v1/credit-lines", limit=1)
        assert [each["id"] for each in found] == [line_id, entry["id"]]
        assert sum(int(each["credit"]["minor_units"]) for each in found) == 0
        twice = client.post(
            f"/v1/credit-lines/{line_id}/reverse", json={"reason": "x"}, headers={"Idempotency-Key": "k2"}
        )
        assert (twice.status_code, twice.json()["code"]) == (409, "credit_line_refused")
        other = client.post(f"/v1/credit-lines/{line_id}/reverse", json={"reason": "x"}, headers=KEY)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")

    def test_a_line_is_booked(self, client: Client, line_id: str) -> None:
        made = client.post(f"/v1/credit-lines/{line_id}/apply", json={"reference": "INV-7"}, headers=KEY).json()
        assert (made["status"], made["billing"]["reference"]) == ("applied", "INV-7")
        assert made["billing"]["by"] == LOCAL_OPERATOR.principal.subject
        assert [each["id"] for each in walk(client, "/v1/credit-lines", status="applied")] == [line_id]

    def test_a_draft_is_not_booked(self, ledger: Any, client: Client) -> None:
        sla_id = ledger.agreement(1)
        statement = ledger.statement(sla_id)
        line_id = ledger.credit_line(sla_id, statement)
        assert walk(client, "/v1/credit-lines", status="draft")[0]["id"] == line_id
        path = f"/v1/credit-lines/{line_id}/apply"
        assert client.post(path, json={"reference": "INV-7"}, headers=KEY).json()["code"] == "credit_line_refused"
        ledger.attest(statement, sla_id)
        assert client.post(path, json={"reference": "INV-7"}, headers=KEY).status_code == 200

    @pytest.mark.parametrize(
        ("body", "headers"),
        [
            (b'{"reason": "r"}', {}),
            (b'{"reason": "r"}', {"Idempotency-Key": ""}),
            (b'{"reason": "r"}', {"Idempotency-Key": "x" * 101}),
            (b'{"reason": ""}', KEY),
            (b'{"reason": "r", "amount": "1"}', KEY),
            (b'{"reason": 5}', KEY),
            (b'{"reason": "a\\u202eb"}', KEY),
            (b"{}", KEY),
            (b"[", KEY),
            (b"", KEY),
        ],
    )
    def test_what_cannot_be_used_is_a_problem_and_writes_nothing(
        self, ledger: Any, client: Client, line_id: str, body: bytes, headers: dict[str, str]
    ) -> None:
        with ledger.database.read() as tx:
            before = tx.log.size()
        headers = {"content-type": "application/json", **headers}
        answer = client.post(f"/v1/credit-lines/{line_id}/reverse", content=body, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), answer.text
        with ledger.database.read() as tx:
            assert tx.log.size() == before

    def test_no_such_line(self, client: Client) -> None:
        for path in ("nothing", "1.l0001", "%2e%2e.l0001"):
            answer = client.post(f"/v1/credit-lines/{path}/reverse", json={"reason": "r"}, headers=KEY)
            assert answer.status_code == 404

    @pytest.mark.parametrize("role", [Role.OPERATIONS_VIEWER, Role.CUSTOMER_ADMIN])
    def test_who_may_not_write_credits(self, as_: As, line_id: str, role: Role) -> None:
        for change, body in (("reverse", {"reason": "r"}), ("apply", {"reference": "r"})):
            answer = as_(role=role).post(f"/v1/credit-lines/{line_id}/{change}", json=body, headers=KEY)
            assert (answer.status_code, answer.json()["data"]["scope"]) == (403, "sla:write:credits")

    def test_finance_may(self, as_: As, line_id: str) -> None:
        answer = as_(role=Role.FINANCE).post(
            f"/v1/credit-lines/{line_id}/apply", json={"reference": "INV-7"}, headers=KEY
        )
        assert answer.json()["billing"]["by"] == "somebody"

    def test_a_viewer_sees_no_line(self, as_: As, line_id: str) -> None:
        client = as_(role=Role.OPERATIONS_VIEWER)
        for path in ("/v1/credit-lines", "/v1/exports/credits.csv"):
            answer = client.get(path)
            assert answer.status_code == 403
            assert "80000" not in answer.text

    def test_another_tenant_has_none_of_it(self, app: Edge, line_id: str) -> None:
        caller = replace(LOCAL_OPERATOR, principal=replace(LOCAL_OPERATOR.principal, tenant="another"))
        edge = Edge(app.app, app.served, authentication=Authentication(caller, {}, lambda _text: ""))
        with TestClient(edge, base_url="http://127.0.0.1") as client:
            assert walk(client, "/v1/credit-lines") == []
            assert walk(client, "/v1/violations") == []
            answer = client.post(f"/v1/credit-lines/{line_id}/reverse", json={"reason": "r"}, headers=KEY)
            assert answer.status_code == 404


class TestExport:
    def test_the_file_reconciles(self, ledger: Any, client: Client) -> None:
        sla_id = ledger.agreement(1)
        for day in range(3):
            ledger.credit_line(sla_id, ledger.statement(sla_id, day), day=day, minor_units=str(100 + day))
        answer = client.get("/v1/exports/credits.csv")
        assert answer.headers["content-type"] == "text/csv; header=present; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert "attachment" in answer.headers["content-disposition"]
        assert int(answer.headers["content-length"]) == len(answer.content)
        totals = verify_credit_export(io.BytesIO(answer.content))
        assert (totals.lines, totals.minor_units) == (3, {"USD": 303})
        for query, lines in (
            ("from=2023-12-02", 2),
            ("to=2023-12-02", 1),
            ("from=2023-12-02T00:00:00Z&to=2023-12-03", 1),
            ("from=2023-12-02T00:00:00.000000001Z", 1),
        ):
            part = client.get(f"/v1/exports/credits.csv?{query}")
            assert verify_credit_export(io.BytesIO(part.content)).lines == lines, query

    @pytest.mark.parametrize(
        "query", ["from=yesterday", "to=2023-13-01", "from=2023-12-02T00:00:00", "from_=2023-12-02"]
    )
    def test_times_that_are_none(self, client: Client, query: str) -> None:
        answer = client.get(f"/v1/exports/credits.csv?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "query_invalid")

    def test_a_large_file_goes_out_in_parts(self, ledger: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        sla_id = ledger.agreement(1)
        statement = ledger.statement(sla_id)
        for number in range(1, 30):
            ledger.credit_line(sla_id, statement, number)
        monkeypatch.setattr(credit_lines, "_CHUNK", 1024)
        collected: list[int] = []
        collect = api.finishing.Answer.collect

        async def watched(self: Any, message: Any) -> None:
            await collect(self, message)
            collected.append(len(self.body))

        monkeypatch.setattr(api.finishing.Answer, "collect", watched)
        data = client.get("/v1/exports/credits.csv").content
        assert verify_credit_export(io.BytesIO(data)).lines == 29
        assert len(collected) > len(data) // 1024
        assert max(collected) == 0
