"""A claim and another version of its statement at the same time, on PostgreSQL: whichever is first, both count."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.app.billing import claims as use_case
from ledger.app.billing.claims import Filed
from tests.support.postgres import ROLE_PREFIX, SequencedAfterCommit
from tests.unit.app.conftest import Desk, row
from tests.unit.app.test_claims import by_claim, claims, name
from tests.unit.app.test_restating import close, failed, hand_in, owed, settle, statements


@pytest.fixture
def desk(postgres_url: str) -> Iterator[Desk]:
    """Two hours failed on a day of an agreement that settles by claim; its statement is issued."""
    desk = by_claim()
    database = SequencedAfterCommit(postgres_url, desk.clock, desk.randomness, role_prefix=ROLE_PREFIX)
    desk.database = database  # type: ignore[assignment]
    hand_in(desk, row("a"), failed("b", 3), failed("c", 10))
    close(desk)
    yield desk
    database.close()


def test_a_version_that_is_issued_meanwhile_knows_of_the_claim(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed, file_claims = name(desk), use_case.file_claims
    hand_in(desk, *(failed(f"late{n}", 10) for n in range(6)))
    restating = threading.Thread(target=settle, args=(desk,))

    def meanwhile(*given: Any) -> tuple[Filed, ...]:
        restating.start()
        restating.join(3)
        return file_claims(*given)

    monkeypatch.setattr(use_case, "file_claims", meanwhile)
    filed = claims(desk).file(claimed, request="k1")
    restating.join(60)
    assert [claim["statement_id"] for claim in filed] == [claimed, claimed]
    first, second = statements(desk)
    assert [first["statement_version"], second["statement_version"]] == [1, 2]
    assert owed(desk) == int(second["credit"]["minor_units"])
    credited = {each.violation_id: each.minor_units for each in claims(desk).of(name(desk))}
    with desk.database.read() as tx:
        entered = dict.fromkeys(credited, 0)
        for line in tx.views.credit_lines(limit=99):
            entered[line["violation_id"]] += line["minor_units"]
    assert entered == credited
