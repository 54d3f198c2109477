"""Every report of ``tests.field_reports`` has the tests it names, and every test that names a report stands there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.field_reports import FIELD_REPORTS

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]


def spelt(text: str) -> str:
    """Lower case with one _ for whatever is between letters and digits: how names of tests write a report."""
    return "_" + "_".join(re.findall(r"[a-z0-9]+", text.lower())) + "_"


REPORTS = {name: spelt(name) for name in FIELD_REPORTS}


def named_tests() -> Iterator[tuple[str, str]]:
    """(report, path::function) of every test whose name or docstring says a report."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if not any(name.partition("#")[2] in text for name in REPORTS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = spelt(f"{node.name} {ast.get_docstring(node) or ''}")
                for report in (name for name, words in REPORTS.items() if words in said):
                    yield report, f"{path.relative_to(TESTS).as_posix()}::{node.name}"


@pytest.mark.parametrize("report", FIELD_REPORTS)
def test_every_report_has_its_tests(report: str) -> None:
    found = sorted(test for name, test in named_tests() if name == report)
    assert found == sorted(FIELD_REPORTS[report].tests)
    assert found
