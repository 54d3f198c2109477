"""Run a command with Node.js and npm on PATH: the machine's own, or those of a hash-pinned wheel.

    python scripts/with_node.py COMMAND [ARGUMENT ...]

Only the check of the compiled contracts (the Solidity compiler is a JavaScript package) and the tests on
a local Ethereum node (npm brings its program) need it, so the wheel of about 60 MB is installed when one of
them first runs on a machine without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-node.lock"


def has_node() -> bool:
    return shutil.which("node") is not None and shutil.which("npm") is not None


def main() -> int:
    command = sys.argv[1:]
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    if not has_node():
        scripts = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    if not has_node():
        print("Node.js is not on PATH: installing it into this environment.", file=sys.stderr)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
        if subprocess.run(install, check=False).returncode != 0:
            print("Node.js could not be installed; install node and npm and run again.", file=sys.stderr)
            return 1
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
