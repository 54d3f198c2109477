"""Proving keys from a ceremony, by manifest and pin.

A pin is the sha256 of a manifest (:mod:`ledger.attest.proving.ceremony_manifest`), which names the zkey, the
circuit's sources and the verification key. Where a circuit is pinned nothing else proves it: a key that is not the
pinned one is refused, and no development key takes its place.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.attest.crypto.verification_key import VerificationKey, load_verification_key, parse_verification_key
from ledger.attest.proving.ceremony_manifest import (
    CeremonyManifest,
    circuit_source_hash,
    file_sha256,
    history,
    read_manifest,
)
from ledger.attest.proving.circuits import Circuit, circuit_sources
from ledger.attest.proving.limits import Notify
from ledger.attest.proving.prover_process import ProverProcess
from ledger.attest.proving.zk_keys import MANIFEST, PROVING_KEY, VERIFICATION_KEY, CircuitKey, KeyCache
from ledger.attest.proving.zkey import read_zkey
from ledger.errors import ProvingKeyInvalid, ProvingKeyRefused, VerificationKeyInvalid

PINS_FORMAT: Final = "sla-ledger/key-pins/v1"
ZKEY: Final = "circuit.zkey"
WASM: Final = "circuit.wasm"
_IMPORT_TIMEOUT_S: Final = 900.0
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def read_pins(path: Path) -> dict[str, str]:
    """Circuit names with the sha256 (hex) of their manifest; none where there is no file.

    Raises ProvingKeyInvalid for a file that is no list of pins: who pinned must not silently be without.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != PINS_FORMAT or not all(_DIGEST.fullmatch(pin) for pin in document["pins"].values()):
            raise ValueError("another format")
        return dict(document["pins"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProvingKeyInvalid(f"{path} holds no pins of proving keys ({error!r})", path=str(path)) from error


def write_pin(path: Path, circuit: str, pin: str) -> None:
    """Pin ``circuit``; other pins stay. Raises ProvingKeyInvalid."""
    pins = read_pins(path) | {circuit: pin}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"format": PINS_FORMAT, "pins": pins}, indent=1, sort_keys=True) + "\n")
    fresh.replace(path)


@dataclass(frozen=True, slots=True)
class PinnedKeys:
    """The keys of ``cache`` for circuits that nobody pinned; for those in ``pins`` the imported ones alone."""

    cache: KeyCache
    pins: Mapping[str, str]

    @property
    def notify(self) -> Notify:
        """Takes sentences on what takes long."""
        return self.cache.notify

    def ensure(self, circuit: Circuit, process: ProverProcess) -> CircuitKey:
        """The key of ``circuit``. Raises ProvingKeyRefused for one that is not what was pinned, ProverUnavailable."""
        if circuit.name not in self.pins:
            return self.cache.ensure(circuit, process)
        return imported_key(self.cache, circuit, self.pins[circuit.name])


def import_key(
    cache: KeyCache,
    circuit: Circuit,
    zkey: Path,
    manifest: CeremonyManifest,
    pin: str,
    process: ProverProcess,
    wasm: Path | None = None,
) -> CircuitKey:
    """Take ``zkey`` into the cache as the key with this ``pin``; ``wasm`` is the circuit for snarkjs.

    Raises ProvingKeyRefused where zkey, manifest, pin and circuit do not fit together, ProverUnavailable.
    """
    _check_manifest(cache, circuit, manifest, pin)
    _check_zkey(zkey, manifest)
    cache.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".importing-{circuit.name}-", dir=cache.directory) as scratch:
        sources, fresh = Path(scratch, "circuits"), Path(scratch, "key")
        for name, text in circuit_sources(circuit, cache.circuits).items():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_text(text, encoding="utf-8")
        fresh.mkdir()
        shutil.copyfile(zkey, fresh / ZKEY)
        if wasm is not None:
            shutil.copyfile(wasm, fresh / WASM)
        made = process.request(
            "import_zkey",
            _IMPORT_TIMEOUT_S,
            f"importing the key of {circuit.name}",
            main=str(sources / circuit.main),
            zkey=str(fresh / ZKEY),
            proving_key=str(fresh / PROVING_KEY),
        )
        key = _checked_key(made["verification_key"], manifest)
        (fresh / VERIFICATION_KEY).write_text(json.dumps(key.document()), encoding="ascii")
        (fresh / MANIFEST).write_bytes(manifest.text)
        home = _home(cache, circuit, pin)
        if home.exists():
            home.rename(Path(scratch, "replaced"))
        fresh.rename(home)
    return imported_key(cache, circuit, pin)


def imported_key(cache: KeyCache, circuit: Circuit, pin: str) -> CircuitKey:
    """The key that was imported with this ``pin``, every file looked at again.

    Raises ProvingKeyRefused if it is not there, was changed, or is of another state of the circuit.
    """
    home = _home(cache, circuit, pin)
    try:
        manifest = read_manifest((home / MANIFEST).read_bytes())
        _check_manifest(cache, circuit, manifest, pin)
        _check_zkey(home / ZKEY, manifest)
        key = _checked_key(load_verification_key((home / VERIFICATION_KEY).read_bytes()).document(), manifest)
        if not os.access(home / PROVING_KEY, os.R_OK):
            raise ProvingKeyInvalid(f"{home / PROVING_KEY} is missing")
    except (OSError, ProvingKeyInvalid, VerificationKeyInvalid) as error:
        raise _refused(
            circuit, f"cannot be read from {home} ({error}): import it again with `sla-ledger keys import`", pin=pin
        ) from error
    wasm = home / WASM
    return CircuitKey(
        circuit.name,
        key,
        home / PROVING_KEY,
        manifest.document,
        zkey=home / ZKEY,
        witness_wasm=wasm if wasm.exists() else None,
    )


def _home(cache: KeyCache, circuit: Circuit, pin: str) -> Path:
    # Not `NAME-...`, which a changed circuit's development keys are looked for by.
    return cache.directory / f"ceremony-{circuit.name}-{pin[:16]}"


def _check_manifest(cache: KeyCache, circuit: Circuit, manifest: CeremonyManifest, pin: str) -> None:
    if manifest.digest != pin:
        raise _refused(circuit, f"has a manifest with sha256 {manifest.digest}, and {pin} was pinned", pin=pin)
    if manifest.document["circuit"] != circuit.name:
        raise _refused(circuit, f"is for {manifest.document['circuit']}", pin=pin)
    if manifest.document["source_sha256"] != circuit_source_hash(circuit, cache.circuits):
        raise _refused(
            circuit, "was made for other circuit files than those here: use the release it was made for", pin=pin
        )


def _check_zkey(path: Path, manifest: CeremonyManifest) -> None:
    found = file_sha256(path)
    if found != manifest.document["zkey_sha256"]:
        raise ProvingKeyRefused(
            f"{path} has sha256 {found}, and its manifest says {manifest.document['zkey_sha256']}: get the file that "
            "the manifest was made of",
            found=found,
        )
    said = history(read_zkey(path))
    if any(manifest.document[member] != value for member, value in said.items()):
        raise ProvingKeyRefused(f"{path} tells another history than its manifest", found=found)


def _checked_key(document: Any, manifest: CeremonyManifest) -> VerificationKey:
    key = parse_verification_key(document)
    if key.circuit_id().hex() != manifest.document["circuit_id"]:
        raise ProvingKeyRefused(
            f"the key has the circuit id {key.circuit_id().hex()}, and its manifest says "
            f"{manifest.document['circuit_id']}",
            found=key.circuit_id().hex(),
        )
    return key


def _refused(circuit: Circuit, what: str, **data: object) -> ProvingKeyRefused:
    return ProvingKeyRefused(f"the proving key of {circuit.name} {what}", circuit=circuit.name, **data)
