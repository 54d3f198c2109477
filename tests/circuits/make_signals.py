"""Write circuits/generated/signals.json: the public signals of each template, in the order that circom compiles.

``python -m tests.circuits.make_signals`` needs Node.js. The order does not depend on an instance's sizes, so the
smallest of each template is compiled; ``test_witness_mutations`` compiles them again and compares.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ledger.attest.proving.circuits import SIGNALS_FILE, circuit_named
from ledger.resources import resource_dir
from tests.circuits.compiled import compiled

SMALLEST = ("compliance_25x4", "incidents_64")
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    folder = resource_dir("circuits")
    # A list that is out of date would refuse the circuits it is to be made from.
    (folder / SIGNALS_FILE).unlink(missing_ok=True)
    cache = Path(os.environ.get("SLA_LEDGER_KEY_CACHE") or ROOT / "var" / "keys")
    found = {circuit_named(folder, name).template: compiled(name, "O2", cache).public_signals() for name in SMALLEST}
    (folder / SIGNALS_FILE).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
