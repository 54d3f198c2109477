"""Runs tests on a mutant: each in a process of its own that is forked before anything of the ledger is imported, and
imports the changed module in place of the one on disk."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = ROOT / "ledger/domain"
# An endless loop is noticed, too.
_SECONDS_AT_LEAST = 20
_EXAMPLES = 40
_OURS = ("ledger", "tests", "api", "scripts")


@dataclass
class Coverage:
    """Which tests run which line of the domain, how long each takes, and what they import that is not ours."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    modules: list[str]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's line, the fastest first; of a line that runs on import, all tests."""
        tests = self.lines.get(str(mutant.path), {}).get(mutant.line, ()) or self.seconds
        return sorted(tests, key=lambda test: self.seconds[test])


@dataclass
class _Recorder:
    """A pytest plugin: which lines of the domain each test runs."""

    lines: defaultdict[str, defaultdict[int, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    seconds: dict[str, float] = field(default_factory=dict)
    test: str = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid
        self.seconds[nodeid] = time.perf_counter()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = time.perf_counter() - self.seconds[nodeid]
        self.test = ""

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self.test or not frame.f_code.co_filename.startswith(str(DOMAIN)):
            return None
        found, test = self.lines[frame.f_code.co_filename], self.test
        found[frame.f_lineno].add(test)

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            found[frame.f_lineno].add(test)
            return line

        return line


@dataclass
class _Chosen:
    """A pytest plugin: only the chosen tests, in their order."""

    tests: Sequence[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {test: at for at, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a text."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts)
        self._path, self._text = mutant.path, mutant.text

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def create_module(self, spec: object) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._text, str(self._path), "exec"), module.__dict__)


def coverage_of(places: Sequence[str]) -> Coverage:
    """Run the tests once, unchanged. Ends the run if one fails: nothing could be told from others then."""
    with tempfile.NamedTemporaryFile() as result:
        child = os.fork()
        if child == 0:
            _quiet()
            recorder = _Recorder()
            sys.settrace(recorder.trace)
            code = pytest.main(_arguments(places), plugins=[recorder])
            sys.settrace(None)
            names = {name for name in sys.modules if not name.startswith(_OURS) and not name.startswith("_")}
            found = {
                "lines": {path: {n: sorted(t) for n, t in lines.items()} for path, lines in recorder.lines.items()},
                "seconds": recorder.seconds,
                "modules": sorted(names),
            }
            Path(result.name).write_text(json.dumps(found))
            os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(f"the tests fail without any change; run: pytest {' '.join(places)}")
        found = json.loads(Path(result.name).read_text())
    lines = {path: {int(n): tests for n, tests in by_line.items()} for path, by_line in found["lines"].items()}
    return Coverage(lines, found["seconds"], found["modules"])


def survivors(mutants: Sequence[Mutant], coverage: Coverage, *, jobs: int = 2) -> Mapping[Mutant, bool]:
    """Of every mutant whether it survived: no test failed. One that no test runs survives."""
    if any(name.startswith("ledger.domain") for name in sys.modules):
        raise SystemExit("the ledger was imported before, so that no mutant would be; run this in a process of its own")
    _preload(coverage.modules)
    waiting = list(mutants)[::-1]
    running: dict[int, Mutant] = {}
    survived: dict[Mutant, bool] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            tests = coverage.of(mutant)
            if tests:
                running[_start(mutant, tests, sum(coverage.seconds[test] for test in tests))] = mutant
            else:
                survived[mutant] = True
        if running:
            child, status = os.wait()
            survived[running.pop(child)] = status == 0
            if len(survived) % 25 == 0:
                print(f"{len(survived)} of {len(mutants)}", file=sys.stderr, flush=True)
    return {mutant: survived[mutant] for mutant in mutants}


def _start(mutant: Mutant, tests: Sequence[str], seconds: float) -> int:
    child = os.fork()
    if child:
        return child
    _quiet()
    signal.alarm(int(_SECONDS_AT_LEAST + 5 * seconds))
    sys.meta_path.insert(0, _Changed(mutant))
    files = sorted({test.partition("::")[0] for test in tests})
    code = 1
    try:
        code = pytest.main(["-x", *_arguments(files)], plugins=[_Chosen(tests)])
    finally:
        os._exit(int(code))


def _arguments(places: Sequence[str]) -> list[str]:
    return ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=mutation", *places]


def _quiet() -> None:
    """The child's tests say nothing, and draw the same examples each time."""
    from hypothesis import Phase, settings

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(
        "mutation", max_examples=_EXAMPLES, derandomize=True, database=None, deadline=None, phases=phases
    )


def _preload(modules: Sequence[str]) -> None:
    """Import what is not ours once, before the forks."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:
            continue
