"""The key under which a peer is measured beside ours: one zkey for both, worth nothing but its speed.

The key is kept in the cache of keys under the hash of the circuit's constraints and of what wrote it.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import sys
import tempfile
from pathlib import Path

from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.circuits import circuit_named
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import CircuitKey
from ledger.attest.proving.zkey import read_zkey
from ledger.resources import resource_dir
from tests.bench import fixed_base, known_zkey
from tests.circuits.compiled import compiled

IMPORT_TIMEOUT_S = 600


def zkey_of(name: str, cache: Path) -> CircuitKey:
    """The key of the shipped circuit ``name`` with its zkey and WebAssembly, made now if it is not in the cache."""
    made = compiled(name, "O2", cache)
    digest = hashlib.sha256((made.folder / f"{name}.r1cs").read_bytes())
    for module in (known_zkey, fixed_base):
        digest.update(inspect.getsource(module).encode())
    folder = cache / "tests" / f"bench-{name}-{digest.hexdigest()[:16]}"
    with (cache / "tests" / f".bench-{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            print(f"  making a key of {name}, once", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=cache / "tests", prefix=".bench-") as scratch:
                fresh = Path(scratch, "made")
                fresh.mkdir()
                known_zkey.write_zkey(fresh / "key.zkey", made.constraints(), known_zkey.Secrets.drawn())
                _import(name, fresh)
                fresh.rename(folder)
    key = parse_verification_key(read_zkey(folder / "key.zkey").verification_key_document())
    wasm = made.folder / f"{name}_js" / f"{name}.wasm"
    return CircuitKey(name, key, folder / "proving.key", {}, zkey=folder / "key.zkey", witness_wasm=wasm)


def _import(name: str, folder: Path) -> None:
    circuits = resource_dir("circuits")
    with ProverProcess() as process:
        process.request(
            "import_zkey",
            IMPORT_TIMEOUT_S,
            "importing the zkey",
            main=str(circuits / circuit_named(circuits, name).main),
            zkey=str(folder / "key.zkey"),
            proving_key=str(folder / "proving.key"),
        )
