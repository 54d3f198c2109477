"""What commands print of a day on which 1 of 25,000 requests failed: 99.996 %, and nowhere 100 % or 0 failed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger.cli.main import main
from tests.unit.app.conftest import log, make_desk, row
from tests.unit.cli.test_explain import settled_day
from tests.unit.domain.samples import EXAMPLES

REQUESTS = 25_000


@pytest.fixture(scope="module")
def day() -> bytes:
    return log(*(row(f"r{n}", error_code=500 if n == 7 else None) for n in range(REQUESTS)))


def printed(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(each) for each in arguments]) == 0
    return capfd.readouterr().out


@pytest.mark.long
def test_metagraphed_1796_settle_and_explain_show_no_100_percent(
    day: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.ndjson").write_bytes(day)
    agreement = EXAMPLES / "agreement.yaml"
    settled = printed(capfd, "settle", "--agreement", agreement, "--requests", tmp_path / "log.ndjson")
    (line,) = (line for line in settled.splitlines() if line.startswith("availability"))
    assert "24999/25000" in line
    assert "99.9960 %" in line
    assert "100" not in line
    (tmp_path / "data").mkdir()
    name = settled_day(tmp_path / "data", (day, make_desk().period.interval))
    told = printed(capfd, "explain", name, "--data", tmp_path / "data")
    counted = re.findall(r"counted: (\S+) requests \((\d+) bad\), (\S+) %", told)
    assert counted[0] == ("24999/25000", "1", "99.9960")
    # All that did not fail was quick, so a figure of 100 % is exact.
    assert {percent for counts, _, percent in counted[1:]} == {"100.0000"}
    assert {counts for counts, _, _ in counted[1:]} == {"24999/24999"}
