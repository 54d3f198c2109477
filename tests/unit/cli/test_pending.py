"""``sla-ledger pending`` as an operator meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.cli.main import main
from tests.conformance.samples import SLA_ID, window
from tests.unit.cli.test_budget import judged


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return judged(tmp_path / "data", window(0, good=1, bad=0))


def test_an_operator_sees_what_each_period_waits_for(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", "--data", str(data)]) == 0
    out = capfd.readouterr().out
    assert "source has got to" in out
    assert "nothing declared" in out


def test_the_document_has_the_same(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", SLA_ID, "--data", str(data), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["sla_id"] == SLA_ID
    assert found["periods"]
    for each in found["periods"]:
        assert set(each) == {"period", "start", "end", "terms_version", "watermark", "waits_for", "until"}
        assert each["start"] < each["end"]


def test_an_agreement_that_is_not_there_ends_with_1(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["pending", "0x" + "00" * 32, "--data", str(data)]) == 1
    assert "0x0000" in capfd.readouterr().err
