"""Analyse the contracts with slither, at the version and with the packages of ``requirements-slither.lock``.

``python contracts/slither.py`` exits 0 if ``contracts/ANALYSIS.md`` says of every finding what became of it, and of
none that is not found any more; 1 if not; 2 where it cannot run. What is analysed is
``generated/standard-json/input.json``, which ``build.py --check`` compares with ``src``. slither gets an environment
of its own in ``var/slither``, made when it is first needed; it reads what solcjs wrote, so no native compiler runs.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from build import GENERATED, HERE, BuildFailed, find_node, run

ROOT = HERE.parent
LOCK = ROOT / "requirements-slither.lock"
ENVIRONMENT = ROOT / "var" / "slither"
TRIAGE = HERE / "ANALYSIS.md"
SWITCHED_OFF = ("naming-convention",)
"""The immutables are in capitals; solhint holds the other names."""

_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| `(\w+)\.(\w+)` \| (`.+`|no text) \| .+ \|$")
_QUOTED = re.compile(r"`([^`]+)`")

Finding = tuple[str, str, str]
"""Detector, function with its contract, the expression that is pointed at (empty where there is none)."""


def environment() -> Path:
    """The program slither in its environment, which is made anew where the lock is another one."""
    stamp, wanted = ENVIRONMENT / "lock.sha256", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print("making var/slither from requirements-slither.lock", file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        pip = [str(ENVIRONMENT / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)], ROOT)
        stamp.write_text(wanted)
    return ENVIRONMENT / "bin" / "slither"


def analyse(slither: Path, standard_json: Path, work: Path) -> Iterator[Finding]:
    """What slither finds in the sources of a compiler input, working in the empty folder ``work``."""
    node, npm = find_node()
    for name in ("package.json", "package-lock.json", ".npmrc", "build-info.js"):
        shutil.copy(HERE / name, work / name)
    shutil.copy(standard_json, work / "input.json")
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
    project = work / "project"
    run([node, "build-info.js", str(project)], work)
    command = [str(slither), ".", "--compile-force-framework", "hardhat", "--ignore-compile", "--json", "found.json"]
    command += ["--filter-paths", "@openzeppelin", "--exclude", ",".join(SWITCHED_OFF)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    found = json.loads((project / "found.json").read_bytes()) if (project / "found.json").is_file() else {}
    if not found.get("success"):
        raise BuildFailed(f"slither did not come to an end:\n{done.stdout}{done.stderr}")
    for result in found["results"].get("detectors", []):
        yield from _findings(result)


def _findings(result: dict[str, Any]) -> Iterator[Finding]:
    elements = result["elements"]
    if not elements:
        yield result["check"], "", result["description"].strip()
        return
    first = elements[0]
    parent = first.get("type_specific_fields", {}).get("parent", {}).get("name", "")
    place = ".".join(filter(None, (parent, first["name"])))
    for element in elements[1:] or [{"name": ""}]:
        yield result["check"], place, element["name"]


def triaged() -> Iterator[Finding]:
    """The rows of the triage."""
    for line in TRIAGE.read_text(encoding="utf-8").splitlines():
        if row := _ROW.match(line):
            for code in _QUOTED.findall(row[4]) or [""]:
                yield row[1], f"{row[2]}.{row[3]}", code


def main() -> int:
    """Command line."""
    with tempfile.TemporaryDirectory(prefix="sla-contracts-slither-") as folder:
        try:
            found = set(analyse(environment(), GENERATED / "standard-json/input.json", Path(folder)))
        except BuildFailed as error:
            print(error, file=sys.stderr)
            return 2
    known = set(triaged())
    for what, findings in (("not in the triage", found - known), ("in the triage, not found any more", known - found)):
        for detector, place, code in sorted(findings):
            print(f"{detector} in {place}: `{code}` is {what}; see contracts/ANALYSIS.md")
    if found == known:
        print(f"contracts: {len(found)} findings of slither, all in contracts/ANALYSIS.md")
    return int(found != known)


if __name__ == "__main__":
    sys.exit(main())
