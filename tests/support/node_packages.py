"""npm packages that tests need, installed from a lock in the repository, into the ``node_modules`` beside it.

Each is pinned by its integrity hash and comes from whatever registry npm is set to; Node.js and npm are the machine's
or those of a pinned wheel (scripts/with_node.py).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITH_NODE = (sys.executable, os.fspath(ROOT / "scripts/with_node.py"))
TOOLCHAIN = ROOT / "toolchain"
"""snarkjs, circom2 and circomlib."""


class NodePackagesMissing(Exception):
    """The packages could not be installed; the text says why."""


def installed(folder: Path) -> Path:
    """``folder/node_modules`` with what ``folder/package.json`` names, installed first where it is not there.

    Raises ``NodePackagesMissing``.
    """
    modules = folder / "node_modules"
    # Two test runs of one clone that start at once must not both install.
    with (folder / "package-lock.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_current(folder, modules):
            done = node("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
            if done.returncode or not _is_current(folder, modules):
                shutil.rmtree(modules, ignore_errors=True)
                raise NodePackagesMissing(f"npm ci: {(done.stdout + done.stderr)[-300:]}")
    return modules


def node(*command: str | Path, cwd: Path, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """A command (``node``, ``npm``) run to its end, with Node.js on its PATH."""
    line = [*WITH_NODE, *map(os.fspath, command)]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False, timeout=timeout_s)


def snarkjs(*arguments: str | Path, cwd: Path, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """``snarkjs`` with these arguments. Raises ``NodePackagesMissing``."""
    program = installed(TOOLCHAIN) / "snarkjs/build/cli.cjs"
    return node("node", program, *arguments, cwd=cwd, timeout_s=timeout_s)


def circom2(*arguments: str | Path, cwd: Path, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """``circom2`` with these arguments. Raises ``NodePackagesMissing``."""
    program = installed(TOOLCHAIN) / "circom2/cli.js"
    return node("node", program, *arguments, cwd=cwd, timeout_s=timeout_s)


def _is_current(folder: Path, modules: Path) -> bool:
    """Whether every package is there in the version that the lock names."""
    wanted = json.loads((folder / "package-lock.json").read_bytes())["packages"]
    for name, package in wanted.items():
        if not name:
            continue
        try:
            found = json.loads((folder / name / "package.json").read_bytes())
        except (OSError, ValueError):
            return False
        if found.get("version") != package["version"]:
            return False
    return modules.is_dir()
