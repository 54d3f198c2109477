"""``sla-ledger exclusions``: recorded, listed with what becomes of it, withdrawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.cli.main import main
from ledger.resources import resource_dir
from tests.support.deployment import example_terms

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/agreement.md"
AT = ("--from", "2023-06-14T12:00:00+02:00", "--to", "2023-06-14T12:20:00+02:00", "--reason", "version 7")
RELEASE = ("release-7", "--clause", "gray-release", "--ticket", "CHG-7", "--approved-by", "change board", *AT)


def documented() -> dict[str, Any]:
    """The usual classes as docs/agreement.md has them."""
    (block,) = [part for part in DOCUMENT.read_text().split("```") if part.startswith("yaml\nmaintenance:")]
    found: dict[str, Any] = yaml.safe_load(block.removeprefix("yaml\n"))
    return found


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, key_cache: Path) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    for name in ("SLA_LEDGER_DATA", "SLA_LEDGER_BROKER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A directory with one agreement that has the usual classes."""
    folder, agreement = tmp_path / "data", tmp_path / "agreement.yaml"
    agreement.write_text(
        (resource_dir("examples") / "agreement.yaml").read_text() + "\n" + yaml.safe_dump(documented())
    )
    assert main(["init", "--data", str(folder)]) == 0
    assert main(["agreements", "add", str(agreement), "--data", str(folder), "--own-keys"]) == 0
    capsys.readouterr()
    return folder


def asked(capsys: pytest.CaptureFixture[str], data: Path, *arguments: str, code: int = 0) -> Any:
    assert main(["exclusions", *arguments, "--data", str(data), "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def test_the_documented_classes_have_the_usual_limits() -> None:
    assert [
        (each["id"], each.get("longest"), each.get("at_most"), each.get("notice"), each.get("automatic", False))
        for each in documented()["maintenance"]["classes"]
    ] == [
        ("gray-release", "PT15M", {"count": 4, "per": "month"}, None, False),
        ("hot-update", "PT90S", None, None, True),
        ("rotation", None, {"count": 1, "per": "quarter"}, "PT72H", False),
    ]
    assert "maintenance" not in example_terms()


def test_an_exclusion_is_recorded_listed_and_withdrawn(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = asked(capsys, data, "add", *RELEASE)
    assert (made["from"], made["to"]) == ("2023-06-14T10:00:00Z", "2023-06-14T10:20:00Z")
    assert made["honoured"] == {"from": "2023-06-14T10:00:00Z", "to": "2023-06-14T10:15:00Z"}
    assert made["by"].startswith("command line")
    assert asked(capsys, data, "add", *RELEASE)["event_id"] == made["event_id"]
    asked(capsys, data, "add", "hosts", "--clause", "rotation", "--ticket", "CHG-8", *AT)
    listed = asked(capsys, data, "list")["exclusions"]
    assert [(each["id"], each["ruling"]) for each in listed] == [("hosts", "not_approved"), ("release-7", "shortened")]
    assert main(["exclusions", "list", "--data", str(data)]) == 0
    shown = capsys.readouterr().out
    assert "release-7: lasts 1200 s; of gray-release the first 900 s are maintenance" in shown
    gone = asked(capsys, data, "withdraw", "release-7", "--reason", "called off")
    assert (gone["state"], gone["withdrawn_reason"]) == ("withdrawn", "called off")
    refused = asked(capsys, data, "add", *RELEASE, code=1)
    assert refused["code"] == "exclusion_refused"


def test_people_are_told_what_leaves_the_counts(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exclusions", "add", *RELEASE, "--data", str(data)]) == 0
    said = capsys.readouterr()
    assert "shortened: 2023-06-14T10:00:00Z to 2023-06-14T10:15:00Z leaves the counts" in said.out
    assert "lasts 1200 s" in said.err
    assert main(["exclusions", "add", "x", "--clause", "rotation", "--ticket", "1", *AT, "--data", str(data)]) == 0
    assert "not_approved: nothing leaves the counts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", *RELEASE[:2], "picnic", *RELEASE[3:]), 2, "no 'picnic'; its clauses are gray-release"),
        (("add", *RELEASE, "--from", "10:00"), 2, "--from: '10:00' is not an instant"),
        (("withdraw", "nothing", "--reason", "x"), 1, "there is no exclusion nothing"),
    ],
)
def test_what_cannot_be_is_said_with_field_and_value(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    assert said in asked(capsys, data, *arguments, code=code)["message"]
