"""Change ``ledger/domain`` in small ways and see whether a test notices: ``python -m tests.mutation.main [PATH ...]``.

Prints the survivors, the score of each file and that of all, and ends with 1 if a mutant survived. With ``--kind
constant`` only constants change. ``--table`` prints the scores as the table in ``docs/mutation.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mutation.children import DOMAIN, ROOT
from tests.mutation.coverage import coverage_of
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.runner import survivors

TESTS = ("tests/unit/domain", "tests/test_scenarios.py")
CORE = (
    *("methods", "verdict.py", "compensation.py", "compensation_terms.py", "incident_rules.py", "lost_time.py"),
    *("settlement.py", "money.py", "interval.py", "proration.py", "violations.py", "budget.py", "exclusions.py"),
    *("histogram.py", "counters.py", "outcome.py", "downtime.py", "charges.py", "claims.py", "periods.py"),
    "calendar.py",
)
KINDS = ("constant", "comparison", "arithmetic", "logic")


def main(arguments: Sequence[str]) -> int:
    said = _parser().parse_args(arguments)
    started = time.monotonic()
    places = [DOMAIN] if said.all else said.paths or [DOMAIN / name for name in CORE]
    modules = list(dict.fromkeys(module for place in places for module in _modules(place.resolve())))
    made = [
        mutant
        for module in modules
        for mutant in mutants(module, module.read_text(encoding="utf-8"))
        if said.kind is None or mutant.kind in said.kind
    ]
    print(f"{len(made)} mutants of {len(modules)} modules", file=sys.stderr, flush=True)
    found = survivors(made, coverage_of(said.tests, said.coverage), jobs=said.jobs)
    alive = [mutant for mutant, survived in found.items() if survived]
    for mutant in alive:
        print(f"survived: {mutant}".replace(f"{ROOT}/", ""))
    _print_files(found, "| `{}` | {} | {} | {} |" if said.table else "{:<28}{:>5} of {:<5}{:>6} %")
    kinds, living = Counter(mutant.kind for mutant in made), Counter(mutant.kind for mutant in alive)
    for kind in KINDS:
        if kinds[kind]:
            print(f"{kind:<12}{kinds[kind] - living[kind]:>6} of {kinds[kind]} killed")
    print(f"score       {_percent(len(made) - len(alive), len(made))} % in {time.monotonic() - started:.0f} s")
    return 1 if alive else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="modules or folders; default what decides and pays")
    parser.add_argument("--all", action="store_true", help="all of ledger/domain")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--coverage", type=Path, help="file that keeps which tests run which line, for the next run")
    parser.add_argument("--table", action="store_true", help="scores as rows of a Markdown table")
    return parser


def _print_files(found: Mapping[Mutant, bool], row: str) -> None:
    made = Counter(mutant.path for mutant in found)
    killed = Counter(mutant.path for mutant, survived in found.items() if not survived)
    for path, count in made.items():
        print(row.format(str(path.relative_to(DOMAIN)), killed[path], count, _percent(killed[path], count)))


def _percent(part: int, whole: int) -> str:
    """Rounded down, so that 100 says all."""
    thousandths = part * 1000 // whole if whole else 1000
    return f"{thousandths // 10}.{thousandths % 10}"


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
