"""Assembling the verification page: our modules, snarkjs and the tables as one HTML file that needs nothing else.

snarkjs and its libraries come from the installed packages of toolchain/ and are in no repository of ours. Equal inputs
give equal bytes: nothing of the time, the machine or a path gets into the file. Its policy allows exactly the scripts
and the style that are in it, by their hashes, and no connection.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.verify_page.tables import page_tables
from ledger.errors import ProverUnavailable

STATIC: Final = Path(__file__).parent / "static"
_TIMEOUT_S: Final = 120
PACKAGES: Final = {"snarkjs": "0.7.6", "@noble/curves": "2.4.0", "@noble/hashes": "2.4.0", "esbuild-wasm": "0.28.2"}
"""What the page is made of and with; others would give another page."""
_SNARKJS_SHA256: Final = "3f61bbd9ac0a10173902eaef65b510fa4e9a2c057f759c7f18a6d0446b20fd06"
"""Of build/snarkjs.min.js, which goes into the page byte by byte."""
_POLICY: Final = (
    "default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src {style}; connect-src 'none'; worker-src "
    "'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_NOTICE: Final = (
    "sla-ledger's verification page. It contains snarkjs 0.7.6 by iden3 (GPL-3.0) and, of "
    "@noble/curves and @noble/hashes 2.4.0, what it uses (MIT). The rest is Apache-2.0. As a whole this file is "
    "therefore under the GNU General Public License, version 3; the texts stand at its end. Its source is the npm "
    "packages of these versions and sla-ledger's ledger/attest/verify_page."
)
_ABOUT: Final = (
    "The proof is checked by snarkjs 0.7.6 and again by @noble/curves 2.4.0; time zones follow tzdata {tzdata}. As a "
    "whole this file is under the GNU General Public License, version 3, because it contains snarkjs."
)


@dataclass(frozen=True, slots=True)
class Page:
    """An assembled page and what is in it."""

    html: bytes
    snarkjs_sha256: str
    program_sha256: str
    tzdata: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.html).hexdigest()


def assemble(toolchain: NodeToolchain) -> Page:
    """The page. Raises ``ProverUnavailable`` where a package of toolchain/ is missing or is another one."""
    for name, version in PACKAGES.items():
        _require_version(toolchain, name, version)
    snarkjs = toolchain.file("snarkjs/build/snarkjs.min.js").read_bytes()
    found = hashlib.sha256(snarkjs).hexdigest()
    if found != _SNARKJS_SHA256:
        raise ProverUnavailable(
            f"snarkjs/build/snarkjs.min.js has the sha256 {found}, not {_SNARKJS_SHA256}: it was altered; install it "
            "again",
            sha256=found,
        )
    program, tables = _bundled(toolchain), page_tables()
    scripts, style = [snarkjs.decode(), program], (STATIC / "page.css").read_text()
    data = json.dumps(tables, separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")
    policy = _POLICY.format(scripts=" ".join(map(_source, scripts)), style=_source(style))
    parts = {
        "notice": _NOTICE,
        "policy": policy,
        "style": style,
        "about": escape(_ABOUT.format(tzdata=tables["tzdata"])),
        "licences": escape(_licences(toolchain)),
        "tables": data,
        "snarkjs": inline(scripts[0]),
        "program": inline(program),
    }
    html = filled((STATIC / "page.html").read_text(), parts)
    return Page(html.encode(), found, hashlib.sha256(program.encode()).hexdigest(), tables["tzdata"])


def filled(template: str, parts: dict[str, str]) -> str:
    """Each part in its place; what looks like a place inside of a part is left alone."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _bundled(toolchain: NodeToolchain) -> str:
    """Our modules and what they import, as one script. Comments in it name files: it is made where no path differs."""
    with tempfile.TemporaryDirectory(prefix="sla-ledger-page-") as scratch:
        folder = Path(scratch)
        for source in sorted(STATIC.glob("*.js")):
            shutil.copyfile(source, folder / source.name)
        (folder / "node_modules").symlink_to(toolchain.modules.resolve(), target_is_directory=True)
        options = ("--bundle", "--format=iife", "--target=es2022", "--charset=utf8", "--legal-comments=inline")
        command = toolchain.esbuild("main.js", *options, "--preserve-symlinks", "--log-level=warning")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ESBUILD_")}
        try:
            done = subprocess.run(  # a command line of our own
                command, cwd=folder, env=environ, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ProverUnavailable(
                f"esbuild did not finish within {_TIMEOUT_S} s and was stopped; try again on a less busy machine",
                timeout_s=_TIMEOUT_S,
            ) from None
    if done.returncode or done.stderr:
        said = done.stderr.decode(errors="replace")[-2000:]
        raise ProverUnavailable(f"esbuild could not bundle the page: {said}", exit_code=done.returncode)
    return done.stdout.decode()


def _require_version(toolchain: NodeToolchain, name: str, version: str) -> None:
    found = json.loads(toolchain.file(f"{name}/package.json").read_bytes()).get("version")
    if found != version:
        raise ProverUnavailable(
            f"{name} {found} is installed, and the page is made with {version}: run `npm ci --ignore-scripts` in "
            "toolchain/",
            package=name,
            found=found,
            expected=version,
        )


def inline(script: str) -> str:
    """A script as the text of an element, which nothing in it may end."""
    lowered = script.lower()
    for ending in ("</script", "<script", "<!--"):
        if ending in lowered:
            raise ValueError(f"a script of the page holds {ending}, which HTML reads as markup")
    return script


def _source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _licences(toolchain: NodeToolchain) -> str:
    noble, snarkjs = (toolchain.file(name).read_text().strip() for name in ("@noble/curves/LICENSE", "snarkjs/COPYING"))
    return f"@noble/curves and @noble/hashes\n\n{noble}\n\nsnarkjs\n\n{snarkjs}"
