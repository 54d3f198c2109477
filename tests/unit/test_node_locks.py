"""Locks of npm packages pin content, not places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("contracts", "contracts/lint", "tests/support/node", "toolchain", "toolchain/lint")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_lock_names_hashes_and_no_address(folder: str) -> None:
    text = (ROOT / folder / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert packages.pop("")["dependencies"] == json.loads((ROOT / folder / "package.json").read_text())["dependencies"]
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert "://" not in text


@pytest.mark.parametrize("folder", FOLDERS)
def test_versions_are_exact(folder: str) -> None:
    wanted = json.loads((ROOT / folder / "package.json").read_text())["dependencies"]
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
