"""Tries tests on mutants, each in a process of its own that ends with the first test that fails.

Where a mutant changes the body of a function, the process is forked from one that has read all tests, and changes the
function in place (``_Server``). What is changed on import, or lives through that, is tried in a process that is forked
before anything of the ledger is imported, and imports the changed module in place of the one on disk.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.util
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tests.mutation.children import KILLED, ROOT, SURVIVED, UNTRIED, Chosen, arguments, give_up_after, quiet
from tests.mutation.coverage import Coverage
from tests.mutation.mutants import Mutant

_Said = Callable[[str], None]


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


def survivors(mutants: Sequence[Mutant], coverage: Coverage, *, jobs: int = 2) -> Mapping[Mutant, bool]:
    """Of every mutant whether it survived: no test failed. One that no test runs survives."""
    if any(name.startswith("ledger.domain") for name in sys.modules):
        raise SystemExit("the ledger was imported before, so that no mutant would be; run this in a process of its own")
    tests = {mutant: coverage.of(mutant) for mutant in mutants}
    inside = [mutant for mutant in mutants if coverage.running(mutant)]
    found = _in_place(inside, tests, coverage, jobs, _progress(len(inside), "in place"))

    def once_more(mutant: Mutant) -> bool:
        """Whether it was not tried in place, or survived that on a line that also runs on import."""
        code = found.get(mutant, UNTRIED)
        on_import = coverage.is_on_import(mutant)
        return bool(tests[mutant]) and (code == UNTRIED or (code == SURVIVED and on_import))

    again = [mutant for mutant in mutants if once_more(mutant)]
    _preload(coverage.modules)
    said = _progress(len(again), "on import")
    found |= _each(again, lambda mutant: _import_changed(mutant, tests[mutant], coverage), jobs, said)
    return {mutant: found.get(mutant, SURVIVED) != KILLED for mutant in mutants}


def _each(mutants: Sequence[Mutant], run: Callable[[Mutant], int], jobs: int, said: _Said) -> dict[Mutant, int]:
    """What ``run`` says of each, in a child of its own."""
    waiting, running, found = list(mutants)[::-1], dict[int, Mutant](), dict[Mutant, int]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            child = os.fork()
            if child == 0:
                _end_with(lambda mutant=mutant: run(mutant))
            running[child] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        found[mutant] = code if code in (SURVIVED, UNTRIED) else KILLED
        said(f"survived: {mutant}" if code == SURVIVED else "")
    return found


def _end_with(run: Callable[[], int]) -> None:
    code = KILLED
    try:
        code = run()
    finally:
        os._exit(code)


def _import_changed(mutant: Mutant, tests: Sequence[str], coverage: Coverage) -> int:
    """Run a mutant's tests in this process, which has not imported the ledger."""
    quiet()
    give_up_after(sum(coverage.seconds.values()))
    sys.meta_path.insert(0, _Changed(mutant))
    files = sorted({test.partition("::")[0] for test in tests})
    if pytest.main(arguments(files), plugins=[Chosen(tests, coverage.seconds)]) != pytest.ExitCode.OK:
        return KILLED
    return SURVIVED


def _in_place(
    mutants: Sequence[Mutant], tests: Mapping[Mutant, Sequence[str]], coverage: Coverage, jobs: int, said: _Said
) -> dict[Mutant, int]:
    """Fork a process that reads the tests and tries the mutants."""
    if not mutants:
        return {}
    with tempfile.NamedTemporaryFile() as result:
        child = os.fork()
        if child == 0:
            server = _Server(mutants, tests, coverage.seconds, jobs, said)
            files = sorted({test.partition("::")[0] for mutant in mutants for test in tests[mutant]})
            quiet()
            code = pytest.main(arguments(files), plugins=[server])
            Path(result.name).write_bytes(bytes(server.found.get(mutant, UNTRIED) for mutant in mutants))
            os._exit(code)
        os.waitpid(child, 0)
        codes = Path(result.name).read_bytes()
    if len(codes) != len(mutants):
        raise SystemExit("the tests could not be read; run: pytest tests/unit/domain")
    return dict(zip(mutants, codes, strict=True))


@dataclass
class _Server:
    """A pytest plugin: instead of running the tests it has read, try the mutants on them, each in a fork."""

    mutants: Sequence[Mutant]
    tests: Mapping[Mutant, Sequence[str]]
    seconds: Mapping[str, float]
    jobs: int
    said: _Said

    def __post_init__(self) -> None:
        self.found: dict[Mutant, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = defaultdict[tuple[str, str, int], list[FunctionType]](list)
        # What is frozen is in no list of objects, and the tests' own setting up may have frozen all there is.
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                functions[_key(each.__code__)].append(each)
        gc.freeze()

        for path in {mutant.path for mutant in self.mutants}:
            _codes_on_disk(path)

        def run(mutant: Mutant) -> int:
            if not _change(mutant, functions):
                return UNTRIED
            chosen = [items[test] for test in self.tests[mutant] if test in items]
            session.config.pluginmanager.register(Chosen((), self.seconds))
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            return SURVIVED

        self.found = _each(self.mutants, run, self.jobs, self.said)
        return True


def _change(mutant: Mutant, functions: Mapping[tuple[str, str, int], Sequence[FunctionType]]) -> bool:
    """Give the functions of a mutant's module their changed code. False where that is not all that changes."""
    old = _codes_on_disk(mutant.path)
    new = list(_codes(compile(mutant.text, str(mutant.path), "exec")))
    if len(old) != len(new):
        return False
    keys = [_key(code) for code in old]
    done = False
    # The first code is the module's own, which holds all others.
    for key, before, after in zip(keys[1:], old[1:], new[1:], strict=True):
        if before == after or not functions.get(key):
            continue
        if keys.count(key) > 1:
            return False
        for function in functions[key]:
            if len(function.__code__.co_freevars) != len(after.co_freevars):
                return False
            function.__code__ = after
        done = True
    return done and _rest(old[0]) == _rest(new[0])


@cache
def _codes_on_disk(path: Path) -> list[CodeType]:
    return list(_codes(compile(path.read_text(encoding="utf-8"), str(path), "exec")))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _rest(code: CodeType) -> tuple[object, ...]:
    """What a module does on import, apart from the bodies of its functions."""
    consts = tuple(
        (_rest(each) if each.co_flags & 0x1 == 0 else None) if isinstance(each, CodeType) else (type(each), each)
        for each in code.co_consts
    )
    return code.co_code, code.co_names, consts


def _progress(count: int, how: str) -> _Said:
    """Say on what is standard error now how far it is, and who lives."""
    terminal, done = os.dup(2), 0

    def said(what: str) -> None:
        nonlocal done
        done += 1
        if what:
            os.write(terminal, f"{what}\n".replace(f"{ROOT}/", "").encode())
        if done % 50 == 0 or done == count:
            os.write(terminal, f"{done} of {count} tried {how}\n".encode())

    return said


def _preload(modules: Sequence[str]) -> None:
    """Import what is not ours once, before the forks."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:
            continue
