"""No module of more than 400 lines and no function of more than 50: what grows past that holds a second idea.

    python scripts/sizes.py    exit 1 and say what is too large, in ledger, api, scripts and contracts

A function's lines are those from ``def`` to its end, docstring included.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Not migrations: a published one never changes.
FOLDERS = ("ledger", "api", "scripts", "contracts")
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50
GENERATED = ROOT / "contracts" / "generated"


def too_large(path: Path) -> Iterator[str]:
    """What of a module is too large, each as ``path:line: what``."""
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    name = path.relative_to(ROOT)
    if lines > MAX_MODULE_LINES:
        yield f"{name}:1: {lines} lines in the module, {MAX_MODULE_LINES} at most: move its second idea out"
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = (node.end_lineno or node.lineno) - node.lineno + 1
            if own > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {own} lines in {node.name}, {MAX_FUNCTION_LINES} at most: split it"


def main() -> int:
    """Print what is too large; 1 where there is any."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    found = [each for path in paths if GENERATED not in path.parents for each in too_large(path)]
    print("\n".join(found) or "every module and function is of a size to be read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
