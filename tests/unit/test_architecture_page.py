"""The page that shows where things are names modules that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = ("ledger/domain", "ledger/app", "ledger")
"""Of the columns: rules, use cases, outside."""


def rows() -> list[tuple[str, list[str]]]:
    table = PAGE.partition("## Where to look")[2].partition("## Folders")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ") and "`" in line]
    return [(subject.strip(), cells) for subject, *cells in lines]


def test_the_table_has_every_layer_between_the_transports_and_the_errors() -> None:
    assert len(rows()) > 10
    assert all(len(cells) == len(FOLDERS) for _, cells in rows())


@pytest.mark.parametrize(("subject", "cells"), rows(), ids=[subject for subject, _ in rows()])
def test_what_a_subject_begins_with_is_there(subject: str, cells: list[str]) -> None:
    named = [f"{folder}/{name}.py" for folder, cell in zip(FOLDERS, cells, strict=True) for name in names(cell)]
    assert named, subject
    assert [path for path in named if not (ROOT / path).is_file()] == []


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w/]+)`", cell)
