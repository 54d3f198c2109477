"""The list of settings is the code's: no name is read that it lacks, and it lists none that is not read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledger.cli import settings_page
from ledger.errors import BadInput
from ledger.settings.registry import BY_NAME, SETTINGS, Topic

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"\b(?:SLA_LEDGER_[A-Z][A-Z_]*[A-Z]|DATABASE_URL)\b")
REGISTRY = ROOT / "ledger/settings/registry.py"


def names_in_code() -> dict[str, str]:
    """Names of settings in the texts of ledger/ and api/, each with a file that has it."""
    sources = [path for folder in ("ledger", "api", "migrations") for path in (ROOT / folder).rglob("*.py")]
    return {name: str(path) for path in sources if path != REGISTRY for name in NAME.findall(path.read_text())}


def test_every_name_in_the_code_is_listed_and_every_listed_name_is_in_the_code() -> None:
    found = names_in_code()
    assert {name: found[name] for name in found.keys() - BY_NAME.keys()} == {}
    assert BY_NAME.keys() - found.keys() == set()


def test_names_are_unique_and_every_setting_has_a_reader() -> None:
    assert len(BY_NAME) == len(SETTINGS)
    assert all(setting.readers and setting.meaning and setting.default for setting in SETTINGS)
    assert {setting.topic for setting in SETTINGS} == set(Topic)


def test_no_other_page_names_a_setting_that_does_not_exist() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    unknown = {(path.name, name) for path in pages for name in NAME.findall(path.read_text()) if name not in BY_NAME}
    assert unknown == set()


def test_the_page_keeps_its_prose_and_has_every_setting_once() -> None:
    (text,) = settings_page.settings_page().values()
    assert "Arguments win over the environment" in text
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == sorted(BY_NAME)


def test_a_page_that_lost_the_place_of_a_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_page, "PAGE", "docs/access.md")
    with pytest.raises(BadInput, match="must have one place"):
        settings_page.settings_page()
