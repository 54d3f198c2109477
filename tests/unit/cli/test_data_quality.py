"""``sla-ledger data-quality``: which rows block a period, until they are answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.cli.main import main
from ledger.resources import resource_dir

FACTS = {
    "id": "facts",
    "method": "total_ratio",
    "indicator": "fact_consistency",
    "evaluator": "factbench 2.1",
    "minimum_valid": 10,
    "target": "98.2",
}


def row(**said: Any) -> str:
    body = {"sample_id": "fc-1", "at": "2023-06-14T10:00:00Z", "service": "example-chat"}
    return json.dumps({**body, "indicator": "fact_consistency", "evaluator": "factbench 2.1", **said}) + "\n"


def test_a_row_that_cannot_be_is_open_until_it_is_answered(
    tmp_path: Path, key_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    terms = yaml.safe_load((resource_dir("examples") / "agreement.yaml").read_text())
    terms["objectives"].append(FACTS)
    agreement, log = tmp_path / "agreement.yaml", tmp_path / "samples.ndjson"
    agreement.write_text(yaml.safe_dump(terms))
    data = ["--data", str(tmp_path / "data")]
    assert main(["init", *data]) == 0
    assert main(["agreements", "add", str(agreement), "--own-keys", *data]) == 0
    capsys.readouterr()
    assert main(["data-quality", *data, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"open": 0, "items": []}

    log.write_text(row(good=11, total=10))
    assert main(["observe", str(log), *data]) == 0
    assert "blocks its period until a row in its place says what is true" in capsys.readouterr().err
    assert main(["data-quality", *data]) == 1
    assert "good 11, bad -1, undecided 0" in capsys.readouterr().out

    log.write_text(row(good=10, total=11))
    assert main(["observe", str(log), *data]) == 0
    capsys.readouterr()
    assert main(["data-quality", *data, "--json"]) == 0
    (fault,) = json.loads(capsys.readouterr().out)["items"]
    assert (fault["state"], fault["sample_id"], fault["period"]) == ("resolved", "fc-1", "2023-06-14/P1D")
