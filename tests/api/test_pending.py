"""Which periods are not closed, over REST: what each waits for, and nothing of other agreements."""

from __future__ import annotations

from typing import Any

from litestar.testing import TestClient

from ledger.app.access import Role
from tests.api.asking import World, bearer, client_of_world

client = client_of_world


def test_a_viewer_sees_what_the_periods_wait_for(client: TestClient[Any], world: World) -> None:
    sla_id = world.ledger.agreement(1)
    path = f"/v1/agreements/{sla_id}/pending-periods"
    found = client.get(path, headers=bearer(world.key(Role.OPERATIONS_VIEWER))).json()
    assert found["sla_id"] == sla_id
    assert found["periods"], found
    assert set(found["periods"][-1]) == {"period", "start", "end", "terms_version", "watermark", "waits_for", "until"}
    assert {each["watermark"] for each in found["periods"]} == {None}
    assert {each["waits_for"] for each in found["periods"]} <= {"end", "grace", "schedule", "request"}


def test_of_an_agreement_that_is_not_there_nothing_is_said(client: TestClient[Any], world: World) -> None:
    answer = client.get(f"/v1/agreements/0x{'00' * 32}/pending-periods", headers=bearer(world.key(Role.OPERATOR)))
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
