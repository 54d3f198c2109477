"""What tests noticed in an earlier run, so that the next one tries the rest.

A mutant is known by its module, its change and the changed text of the function, class or statement at the top of its
module: what stays as it was need not be tried again while tests are only added. A score for others to rely on is that
of a run without it.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.mutation.children import DOMAIN
from tests.mutation.mutants import Mutant


def read_noticed(kept: Path | None) -> frozenset[str]:
    """The keys that a file keeps; none where there is no file yet."""
    return frozenset(json.loads(kept.read_text())) if kept is not None and kept.exists() else frozenset()


def write_noticed(kept: Path, keys: Iterable[str]) -> None:
    """Keep keys."""
    kept.write_text(json.dumps(sorted(keys), indent=0))


def key(mutant: Mutant) -> str:
    """What a mutant is known by."""
    lines = mutant.text.splitlines()
    start, end = next(
        ((start, end) for start, end in _blocks(mutant.path) if start <= mutant.line <= end), (1, len(lines))
    )
    said = [str(mutant.path.relative_to(DOMAIN)), mutant.kind, mutant.change, *lines[start - 1 : end]]
    return hashlib.blake2b("\n".join(said).encode(), digest_size=12).hexdigest()


@cache
def _blocks(path: Path) -> list[tuple[int, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(node.lineno, node.end_lineno or node.lineno) for node in tree.body]
