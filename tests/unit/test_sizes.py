"""The check of sizes: what it counts, and that the project passes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import sizes


def module(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sizes, "ROOT", folder)
    path = folder / "module.py"
    path.write_text(text, encoding="utf-8")
    return list(sizes.too_large(path))


def function(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


def test_a_module_of_400_lines_is_the_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module(tmp_path, "x = 1\n" * 400, monkeypatch) == []
    (found,) = module(tmp_path, "x = 1\n" * 401, monkeypatch)
    assert found.startswith("module.py:1: 401 lines in the module")


def test_a_function_of_50_lines_is_the_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module(tmp_path, "@decorated\n" + function(50), monkeypatch) == []
    (found,) = module(tmp_path, "x = 1\n" + function(51), monkeypatch)
    assert found.startswith("module.py:2: 51 lines in f")


def test_a_method_and_what_is_inside_a_function_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "class C:\n" + "".join(f"    {line}\n" for line in ("async " + function(60)).splitlines())
    assert len(module(tmp_path, inner, monkeypatch)) == 1


@pytest.mark.long
def test_the_project_passes() -> None:
    assert sizes.main() == 0
