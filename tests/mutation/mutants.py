"""Small changes to a module, one at a time: what a test must notice.

* a constant: a number by one, ``True`` and ``False`` swapped, a text of the code (no docstring, no message) altered;
* a comparison: ``<`` and ``<=``, ``==`` and ``!=``, ``in`` and ``not in``, ``is`` and ``is not``;
* arithmetic: ``+`` and ``-``, ``*`` and ``//``, a sign or ``not`` left out;
* ``and`` and ``or``; ``min`` and ``max``, ``any`` and ``all``;
* a condition that always holds, or never;
* a statement that is left out: a call, a change of a name or of an element, ``break``, ``continue``, ``raise``.

What changes nothing that could be observed is listed in ``tests.mutation.equivalent``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
}
KINDS = ("constant", "comparison", "arithmetic", "logic", "condition", "statement")
_LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Calls whose texts are for people.
_MESSAGES = frozenset(
    {"fail", "ValueError", "ImplausibleCounts", "NotCanonical"}
    | {f"{what}Invalid" for what in ("Document", "Money", "Calendar", "Instant", "Interval", "Event")}
)


@dataclass(frozen=True)
class Mutant:
    """One change: ``old`` at line and column (from 1 and 0) becomes ``new``. ``kind`` is one of ``KINDS``, ``source``
    the line as it was, without what indents it, and ``text`` the whole changed module."""

    path: Path
    kind: str
    line: int
    column: int
    old: str
    new: str
    source: str
    text: str

    @property
    def change(self) -> str:
        """``old -> new`` of the change."""
        return f"{self.old} -> {self.new}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column + 1}: {self.change} ({self.kind})"


def mutants(path: Path, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    return sorted(_Maker(path, source).all(), key=lambda each: (each.line, each.column, each.new))


class _Maker:
    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._lines = source.splitlines(keepends=True)
        self._tree = ast.parse(source)
        self._skipped = set(self._not_code())
        self._under_condition = {
            id(node.body[0]) for node in ast.walk(self._tree) if isinstance(node, ast.If) and len(node.body) == 1
        }

    def all(self) -> Iterator[Mutant]:
        for node in ast.walk(self._tree):
            if id(node) not in self._skipped:
                yield from self._of(node)
                yield from self._conditions(node)
                yield from self._statements(node)

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Constant():
                yield from self._constant(node)
            case ast.Compare():
                lefts = [node.left, *node.comparators]
                for left, operator, right in zip(lefts, node.ops, node.comparators, strict=False):
                    yield from self._between("comparison", left, right, _COMPARISONS.get(type(operator)))
            case ast.BinOp():
                yield from self._between("arithmetic", node.left, node.right, _ARITHMETIC.get(type(node.op)))
            case ast.AugAssign():
                old, new = _ARITHMETIC.get(type(node.op), ("", ""))
                yield from self._between("arithmetic", node.target, node.value, (f"{old}=", f"{new}=") if old else None)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between("logic", left, right, _LOGIC[type(node.op)])
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                old = "-" if isinstance(node.op, ast.USub) else "not "
                yield self._mutant("arithmetic" if old == "-" else "logic", node.lineno, node.col_offset, old, "")
            case ast.Call(func=ast.Name(id=name) as called) if name in _NAMES:
                yield self._mutant("logic", called.lineno, called.col_offset, name, _NAMES[name])
            case _:
                pass

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        old = ast.get_source_segment("".join(self._lines), node) or ""
        if isinstance(node.value, bool):
            yield self._mutant("constant", node.lineno, node.col_offset, old, str(not node.value))
        elif isinstance(node.value, int):
            yield self._mutant("constant", node.lineno, node.col_offset, old, str(node.value + 1))
        elif isinstance(node.value, str) and node.value and node.lineno == node.end_lineno:
            yield self._mutant("constant", node.lineno, node.col_offset, old, repr(node.value + "~"))

    def _conditions(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                yield self._replaced("condition", test, "True")
                yield self._replaced("condition", test, "False")
            case ast.While(test=test):
                yield self._replaced("condition", test, "False")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield self._replaced("condition", test, "True")
                    yield self._replaced("condition", test, "False")
            case ast.match_case(guard=ast.expr() as test):
                yield self._replaced("condition", test, "True")
                yield self._replaced("condition", test, "False")
            case _:
                pass

    def _statements(self, node: ast.AST) -> Iterator[Mutant]:
        """A ``raise`` alone under its condition is left: that the condition never holds is the same change."""
        match node:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr() | ast.AugAssign() | ast.Break() | ast.Continue() | ast.Delete():
                yield self._replaced("statement", node, "pass")
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                yield self._replaced("statement", node, "pass")
            case ast.Raise() if id(node) not in self._under_condition:
                yield self._replaced("statement", node, "pass")
            case _:
                pass

    def _replaced(self, kind: str, node: ast.expr | ast.stmt, new: str) -> Mutant:
        """All of a node by one word, with as many lines as before, so that lines keep their numbers."""
        first, last = node.lineno, node.end_lineno or node.lineno
        start, end = node.col_offset, node.end_col_offset or 0
        lines = [line.encode() for line in self._lines]
        more = last - first
        word = f"({new}{chr(10) * more})" if more and isinstance(node, ast.expr) else new
        after = b"" if isinstance(node, ast.expr) or not more else b"\n" * more
        old = ast.get_source_segment("".join(self._lines), node) or ""
        rest = lines[last - 1][end:]
        text = b"".join([*lines[: first - 1], lines[first - 1][:start], word.encode(), after, rest, *lines[last:]])
        return Mutant(
            self._path, kind, first, start, " ".join(old.split()), new, self._lines[first - 1].strip(), text.decode()
        )

    def _between(self, kind: str, left: ast.expr, right: ast.expr, change: tuple[str, str] | None) -> Iterator[Mutant]:
        """Change the operator that stands between two nodes on one line, or at the edge of two."""
        if change is None:
            return
        old, new = change
        at, column = left.end_lineno or 0, left.end_col_offset or 0
        while at <= right.lineno:
            line = self._lines[at - 1].encode()
            stop = right.col_offset if at == right.lineno else len(line)
            found = re.search(rf"(?<![\w<>=!*/+-]){re.escape(old)}(?![<>=*/])", line[column:stop].decode())
            if found:
                yield self._mutant(
                    kind, at, column + len(line[column:stop].decode()[: found.start()].encode()), old, new
                )
                return
            at, column = at + 1, 0

    def _mutant(self, kind: str, line: int, column: int, old: str, new: str) -> Mutant:
        changed = self._lines[line - 1].encode()
        assert changed[column:].startswith(old.encode()), (self._path, line, column, old)
        changed = changed[:column] + new.encode() + changed[column + len(old.encode()) :]
        text = "".join([*self._lines[: line - 1], changed.decode(), *self._lines[line:]])
        return Mutant(
            self._path, kind, line, column, old, new.strip() or "nothing", self._lines[line - 1].strip(), text
        )

    def _not_code(self) -> Iterator[int]:
        """What no program depends on: docstrings, annotations, and texts in messages and formatted texts."""
        for node in ast.walk(self._tree):
            match node:
                case ast.Expr(value=ast.Constant() as text):
                    yield id(text)
                case ast.JoinedStr():
                    yield from (id(each) for part in node.values for each in _constants(part))
                case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
                    yield from map(id, ast.walk(annotation))
                case ast.FunctionDef(returns=ast.expr() as returns):
                    yield from map(id, ast.walk(returns))
                case ast.Call(func=ast.Name(id=name)) if name in _MESSAGES | {"TypeVar"}:
                    texts = [*node.args, *(keyword.value for keyword in node.keywords)]
                    yield from (id(each) for text in texts for each in ast.walk(text) if isinstance(each, ast.Constant))
                case ast.Call(func=ast.Name(id="Text"), args=[_, ast.Constant() as what, *_]):
                    yield id(what)
                case ast.keyword(arg="what" | "slots" | "frozen" | "strict", value=value):
                    yield from map(id, ast.walk(value))
                case _:
                    pass
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets
            ):
                yield from map(id, ast.walk(node.value))


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant):
        yield node
    elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        yield from (each for each in ast.walk(node.format_spec) if isinstance(each, ast.Constant))
