"""The scores of modules that were tried, so that a run that was stopped goes on where it was.

A score holds for a module and the tests that tell of it, word for word, and for the mutants that are made now. What
else the tests run (other modules, what they import) is not asked for: remove the file to try all once more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.children import ROOT
from tests.mutation.mutants import Mutant
from tests.mutation.scores import Scores


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept in a file, by module."""

    file: Path

    def of(self, module: Path, state: str) -> tuple[Scores, Sequence[str]] | None:
        """The score of a module in a state and who survived; None where it was not tried in it."""
        found = self._read().get(_name(module))
        if found is None or found["state"] != state:
            return None
        return Scores.read(found["table"]), found["survived"]

    def put(self, module: Path, state: str, scores: Scores, survived: Sequence[str]) -> None:
        """Keep one module's, in place of what was kept of it."""
        all_of_them = {
            **self._read(),
            _name(module): {"state": state, "table": scores.page(), "survived": list(survived)},
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        written = self.file.with_suffix(".new")
        written.write_text(json.dumps(all_of_them, indent=1, sort_keys=True))
        written.replace(self.file)

    def _read(self) -> dict[str, dict[str, Any]]:
        return dict(json.loads(self.file.read_text())) if self.file.exists() else {}


def state(mutants: Iterable[Mutant], tests: Iterable[Path]) -> str:
    """What a score is of: the mutants, each with its whole module, and the tests' texts."""
    found = hashlib.blake2b(digest_size=16)
    for part in (*(each.text for each in mutants), *(f"{test}\n{test.read_text()}" for test in tests)):
        found.update(hashlib.blake2b(part.encode()).digest())
    return found.hexdigest()


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))
