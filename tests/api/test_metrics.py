"""The metrics page: what promtool and Prometheus's own parser make of it, and who may read it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.meters import Meters
from ledger.app.reading import budget_board
from ledger.app.reading.budget_board import FRESH_S, SPEND_S, BudgetBoard
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.errors import Unavailable
from tests.api.filled import Ledger


def samples(client: TestClient[Any]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value for family in families for each in family.samples
    }


def requests(method: str, route: str, status: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    labels = (("method", method), ("route", route), ("status", str(status)))
    return "sla_ledger_http_requests_total", labels


def test_gauges_are_those_of_the_ledger(client: TestClient[Any], ledger: Ledger) -> None:
    assert samples(client)["sla_ledger_log_leaves", ()] == 0
    ledger.statement(ledger.agreement(1))
    with ledger.database.begin() as tx:
        tx.outbox.add(tx.events.at(1).id, "prove")
    found = samples(client)
    assert found["sla_ledger_log_leaves", ()] == 2
    assert found["sla_ledger_outbox_stages", (("state", "pending"),)] == 1
    assert found["sla_ledger_ready", ()] == 1


def test_shows_how_long_work_waits_and_the_log_is_unsigned(client: TestClient[Any], ledger: Ledger) -> None:
    ledger.statement(ledger.agreement(1))
    with ledger.database.begin() as tx:
        tx.outbox.add(tx.events.at(1).id, "prove")
    found = samples(client)
    assert found["sla_ledger_outbox_untold_seconds", (("stage", "prove"),)] > 0
    assert found["sla_ledger_outbox_untried_seconds", (("stage", "prove"),)] > 0
    assert found["sla_ledger_outbox_untold_seconds", (("stage", "anchor"),)] == 0
    assert found["sla_ledger_log_unsigned_seconds", ()] > 0
    with ledger.database.begin() as tx:
        assert tx.outbox.lease(2**62, 2**60, holder="a worker") is not None
    found = samples(client)
    assert found["sla_ledger_outbox_untold_seconds", (("stage", "prove"),)] == 0
    assert found["sla_ledger_outbox_untried_seconds", (("stage", "prove"),)] == 0
    assert found["sla_ledger_outbox_worked", (("stage", "prove"),)] == 1


def test_requests_are_counted_by_route_and_never_by_address(client: TestClient[Any], ledger: Ledger) -> None:
    sla_id = ledger.agreement(1)
    for _ in range(3):
        client.get(f"/v1/agreements/{sla_id}")
    client.get("/v1/no-such-thing")
    client.post("/v1/agreements/x")
    text = client.get("/metrics").text
    found = samples(client)
    assert found[requests("GET", "/v1/agreements/{sla_id}", 200)] == 3
    assert found[requests("GET", "", 404)] == 1
    assert sla_id not in text
    assert "no-such-thing" not in text


def test_a_database_that_does_not_answer_shows_no_size(client: TestClient[Any], ledger: Ledger, tmp_path: Path) -> None:
    ledger.database.close()
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    (tmp_path / "ledger.db").mkdir()
    found = samples(client)
    assert found["sla_ledger_ready", ()] == 0
    assert ("sla_ledger_log_leaves", ()) not in found


@pytest.mark.parametrize("database_away", [False, True])
def test_a_chain_whose_state_cannot_be_read_hides_nothing_else(ledger: Ledger, database_away: bool) -> None:
    def away() -> NoReturn:
        raise Unavailable("the database does not answer")

    health = Health(ledger.database, schema_state=away if database_away else lambda: ledger.schema, chain_status=away)
    found = health.check()
    assert found.ready is not database_away
    assert found.chain_error == "the database does not answer"
    assert found.database_error == (found.chain_error if database_away else None)
    text = Meters(health).text().decode()
    assert f"sla_ledger_ready {int(not database_away)}.0" in text
    assert "sla_ledger_chain_failures" not in text
    assert ("sla_ledger_log_leaves" in text) is not database_away


def test_promtool_finds_nothing_to_mend(client: TestClient[Any]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None and not os.environ.get("CI"):
        pytest.skip("promtool is not on this machine")
    assert promtool is not None, "CI needs promtool: install the package prometheus"
    text = client.get("/metrics").content
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def left(client: TestClient[Any]) -> dict[tuple[str, str, str], float]:
    return {
        tuple(dict(labels)[name] for name in ("tenant", "agreement", "objective")): value  # type: ignore[misc]
        for (name, labels), value in samples(client).items()
        if name == "sla_ledger_error_budget_remaining_ratio"
    }


def test_error_budgets_of_every_tenant_are_shown_by_what_is_left(client: TestClient[Any], ledger: Ledger) -> None:
    own, others = ledger.agreement(1), ledger.of_tenant("alice").agreement(2)
    for each, sla_id, bad in ((ledger, own, 0), (ledger.of_tenant("alice"), others, 1)):
        each.window(sla_id, good=9_999, bad=bad)
        each.statement(sla_id)
    found = left(client)
    # 99.95 % of 10000 may have 5 bad ones; one of them was.
    assert found["alice", others[2:14], "availability"] == pytest.approx(0.8)
    assert found["default", own[2:14], "availability"] == 1
    assert {objective for _, _, objective in found} == {"availability", "ttft", "response"}
    assert samples(client)["sla_ledger_error_budget_agreements_left_out", ()] == 0


class TestBudgetBoard:
    """A look costs no more than a moment, however many agreements there are."""

    @pytest.fixture
    def queries(self, ledger: Ledger) -> Queries:
        for number in range(5):
            sla_id = ledger.agreement(number)
            ledger.window(sla_id)
            ledger.statement(sla_id)
        return Queries(ledger.database, bundles=ledger, chain_status=lambda: ledger.chain)

    def board(self, queries: Queries, step_s: float) -> BudgetBoard:
        self.now_s = 0.0

        def now_s() -> float:
            self.now_s += step_s
            return self.now_s

        return BudgetBoard(queries, lambda: ["default"], now_s)

    def test_what_is_fresh_is_not_read_again(self, queries: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
        board, reads = self.board(queries, 0.001), []
        budgets = Queries.budgets

        def counted(self: Queries, *arguments: Any, **options: Any) -> Any:
            reads.append(arguments)
            return budgets(self, *arguments, **options)

        monkeypatch.setattr(Queries, "budgets", counted)
        assert len(board.look()) == len(board.look()) == 15
        assert len(reads) == 5
        self.now_s += FRESH_S
        board.look()
        assert len(reads) == 10

    def test_a_look_that_takes_long_goes_on_at_the_next_one(self, queries: Queries) -> None:
        # Each agreement takes longer than a look may.
        board = self.board(queries, SPEND_S * 0.6)
        seen = []
        for _ in range(6):
            seen.append(len({each.sla_id for each in board.look()}))
        assert seen == sorted(seen)
        assert seen[0] < 5
        assert seen[-1] == 5

    def test_of_too_many_agreements_it_says_how_many_are_left_out(
        self, queries: Queries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(budget_board, "MAX_AGREEMENTS", 3)
        board = self.board(queries, 0.001)
        assert len({each.sla_id for each in board.look()}) == 3
        assert board.left_out > 0

    def test_where_nothing_may_fail_one_failure_leaves_no_share(self) -> None:
        nothing = {"numerator": "0", "denominator": "1"}
        row = {"allowed": nothing, "remaining": nothing, "bad": 0}
        assert budget_board._left(row) == 1
        assert budget_board._left({**row, "bad": 1}) is None
