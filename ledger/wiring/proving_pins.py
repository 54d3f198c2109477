"""The proving keys that a data directory is pinned to: from a ceremony, by circuit."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ledger.attest.proving.ceremony_keys import read_pins, write_pin
from ledger.wiring.data_directory import KEY_FOLDER
from ledger.wiring.files import replace_file

PROVING_PINS: Final = "proving-keys.json"
"""In a data directory. It is no secret: whoever proves must see it, and so it does not lie among the keys."""


def pins_of(folder: Path) -> dict[str, str]:
    """The pins of a data directory, by circuit. Raises ``ProvingKeyInvalid``."""
    return read_pins(_pins_file(folder))


def pin_circuit(folder: Path, circuit: str, digest: str) -> None:
    """Pin a circuit of a data directory. Raises ``ProvingKeyInvalid``."""
    write_pin(_pins_file(folder), circuit, digest)


def move_pins(folder: Path) -> None:
    """Put pins that lie among the keys, as they once did, where every process sees them. Raises ``OSError``."""
    found = _pins_file(folder)
    if found.parent != folder:
        replace_file(folder / PROVING_PINS, found.read_bytes())
        found.unlink()


def _pins_file(folder: Path) -> Path:
    present, before = folder / PROVING_PINS, folder / KEY_FOLDER / PROVING_PINS
    return before if before.exists() and not present.exists() else present
