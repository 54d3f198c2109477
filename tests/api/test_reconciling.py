"""Finance reconciles a month over several agreements by docs/credits.md alone: restated, claimed, taken back."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ledger.app.access import Role
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services
from tests.api.settling import As, Client, work
from tests.support.deployment import example_terms

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "credits.md").read_text(encoding="utf-8")
DAY = datetime.now(UTC).date() - timedelta(days=20)
MONTH = {"from": str(DAY), "to": str(DAY + timedelta(days=2))}


def agreed(services: Services, operator: Client, mode: str) -> str:
    """An agreement whose credits are a share of what is charged; its sla_id."""
    parties, terms = DemoParties(services.keyring), example_terms()
    compensation = {key: value for key, value in terms["compensation"].items() if key != "base"}
    terms |= {
        "nonce": "0x" + services.randomness.bytes(32).hex(),
        "compensation": {**compensation, "charges": {"of": "period"}},
        "effective": {"from": str(DAY - timedelta(days=5)), "until": str(DAY + timedelta(days=40))},
        "settlement": {"mode": mode, "deadline": {"kind": "days_after_period", "count": 30}},
    }
    document = parties.signed(parties.with_keys(terms))
    sla_id: str = operator.post("/v1/agreements", json={"document": document}).json()["sla_id"]
    return sla_id


def hand_in(operator: Client, sla_id: str, day: int, failed_hours: tuple[int, ...], name: str = "r") -> None:
    """A log of a day in which one of two requests failed in some hours."""
    at = DAY + timedelta(days=day)
    rows = [
        {"request_id": f"{name}-{hour}-{n}", "started_at": f"{at}T{hour:02}:10:00Z", "service": "example-chat"}
        | ({"error_code": 503} if n else {"error_code": None, "ttft_s": 0.2, "e2e_s": 1.0})
        for hour in failed_hours
        for n in range(2)
    ]
    span = f"from={at}T00:00:00Z&to={at + timedelta(days=1)}T00:00:00Z"
    log = "".join(json.dumps(row) + "\n" for row in rows)
    headers = {"content-type": "application/x-ndjson"}
    taken = operator.post(f"/v1/observations?sla_id={sla_id}&{span}", content=log, headers=headers)
    assert taken.status_code == 200, taken.text


def settle(services: Services, operator: Client, finance: Client, sla_id: str, day: int, charged: str) -> None:
    first = DAY + timedelta(days=day)
    line = {"service": "example-chat", "kind": "recurring", "amount": charged, "currency": "USD"}
    body = {"period": f"{first}/P1D", "lines": [line]}
    assert finance.post(f"/v1/agreements/{sla_id}/charges", json=body).status_code == 202
    assert operator.post(f"/v1/agreements/{sla_id}/periods/{first}/close").status_code == 202
    work(services)


def reconciled(client: Client) -> dict[str, Any]:
    """What the page's lines find."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    def get(path: str, **query: str) -> Any:
        response = client.get(path, params={"limit": "2", **query} if "claims" not in path else query)
        assert response.status_code == 200, response.text
        return response.json()

    names: dict[str, Any] = {"get": get, "month": MONTH, "Counter": Counter, "defaultdict": defaultdict}
    exec(code, names)  # the page's own lines
    return names


def test_a_month_meets_to_the_cent(services: Services, as_: As) -> None:
    operator, finance, customer = as_(Role.OPERATOR), as_(Role.FINANCE), as_(Role.CUSTOMER_ADMIN)
    plain, restated, claimed = (agreed(services, operator, mode) for mode in ("automatic", "automatic", "claim"))
    for sla_id in (plain, restated, claimed):
        for day, charged in enumerate(("1000.01", "333.33", "77.77")):
            hand_in(operator, sla_id, day, (3, 9, 15))
            settle(services, operator, finance, sla_id, day, charged)
    # Late facts restate one, and a line of another is taken back.
    hand_in(operator, restated, 0, (20,), name="late")
    work(services)
    first = finance.get("/v1/credit-lines", params={"sla_id": plain, "limit": 1, **MONTH}).json()["items"][0]
    reverse = f"/v1/credit-lines/{first['id']}/reverse"
    headers = {"idempotency-key": "once"}
    assert finance.post(reverse, json={"reason": "paid twice"}, headers=headers).status_code == 200
    (statement,) = [
        each["id"]
        for each in finance.get("/v1/statements", params={"sla_id": claimed, **MONTH}).json()["items"]
        if each["period"].startswith(str(DAY))
    ]
    missed = customer.get(f"/v1/statements/{statement}/claims").json()["items"][0]["violation_id"]
    file = f"/v1/statements/{statement}/claims"
    assert customer.post(file, json={"violation_id": missed}, headers=headers).status_code == 200

    found = reconciled(finance)
    owed, points = found["owed"], found["open_points"]
    # Half failed on both days: half of 1000.01 and of 333.33, rounded half to even.
    both = {str(DAY): 50000, str(DAY + timedelta(days=1)): 16666}
    credit = int(first["credit"]["minor_units"])
    by_agreement = {
        sla_id: {period[:10]: amount for (of, period, _), amount in owed.items() if of == sla_id}
        for sla_id in (plain, restated, claimed)
    }
    assert by_agreement[plain] == both | {str(DAY): both[str(DAY)] - credit}
    assert by_agreement[restated] == both
    lines = finance.get("/v1/credit-lines", params={"sla_id": restated, "limit": 100, **MONTH}).json()["items"]
    assert {line["statement_id"].rpartition(".")[2] for line in lines} == {"v1", "v2"}
    (line,) = finance.get("/v1/credit-lines", params={"sla_id": claimed, **MONTH}).json()["items"]
    paid = int(line["credit"]["minor_units"])
    assert by_agreement[claimed] == {str(DAY): paid}
    taken_back = [point for point in points if isinstance(point[1], list)]
    assert [(reasons, amount) for _, reasons, amount in taken_back] == [(["paid twice"], credit)]
    unclaimed = [amount for _, status, amount in points if status == "open"]
    assert len(points) == len(taken_back) + len(unclaimed)
    assert paid + sum(unclaimed) == sum(both.values())
    # The file of the same month has the same total.
    text = finance.get("/v1/exports/credits.csv", params=MONTH).text
    (total,) = [row.split(",") for row in text.splitlines() if row.startswith("total,")]
    assert int(total[9]) == sum(owed.values())
