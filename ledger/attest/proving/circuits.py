"""The circuit instances of ``circuits/circuits.json``, and the circom files generated from them.

One template serves every period length; an instance is a line in the JSON file. Its main component
and the domain tags are generated, so that they cannot differ from what Python computes.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ledger.attest.crypto.poseidon import tag
from ledger.errors import CircuitUnknown

FORMAT: Final = "sla-ledger/circuits/v1"
TAGS: Final = ("block", "telemetry", "terms", "base", "credit", "incidents", "total")
TAGS_FILE: Final = "generated/tags.circom"
SIGNALS_FILE: Final = "generated/signals.json"
_INCLUDE: Final = re.compile(r'^include "([^"]+)";$', re.MULTILINE)
_HEADER: Final = "// Generated from circuits.json by `sla-ledger generate`; never edited.\npragma circom 2.1.6;\n\n"


@dataclass(frozen=True, slots=True)
class Circuit:
    """One instance: a template with its sizes. ``outputs`` and ``public_inputs`` are the signals in order.

    A circuit of periods has ``blocks`` to ``tiers``, one of incidents ``incidents``; the others are 0.
    """

    name: str
    source: str
    template: str
    outputs: tuple[str, ...]
    public_inputs: tuple[str, ...]
    main: str
    use: str
    blocks: int = 0
    windows_per_block: int = 0
    objectives: int = 0
    tiers: int = 0
    incidents: int = 0

    @property
    def windows(self) -> int:
        """How many windows a period may have; 0 of a circuit that proves no period."""
        return self.blocks * self.windows_per_block

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the public signals in the compiled order."""
        return self.outputs + self.public_inputs


def load_circuits(folder: Path) -> tuple[Circuit, ...]:
    """The instances of ``folder/circuits.json``.

    Raises CircuitUnknown if the file is missing or not of the format this release reads, or names public signals in
    another order than the compiled template has them.
    """
    path = folder / "circuits.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']!r}")
        circuits = tuple(
            Circuit(
                **entry | {name: tuple(entry[name]) for name in ("outputs", "public_inputs")},
            )
            for entry in document["circuits"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CircuitUnknown(
            f"{path} cannot be read as {FORMAT} ({error}); reinstall sla-ledger or restore the file",
            path=str(path),
        ) from error
    _require_compiled_order(path, circuits, compiled_signals(folder))
    return circuits


def compiled_signals(folder: Path) -> dict[str, tuple[str, ...]]:
    """Public signals of each template in the order of its last compilation by circom; empty where there was none.

    Raises CircuitUnknown if the file is there and cannot be read.
    """
    path = folder / SIGNALS_FILE
    try:
        document: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
        return {template: tuple(names) for template, names in document.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise CircuitUnknown(
            f"{path} cannot be read ({error}); reinstall sla-ledger or restore the file", path=str(path)
        ) from error


def _require_compiled_order(path: Path, circuits: tuple[Circuit, ...], compiled: dict[str, tuple[str, ...]]) -> None:
    for circuit in circuits:
        found = compiled.get(circuit.template, circuit.signals)
        if found != circuit.signals:
            raise CircuitUnknown(
                f"{path} names the public signals of {circuit.name} as {', '.join(circuit.signals)}, and the compiled "
                f"{circuit.template} has {', '.join(found)}: a proof would be read wrongly. Put outputs and "
                "public_inputs into the compiled order, or, where the template changed, compile it again with "
                "`python -m tests.circuits.make_signals`",
                name=circuit.name,
                stated=list(circuit.signals),
                compiled=list(found),
            )


def circuit_named(folder: Path, name: str) -> Circuit:
    """The instance ``name``. Raises CircuitUnknown, listing those there are."""
    circuits = load_circuits(folder)
    for circuit in circuits:
        if circuit.name == name:
            return circuit
    known = ", ".join(circuit.name for circuit in circuits)
    raise CircuitUnknown(f"there is no circuit {name!r}; there is {known}", name=name)


def generated_files(folder: Path) -> dict[Path, str]:
    """Path and text of every generated circom file under ``folder``."""
    files = {folder / TAGS_FILE: render_tags()}
    for circuit in load_circuits(folder):
        files[folder / circuit.main] = render_main(circuit)
    return files


def circuit_sources(circuit: Circuit, folder: Path) -> dict[str, str]:
    """Text of every file of ours that a compilation of ``circuit`` reads, by path below ``folder``.

    Generated files are rendered, not read. Includes that are no file of ours come from circomlib.
    Raises CircuitUnknown if the template's file is missing.
    """
    rendered = {TAGS_FILE: render_tags()}
    sources = {circuit.main: render_main(circuit)}
    pending = [PurePosixPath(circuit.source)]
    while pending:
        path = pending.pop()
        name = path.as_posix()
        if name in sources:
            continue
        if name in rendered:
            sources[name] = rendered[name]
            continue
        try:
            sources[name] = (folder / path).read_text(encoding="utf-8")
        except OSError as error:
            raise CircuitUnknown(f"the circuit file {folder / path} cannot be read: {error}", path=name) from error
        included = (PurePosixPath(posixpath.normpath(path.parent / m)) for m in _INCLUDE.findall(sources[name]))
        pending += [one for one in included if one.as_posix() in rendered or (folder / one).is_file()]
    return sources


def render_main(circuit: Circuit) -> str:
    """The circom file that instantiates ``circuit``."""
    period = f"{circuit.blocks}, {circuit.windows_per_block}, {circuit.objectives}, {circuit.tiers}"
    sizes = str(circuit.incidents) if circuit.incidents else period
    public = ", ".join(circuit.public_inputs)
    return (
        f'{_HEADER}include "../{circuit.source}";\n\n'
        f"component main {{public [{public}]}} =\n    {circuit.template}({sizes});\n"
    )


def render_tags() -> str:
    """The domain tags as circom functions."""
    return _HEADER + "".join(
        f'// TAG("{name}")\nfunction TAG_{name.upper()}() {{\n    return {tag(name)};\n}}\n' for name in TAGS
    )
