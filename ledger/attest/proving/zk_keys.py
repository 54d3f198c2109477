"""Development proving keys, made on first use and cached.

A key is for one compiled circuit: its folder is named by a hash of everything the compilation reads
(circuit sources, sizes, compiler and circomlib versions). A development key is made by one party,
who can forge any proof under it; its manifest says ``dev_unsafe`` and nothing takes it for more.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.attest.crypto.verification_key import VerificationKey, load_verification_key, parse_verification_key
from ledger.attest.proving.circuits import Circuit, circuit_sources
from ledger.attest.proving.prover_process import ProverProcess
from ledger.errors import ProverUnavailable, VerificationKeyInvalid

FORMAT: Final = "sla-ledger/proving-key/v1"
PROVING_KEY: Final = "proving.key"
VERIFICATION_KEY: Final = "verification_key.json"
MANIFEST: Final = "manifest.json"
_TOOLCHAIN_TIMEOUT_S: Final = 60.0
_HASH_DIGITS: Final = 16

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CircuitKey:
    """A proving key on disk and the verification key that goes with it.

    ``manifest`` has the members format, name, circuit_id (hex), dev_unsafe, source_sha256, toolchain, files (name ->
    sha256 hex), setup_seconds; of a key from a ceremony see ``ledger.attest.proving.ceremony_keys``, and such a key
    has a ``zkey`` and may have the circuit as ``witness_wasm``.
    """

    name: str
    verification_key: VerificationKey
    proving_key: Path
    manifest: dict[str, Any]
    zkey: Path | None = None
    witness_wasm: Path | None = None

    @property
    def circuit_id(self) -> bytes:
        """sha256 of the canonical verification key."""
        return self.verification_key.circuit_id()


@dataclass(frozen=True, slots=True)
class KeyCache:
    """Proving keys under ``directory`` for the circuits in ``circuits``.

    ``notify`` gets a sentence when a key is made or made again. Makers in several processes wait for
    each other; a folder appears whole or not at all.
    """

    directory: Path
    circuits: Path
    notify: Notify
    setup_timeout_s: float = 900.0

    def ensure(self, circuit: Circuit, process: ProverProcess) -> CircuitKey:
        """The key of ``circuit``, made now if there is none that is current and intact.

        Raises ProverUnavailable if a key has to be made and cannot be, or the folder is not writable.
        """
        toolchain = process.request("toolchain", _TOOLCHAIN_TIMEOUT_S)
        sources = circuit_sources(circuit, self.circuits)
        source = source_hash(circuit, sources, toolchain)
        home = self.directory / f"{circuit.name}-{source[:_HASH_DIGITS]}"
        found = self._read(circuit, home, source, toolchain)
        if found is not None:
            return found
        try:
            with self._making(circuit.name):
                # Another maker may have finished while this one waited.
                found = self._read(circuit, home, source, toolchain)
                if found is not None:
                    return found
                self.notify(self._reason(circuit, home))
                with tempfile.TemporaryDirectory(prefix=_scratch(circuit.name), dir=self.directory) as scratch:
                    key, manifest = self._make(circuit, sources, toolchain, Path(scratch), process)
                    if home.exists():
                        # Set aside first: a reader sees the old folder, none or the new one, never a mixture.
                        home.rename(Path(scratch, "replaced"))
                    Path(scratch, "key").rename(home)
                return CircuitKey(circuit.name, key, home / PROVING_KEY, manifest)
        except OSError as error:
            raise ProverUnavailable(
                f"proving keys cannot be stored in {self.directory}: {error}; name a writable folder",
                directory=str(self.directory),
            ) from error

    def _read(self, circuit: Circuit, home: Path, source: str, toolchain: dict[str, Any]) -> CircuitKey | None:
        """The cached key if every file is the one its manifest names."""
        if not home.is_dir():
            return None
        try:
            manifest = json.loads((home / MANIFEST).read_bytes())
            key = load_verification_key((home / VERIFICATION_KEY).read_bytes())
            stated = {
                "format": FORMAT,
                "name": circuit.name,
                "circuit_id": key.circuit_id().hex(),
                "dev_unsafe": True,
                "source_sha256": source,
                "toolchain": toolchain,
                "files": {name: _file_sha256(home / name) for name in (PROVING_KEY, VERIFICATION_KEY)},
            }
            if any(manifest[member] != value for member, value in stated.items()):
                return None
        except (OSError, ValueError, KeyError, TypeError, VerificationKeyInvalid):
            return None
        return CircuitKey(circuit.name, key, home / PROVING_KEY, manifest)

    def _make(
        self,
        circuit: Circuit,
        sources: dict[str, str],
        toolchain: dict[str, Any],
        scratch: Path,
        process: ProverProcess,
    ) -> tuple[VerificationKey, dict[str, Any]]:
        """Compile and set up ``sources`` into ``scratch/key``."""
        for name, text in sources.items():
            path = scratch / "circuits" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        fresh = scratch / "key"
        fresh.mkdir()
        started = time.monotonic()
        made = process.request(
            "setup",
            self.setup_timeout_s,
            f"making a development key for {circuit.name}",
            main=str(scratch / "circuits" / circuit.main),
            proving_key=str(fresh / PROVING_KEY),
        )
        seconds = time.monotonic() - started
        key = parse_verification_key(made["verification_key"])
        if key.public_signals != len(circuit.signals):
            raise ProverUnavailable(
                f"{circuit.name} compiled to {key.public_signals} public signals, circuits.json names "
                f"{len(circuit.signals)}; restore the circuit files",
                circuit=circuit.name,
            )
        _write_json(fresh / VERIFICATION_KEY, key.document())
        manifest = {
            "format": FORMAT,
            "name": circuit.name,
            "circuit_id": key.circuit_id().hex(),
            "dev_unsafe": True,
            "source_sha256": source_hash(circuit, sources, toolchain),
            "toolchain": toolchain,
            "files": {name: _file_sha256(fresh / name) for name in (PROVING_KEY, VERIFICATION_KEY)},
            "setup_seconds": f"{seconds:.1f}",
        }
        _write_json(fresh / MANIFEST, manifest)
        return key, manifest

    def _reason(self, circuit: Circuit, home: Path) -> str:
        making = f"making a development key for {circuit.name} (unsafe: its maker can forge proofs)"
        if home.exists():
            return f"the cached key in {home.name} is damaged; {making}"
        old = sorted(path.name for path in self.directory.glob(f"{circuit.name}-*") if path.is_dir())
        if old:
            return f"circuit or toolchain changed since {', '.join(old)}, which may be deleted; {making}"
        return making

    @contextmanager
    def _making(self, name: str) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / f".{name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Whoever left these did not finish: the lock is ours.
            for abandoned in self.directory.glob(f"{_scratch(name)}*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            yield


def _scratch(name: str) -> str:
    return f".making-{name}-"


def source_hash(circuit: Circuit, sources: dict[str, str], toolchain: dict[str, Any]) -> str:
    """sha256 (hex) over everything a compilation of ``circuit`` reads."""
    listing = {"format": FORMAT, "signals": circuit.signals, "toolchain": toolchain, "sources": sources}
    return hashlib.sha256(json.dumps(listing, sort_keys=True).encode()).hexdigest()


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, document: dict[str, Any]) -> None:
    with path.open("w", encoding="ascii") as file:
        json.dump(document, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
