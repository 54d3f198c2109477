"""``sla-ledger budget`` as an operator meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import SigningKey, save_key
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import agreement_stream
from ledger.store.database import SqliteDatabase
from ledger.wiring.marker import DATA_FORMAT
from tests.conformance.samples import SLA_ID, SeededRandomness, StepClock, agreement, window


def judged(folder: Path, *windows: NewEvent) -> Path:
    """A new data directory with the sample agreement and these windows."""
    (folder / "keys").mkdir(parents=True)
    save_key(folder / "keys" / "log.key", SigningKey(b"\x09" * 32))
    (folder / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    database = SqliteDatabase(folder / "ledger.db", StepClock(), SeededRandomness(1))
    with database.begin() as tx:
        tx.events.append(agreement_stream(SLA_ID), [agreement()], expected_version=None)
        tx.events.append("any", windows, expected_version=None)
    database.close()
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return judged(tmp_path / "data", window(0, good=3999, bad=1), window(1, good=1998, bad=2))


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["budget", *map(str, arguments)])
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def shown(capfd: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, _ = run(capfd, *arguments, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_what_is_left_and_how_fast_it_goes(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = shown(capfd, "--data", data, "--period", "2023-12-19/P1D", "--window", "PT1H")
    assert found["judged_to"] == "2023-12-19T02:00:00Z"
    budget = next(each for each in found["budgets"] if each["id"] == "availability")
    # 99.95 % of 6,000 leave 3, and 3 failed: all of it is gone, and nothing more than that.
    assert (budget["bad"], budget["remaining"], budget["exhausted"]) == (
        3,
        {"numerator": "0", "denominator": "1"},
        False,
    )
    (burn,) = budget["burns"]
    assert burn["rate"] == {"numerator": "2", "denominator": "1"}
    assert (burn["exhaustion"], burn["exhausted_at"]) == ("expected", "2023-12-19T02:00:00Z")


def test_people_read_a_table(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, SLA_ID, "--data", data, "--period", "2023-12-19/P1D", "--window", "PT1H,PT24H")
    assert code == 0
    assert "100.00 %" in out
    assert "at 2023-12-19T02:00:00Z" in out
    assert "go on as they did" in err


def test_metagraphed_1796_a_budget_that_is_not_gone_is_not_shown_as_gone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # 0.05 % of 50,000,000 are 25,000, of which one is left: 99.996 % are burnt.
    data = judged(tmp_path / "data", window(0, good=50_000_000 - 24_999, bad=24_999))
    _, out, _ = run(capfd, SLA_ID, "--data", data, "--period", "2023-12-19/P1D")
    line = next(line for line in out.splitlines() if line.startswith("availability"))
    assert line.split()[1:] == ["99.95", "%", "24999", "50000000", "requests", "25000", "1", "99.99", "%"]


def test_a_check_fails_where_a_budget_is_exhausted(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chosen = ("--data", data, "--period", "2023-12-19/P1D", "--check")
    assert run(capfd, *chosen)[0] == 0
    database = SqliteDatabase(data / "ledger.db", StepClock(), SeededRandomness(2))
    with database.begin() as tx:
        tx.events.append("any", [window(2, good=0, bad=1)], expected_version=None)
    database.close()
    assert run(capfd, *chosen)[0] == 1


def test_what_cannot_be_used_is_said(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (("--window", "1h"), ("--period", "2023-12-19/P1M"), ("--window", ",".join(["PT1H"] * 11))):
        code, _, err = run(capfd, "--data", data, *wrong)
        assert code == 2, wrong
        assert wrong[0].strip("-") in err
    assert run(capfd, "--data", data.parent)[0] == 2
