"""The part of requirements.lock that an image needs, with its hashes, on stdout.

    python scripts/runtime_lock.py server prove     the base requirements and these extras
    python scripts/runtime_lock.py --build          the build backend alone

The lock says of every package what asked for it, so the closure needs no index. It has the standard library alone:
it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==")
_VIA = re.compile(r"^    #(?: via)? +(?P<name>[A-Za-z0-9._-]+)", re.MULTILINE)


def canonical(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(document: dict[str, object], extras: Iterable[str], *, build: bool) -> set[str]:
    """Names that pyproject.toml asks for: the build backend, or base and extras. Raises ``KeyError`` for another."""
    if build:
        lines = list(document["build-system"]["requires"])  # type: ignore[index]
    else:
        project: dict[str, dict[str, list[str]]] = document["project"]  # type: ignore[assignment]
        lines = list(project["dependencies"])
        for extra in extras:
            lines += project["optional-dependencies"][extra]
    return {canonical(found[0]) for line in lines if (found := _NAME.match(line))}


def closure(lock: str, roots: set[str]) -> str:
    """The blocks of ``lock`` for ``roots`` and all that they ask for. Raises ``KeyError`` for a root it lacks."""
    blocks: dict[str, str] = {}
    parents: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=\S)", lock):
        if pin := _PIN.match(block):
            name = canonical(pin["name"])
            blocks[name] = block.rstrip()
            parents[name] = {canonical(found["name"]) for found in _VIA.finditer(block)}
    if missing := roots - blocks.keys():
        raise KeyError(f"requirements.lock lacks {', '.join(sorted(missing))}; run: make lock")
    kept = set(roots)
    while more := {name for name, by in parents.items() if name not in kept and by & kept}:
        kept |= more
    return "\n".join(blocks[name] for name in sorted(kept)) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras of pyproject.toml")
    parser.add_argument("--build", action="store_true", help="the build backend instead")
    arguments = parser.parse_args()
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    try:
        roots = wanted(document, arguments.extras, build=arguments.build)
        print(closure((ROOT / "requirements.lock").read_text(encoding="utf-8"), roots), end="")
    except KeyError as error:
        print(f"runtime_lock: {error.args[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
