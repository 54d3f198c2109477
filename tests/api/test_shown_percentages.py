"""What the API shows of a period of which 1 of 25,000 requests failed, and of one of which nothing was seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.filled import FIRST, Ledger, objective

PERIOD = f"{FIRST}/P1D"
QUERY = """query ($id: ID!) {
  statement(id: $id) { objectives { attainmentPercent } }
  slaReport(customerId: "default", timeWindow: {from: "2023-12-01T00:00:00Z", to: "2023-12-02T00:00:00Z"}) {
    uptimePercent errorRatePercent
  }
}"""


def shares(value: Any, name: str = "") -> Iterator[str | None]:
    """All shares of an answer that are good, wherever they stand."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from shares(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from shares(each, name)
    elif name in ("attainment_percent", "attainmentPercent", "uptimePercent"):
        yield value


def answers(client: TestClient[Any], sla_id: str, statement: str) -> dict[str, Any]:
    paths = {
        "statement": f"/v1/statements/{statement}",
        "statements": "/v1/statements",
        "windows": f"/v1/windows?sla_id={sla_id}&period={PERIOD}",
        "summary": f"/v1/embed/summary?sla_id={sla_id}",
        "budgets": f"/v1/agreements/{sla_id}/budgets?period={PERIOD}&window=PT1H",
    }
    found = {name: client.get(path) for name, path in paths.items()}
    found["graphql"] = client.post("/graphql", json={"query": QUERY, "variables": {"id": statement}})
    assert {name: response.status_code for name, response in found.items()} == dict.fromkeys(found, 200)
    return {name: response.json() for name, response in found.items()}


def test_metagraphed_1796_no_answer_shows_100_percent_of_what_is_not_all(
    ledger: Ledger, client: TestClient[Any]
) -> None:
    sla_id = ledger.agreement(1)
    ledger.window(sla_id, good=24_999, bad=1)
    met = objective("availability", 24_999, 25_000, "99.95", "met")
    found = answers(client, sla_id, ledger.statement(sla_id, objectives=[met]))
    assert "errors" not in found["graphql"]
    for name in ("statement", "statements", "windows", "summary", "graphql"):
        assert set(shares(found[name])) == {"99.9960"}, name
    # What failed is no more than it was either.
    assert found["graphql"]["data"]["slaReport"]["errorRatePercent"] == "0.0040"
    (availability, *_) = found["budgets"]["budgets"]
    assert (availability["bad"], availability["burnt"]["decimal"]) == (1, "0.080000")


def test_uptime_kuma_6475_of_a_period_that_nobody_saw_no_answer_shows_a_share(
    ledger: Ledger, client: TestClient[Any]
) -> None:
    sla_id = ledger.agreement(1)
    nothing = objective("availability", 0, 0, "99.95", "withheld")
    unseen = {"state": "withheld", "observed": 0, "excluded": 0, "idle": 0, "objectives": [nothing], "credit": None}
    found = answers(client, sla_id, ledger.statement(sla_id, **unseen))
    for name in ("statement", "statements", "summary", "graphql"):
        assert set(shares(found[name])) == {None}, name
    assert found["windows"]["items"] == []


@pytest.mark.parametrize("failed", [0, 1, 999_999, 1_000_000])
def test_only_where_nothing_failed_is_it_100_percent(ledger: Ledger, client: TestClient[Any], failed: int) -> None:
    sla_id = ledger.agreement(1)
    ledger.window(sla_id, good=10**6 - failed, bad=failed)
    (window,) = client.get(f"/v1/windows?sla_id={sla_id}&period={PERIOD}").json()["items"]
    assert (window["objectives"][0]["attainment_percent"] == "100.0000") is (failed == 0)
