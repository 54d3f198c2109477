"""The examples of docs/import.md are what the command does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ledger.cli.importing import EPILOG
from ledger.cli.main import main
from tests.unit.domain.samples import EXAMPLES
from tests.unit.ingest.slo_cases import only_draft

PAGE = (Path(__file__).resolve().parents[3] / "docs/import.md").read_text()
SLO, OBJECTIVE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_slo_becomes_the_objective() -> None:
    draft = only_draft(SLO)
    assert draft.document["objectives"] == [yaml.safe_load(OBJECTIVE)]
    assert (draft.document["period"], draft.document["timezone"]) == ("P1M", "Europe/Berlin")


def test_the_command_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = re.findall(r"```\nsla-ledger (.*?)\n```", PAGE)
    (tmp_path / "slos").mkdir()
    (tmp_path / "slos/answered.yaml").write_text(SLO)
    (tmp_path / "agreement.yaml").write_text((EXAMPLES / "agreement.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 0
    assert (tmp_path / "draft.yaml").is_file()


def test_exit_codes_are_those_of_the_help() -> None:
    told = dict(re.findall(r"^  (\d)  (.*)$", EPILOG, re.MULTILINE))
    assert dict(re.findall(r"^\| (\d) \| (.*) \|$", PAGE, re.MULTILINE)) == told
