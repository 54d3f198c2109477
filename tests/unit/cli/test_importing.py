"""``sla-ledger agreements import``: drafts on disk, the report, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.cli.main import main
from tests.unit.domain.samples import EXAMPLES
from tests.unit.ingest.test_slo_import import SLI, SLOTH, slo


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["agreements", "import", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def put(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_a_draft_is_written_and_is_a_valid_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, chat=slo())
    draft = tmp_path / "draft.yaml"
    code, out, err = run(capsys, tmp_path / "chat.yaml", "--out", draft)
    assert code == 0
    assert f"wrote {draft}" in err
    for heading in ("draft for chat: periods of P1W from 2026-01-05 (Europe/Berlin)", "To confirm", "To replace"):
        assert heading in out
    assert "REPLACE provider" in draft.read_text()
    assert main(["agreements", "validate", str(draft)]) == 0


DAY = "timeWindow: [{duration: 1d, calendar: {startTime: 2023-06-14 00:00:00, timeZone: UTC}}]"


def test_a_draft_settles_a_request_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sample day: its availability is counted by the draft as by the agreement that was written by hand."""
    put(tmp_path, chat=slo("target: 0.9995", window=DAY).replace("service: chat", "service: example-chat"))
    assert run(capsys, tmp_path / "chat.yaml", "--out", tmp_path / "draft.yaml")[0] == 0
    results = []
    for agreement in (tmp_path / "draft.yaml", EXAMPLES / "agreement.yaml"):
        log = ["--requests", str(EXAMPLES / "requests.ndjson"), "--period", "2023-06-14/P1D", "--json"]
        assert main(["settle", "--agreement", str(agreement), *log]) == 0
        results.append(json.loads(capsys.readouterr().out)["objectives"][0])
    imported, written = results
    assert imported == {**written, "id": "chat-up"}
    assert imported["verdict"] == "breached"


def test_a_folder_is_one_set_and_makes_a_folder_of_drafts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "slos"
    (folder / "deeper").mkdir(parents=True)
    put(folder, a=slo(more="indicatorRef: answers"), b=SLOTH)
    put(folder / "deeper", c=SLI)
    (folder / "README.md").write_text("no document")
    code, out, _ = run(capsys, folder, "--out", tmp_path / "drafts", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["slos"] == 4
    assert [Path(name).name for name in found["written"]] == ["01-chat.yaml", "02-chat.yaml"]
    assert [draft["slos"] for draft in found["drafts"]] == [["chat-up"], ["answered", "quick", "ready-made"]]
    assert {"kind", "file", "document", "field", "value", "message"} == set(found["drafts"][0]["report"][0])


def test_a_template_leaves_no_placeholder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, chat=slo())
    template = EXAMPLES / "agreement.yaml"
    code, out, _ = run(capsys, tmp_path / "chat.yaml", "--template", template, "--json")
    assert code == 0
    assert "REPLACE" not in out
    assert json.loads(out)["drafts"][0]["agreement"]["parties"]["issuer"]["name"] == "Example Provider Ltd"


def test_documents_without_an_slo_end_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, sli=SLI)
    code, out, err = run(capsys, tmp_path / "sli.yaml", "--out", tmp_path / "draft.yaml")
    assert code == 1
    assert "no SLO uses" not in err
    assert "no SLO among the documents uses this SLI" in out
    assert not (tmp_path / "draft.yaml").exists()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (slo("target: 1.0"), "document_invalid", "bad.yaml:9: spec.objectives[0].target: 1.0 is outside [0, 1)"),
        (slo(more="indicatorRef: none"), "reference_unresolved", "bad.yaml:10: spec.indicatorRef: no SLI named 'none'"),
        (slo("target: 0"), "no_counterpart", "bad.yaml:9: spec.objectives[0].target: 0: an agreement cannot promise"),
    ],
)
def test_faults_name_file_line_and_field(
    text: str, code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, bad=text)
    ended, _, err = run(capsys, tmp_path / "bad.yaml", "--out", tmp_path / "draft.yaml")
    assert ended == 2
    assert message in err
    assert not (tmp_path / "draft.yaml").exists()
    _, _, err = run(capsys, tmp_path / "bad.yaml", "--json")
    assert json.loads(err)["code"] == code


def test_what_is_there_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, chat=slo())
    before = (tmp_path / "chat.yaml").read_text()
    code, _, err = run(capsys, tmp_path / "chat.yaml", "--out", tmp_path / "chat.yaml")
    assert code == 2
    assert "is there already" in err
    assert (tmp_path / "chat.yaml").read_text() == before


def test_a_folder_is_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, a=SLI, b=SLI)
    monkeypatch.setattr("ledger.cli.importing.MAX_ALL_BYTES", len(SLI))
    code, _, err = run(capsys, tmp_path)
    assert (code, f"more than {len(SLI)} bytes" in err) == (2, True)
    monkeypatch.setattr("ledger.cli.importing.MAX_FILES", 1)
    code, _, err = run(capsys, tmp_path)
    assert (code, "2 files; at most 1" in err) == (2, True)


def test_paths_that_hold_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, tmp_path)[0] == 2
    assert run(capsys, tmp_path / "none.yaml")[0] == 2
