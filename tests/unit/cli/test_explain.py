"""``sla-ledger explain`` shows each step; what it shows adds up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from ledger.domain.canonical import canonical_bytes

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def test_every_step_of_a_proved_breach_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    payload = json.loads((VECTORS / "bundle.json").read_text())["statement"]["payload"]
    assert main(["explain", str(VECTORS / "bundle.json")]) == 0
    shown = capsys.readouterr().out
    for result in payload["objectives"]:
        assert f"{result['good']}/{result['valid']}" in shown
    whole, cents = divmod(int(payload["credit"]["minor_units"]), 100)
    assert f"the credit      {whole}.{cents:02} {payload['credit']['currency']}" in shown


def test_a_withheld_statement_says_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(VECTORS / "bundle_withheld.json")]) == 0
    assert "Withheld: the agreement asks for 99 % of the windows" in capsys.readouterr().out


def test_json_is_the_payload_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", str(VECTORS / "bundle.json")]) == 0
    expected = json.loads((VECTORS / "bundle.json").read_text())["statement"]["payload"]
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    "trace",
    [{}, {"tiers": 1}, {"tiers": [], "base": "x"}, {"tiers": [{"objective": "availability", "tier": 1}]}],
)
def test_a_trace_that_is_none_is_named_not_a_traceback(
    trace: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = json.loads((VECTORS / "bundle.json").read_text())
    bundle["statement"]["payload"]["trace"] = trace
    path = tmp_path / "bundle.json"
    path.write_bytes(canonical_bytes(bundle))
    assert main(["explain", str(path)]) == 2
    assert "statement.payload.trace" in capsys.readouterr().err


def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main(["explain", str(tmp_path / "x.json")]) == 2
    assert "x.json" in capsys.readouterr().err
