"""How many mutants of each module and kind a test noticed: as text, and as the table that is kept in a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.children import DOMAIN
from tests.mutation.mutants import KINDS, Mutant

BEGIN, END = "<!-- scores -->\n", "<!-- end of scores -->"
_TOTAL = "all"
_CELL = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Score:
    """How many were killed of how many."""

    killed: int
    made: int

    def __str__(self) -> str:
        return f"{self.killed}/{self.made}"

    def percent(self) -> str:
        """Rounded down, so that 100 says all."""
        thousandths = self.killed * 1000 // self.made if self.made else 1000
        return f"{thousandths // 10}.{thousandths % 10} %"


@dataclass(frozen=True)
class Scores:
    """By module and kind."""

    by_module: Mapping[str, Mapping[str, Score]]

    @classmethod
    def of(cls, survived: Mapping[Mutant, bool]) -> Scores:
        made, killed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for mutant, alive in survived.items():
            key = str(mutant.path.relative_to(DOMAIN)), mutant.kind
            made[key] += 1
            killed[key] += not alive
        modules = dict.fromkeys(module for module, _ in made)
        return cls(
            {
                module: {kind: Score(killed[module, kind], made[module, kind]) for kind in KINDS if made[module, kind]}
                for module in modules
            }
        )

    @classmethod
    def read(cls, page: str) -> Scores:
        """The table of a page; what no run wrote yet is not there."""
        table = page.partition(BEGIN)[2].partition(END)[0]
        found: dict[str, dict[str, Score]] = {}
        for line in table.splitlines():
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            numbers = [_CELL.fullmatch(cell) for cell in cells[: len(KINDS)]]
            if name.startswith("`"):
                found[name.strip("`")] = {
                    kind: Score(int(match[1]), int(match[2]))
                    for kind, match in zip(KINDS, numbers, strict=True)
                    if match
                }
        return cls(found)

    def updated(self, newer: Scores) -> Scores:
        """These with those of another run in place of the same module's and kind's; a module that is gone leaves."""
        modules = sorted({*self.by_module, *newer.by_module})
        return Scores(
            {
                module: {**self.by_module.get(module, {}), **newer.by_module.get(module, {})}
                for module in modules
                if (DOMAIN / module).exists()
            }
        )

    def text(self) -> str:
        """A line for every module, kind and all."""
        by_kind = [(kind, self._of_kind(kind)) for kind in KINDS]
        rows = [(module, _sum(scores)) for module, scores in self.by_module.items()]
        rows += [(kind, score) for kind, score in by_kind if score.made]
        rows.append((_TOTAL, _sum(dict(by_kind))))
        return "\n".join(f"{name:<28}{score!s:>12}{score.percent():>9}" for name, score in rows)

    def write(self, page: Path) -> None:
        """Put the scores into the page's table, beside those of other runs."""
        text = page.read_text(encoding="utf-8")
        before, begin, rest = text.partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{page} has no place for the scores; write {BEGIN.strip()} and {END}")
        page.write_text(before + Scores.read(text).updated(self).page() + after, encoding="utf-8")

    def page(self) -> str:
        """The table between its marks, as ``read`` finds it."""
        return f"{BEGIN}{self.table()}{END}"

    def table(self) -> str:
        """A Markdown table: what was killed of what was made."""
        of_kinds = {kind: self._of_kind(kind) for kind in KINDS}
        lines = ["| | " + " | ".join(KINDS) + " | score |", "|---|" + "---|" * (len(KINDS) + 1)]
        lines += [_row(f"`{module}`", scores) for module, scores in self.by_module.items()]
        return "\n".join([*lines, _row(_TOTAL, of_kinds), ""])

    def _of_kind(self, kind: str) -> Score:
        return _sum({module: scores[kind] for module, scores in self.by_module.items() if kind in scores})


def _row(name: str, scores: Mapping[str, Score]) -> str:
    cells = [str(scores[kind]) if kind in scores else "" for kind in KINDS]
    return f"| {name} | {' | '.join(cells)} | {_sum(scores).percent()} |"


def _sum(scores: Mapping[str, Score]) -> Score:
    return Score(sum(each.killed for each in scores.values()), sum(each.made for each in scores.values()))
