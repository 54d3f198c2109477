"""The dashboard's answer and its pages: what each reader sees, and what a page may load and who may frame it."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
import yaml
from litestar.testing import TestClient

from api.embed.pages import FILES
from api.embed.summary import as_summary
from api.parameters import encode_cursor
from ledger.app.access import ROLE_SCOPES, Principal, Role, Scope
from ledger.app.reading.queries import Queries
from ledger.domain.record import naming
from ledger.domain.record.naming import windows_stream
from ledger.errors import NotFound, SettingInvalid
from ledger.settings import EmbedSettings
from tests.api.filled import EXAMPLE, FIRST, FIRST_NS, Ledger, objective
from tests.api.serving import app_over

Client = TestClient[Any]
HOUR_NS = 3600 * 10**9
PORTAL = "https://portal.example"


def windows(ledger: Ledger, sla_id: str, cells: list[dict[str, tuple[int, int]] | str]) -> None:
    """Judge the first hours of the first day: counts by objective, or the state of a window without counts."""
    for index, cell in enumerate(cells):
        counted = {} if isinstance(cell, str) else cell
        found = {
            name: {"good": counted.get(name, (0, 0))[0], "bad": counted.get(name, (0, 0))[1]}
            for name in ("availability", "ttft", "response")
        }
        payload = judged(sla_id, index, cell if isinstance(cell, str) else "observed", found)
        ledger.append(windows_stream(sla_id, FIRST), "window_evaluated", payload)


def judged(sla_id: str, index: int, state: str, cells: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The payload of one hour of the first day."""
    return {
        "sla_id": sla_id,
        "doc_sha256": "ab" * 32,
        "period": f"{FIRST}/P1D",
        "index": index,
        "start_ns": str(FIRST_NS + index * HOUR_NS),
        "end_ns": str(FIRST_NS + (index + 1) * HOUR_NS),
        "state": state,
        "cells": cells,
        "excluded_requests": {},
        "inputs": [],
    }


def settled(ledger: Ledger) -> str:
    """An agreement with one settled day: missed availability, met latency; its sla_id."""
    sla_id = ledger.agreement(1)
    windows(ledger, sla_id, [{"availability": (9, 1), "ttft": (9, 0)}, {"availability": (10, 0)}, "no_data"])
    objectives = [
        objective("availability", 19, 20, "99.95", "breached"),
        objective("ttft", 9, 9, "95", "met"),
        objective("response", 0, 0, "99", "no_data"),
    ]
    name = ledger.statement(sla_id, objectives=objectives)
    figures = {"good": 9, "valid": 10, "bad": 1, "worst": {"window": 0, "good": 9, "valid": 10}, "ended_by": "met"}
    missed = ledger.violation(sla_id, 0, **figures)
    ledger.credit_line(sla_id, name, violation_id=missed)
    return sla_id


def seen_by(ledger: Ledger, sla_id: str, scopes: frozenset[Scope], **limits: Any) -> dict[str, Any]:
    queries = Queries(ledger.database, bundles=ledger, chain_status=lambda: ledger.chain)
    overview = queries.overview(Principal("reader", "default", scopes, **limits), sla_id)
    found: dict[str, Any] = json.loads(msgspec.json.encode(as_summary(overview)))
    return found


def summary(client: Client, sla_id: str, **more: str) -> dict[str, Any]:
    response = client.get("/v1/embed/summary", params={"sla_id": sla_id, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_one_answer_has_everything(ledger: Ledger, client: Client) -> None:
    sla_id = settled(ledger)
    found = summary(client, sla_id)
    assert found["withheld"] == []
    assert found["agreement"]["service"] == "example-chat"
    availability, ttft, response = found["objectives"]
    assert (availability["state"], availability["attainment_percent"]) == ("breached", "95.0000")
    # 1 of 20 failed, and 0.05 % of 20 may: one hundred times as much.
    assert availability["budget_used_percent"] == "10000.00"
    assert (ttft["threshold_ms"], ttft["quantile"], ttft["budget_used_percent"]) == ("800", "0.95", "0.00")
    assert (response["state"], response["attainment_percent"], response["budget_used_percent"]) == (
        "no_data",
        None,
        None,
    )
    first, second, third = found["bars"]
    assert (first["state"], second["state"], third["state"]) == ("observed", "observed", "no_data")
    assert [bar["cells"]["availability"]["verdict"] for bar in found["bars"]] == ["missed", "clean", None]
    (violation,) = found["violations"]
    assert (violation["objective"], violation["state"], violation["windows"]) == ("availability", "closed", 1)
    assert (violation["opened"]["ns"], violation["closed"]["ns"]) == (str(FIRST_NS), str(FIRST_NS + HOUR_NS))
    (signal,) = violation["evidence"]
    assert (signal["kind"], signal["at"]["ns"], signal["summary"]) == (
        "gpu_sample",
        str(FIRST_NS),
        "DRAM_ACTIVE 0.91",
    )
    (line,) = found["credit_lines"]
    assert (line["violation_id"], line["status"], line["credit"]) == (violation["id"], "draft", violation["credit"])
    assert (line["reverses"], line["restates"]) == (None, None)
    assert (found["violation_count"], found["credit_line_count"]) == (1, 1)
    (statement,) = found["statements"]
    assert statement["credit"] == {"currency": "USD", "minor_units": "80000", "amount": "800.00"}
    assert found["credit_totals"] == [statement["credit"]]
    assert (statement["proof"], statement["bundle"]) == ("none", f"/v1/bundles/{statement['id']}")


MINUTES = {
    "id": "availability",
    "method": "downtime_minutes-v1",
    "indicator": "availability",
    "target": "99.95",
    "error_rate": "5",
    "boundary": "above",
}
GRADED = {
    "id": "graded",
    "method": "graded_score-v1",
    "indicator": "response_latency",
    "target": "99",
    "grades": [{"at_most_ms": "1000", "score": "1"}],
}
REFUSALS = {
    "id": "refusal",
    "method": "total_ratio",
    "indicator": "controlled_refusal",
    "evaluator": "refusal-set 3",
    "minimum_valid": 100,
    "target": "92",
}


FIDELITY = REFUSALS | {"id": "context", "indicator": "context_fidelity", "evaluator": "cf4k 1"}


def test_figures_say_what_they_count_and_what_is_undecided(ledger: Ledger, client: TestClient[Any]) -> None:
    terms = yaml.safe_load(EXAMPLE.read_text()) | {"objectives": [MINUTES, GRADED, REFUSALS, FIDELITY]}
    sla_id = ledger.agreement(1, terms)
    cells = {
        "availability": {"good": 59, "bad": 1},
        "graded": {"good": 1_500, "bad": 500},
        "refusal": {"good": 90, "bad": 4, "undecided": 6},
        "context": {"good": 47, "bad": 3},
    }
    ledger.append(windows_stream(sla_id, FIRST), "window_evaluated", judged(sla_id, 0, "observed", cells))
    results = [
        objective("availability", 1_430, 1_440, "99.95", "breached") | {"unit": "minutes"},
        objective("graded", 1_500, 2_000, "99", "breached") | {"unit": "thousandths of a request"},
        objective("refusal", 90, 100, "92", "insufficient_data") | {"unit": "questions", "undecided": 6},
        objective("context", 47, 50, "92", "met") | {"unit": "facts"},
    ]
    ledger.statement(sla_id, objectives=results)
    ledger.violation(
        sla_id, 0, objective="refusal", indicator="controlled_refusal", clause="3.2", unit="questions", ended_by="met"
    )
    found = summary(client, sla_id)
    assert [(each["unit"], each["window_unit"], each["undecided"]) for each in found["objectives"]] == [
        ("minutes", "requests", 0),
        ("thousandths of a request", "thousandths of a request", 0),
        ("questions", "questions", 6),
        ("facts", "facts", 0),
    ]
    assert [each["score"] for each in found["objectives"]] == [None, None, None, "0.940000"]
    cell = found["bars"][0]["cells"]["refusal"]
    assert (cell["undecided"], cell["attainment_percent"], cell["verdict"]) == (6, "90.0000", "missed")
    assert found["violations"][0]["unit"] == "questions"
    (window,) = client.get(f"/v1/windows?sla_id={sla_id}&period={FIRST}/P1D").json()["items"]
    refusal = window["objectives"][2]
    assert (refusal["good"], refusal["bad"], refusal["undecided"], refusal["valid"]) == (90, 4, 6, 100)
    assert refusal["attainment_percent"] == "90.0000"


def test_the_proof_comes_further(ledger: Ledger, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)

    def chain(kind: str, confirmations: int | None = None) -> None:
        place = {"chain_id": "131277322940537", "block_number": 5, "block_hash": "0x" + "bb" * 32}
        payload = {"statement_id": name, "sla_id": sla_id, **place, "tx_hash": "0x" + "aa" * 32}
        more = {} if confirmations is None else {"confirmations": confirmations}
        ledger.append(naming.attestation_stream(name), kind, payload | more)

    steps = []
    for advance in (
        lambda: None,
        lambda: ledger.attest(name, sla_id),
        lambda: ledger.anchor(name, sla_id),
        lambda: chain("anchor_confirmed", 2),
        lambda: chain("anchor_undone"),
        lambda: chain("anchor_confirmed", 2),
        lambda: chain("anchor_finalized", 70),
    ):
        advance()
        (statement,) = summary(client, sla_id)["statements"]
        steps.append((statement["proof"], statement["proof_hash"] is None, statement["tx_hash"] is None))
    assert steps == [
        ("none", True, True),
        ("proved", False, True),
        ("anchored", False, False),
        ("confirmed", False, False),
        ("anchored", False, False),
        ("confirmed", False, False),
        ("final", False, False),
    ]


def test_a_statement_says_where_it_stands(ledger: Ledger, client: Client) -> None:
    sla_id = ledger.agreement(1)
    first = ledger.statement(sla_id)
    found = summary(client, sla_id)
    (statement,) = found["statements"]
    until = client.get(f"/v1/statements/{first}").json()["statement"]["accepts_until"]
    same = {"version": 1, "standing": "draft", "accepts_until": until}
    assert {name: statement[name] for name in same} == {name: found["shown"][name] for name in same} == same
    assert (statement["restates"], statement["credit_difference"], statement["published"]) == (None, None, [])
    second = naming.statement_id(sla_id, FIRST, 2)
    restated = {
        "statement_id": second,
        "statement_version": 2,
        "restates": {"statement_id": first, "event_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "facts": []},
        "reason": "late facts were recorded",
        "credit_delta": {"currency": "USD", "old": "80000", "new": "30000", "difference": "-50000"},
        "objective_deltas": [],
    }
    ledger.statement(sla_id, credit={"currency": "USD", "minor_units": "30000"}, **restated)
    (statement,) = summary(client, sla_id)["statements"]
    assert (statement["version"], statement["restates"], statement["reason"]) == (2, first, restated["reason"])
    assert statement["credit_difference"] == {"currency": "USD", "minor_units": "-50000", "amount": "-500.00"}
    viewer = seen_by(ledger, sla_id, ROLE_SCOPES[Role.OPERATIONS_VIEWER])["statements"][0]
    assert (viewer["standing"], viewer["credit_difference"], viewer["published"]) == ("draft", None, None)


def test_nothing_settled_yet(ledger: Ledger, client: Client) -> None:
    found = summary(client, ledger.agreement(1))
    assert found["shown"] is None
    assert (found["bars"], found["statements"], found["credit_totals"]) == ([], [], [])
    assert [each["state"] for each in found["objectives"]] == [None, None, None]


def test_a_withheld_statement_has_no_credit_and_no_zero(ledger: Ledger, client: Client) -> None:
    sla_id = ledger.agreement(1)
    objectives = [objective("availability", 1, 1, "99.95", "withheld")]
    ledger.statement(sla_id, state="withheld", credit=None, trace={}, objectives=objectives)
    found = summary(client, sla_id)
    assert (found["shown"]["state"], found["objectives"][0]["state"]) == ("withheld", "withheld")
    assert found["statements"][0]["credit"] is None
    assert found["credit_totals"] == []


def test_periods_newest_first_and_one_by_name(ledger: Ledger, client: Client) -> None:
    sla_id = ledger.agreement(1)
    for day in range(14):
        ledger.credit_line(sla_id, ledger.statement(sla_id, day), day=day)
    found = summary(client, sla_id)
    assert found["statement_count"] == 14
    assert [each["period"] for each in found["statements"]] == [f"2023-12-{day:02}/P1D" for day in range(14, 2, -1)]
    assert found["shown"]["period"] == "2023-12-14/P1D"
    # All of them count, also those that are not listed.
    assert found["credit_totals"][0]["minor_units"] == str(14 * 80000)
    assert summary(client, sla_id, period="2023-12-01/P1D")["shown"]["period"] == "2023-12-01/P1D"
    missing = client.get("/v1/embed/summary", params={"sla_id": sla_id, "period": "2023-11-01/P1D"})
    assert missing.status_code == 404


def test_every_period_is_reached_by_pages(ledger: Ledger, client: Client) -> None:
    sla_id, other = ledger.agreement(1), ledger.agreement(2)
    names = [ledger.statement(sla_id, day) for day in range(30)]
    ledger.statement(other)
    pages = [summary(client, sla_id)]
    while pages[-1]["next_cursor"] is not None:
        pages.append(summary(client, sla_id, cursor=pages[-1]["next_cursor"]))
    assert [[each["id"] for each in page["statements"]] for page in pages] == [
        names[29:17:-1],
        names[17:5:-1],
        names[5::-1],
    ]
    assert [(page["statements_before"], page["statement_count"]) for page in pages] == [(0, 30), (12, 30), (24, 30)]
    # Without a period the newest that is listed is shown; one that is named is shown on whatever page.
    assert [page["shown"]["period"] for page in pages] == [page["statements"][0]["period"] for page in pages]
    second = pages[0]["next_cursor"]
    chosen = summary(client, sla_id, cursor=second, period="2023-12-01/P1D")
    assert (chosen["shown"]["period"], chosen["statements"]) == ("2023-12-01/P1D", pages[1]["statements"])
    # A page stays as it is when another period is settled, but for what comes before it.
    ledger.statement(sla_id, 30)
    later = summary(client, sla_id, cursor=second)
    assert (later["statements"], later["statements_before"]) == (pages[1]["statements"], 13)
    for cursor in ("x", encode_cursor(f"embed/{sla_id}", "2023-11-01/P1D"), encode_cursor("embed/0x", "x")):
        refused = client.get("/v1/embed/summary", params={"sla_id": sla_id, "cursor": cursor})
        assert (refused.status_code, refused.json()["code"]) == (400, "cursor_invalid")
    of_another = client.get("/v1/embed/summary", params={"sla_id": other, "cursor": second})
    assert of_another.status_code == 400


def test_the_total_is_what_is_owed_now(ledger: Ledger, client: Client) -> None:
    """The sum of the lines: what was taken back is no part of it, and a statement without lines owes nothing."""
    sla_id, other = ledger.agreement(1), ledger.agreement(2)
    first, second = (ledger.statement(sla_id, day) for day in range(2))
    assert summary(client, sla_id)["credit_totals"] == []
    taken = ledger.credit_line(sla_id, first, 1, minor_units="50000")
    ledger.credit_line(sla_id, first, 2, minor_units="30000")
    ledger.credit_line(sla_id, second, 1, day=1, minor_units="7")
    ledger.credit_line(other, ledger.statement(other), minor_units="9")
    assert summary(client, sla_id)["credit_totals"][0]["minor_units"] == "80007"
    headers = {"idempotency-key": "once"}
    made = client.post(f"/v1/credit-lines/{taken}/reverse", json={"reason": "in error"}, headers=headers)
    assert made.status_code == 200, made.text
    found = summary(client, sla_id)
    assert found["credit_totals"] == [{"currency": "USD", "minor_units": "30007", "amount": "300.07"}]
    # What was settled stays as it was.
    assert {each["credit"]["minor_units"] for each in found["statements"]} == {"80000"}


@pytest.mark.parametrize("role", [Role.OPERATIONS_VIEWER, Role.FINANCE])
def test_what_may_not_be_seen_is_nowhere_in_the_answer(ledger: Ledger, role: Role) -> None:
    sla_id = settled(ledger)
    found = seen_by(ledger, sla_id, ROLE_SCOPES[role])
    text = json.dumps(found)
    for threshold in ('"99.95"', '"800"', '"0.95"', '"10000.00"', '"missed"'):
        assert threshold not in text
    availability = found["objectives"][0]
    assert {"target_percent", "threshold_ms", "quantile", "budget_used_percent"} <= set(availability["withheld"])
    if role is Role.OPERATIONS_VIEWER:
        assert (availability["good"], availability["state"]) == (19, "breached")
        assert '"80000"' not in text
        assert "800.00" not in text
        assert found["credit_totals"] is None
        assert found["withheld"] == ["credit_lines", "credit_totals"]
        assert (found["credit_lines"], found["credit_line_count"]) == (None, 0)
        (violation,) = found["violations"]
        assert (violation["bad"], violation["credit"], violation["withheld"]) == (1, None, ["credit"])
        (statement,) = found["statements"]
        assert (statement["proof"], statement["bundle"], statement["credit"]) == (None, None, None)
        assert {"credit", "proof"} <= set(statement["withheld"])
        assert [bar["cells"]["availability"]["verdict"] for bar in found["bars"]] == ["failures", "clean", None]
    else:
        assert (availability["good"], availability["state"], availability["attainment_percent"]) == (None, None, None)
        assert {"good", "attainment_percent", "score"} <= set(availability["withheld"])
        assert all(bar["cells"] == {} for bar in found["bars"])
        assert (found["violations"], found["violation_count"]) == (None, 0)
        assert found["credit_lines"][0]["credit"]["amount"] == "800.00"
        assert found["statements"][0]["credit"]["amount"] == "800.00"
        # A bundle holds the agreement with its targets.
        assert found["statements"][0]["bundle"] is None


def test_violations_of_the_period_that_still_hold(ledger: Ledger, client: Client) -> None:
    sla_id, other = ledger.agreement(1), ledger.agreement(2)
    for day in range(2):
        ledger.statement(sla_id, day)
    for day, first_window, kind in (
        (0, 1, "violation_closed"),
        (0, 5, "violation_opened"),
        (0, 7, "violation_withdrawn"),
        (1, 0, "violation_closed"),
    ):
        more = {"ended_by": "met"} if kind == "violation_closed" else {}
        more |= {"reason": "judged anew"} if kind == "violation_withdrawn" else {}
        ledger.violation(sla_id, first_window, day=day, kind=kind, **more)
    ledger.violation(other, 3, ended_by="met")
    found = summary(client, sla_id, period="2023-12-01/P1D")
    shown = [(each["opened"]["ns"], each["state"], each["closed"] is None) for each in found["violations"]]
    assert shown == [
        (str(FIRST_NS + 5 * HOUR_NS), "open", True),
        (str(FIRST_NS + HOUR_NS), "closed", False),
    ]


def test_lists_that_are_long_say_so(ledger: Ledger, client: Client) -> None:
    sla_id = ledger.agreement(1)
    objectives = [objective(name, 1, 2, "99", "breached") for name in ("availability", "ttft", "response")]
    name = ledger.statement(sla_id, objectives=objectives)
    missed = [
        ledger.violation(sla_id, window, objective=each["id"], ended_by="met")
        for each in objectives
        for window in range(24)
    ]
    for number, violation in enumerate([*missed, *[None] * 50]):
        ledger.credit_line(sla_id, name, number + 1, violation_id=violation)
    found = summary(client, sla_id)
    assert (len(found["violations"]), found["violation_count"]) == (50, 72)
    starts = [int(each["opened"]["ns"]) for each in found["violations"]]
    assert starts == sorted(starts, reverse=True)
    assert (len(found["credit_lines"]), found["credit_line_count"]) == (100, 122)


def test_latency_alone_shows_no_uptime(ledger: Ledger) -> None:
    found = seen_by(ledger, settled(ledger), frozenset({Scope.READ_AGREEMENTS, Scope.READ_LATENCY}))
    availability, ttft, _ = found["objectives"]
    assert (availability["good"], ttft["good"]) == (None, 9)
    assert set(found["bars"][0]["cells"]) == {"ttft", "response"}


def test_a_guest_of_another_agreement_learns_nothing(ledger: Ledger) -> None:
    sla_id, absent = settled(ledger), "0x" + "00" * 32
    said = []
    for asked in (sla_id, absent):
        with pytest.raises(NotFound) as caught:
            seen_by(ledger, asked, frozenset(Scope), sla_ids=frozenset({absent}))
        said.append(caught.value.message.replace(asked, "X"))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "query", ["", "sla_id=1", "sla_id=0x" + "AB" * 32, "sla_id=0x" + "00" * 32 + "&period=now", "token=x"]
)
def test_questions_that_cannot_be_asked(empty_client: Client, query: str) -> None:
    assert empty_client.get(f"/v1/embed/summary?{query}").status_code == 400


# --- pages -----------------------------------------------------------------------------------------


def policy(response: Any) -> dict[str, str]:
    directives = (item.strip().partition(" ") for item in response.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in directives}


def test_pages_load_from_this_server_alone(empty_client: Client) -> None:
    for path in ("/dashboard", "/embed?sla_id=0x" + "00" * 32):
        response = empty_client.get(path)
        assert response.status_code == 200
        found = policy(response)
        assert found["default-src"] == "'none'"
        assert (found["script-src"], found["style-src"], found["connect-src"]) == ("'self'",) * 3
        assert found["require-trusted-types-for"] == "'script'"
        assert found["frame-ancestors"] == "'none'"
        assert "unsafe" not in response.headers["content-security-policy"]
        assert not re.search(r"<script(?![^>]* src=)|style=|\son\w+=|https?://", response.text)


def test_only_named_pages_may_frame_it(ledger: Ledger) -> None:
    one, other = "0x" + "11" * 32, "0x" + "22" * 32
    embed = EmbedSettings.read({"SLA_LEDGER_EMBED_ANCESTORS": f"{PORTAL} {one}=https://one.example:8443"})
    with TestClient(app_over(ledger, embed=embed), base_url="http://127.0.0.1") as client:
        framed = client.get("/embed", params={"sla_id": one})
        assert policy(framed)["frame-ancestors"] == f"{PORTAL} https://one.example:8443"
        assert f'data-ancestors="{PORTAL} https://one.example:8443"' in framed.text
        assert policy(client.get("/embed", params={"sla_id": other}))["frame-ancestors"] == PORTAL
        # The operator's page and the API itself are framed by nobody.
        assert policy(client.get("/dashboard"))["frame-ancestors"] == "'none'"
        assert policy(client.get("/v1/agreements"))["frame-ancestors"] == "'none'"


@pytest.mark.parametrize("query", ["theme=pink", "locale=a", 'locale="><script>', "locale=de&token=x", "theme="])
def test_page_parameters_that_cannot_be_used(empty_client: Client, query: str) -> None:
    response = empty_client.get(f"/embed?sla_id=0x{'00' * 32}&{query}")
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert policy(response)["default-src"] == "'none'"


def test_theme_and_locale_stand_in_the_page(empty_client: Client) -> None:
    page = empty_client.get(f"/embed?sla_id=0x{'00' * 32}&theme=dark&locale=de-AT").text
    assert '<html lang="de-AT" data-theme="dark">' in page
    assert 'theme="dark" locale="de-AT"' in page


def test_files_are_tagged_by_their_content(empty_client: Client) -> None:
    assert "sla-dashboard.js" in FILES
    tags: set[str] = set()
    for name, (content, media_type) in FILES.items():
        response = empty_client.get(f"/embed/{name}")
        assert (response.content, response.headers["content-type"]) == (
            content,
            f"{media_type}; charset=utf-8",
        )
        again = empty_client.get(f"/embed/{name}", headers={"if-none-match": response.headers["etag"]})
        assert again.status_code == 304
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.headers["cross-origin-resource-policy"] == "cross-origin"
        assert response.headers["etag"] not in tags
        tags.add(response.headers["etag"])
    for name in ("nothing.js", "..%2Fpages.py", "pages.py"):
        assert empty_client.get(f"/embed/{name}").status_code == 404


def test_every_module_imports_what_is_served() -> None:
    for name, (content, media_type) in FILES.items():
        if media_type.startswith("text/javascript"):
            for imported in re.findall(r'(?:from|import) "\./([^"]+)"', content.decode()):
                assert imported in FILES, (name, imported)
            # Texts never become markup or code.
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", content.decode()
            )


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "'self'",
        "https://portal.example/",
        "https://portal.example/path",
        "https://*.example",
        "http://portal.example",
        "https://Portal.example",
        "https://portal.example:0",
        "https://portal.example:65536",
        "https://a;script-src",
        "https://a,https://b",
        "0x11=https://a.example",
        "0x" + "11" * 32 + "=",
        "data:",
    ],
)
def test_origins_that_are_none(text: str) -> None:
    with pytest.raises(SettingInvalid, match="SLA_LEDGER_EMBED_ANCESTORS"):
        EmbedSettings.read({"SLA_LEDGER_EMBED_ANCESTORS": text})


def test_origins_of_this_machine_may_be_plain() -> None:
    text = "http://127.0.0.1:9000 http://localhost http://[::1]:1 https://[2001:db8::1]"
    assert EmbedSettings.read({"SLA_LEDGER_EMBED_ANCESTORS": text}).of_all == tuple(text.split())
