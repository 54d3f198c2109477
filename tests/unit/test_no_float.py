"""The lint that keeps floats out of the domain finds every way to one, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import no_float

MODULE = Path("module.py")


def found(text: str) -> list[str]:
    return [finding.what for finding in no_float.findings(MODULE, text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("rate = 0.999", "the literal 0.999"),
        ("rate = 1e9", "the literal 1000000000.0"),
        ("rate = 2j", "the literal 2j"),
        ("rate = float(good)", "the name float"),
        ("def rate(x: float) -> int: ...", "the name float"),
        ("rates = list(map(float, good))", "the name float"),
        ("rate = good / valid", "true division"),
        ("rate = 100 * good / valid", "true division"),
        ("rate /= valid", "true division"),
        ("nano = 10**-9", "a negative power"),
        ("import math\nrank = math.ceil(q)", "math.ceil"),
        ("from math import sqrt", "math.sqrt"),
        ("import statistics", "the module statistics"),
        ("from statistics import mean", "the module statistics"),
        ("import numpy.linalg", "the module numpy.linalg"),
        ("import random", "the module random"),
        ("from operator import truediv", "operator.truediv"),
        ("cents = round(amount)", "round()"),
        ("cents = round(amount, 2)", "round()"),
        ("seconds = length.total_seconds()", "a float by .total_seconds"),
        ("now = moment.timestamp()", "a float by .timestamp"),
        ("text = f'{rate:.2f}'", "the format code :.2f"),
        ("text = f'{rate:.1%}'", "the format code :.1%"),
        ("text = f'{rate:g}'", "the format code :g"),
    ],
)
def test_it_finds(text: str, what: str) -> None:
    assert found(text) == [what]


@pytest.mark.parametrize(
    "text",
    [
        "rate = good * 10**9 // valid",
        "import math\nroot = math.isqrt(x)",
        "from math import gcd",
        "whole, rest = divmod(good, valid)",
        "from fractions import Fraction\nrate = Fraction(good, valid)",
        "text = f'{whole}.{rest:04}'",
        "text = '0.999 / 2.0 and float'",
        "floats = 1",
        "half = Fraction(1, 2) / count  # exact: a Fraction divided by a whole number is one",
        "cents = (\n    amount  # exact: a Fraction\n    / count\n)",
    ],
)
def test_it_lets_pass(text: str) -> None:
    assert found(text) == []


def test_a_suppression_needs_a_reason() -> None:
    assert found("rate = good / valid  # exact:") == ["true division"]
    assert found("rate = good / valid  # noqa") == ["true division"]
    assert found("# exact: above\nrate = good / valid") == ["true division"]


def test_the_domain_has_no_float(capsys: pytest.CaptureFixture[str]) -> None:
    assert no_float.main([]) == 0
    assert capsys.readouterr().out == ""


def test_a_finding_names_file_line_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "rates.py"
    module.write_text("good = 1\nrate = good / 2\n")
    assert no_float.main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(f"{module}:2: true division; ")
    assert "# exact: why" in shown
