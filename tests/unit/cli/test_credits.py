"""``sla-ledger export-credits`` as finance meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import SigningKey, save_key
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.store.database import SqliteDatabase
from ledger.wiring.marker import DATA_FORMAT
from tests.conformance.samples import (
    SeededRandomness,
    StepClock,
    agreement,
    line_issued,
    line_reversed,
    statement_id,
)

KEY = SigningKey(b"\x09" * 32)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with two credit lines of one day, one taken back, and one of the next in yen."""
    folder = tmp_path / "data"
    (folder / "keys").mkdir(parents=True)
    save_key(folder / "keys" / "log.key", KEY)
    (folder / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    database = SqliteDatabase(folder / "ledger.db", StepClock(), SeededRandomness(1))
    next_day = {"of": statement_id(day=1), "start_ns": "1703030400000000000", "currency": "JPY", "minor_units": "50"}
    events = [agreement(), line_issued(1), line_issued(2), line_reversed(2), line_issued(1, **next_day)]
    with database.begin() as tx:
        tx.events.append("any", events, expected_version=None)
    database.close()
    return folder


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["export-credits", *map(str, arguments)])
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def amount(minor_units: int, text: str) -> dict[str, str]:
    return {"minor_units": str(minor_units), "amount": text}


def totals(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_file_is_written_and_holds(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "credits.csv"
    code, out, _ = run(capfd, file, "--data", data, "--json")
    assert code == 0
    assert totals(out)["lines"] == 4
    assert totals(out)["totals"] == [
        {"currency": "JPY", "minor_units": "50", "amount": "50", "by_status": {"draft": amount(50, "50")}},
        {
            "currency": "USD",
            "minor_units": "1200",
            "amount": "12.00",
            "by_status": {"draft": amount(1200, "12.00"), "void": amount(0, "0.00")},
        },
    ]
    assert run(capfd, file, "--verify", "--json")[:2] == (0, out)
    assert file.stat().st_mode & 0o077 == 0
    code, _, err = run(capfd, file, "--data", data)
    assert (code, "exists" in err) == (2, True)


def test_the_standard_output_is_the_file(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "-", "--data", data, "--from", "2023-12-20")
    assert code == 0
    assert "1 lines" in err
    file = tmp_path / "piped.csv"
    file.write_bytes(out.encode())
    code, out, _ = run(capfd, file, "--verify")
    assert (code, out.splitlines()[-1].split()) == (0, ["JPY", "50", "50", "0", "0"])


def test_another_tenant_has_nothing(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capfd, tmp_path / "x.csv", "--data", data, "--tenant", "another", "--json")
    assert totals(out)["lines"] == 0


def test_a_changed_file_is_refused(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "credits.csv"
    run(capfd, file, "--data", data)
    file.write_bytes(file.read_bytes().replace(b"draft", b"void", 1))
    code, _, err = run(capfd, file, "--verify", "--json")
    assert (code, json.loads(err)["code"]) == (2, "export_invalid")


@pytest.mark.parametrize(
    "arguments", [["x.csv"], ["x.csv", "--data", "DIR", "--from", "yesterday"], ["x.csv", "--verify", "--data", "DIR"]]
)
def test_what_cannot_be_asked(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    given = [str(data) if each == "DIR" else each for each in arguments]
    given[0] = str(tmp_path / given[0])
    code, _, err = run(capfd, *given)
    assert code == 2
    assert err
    assert not Path(given[0]).exists()
