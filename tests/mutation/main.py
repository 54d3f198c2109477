"""Change ``ledger/domain`` in small ways and see whether a test notices: ``python -m tests.mutation.main [PATH ...]``.

Prints the survivors and the score, and ends with 1 if there are any. With ``--kind constant`` only constants change.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.mutants import mutants
from tests.mutation.runner import DOMAIN, ROOT, coverage_of, survivors

TESTS = ("tests/unit/domain", "tests/test_scenarios.py")
CORE = ("methods", "verdict.py", "settlement.py", "compensation.py", "violations.py", "money.py", "interval.py")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="modules or folders; default what decides and pays")
    parser.add_argument("--all", action="store_true", help="all of ledger/domain")
    parser.add_argument("--kind", action="append", choices=("constant", "comparison", "arithmetic", "logic"))
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--jobs", type=int, default=2)
    said = parser.parse_args(arguments)
    started = time.monotonic()
    places = [DOMAIN] if said.all else said.paths or [DOMAIN / name for name in CORE]
    modules = sorted({module for place in places for module in _modules(place.resolve())})
    made = [
        mutant
        for module in modules
        for mutant in mutants(module, module.read_text(encoding="utf-8"))
        if said.kind is None or mutant.kind in said.kind
    ]
    print(f"{len(made)} mutants of {len(modules)} modules", file=sys.stderr, flush=True)
    found = survivors(made, coverage_of(said.tests), jobs=said.jobs)
    alive = [mutant for mutant, survived in found.items() if survived]
    for mutant in alive:
        print(f"survived: {mutant}".replace(f"{ROOT}/", ""))
    kinds, living = Counter(mutant.kind for mutant in made), Counter(mutant.kind for mutant in alive)
    for kind, count in sorted(kinds.items()):
        print(f"{kind:<12}{count - living[kind]:>6} of {count} killed")
    killed = len(made) - len(alive)
    score = killed * 1000 // len(made) if made else 1000
    print(f"score       {score // 10}.{score % 10} % in {time.monotonic() - started:.0f} s")
    return 1 if alive else 0


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
