"""Change ``ledger/domain`` in small ways and see whether a test notices: ``python -m tests.mutation.main [PATH ...]``.

Prints the survivors, the score of each file and that of all, and ends with 1 if a mutant survived. With ``--kind
constant`` only constants change. ``--write`` puts the scores into the table in ``CONTRIBUTING.md``. What is listed as
equivalent is not tried; with ``--equivalent`` nothing else is, and it ends with 1 if a test notices one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.children import DOMAIN, ROOT
from tests.mutation.coverage import coverage_of
from tests.mutation.equivalent import equivalent
from tests.mutation.mutants import KINDS, mutants
from tests.mutation.noticed import key, read_noticed, write_noticed
from tests.mutation.runner import survivors
from tests.mutation.scores import Scores

TESTS = ("tests/unit/domain", "tests/test_scenarios.py")
CORE = (
    *("methods", "verdict.py", "compensation.py", "compensation_terms.py", "incident_rules.py", "lost_time.py"),
    *("settlement.py", "money.py", "interval.py", "proration.py", "violations.py", "budget.py", "exclusions.py"),
    *("histogram.py", "counters.py", "outcome.py", "downtime.py", "charges.py", "claims.py", "periods.py"),
    "calendar.py",
    *("lifecycle.py", "restatement.py", "window.py", "window_columns.py"),
)
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


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
    same, _ = equivalent(made)
    tried = [mutant for mutant in made if (mutant in same) is said.equivalent]
    print(f"{len(tried)} mutants of {len(modules)} modules", file=sys.stderr, flush=True)
    noticed = read_noticed(said.noticed)
    left = [mutant for mutant in tried if key(mutant) not in noticed]
    found = dict.fromkeys(tried, False)
    if left:
        found |= survivors(left, coverage_of(said.tests, said.coverage), jobs=said.jobs)
    if said.noticed is not None:
        write_noticed(said.noticed, noticed | {key(mutant) for mutant, survived in found.items() if not survived})
    wrong = [mutant for mutant, survived in found.items() if survived is not said.equivalent]
    for mutant in wrong:
        print(f"{'noticed' if said.equivalent else 'survived'}: {mutant}".replace(f"{ROOT}/", ""))
    if not said.equivalent:
        scores = Scores.of(found)
        print(scores.text())
        if said.write:
            scores.write(CONTRIBUTING)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="modules or folders; default what decides and pays")
    parser.add_argument("--all", action="store_true", help="all of ledger/domain")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--coverage", type=Path, help="file that keeps which tests run which line, for the next run")
    parser.add_argument("--noticed", type=Path, help="file that keeps what was noticed; the next run tries the rest")
    parser.add_argument("--write", action="store_true", help="the scores into the table in CONTRIBUTING.md")
    parser.add_argument("--equivalent", action="store_true", help="only what is listed as equivalent")
    return parser


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
