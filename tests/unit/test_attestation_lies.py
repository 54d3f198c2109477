"""Every lie of ``tests.attestation_lies`` is tried: the tests that it names are there, and so are their cases."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from tests.attestation_lies import ATTESTATION_LIES, GROUPS, page

TESTS = Path(__file__).resolve().parents[1]
CASES_ELSEWHERE = {
    "circuits/test_lies.py": "circuits/lies.py",
    "circuits/test_incident_credit.py": "circuits/incident_lies.py",
    "circuits/test_verifiers_agree.py": "vectors/verifiers.json",
}
"""Where the cases of a file are made, if not in itself."""


@cache
def functions(path: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse((TESTS / path).read_text())) if isinstance(node, ast.FunctionDef)}


@cache
def cases(path: str) -> set[str]:
    """Whatever may be the name of a case: texts, and names of functions that register themselves."""
    source = CASES_ELSEWHERE.get(path, path)
    text = (TESTS / source).read_text()
    if source.endswith(".json"):
        return {vector["name"] for vector in json.loads(text)["vectors"]}
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    texts = {value for value in constants if isinstance(value, str)}
    return texts | functions(source)


@pytest.mark.parametrize("lie", ATTESTATION_LIES)
def test_every_lie_is_tried_by_the_tests_it_names(lie: str) -> None:
    assert ATTESTATION_LIES[lie]
    for test in ATTESTATION_LIES[lie]:
        path, _, named = test.partition("::")
        assert (TESTS / path).is_file(), test
        function, _, case = named.partition("[")
        assert not function or (function.startswith("test_") and function in functions(path)), test
        # Groups of cases are named "group: case".
        name = case.removesuffix("]")
        assert not name or {name, name.partition(": ")[2]} & cases(path), test


def test_the_nine_lies_of_the_first_sketch_come_first() -> None:
    nine = list(ATTESTATION_LIES)[:9]
    assert all(test.startswith("circuits/") for lie in nine for test in ATTESTATION_LIES[lie])


def test_the_page_of_threats_is_that_of_these_lies() -> None:
    written = (TESTS.parent / "docs" / "threats.md").read_text()
    assert written == page(), "run python -m tests.attestation_lies"
    assert GROUPS.keys() <= ATTESTATION_LIES.keys()
