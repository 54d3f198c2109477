"""Change ``ledger/domain`` in small ways and see whether a test notices: ``python -m tests.mutation.main [PATH ...]``.

Module by module, each by the tests that tell of it; what was tried is kept in ``var/mutation.json``, so that a run
that was stopped goes on. Prints the survivors, the score of each module and of all, and ends with 1 if one survived.
With ``--kind constant`` only constants change. ``--write`` puts the scores into the table in ``CONTRIBUTING.md``. What
is listed as equivalent is not tried; with ``--equivalent`` nothing else is, and it ends with 1 if a test notices one.
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
from tests.mutation.kept import Kept, state
from tests.mutation.mutants import KINDS, mutants
from tests.mutation.noticed import key, read_noticed, write_noticed
from tests.mutation.runner import survivors
from tests.mutation.scores import Scores
from tests.mutation.told import telling

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
KEPT = Kept(ROOT / "var/mutation.json")


def main(arguments: Sequence[str]) -> int:
    said = _parser().parse_args(arguments)
    started = time.monotonic()
    modules = list(dict.fromkeys(module for place in said.paths for module in _modules(place.resolve())))
    if not said.tests:
        untold = [module for module in modules if not telling(module)]
        modules = [module for module in modules if module not in untold]
        if untold:
            print("no test file tells of:", *map(_short, untold), file=sys.stderr, flush=True)
    scores, wrong = Scores({}), list[str]()
    for at, module in enumerate(modules, 1):
        print(f"{at} of {len(modules)}: {_short(module)}", file=sys.stderr, flush=True)
        score, survived = _tried(module, said)
        scores = scores.updated(score)
        wrong += survived
    for each in wrong:
        print(each)
    if not said.equivalent:
        print(scores.text())
        if said.write:
            scores.write(CONTRIBUTING)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


def _tried(module: Path, said: argparse.Namespace) -> tuple[Scores, Sequence[str]]:
    """The score of a module, and what is wrong about it."""
    made = mutants(module, module.read_text(encoding="utf-8"))
    same, _ = equivalent(made)
    made = [each for each in made if (each in same) is said.equivalent and each.kind in (said.kind or KINDS)]
    tests = said.tests or telling(module)
    whole = not (said.equivalent or said.kind or said.tests or said.noticed)
    if whole and (kept := KEPT.of(module, state(made, tests))):
        return kept
    noticed = read_noticed(said.noticed)
    left = [mutant for mutant in made if key(mutant) not in noticed]
    found = dict.fromkeys(made, False)
    if left:
        found |= survivors(left, coverage_of(tests), jobs=said.jobs)
    if said.noticed is not None:
        write_noticed(said.noticed, noticed | {key(mutant) for mutant, survived in found.items() if not survived})
    word = "noticed" if said.equivalent else "survived"
    wrong = [f"{word}: {mutant}".replace(f"{ROOT}/", "") for mutant in made if found[mutant] is not said.equivalent]
    scores = Scores.of(found)
    if whole:
        KEPT.put(module, state(made, tests), scores, wrong)
    return scores, wrong


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[DOMAIN], help="modules or folders; default all")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--tests", nargs="+", type=Path, help="files of tests; default those that tell of each module")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--noticed", type=Path, help="file that keeps what was noticed; the next run tries the rest")
    parser.add_argument("--write", action="store_true", help="the scores into the table in CONTRIBUTING.md")
    parser.add_argument("--equivalent", action="store_true", help="only what is listed as equivalent")
    return parser


def _short(module: Path) -> str:
    return str(module.relative_to(DOMAIN))


def _modules(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
