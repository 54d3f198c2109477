"""Late facts over every storage: judged and settled by two workers at a time, restated once."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from ledger.errors import SlaLedgerError
from tests.conformance.conftest import AnyDatabase
from tests.unit.app.conftest import Desk, make_desk, row
from tests.unit.app.test_restating import at_the_end, failed, hand_in, statements
from tests.unit.app.test_stages import close as close_with
from tests.unit.app.test_stages import runner


def desk_over(database: AnyDatabase) -> Desk:
    desk: Any = at_the_end(make_desk())
    return replace(desk, database=database)


def work(desk: Desk, workers: int = 1) -> list[SlaLedgerError]:
    """So many workers at a time until nothing is due; what they ended with."""
    raised: list[SlaLedgerError] = []

    def one() -> None:
        try:
            runner(desk).run_until_idle(time.sleep)
        except SlaLedgerError as error:
            raised.append(error)

    threads = [threading.Thread(target=one) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return raised


def test_two_workers_restate_once(database: AnyDatabase) -> None:
    desk = desk_over(database)
    hand_in(desk, row("a"), failed("b", 3))
    close_with(desk)
    assert work(desk) == []
    batches = [hand_in(desk, failed(name, 10)) for name in ("c", "d")]
    assert work(desk, workers=2) == []
    first, second = statements(desk)
    assert second["restates"]["statement_id"] == first["statement_id"]
    assert second["restates"]["facts"] == [batch.receipt.event_id for batch in batches]
    with database.read() as tx:
        assert [each["id"] for each in tx.views.statements_page(newest=True, limit=9)] == [second["statement_id"]]
        owed = sum(line["minor_units"] for line in tx.views.credit_lines(limit=99))
        stages = [(entry.stage, entry.state) for entry in tx.outbox.entries(states=["pending", "parked"], limit=99)]
    assert owed == int(second["credit"]["minor_units"])
    # Proving is somebody else's: one proof for each version.
    assert stages == [("prove", "pending")] * 2
