"""What a write does before its transaction begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ledger.app.commands import Commands
from ledger.attest.crypto.signing import verify
from ledger.errors import SlaLedgerError
from tests.unit.app.conftest import Desk


def test_proving_keys_of_an_amendment_are_made_while_nobody_waits_to_write(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    made, begin = type(desk.attestor).circuit_ids, type(desk.database).begin

    def recorded(step: str, do: Any) -> Any:
        def doing(*given: Any, **named: Any) -> Any:
            steps.append(step)
            return do(*given, **named)

        return doing

    monkeypatch.setattr(type(desk.attestor), "circuit_ids", recorded("keys", made))
    monkeypatch.setattr(type(desk.database), "begin", recorded("begin", begin))
    unused = cast(Any, SimpleNamespace(require=lambda _: None))
    commands = Commands(desk.database, desk.attestor, unused, unused, verify, desk.clock, unused)
    # Refused in the transaction: nothing was registered that could be amended.
    with pytest.raises(SlaLedgerError):
        commands.amend(desk.attestor.sla_id(desk.agreement), desk.agreement.document, customer_signature=b"any")
    assert steps == ["keys", "begin"]
