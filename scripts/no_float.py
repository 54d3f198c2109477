"""No float in ``ledger/domain``: what stands between an observation and money is a whole number or an exact fraction.

    python scripts/no_float.py [PATH ...]    exit 1 where a line could make a float; default ledger/domain

A float that decides a verdict says 999/1000 < 99.9 %. So this finds what makes one: float and complex literals, the
name ``float``, true division, negative powers, what ``math`` gives but its whole-number functions, ``statistics`` and
their like, ``round`` of anything but a literal, and format codes that print through a float. A path joined with ``/``
or a Fraction divided is right: it says so on its line, with the reason:

    folder / name  # exact: joins a path
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / "ledger/domain"

# Of math only these give whole numbers for whole numbers.
WHOLE_MATH = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm"})
FLOAT_MODULES = frozenset({"cmath", "numpy", "random", "scipy", "statistics"})
FLOAT_NAMES = frozenset({"complex", "float"})
FLOAT_METHODS = frozenset({"from_float", "timestamp", "total_seconds"})
_ALLOWED = re.compile(r"#\s*exact:\s*\S+")
_FLOAT_FORMAT = re.compile(r"[eEfFgG%]$")


@dataclass(frozen=True)
class Finding:
    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}; if it is exact, end the line with `# exact: why`"


def findings(path: Path, text: str) -> list[Finding]:
    """What could make a float in one module, in order; lines that say why they are exact are left out."""
    lines = text.splitlines()
    found = {
        Finding(path, node.lineno, what)
        for node in ast.walk(ast.parse(text, str(path)))
        for what in _of(node)
        if not any(_ALLOWED.search(line) for line in lines[node.lineno - 1 : node.end_lineno or node.lineno])
    }
    return sorted(found, key=lambda finding: (finding.line, finding.what))


def _of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=float() | complex()):
            yield f"the literal {node.value}"
        case ast.Name(id=name) if name in FLOAT_NAMES:
            yield f"the name {name}"
        case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
            yield "true division"
        case ast.BinOp(op=ast.Pow(), right=ast.UnaryOp(op=ast.USub())):
            yield "a negative power"
        case ast.Call(func=ast.Name(id="round"), args=[ast.Constant(), *_]):
            pass
        case ast.Call(func=ast.Name(id="round")):
            yield "round()"
        case ast.Attribute(value=ast.Name(id="math"), attr=name) if name not in WHOLE_MATH:
            yield f"math.{name}"
        case ast.Attribute(attr=name) if name in FLOAT_METHODS:
            yield f"a float by .{name}"
        case ast.Import() | ast.ImportFrom():
            yield from _imported(node)
        case ast.FormattedValue(format_spec=ast.JoinedStr(values=[*_, ast.Constant(value=str() as code)])):
            if _FLOAT_FORMAT.search(code):
                yield f"the format code :{code}"
        case _:
            pass


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [each.name for each in node.names]
    if isinstance(node, ast.Import):
        yield from (f"the module {name}" for name in names if name.partition(".")[0] in FLOAT_MODULES)
        return
    module = node.module or ""
    if module.partition(".")[0] in FLOAT_MODULES:
        yield f"the module {module}"
    elif module == "math":
        yield from (f"math.{name}" for name in names if name not in WHOLE_MATH)
    elif module == "operator":
        yield from (f"operator.{name}" for name in names if name in ("truediv", "itruediv"))


def main(arguments: Sequence[str]) -> int:
    places = [Path(argument) for argument in arguments] or [DEFAULT]
    modules = sorted(path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place]))
    found = [finding for path in modules for finding in findings(path, path.read_text(encoding="utf-8"))]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
