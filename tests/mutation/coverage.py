"""Which tests run which line of the domain: the tests that a mutant of the line is tried on."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

import pytest

from tests.mutation.children import DOMAIN, arguments, quiet
from tests.mutation.mutants import Mutant

_OURS = ("ledger", "tests", "api", "scripts")
# A test that calls a function more often, or runs more lines in it, is taken to run all its lines.
_CALLS, _LINES = 10, 500
_ON_IMPORT = ""
_EXAMPLES = 10

_Tracer = Callable[[FrameType, str, Any], Any]


@dataclass
class Coverage:
    """Which tests run which line of the domain, how long each takes, which lines run on import, and what the tests
    import that is not ours."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    on_import: dict[str, set[int]]
    modules: list[str]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's line, the fastest first; all, of a line that runs on import."""
        running = self.running(mutant)
        others = set(self.seconds) - set(running) if self.is_on_import(mutant) else set[str]()
        return [*self._in_turn(running), *self._in_turn(others)]

    def running(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's line."""
        return self.lines.get(str(mutant.path), {}).get(self._line(mutant), [])

    def is_on_import(self, mutant: Mutant) -> bool:
        """Whether a mutant's line runs when its module is imported."""
        return self._line(mutant) in self.on_import.get(str(mutant.path), ())

    def _line(self, mutant: Mutant) -> int:
        """A mutant's line, or the one before it that is said to run: a line of keys or of constants alone is not."""
        path, line = str(mutant.path), mutant.line
        tests, on_import = self.lines.get(path, {}), self.on_import.get(path, set())
        while line > 1 and line not in tests and line not in on_import:
            line -= 1
        return line

    def _in_turn(self, tests: Iterable[str]) -> list[str]:
        """The fastest test of every file, then the second of every file, and so on: files differ most."""
        rank: Counter[str] = Counter()
        found = []
        for test in sorted(tests, key=self._seconds):
            file = test.partition("::")[0]
            rank[file] += 1
            found.append((rank[file], test))
        return [test for _, test in sorted(found, key=lambda pair: (pair[0], self._seconds(pair[1])))]

    def _seconds(self, test: str) -> float:
        return self.seconds[test]


@dataclass
class _Recorder:
    """A pytest plugin: which lines of the domain each test runs."""

    lines: defaultdict[str, defaultdict[int, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    seconds: dict[str, float] = field(default_factory=dict)
    test: str = _ON_IMPORT
    calls: defaultdict[CodeType, int] = field(default_factory=lambda: defaultdict(int))
    tracers: dict[CodeType, _Tracer] = field(default_factory=dict)
    is_domain: dict[str, bool] = field(default_factory=dict)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._now(nodeid)
        self.seconds[nodeid] = time.perf_counter()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = time.perf_counter() - self.seconds[nodeid]
        self._now(_ON_IMPORT)

    def _now(self, test: str) -> None:
        self.test = test
        self.calls.clear()
        self.tracers.clear()

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        name = code.co_filename
        known = self.is_domain.get(name)
        if known is None:
            known = self.is_domain[name] = name.startswith(str(DOMAIN))
        if not known:
            return None
        self.calls[code] += 1
        if self.calls[code] > _CALLS:
            if self.calls[code] == _CALLS + 1:
                self._all(code)
            return None
        self.lines[name][frame.f_lineno].add(self.test)
        tracer = self.tracers.get(code)
        if tracer is None:
            tracer = self.tracers[code] = self._tracer(code)
        return tracer

    def _all(self, code: CodeType) -> None:
        for *_, line in code.co_lines():
            if line is not None:
                self.lines[code.co_filename][line].add(self.test)

    def _tracer(self, code: CodeType) -> _Tracer:
        found, test, left = self.lines[code.co_filename], self.test, _LINES

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left
            left -= 1
            found[frame.f_lineno].add(test)
            if left < 0:
                frame.f_trace_lines = False
                self.calls[code] = max(self.calls[code], _CALLS)
                self._all(code)
            return line

        return line


def coverage_of(places: Sequence[Path]) -> Coverage:
    """Run the tests once, unchanged. Ends the run if one fails: nothing could be told from others then."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "coverage.json"
        child = os.fork()
        if child == 0:
            _record([str(place) for place in places], result)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(f"the tests fail without any change; run: pytest {' '.join(map(str, places))}")
        found = json.loads(result.read_text())
    lines: dict[str, dict[int, list[str]]] = defaultdict(dict)
    on_import: dict[str, set[int]] = defaultdict(set)
    for path, by_line in found["lines"].items():
        for number, tests in by_line.items():
            if named := [test for test in tests if test != _ON_IMPORT]:
                lines[path][int(number)] = named
            if _ON_IMPORT in tests:
                on_import[path].add(int(number))
    return Coverage(dict(lines), found["seconds"], dict(on_import), found["modules"])


def _record(places: Sequence[str], result: Path) -> NoReturn:
    quiet(_EXAMPLES)
    recorder = _Recorder()
    sys.settrace(recorder.trace)
    code = pytest.main(arguments(places), plugins=[recorder])
    sys.settrace(None)
    names = {name for name in sys.modules if not name.startswith(_OURS) and not name.startswith("_")}
    found = {
        "lines": {path: {n: sorted(t) for n, t in lines.items()} for path, lines in recorder.lines.items()},
        "seconds": recorder.seconds,
        "modules": sorted(names),
    }
    if code == 0:
        result.write_text(json.dumps(found))
    os._exit(code)
