"""The main job records violations and credit lines, and finance's file reconciles with the statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.app.billing.exports import CreditExportReader
from ledger.app.ports.store import Transaction
from ledger.cli.main import main
from ledger.resources import resource_dir
from ledger.store.database import SqliteDatabase
from ledger.wiring.clock import SystemClock, SystemRandomness

pytestmark = pytest.mark.slow

EXAMPLES = resource_dir("examples")


@pytest.fixture(scope="module", params=["public", "committed"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Path:
    """A data directory of the main job; the credit is shown on chain, or not."""
    made = tmp_path_factory.mktemp("credits")
    terms = made / "agreement.yaml"
    text = (EXAMPLES / "agreement.yaml").read_text()
    terms.write_text(text.replace("credit_visibility: public", f"credit_visibility: {request.param}"))
    requests, data = str(EXAMPLES / "requests.ndjson"), made / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
        assert main(["demo", "--requests", requests, "--agreement", str(terms), "--out", str(data), "--json"]) == 0
    return data


@pytest.fixture
def ledger(folder: Path) -> Iterator[Transaction]:
    database = SqliteDatabase(folder / "ledger.db", SystemClock(), SystemRandomness())
    with database.read() as tx:
        yield tx
    database.close()


def test_every_line_has_its_violation_and_all_sum_to_the_credit(ledger: Transaction) -> None:
    (statement,) = ledger.views.statements()
    violations = {row["id"]: row for row in ledger.views.violations(limit=100)}
    lines = ledger.views.credit_lines(limit=100)
    assert violations
    assert {line["violation_id"] for line in lines} == set(violations)
    assert {row["state"] for row in violations.values()} == {"closed"}
    assert sum(line["minor_units"] for line in lines) == statement["credit"]["minor_units"] > 0
    assert {line["status"] for line in lines} == {"issued"}
    assert {line["proof_ref"] for line in lines} == {statement["attestation"]["proof_hash"]}


def test_the_file_has_the_same_cents(folder: Path, ledger: Transaction, tmp_path: Path) -> None:
    (statement,) = ledger.views.statements()
    file = tmp_path / "credits.csv"
    assert main(["export-credits", str(file), "--data", str(folder)]) == 0
    with file.open("rb") as source:
        reader = CreditExportReader(source)
        found = list(reader.lines())
    assert reader.totals is not None
    credit = statement["credit"]
    assert reader.totals.minor_units == {credit["currency"]: credit["minor_units"]}
    assert {line["anchor_tx"] for line in found} == {statement["anchor"]["tx_hash"]}
    assert main(["fsck", "--data", str(folder)]) == 0
