"""Make the hash-pinned lock files, or check without a network that they still fit.

    python scripts/lock.py            resolve again: requirements.lock and those of APART
    python scripts/lock.py --check    exit 1 where a lock misses a requirement, a hash or names a host

pip-tools runs in an environment of its own, made for the run, so that it is no dependency of the
project and cannot influence what it resolves.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PIP_TOOLS = "pip-tools==7.6.2"
# Locks of environments or tools that are no dependency of the project.
APART = ("requirements-node", "requirements-slither")
# Settings of the person's machine that would put files of another origin into the lock.
FOREIGN_SETTINGS = ("PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
HEADER = """\
# Made by `make lock` from {source} for Python 3.11; never edited by hand.
# Hashes of every file published for a version, no index and no host: docs/adr/0004.
"""

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)")


def resolve(source: Path, lock: Path, *options: str) -> None:
    """Write ``lock`` for ``source`` with pip-compile; versions already in it stay where they fit."""
    environment = {key: value for key, value in os.environ.items() if key not in FOREIGN_SETTINGS}
    environment["PIP_CONFIG_FILE"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="sla-ledger-lock-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_TOOLS], check=True, env=environment)
        subprocess.run(
            [
                *(python, "-m", "piptools", "compile", "--quiet", "--generate-hashes", "--strip-extras"),
                *("--allow-unsafe", "--no-header", "--no-emit-index-url", "--no-emit-trusted-host"),
                *("--no-emit-find-links", *options, "--output-file", lock.name, source.name),
            ],
            check=True,
            env=environment,
            cwd=ROOT,
        )
    body = lock.read_text(encoding="utf-8").lstrip()
    lock.write_text(HEADER.format(source=source.name) + body, encoding="utf-8")


def project_requirements() -> list[Requirement]:
    """What pyproject.toml asks for: base, every extra, and the build backend."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    lines = list(project["dependencies"]) + list(document["build-system"]["requires"])
    for extra in project["optional-dependencies"].values():
        lines += extra
    return [Requirement(line) for line in lines]


def requirements_apart(source: Path) -> list[Requirement]:
    """What a file of requirements asks for."""
    lines = source.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def faults(lock: Path, requirements: list[Requirement]) -> list[str]:
    """What is wrong with ``lock``, one sentence each."""
    text = lock.read_text(encoding="utf-8")
    found = [f"{lock.name} names a host: {line.strip()}" for line in text.splitlines() if "://" in line]
    found += [f"{lock.name} has an option line: {line}" for line in text.splitlines() if line.startswith("-")]
    pins: dict[str, Version] = {}
    for block in re.split(r"\n(?=\S)", text):
        if pin := _PIN.match(block):
            pins[canonicalize_name(pin["name"])] = Version(pin["version"])
            if "--hash=sha256:" not in block:
                found.append(f"{lock.name} pins {pin['name']} without a hash.")
    for requirement in requirements:
        version = pins.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            state = "does not pin it" if version is None else f"pins {version}"
            found.append(f"{requirement} is required, but {lock.name} {state}. Run: make lock")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only check, without a network")
    arguments = parser.parse_args()
    project_lock = ROOT / "requirements.lock"
    apart = {ROOT / f"{name}.lock": ROOT / f"{name}.in" for name in APART}
    if not arguments.check:
        if sys.version_info[:2] != (3, 11):
            sys.exit("The lock is made with Python 3.11, the oldest version that the project supports.")
        resolve(ROOT / "pyproject.toml", project_lock, "--all-extras")
        for lock, source in apart.items():
            resolve(source, lock)
    found = faults(project_lock, project_requirements())
    for lock, source in apart.items():
        found += faults(lock, requirements_apart(source))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
