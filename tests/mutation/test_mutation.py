"""The mutants are made as they should be, killing one works, and no constant of a method can change unnoticed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.children import DOMAIN, ROOT
from tests.mutation.coverage import Coverage
from tests.mutation.equivalent import EQUIVALENT, equivalent
from tests.mutation.kept import Kept, state
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.noticed import key, read_noticed, write_noticed
from tests.mutation.runner import survivors
from tests.mutation.scores import Score, Scores
from tests.mutation.told import BESIDE, telling

MODULE = Path("module.py")
METHOD_TESTS = ("tests/unit/domain/methods", "tests/unit/domain/test_verdict.py")


def changes(source: str) -> list[tuple[str, str, str]]:
    made = mutants(MODULE, source)
    for each in made:
        ast.parse(each.text)
        assert each.text != source
    return [(each.kind, each.old, each.new) for each in made]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 10", [("constant", "10", "11")]),
        ("x = 10**9", [("constant", "10", "11"), ("arithmetic", "**", "*"), ("constant", "9", "10")]),
        ("x = True", [("constant", "True", "False")]),
        ('x = "up"', [("constant", '"up"', "'up~'")]),
        ("x = a < b", [("comparison", "<", "<=")]),
        ("x = a >= b == c", [("comparison", ">=", ">"), ("comparison", "==", "!=")]),
        ("x = a not in b", [("comparison", "not in", "in")]),
        ("x = a is not b", [("comparison", "is not", "is")]),
        ("x = a - b + c", [("arithmetic", "-", "+"), ("arithmetic", "+", "-")]),
        ("x = (a * b) // c", [("arithmetic", "*", "//"), ("arithmetic", "//", "*")]),
        ("x += y", [("statement", "x += y", "pass"), ("arithmetic", "+=", "-=")]),
        ("x = -a", [("arithmetic", "-", "nothing")]),
        ("x = not a", [("logic", "not ", "nothing")]),
        ("x = a and b", [("logic", "and", "or")]),
        ("x = min(a, b)", [("logic", "min", "max")]),
        ("x = (a\n    + b)", [("arithmetic", "+", "-")]),
        ("if a: b = c", [("condition", "a", "False"), ("condition", "a", "True")]),
        ("x = a if f(\n    b\n) else c", [("condition", "f( b )", "False"), ("condition", "f( b )", "True")]),
        ("x = [a for a in b if c]", [("condition", "c", "False"), ("condition", "c", "True")]),
        ("while a: b = c", [("condition", "a", "False")]),
        ("match a:\n    case b if c: d = e", [("condition", "c", "False"), ("condition", "c", "True")]),
        ("f(\n    a\n)", [("statement", "f( a )", "pass")]),
        ("a[b] = c", [("statement", "a[b] = c", "pass")]),
        ("for a in b: break", [("statement", "break", "pass")]),
        ("def f():\n    x = a\n    raise E", [("statement", "raise E", "pass")]),
    ],
)
def test_what_is_changed(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""What a module is for: 1 < 2."""',
        "x: 'int' = y",
        "def f(a: 'A') -> 'B': ...",
        'x = ValueError(f"{x} is below {y:04}")',
        'x = fail(at, "must be above 0")',
        '__slots__ = ("a", "b")',
        'x = Text(pattern, "a name")',
        "x = a  # 10 < 20",
    ],
)
def test_what_is_left_alone(source: str) -> None:
    assert changes(source) == []


# Mutants are only imported by a process that has not imported the ledger before.
CHECK = """
from tests.mutation.children import DOMAIN
from tests.mutation.coverage import coverage_of
from tests.mutation.mutants import Mutant
from tests.mutation.runner import survivors
from tests.mutation.told import telling

path = DOMAIN / "credits/verdict.py"
source = path.read_text()
nothing = "return ObjectiveState.NO_DATA"
line = source[: source.index(nothing)].count(chr(10)) + 1
texts = [
    source.replace(nothing, "return ObjectiveState.MET", 1),
    source.replace("Whole numbers only.", "Whole numbers, and only those."),
    source.replace(nothing, "raise SystemExit(3)", 1),
]
made = [Mutant(path, "logic", line, 0, "", str(at), "", text) for at, text in enumerate(texts)]
print(list(survivors(made, coverage_of(telling(path))).values()))
"""


@pytest.mark.slow
def test_a_change_that_nothing_notices_survives_and_one_that_is_noticed_does_not() -> None:
    ran = subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[False, True, False]\n"
    # What changes in a function costs no process that reads all tests again; a docstring changes nothing in one.
    assert "3 of 3 tried in place\n" in ran.stderr
    assert "1 of 1 tried on import\n" in ran.stderr


@pytest.mark.slow
def test_every_constant_of_a_method_is_noticed() -> None:
    command = [sys.executable, "-m", "tests.mutation.main", "ledger/domain/methods", "ledger/domain/credits/verdict.py"]
    command += ["--kind", "constant", "--tests", *METHOD_TESTS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.count("survived")) == (0, 0), ran.stdout
    assert "100.0 %" in ran.stdout.splitlines()[-2]


def test_what_is_listed_as_equivalent_is_still_there() -> None:
    modules = sorted({same.module for same in EQUIVALENT})
    made = [mutant for module in modules for mutant in mutants(DOMAIN / module, (DOMAIN / module).read_text())]
    _, gone = equivalent(made)
    assert gone == (), "these lines changed: see whether the tests notice them now, or list them as they are"


def test_scores_of_one_run_stand_beside_those_of_another() -> None:
    verdict, money = DOMAIN / "credits/verdict.py", DOMAIN / "money.py"

    def mutant(path: Path, kind: str, line: int) -> Mutant:
        return Mutant(path, kind, line, 0, "1", "2", "x = 1", "x = 2")

    first = Scores.of({mutant(verdict, "constant", 1): False, mutant(money, "logic", 1): True})
    later = Scores.of({mutant(money, "logic", 1): False, mutant(money, "constant", 2): False})
    both = Scores.read(first.page()).updated(later)
    assert both.table().splitlines()[2:] == [
        "| `credits/verdict.py` | 1/1 |  |  |  |  |  | 100.0 % |",
        "| `money.py` | 1/1 |  |  | 1/1 |  |  | 100.0 % |",
        "| all | 2/2 | 0/0 | 0/0 | 1/1 | 0/0 | 0/0 | 100.0 % |",
    ]
    assert first.text().split()[-3:] == ["1/2", "50.0", "%"]


def test_what_was_noticed_is_known_while_its_function_stays_as_it_was(tmp_path: Path) -> None:
    found = mutants(DOMAIN / "credits/verdict.py", (DOMAIN / "credits/verdict.py").read_text())
    keys = [key(mutant) for mutant in found]
    assert len(set(keys)) == len(found)
    write_noticed(tmp_path / "noticed.json", keys)
    assert read_noticed(tmp_path / "noticed.json") == set(keys)
    assert read_noticed(tmp_path / "none.json") == read_noticed(None) == set()


def test_a_score_is_kept_until_its_module_or_a_test_of_it_changes(tmp_path: Path) -> None:
    module, test = DOMAIN / "credits/verdict.py", tmp_path / "test_verdict.py"
    test.write_text("assert True")
    made = mutants(module, module.read_text())
    before, kept = state(made, [test]), Kept(tmp_path / "var/kept.json")
    assert kept.of(module, before) is None
    scores = Scores.of(dict.fromkeys(made, False))
    kept.put(module, before, scores, ["survived: one"])
    assert kept.of(module, before) == (scores, ["survived: one"])
    test.write_text("assert 1")
    assert kept.of(module, state(made, [test])) is None
    assert state(made[1:], [test]) != state(made, [test]) != before
    kept.put(module, "another", scores, [])
    assert kept.of(module, before) is None
    assert kept.of(module, "another") == (scores, [])


def test_the_tests_that_tell_of_a_module_are_there() -> None:
    told = {file.stem for module in DOMAIN.rglob("*.py") for file in telling(module)}
    assert {name for names in BESIDE.values() for name in names} <= told
    assert set(BESIDE) <= {module.stem for module in DOMAIN.rglob("*.py")}
    assert [file.stem for file in telling(DOMAIN / "money.py")] == ["test_money"]


def test_a_score_below_all_is_never_shown_as_all() -> None:
    assert Score(9_999, 10_000).percent() == "99.9 %"


def test_a_process_that_knows_the_ledger_runs_no_mutants() -> None:
    importlib.import_module("ledger.domain.credits.verdict")
    with pytest.raises(SystemExit, match="imported before"):
        survivors([], Coverage({}, {}, {}, []))
