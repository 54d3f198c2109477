"""What somebody with few rights tries in order to learn more: ids of others, cursors written by hand, narrow tokens.

Nothing that may not be seen may look different from what does not exist, and no figure may come by a side door.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from litestar.testing import TestClient

from api.parameters import encode_cursor
from ledger.app.access import AGREEMENT_SCOPES, METRIC_SCOPES, Role, Scope
from tests.api.asking import ABOUT_ONE, GRAPHQL, World, ask, bearer, client_of_world, every_route
from tests.api.filled import Ledger

Client = TestClient[Any]
PAIRS = ("?sla_id={sla_id}", "?sla_id={sla_id}&period=2023-12-01/P1D", "?statement_id={statement_id}")
PERIOD = "?period=2023-12-01/P1D"
COUNTS = {"good": 8_642_097, "valid": 8_642_311, "bad": 214, "worst": 7_531_086}
"""Figures that occur nowhere else; 214 is looked for as a member's value alone."""
client = client_of_world


def ids_of(sla_id: str) -> dict[str, str]:
    """The ids that things of an agreement have, whether they are there or not."""
    short = sla_id[2:14]
    return {
        "sla_id": sla_id,
        "statement_id": f"{short}.2023-12-01.v1",
        "violation_id": f"{short}.2023-12-01.availability.w3",
        "line_id": f"{short}.2023-12-01.v1.l0001",
        "exclusion_id": "release-7",
        "first": "2023-12-01",
    }


GHOST = ids_of("0x" + hashlib.sha256(b"ghost").hexdigest())


def filled(ledger: Ledger, number: int) -> dict[str, str]:
    """An agreement with everything that can be asked about; its ids."""
    sla_id = ledger.agreement(number)
    name = ledger.statement(
        sla_id,
        objectives=[
            {"id": "availability", "good": COUNTS["good"], "valid": COUNTS["valid"], "target": "99.95", "state": "met"}
        ],
        trace={"tiers": [{"good": COUNTS["good"], "valid": COUNTS["valid"]}]},
    )
    ledger.attest(name, sla_id)
    ledger.bundles[name] = f'{{"good":{COUNTS["good"]}}}'.encode()
    worst = {"window": 3, "good": COUNTS["worst"], "valid": COUNTS["valid"]}
    missed = ledger.violation(
        sla_id, ended_by="met", good=COUNTS["worst"], valid=COUNTS["valid"], bad=COUNTS["bad"], worst=worst
    )
    ledger.credit_line(sla_id, name, violation_id=missed)
    ledger.window(sla_id, good=COUNTS["good"], bad=COUNTS["bad"])
    return ids_of(sla_id)


def strangers(world: World, own: str) -> dict[str, str]:
    """Who may see one agreement of the tenant, or nothing of it at all, and as much of that as can be."""
    maker = world.app._authentication.verify([f"Bearer {world.key(Role.OPERATOR)}".encode()], [])
    guest = world.guests.make(maker, [own], ttl_s=300, origin="https://p.example", scopes=AGREEMENT_SCOPES)
    return {
        "a guest": guest.text,
        "a key for one agreement": world.key(Role.OPERATOR, sla_ids=[own]),
        "a key of another tenant": world.key(Role.CUSTOMER_ADMIN, "another"),
        "a token of another tenant": world.token(roles=["customer_admin"], tenant="another"),
    }


def neutral(response: Any, values: dict[str, str]) -> tuple[int, str]:
    """An answer without the names that were asked for and what every answer has of its own."""
    text = response.text
    for name in sorted(values.values(), key=len, reverse=True):
        text = text.replace(name, "NAME")
    # Long paths are cut short where an error repeats them.
    return response.status_code, re.sub(f"(0x)?{values['sla_id'][2:14]}[0-9a-f]*", "SHORT", text)


def test_what_may_not_be_seen_is_answered_like_what_is_not_there(world: World, client: Client) -> None:
    own, hidden = filled(world.ledger, 1), filled(world.ledger, 2)
    world.ledger.sign_checkpoint()
    reached = 0
    for who, text in strangers(world, own["sla_id"]).items():
        for method, path, _ in every_route(world.app):
            for query in ("", PERIOD, *PAIRS) if method == "GET" else ("",):
                if "{" not in path + query:
                    continue
                answers = []
                for values in (hidden, GHOST):
                    response = ask(client, method, path, values, bearer(text), query.format(**values))
                    answers.append(neutral(response, values))
                assert answers[0] == answers[1], (who, method, path, query)
                assert answers[0][0] < 500
                reached += answers[0][0] == 404
    assert reached > 60


def test_graphql_answers_alike_for_both(world: World, client: Client) -> None:
    own, hidden = filled(world.ledger, 1), filled(world.ledger, 2)
    for who, text in strangers(world, own["sla_id"]).items():
        if who == "a guest":
            continue
        found = []
        for values in (hidden, GHOST):
            variables = {"sla": values["sla_id"], "statement": values["statement_id"]}
            asked = {"query": ABOUT_ONE, "variables": variables}
            found.append(neutral(client.post("/graphql", json=asked, headers=bearer(text)), values))
        assert found[0] == found[1], who
        assert found[0][1].count("NOT_FOUND") >= 4
        listed = client.post("/graphql", json={"query": GRAPHQL}, headers=bearer(text)).text
        assert hidden["sla_id"][2:14] not in listed


@pytest.mark.parametrize("role", Role)
def test_a_key_for_some_agreements_changes_nothing_whatever_its_role(world: World, client: Client, role: Role) -> None:
    """Neither of its own agreement nor of another: claims, lines, exclusions, charges, signatures, terms."""
    own, hidden = filled(world.ledger, 1), filled(world.ledger, 2)
    everything = bearer(world.key(Role.OPERATOR))
    before = client.get("/v1/events", headers=everything).json()["log_size"]
    limited = bearer(world.key(role, sla_ids=[own["sla_id"]]))
    changes = [path for method, path, _ in every_route(world.app) if method != "GET"]
    changes = sorted(set(changes) - {"/graphql", "/v1/embed/tokens"})
    for path in changes:
        answers = [ask(client, "POST", path, values, limited) for values in (own, hidden, GHOST)]
        assert {answer.status_code for answer in answers} == {403}, path
        assert len({answer.json()["data"]["scope"] for answer in answers}) == 1
    assert client.get("/v1/events", headers=everything).json()["log_size"] == before
    # The same requests with all rights are not refused for want of them.
    assert 403 not in {ask(client, "POST", path, GHOST, everything).status_code for path in changes}
    query = {"query": "{ __schema { mutationType { name } } }"}
    assert client.post("/graphql", json=query, headers=everything).json()["data"]["__schema"]["mutationType"] is None


LISTS = {
    "/v1/agreements": ("agreements", "sla_id"),
    "/v1/statements": ("statements//newest", "statement_id"),
    "/v1/credits": ("credits//newest", "statement_id"),
    "/v1/violations": ("violations///", "violation_id"),
    "/v1/credit-lines": ("credit-lines///", "line_id"),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_written_by_hand_tells_nothing(world: World, client: Client, path: str) -> None:
    """It may name anything; whether that exists elsewhere, and where it would stand, must not show."""
    own, hidden = filled(world.ledger, 1), filled(world.ledger, 2)
    listing, name = LISTS[path]
    for who, text in strangers(world, own["sla_id"]).items():
        answers = []
        for values in (hidden, GHOST):
            cursor = encode_cursor(listing, values[name])
            answers.append(client.get(path, params={"cursor": cursor}, headers=bearer(text)))
        assert [answer.status_code for answer in answers] == [400, 400], who
        assert answers[0].json()["code"] == "cursor_invalid"
        assert neutral(answers[0], hidden) == neutral(answers[1], GHOST)
    # The name of the list is right: of one's own it goes on.
    cursor = encode_cursor(listing, own[name])
    key = world.key(Role.OPERATOR, sla_ids=[own["sla_id"]])
    assert client.get(path, params={"cursor": cursor}, headers=bearer(key)).json()["items"] == []


def test_a_list_of_one_agreement_is_not_continued_after_another_one(world: World, client: Client) -> None:
    own, other = filled(world.ledger, 1), filled(world.ledger, 2)
    cursor = encode_cursor(f"statements/{own['sla_id']}/newest", other["statement_id"])
    asked = {"sla_id": own["sla_id"], "cursor": cursor}
    response = client.get("/v1/statements", params=asked, headers=bearer(world.key(Role.OPERATOR)))
    assert (response.status_code, response.json()["code"]) == (400, "cursor_invalid")


def counts_in(text: str) -> list[str]:
    found = [name for name in ("good", "valid", "worst") if str(COUNTS[name]) in text]
    return found + (["bad"] if re.search(rf'"bad": ?"?{COUNTS["bad"]}\b', text) else [])


def test_counts_come_by_no_side_door(world: World, client: Client) -> None:
    """Not in traces, explanations, bundles, budgets or deltas, for whoever has every other right to an agreement."""
    values = filled(world.ledger, 1)
    world.ledger.sign_checkpoint()
    scopes = " ".join(sorted(AGREEMENT_SCOPES - set(METRIC_SCOPES.values())))
    some = bearer(world.token(roles=None, tenant="default", scope=scopes))
    everything = bearer(world.key(Role.OPERATOR))
    shown = set()
    for method, path, _ in every_route(world.app):
        for query in ("", PERIOD, *PAIRS, "?windows=all") if method == "GET" else ("",):
            asked = query.format(**values)
            response = ask(client, method, path, values, some, asked)
            assert not counts_in(response.text), (path, asked)
            shown.update(
                counts_in(ask(client, method, path, values, everything, asked).text) if method == "GET" else ()
            )
    assert shown == set(COUNTS)
    variables = {"sla": values["sla_id"], "statement": values["statement_id"]}
    for asked_for in ({"query": GRAPHQL}, {"query": ABOUT_ONE, "variables": variables}):
        assert not counts_in(client.post("/graphql", json=asked_for, headers=some).text)
        assert counts_in(client.post("/graphql", json=asked_for, headers=everything).text)


@pytest.mark.parametrize("path", ["/v1/credit-lines/{line_id}/reverse", "/v1/statements/{statement_id}/claims"])
def test_who_may_change_credits_and_not_read_them_gets_no_amount(world: World, client: Client, path: str) -> None:
    values = filled(world.ledger, 1)
    scope = f"{Scope.WRITE_CREDITS} {Scope.WRITE_CLAIMS} {Scope.READ_AGREEMENTS}"
    token = world.token(roles=None, tenant="default", scope=scope)
    response = ask(client, "POST", path, values, bearer(token))
    assert (response.status_code, response.json()["data"]) == (403, {"scope": "sla:read:credits"})


def test_a_validator_of_more_rights_does_not_confirm_an_answer_of_fewer(world: World, client: Client) -> None:
    values = filled(world.ledger, 1)
    paths = [path for method, path, _ in every_route(world.app) if method == "GET" and "{" in path]
    few = bearer(world.key(Role.OPERATIONS_VIEWER))
    compared = 0
    for path in paths:
        for query in ("", PERIOD):
            full = ask(client, "GET", path, values, bearer(world.key(Role.CUSTOMER_ADMIN)), query)
            if "etag" in full.headers and "/log/" not in path and not path.startswith(("/embed", "/v1/checkpoints")):
                asked = ask(client, "GET", path, values, few | {"if-none-match": full.headers["etag"]}, query)
                assert asked.status_code != 304, path
                compared += 1
    assert compared >= 5
