"""The README's commands do what it says: each ``$`` line of its console blocks is run, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def commands() -> list[tuple[str, int]]:
    """Command lines and the exit codes they promise (0 unless a comment says otherwise)."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [(line, int(found[1]) if (found := re.search(r"# exit (\d)", line)) else 0) for line in lines]


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())}
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked
    assert [link for link in linked if not link.startswith("http") and not (ROOT / link).exists()] == []


@pytest.mark.slow
def test_every_command_ends_as_the_readme_says(tmp_path: Path, key_cache: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environ = {**os.environ, "SLA_LEDGER_KEY_CACHE": str(key_cache)}
    found = commands()
    assert len(found) >= 5
    for line, expected in found:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "sla-ledger"
        run = [sys.executable, "-m", "ledger.cli.main", *arguments]
        done = subprocess.run(run, check=False, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600)
        assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"
