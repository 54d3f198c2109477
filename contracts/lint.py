"""Lint the contracts with solhint, at the version and with the packages of ``contracts/lint/package-lock.json``.

``python contracts/lint.py`` exits 0 without a finding, 1 with one, 2 where it cannot run. What is switched off in
``lint/solhint.json`` stands with its reason in ``contracts/ANALYSIS.md``. Node and npm are found as by ``build.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build import HERE, BuildFailed, find_node, run

INPUTS = ("package.json", "package-lock.json", ".npmrc", "solhint.json")


def lint(work: Path, sources: Path) -> subprocess.CompletedProcess[str]:
    """Run solhint over ``sources`` in the folder ``work``, into which its packages are installed."""
    node, npm = find_node()
    for name in INPUTS:
        shutil.copy(HERE / "lint" / name, work / name)
    shutil.copytree(sources, work / "src")
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
    command = [node, "node_modules/solhint/solhint.js", "--disc", "--noPoster", "--max-warnings", "0"]
    command += ["--config", "solhint.json", "src/**/*.sol"]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)


def main() -> int:
    """Command line."""
    with tempfile.TemporaryDirectory(prefix="sla-contracts-lint-") as folder:
        try:
            result = lint(Path(folder), HERE / "src")
        except BuildFailed as error:
            print(error, file=sys.stderr)
            return 2
    print(os.linesep.join(line for line in (result.stdout, result.stderr) if line.strip()) or "contracts: no finding")
    return 1 if result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
