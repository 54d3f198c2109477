"""A prover's program that does one thing wrong: ``python misbehaving_prover.py KIND OTHER [ARGUMENT ...]``.

As a child of ``ProverProcess`` (no arguments) it answers requests; as snarkjs or rapidsnark it writes the file that
the last argument but one names. ``OTHER`` is a proof in JSON, a good one, of something else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from ledger.attest.proving.proof_makers import read_proof_json

OFF_CURVE = {"pi_a": ["1", "3", "1"], "pi_b": [["1", "2"], ["3", "4"], ["1", "0"]], "pi_c": ["1", "3", "1"]}
UNREDUCED = OFF_CURVE | {"pi_a": [str(1 << 255), "2", "1"]}
FILES = {
    "garbage": "nonsense",
    "not_a_proof": "{}",
    "long": " " * 100_000,
    "off_curve": json.dumps(OFF_CURVE),
    "unreduced": json.dumps(UNREDUCED),
}


def main() -> None:
    kind, other, *arguments = sys.argv[1:]
    if kind == "sleep":
        time.sleep(60)
    elif kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "hog":
        held = bytearray(900 << 20)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(60)
    elif kind != "silent":
        text = Path(other).read_text() if kind == "other" else FILES[kind]
        if arguments:
            Path(arguments[-2]).write_text(text)
        else:
            _serve(text, Path(other))


def _serve(text: str, other: Path) -> None:
    for line in sys.stdin:
        if json.loads(line)["op"] == "load":
            print('{"ok": true}', flush=True)
        elif text == other.read_text():
            print(json.dumps({"ok": True, "proof": read_proof_json(other).hex()}), flush=True)
        else:
            print(json.dumps({"ok": True, "proof": "ff" * 256}) if "pi_a" in text else text, flush=True)


if __name__ == "__main__":
    main()
