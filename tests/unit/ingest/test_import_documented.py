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


def test_the_commands_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = re.findall(r"^sla-ledger (.*)$", PAGE, re.MULTILINE)
    assert len(lines) == 3
    (tmp_path / "slos").mkdir()
    (tmp_path / "slos/answered.yaml").write_text(SLO)
    (tmp_path / "agreement.yaml").write_text((EXAMPLES / "agreement.yaml").read_text())
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert main(line.split()) == 0, line
    assert (tmp_path / "draft.yaml").is_file()
    assert "Amazon Web Services" in (tmp_path / "like-bedrock.yaml").read_text()


def test_the_worth_of_figures_is_explained_as_in_the_index() -> None:
    told = yaml.safe_load((EXAMPLES / "providers/index.yaml").read_text())["verified"]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.partition("## Provider")[2], re.MULTILINE)
    assert rows[0] == ("verified", "meaning")
    assert dict(rows[1:]) == told


def test_exit_codes_are_those_of_the_help() -> None:
    told = dict(re.findall(r"^  (\d)  (.*)$", EPILOG, re.MULTILINE))
    assert dict(re.findall(r"^\| (\d) \| (.*) \|$", PAGE, re.MULTILINE)) == told
