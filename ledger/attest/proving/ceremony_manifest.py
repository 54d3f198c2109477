"""What is published about a ceremony's key, and pinned by its sha256: ``sla-ledger/ceremony-key/v1``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.attest.crypto.verification_key import parse_verification_key
from ledger.attest.proving.ceremony import contribution_hash
from ledger.attest.proving.circuits import Circuit, circuit_sources
from ledger.attest.proving.zkey import Zkey
from ledger.domain.terms.nesting import MAX_DEPTH, too_deep
from ledger.errors import ProvingKeyInvalid

FORMAT: Final = "sla-ledger/ceremony-key/v1"
MAX_MANIFEST_BYTES: Final = 1 << 20
_MEMBERS: Final = {
    "format": str,
    "circuit": str,
    "circuit_id": str,
    "source_sha256": str,
    "zkey_sha256": str,
    "ptau_sha256": str,
    "circuit_hash": str,
    "contributions": list,
    "beacon": dict,
    "dev_unsafe": bool,
}


@dataclass(frozen=True, slots=True)
class CeremonyManifest:
    """``document`` in the order and bytes of ``text``; ``digest`` is the sha256 that parties pin, in hex."""

    document: dict[str, Any]
    text: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text).hexdigest()


def describe(circuit: Circuit, circuits: Path, path: Path, zkey: Zkey, ptau_sha256: str, *, safe: bool) -> bytes:
    """The manifest's bytes. ``safe`` only if every check of the ceremony passed; ``ptau_sha256`` may be empty."""
    document = history(zkey) | {
        "format": FORMAT,
        "circuit": circuit.name,
        "circuit_id": parse_verification_key(zkey.verification_key_document()).circuit_id().hex(),
        "source_sha256": circuit_source_hash(circuit, circuits),
        "zkey_sha256": file_sha256(path),
        "ptau_sha256": ptau_sha256,
        "dev_unsafe": not safe,
    }
    return json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"


def history(zkey: Zkey) -> dict[str, Any]:
    """The members of a manifest that the zkey says itself: circuit hash, contributions, beacon."""
    steps = [(step, contribution_hash(step).hex()) for step in zkey.contributions]
    return {
        "circuit_hash": zkey.circuit_hash.hex(),
        "contributions": [{"name": step.name, "hash": digest} for step, digest in steps if step.beacon is None],
        "beacon": {
            name: value
            for step, digest in steps
            if step.beacon is not None
            for name, value in (
                ("value", step.beacon.hex()),
                ("iterations_exp", step.iterations_exp),
                ("hash", digest),
            )
        },
    }


def read_manifest(text: bytes) -> CeremonyManifest:
    """Raises ProvingKeyInvalid for what is no manifest of this format."""
    try:
        if len(text) > MAX_MANIFEST_BYTES:
            raise ValueError("it is too long")
        if too_deep(text):
            raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        if document.keys() != _MEMBERS.keys():
            raise ValueError(f"its members are not {', '.join(_MEMBERS)}")
        wrong = [name for name, kind in _MEMBERS.items() if type(document[name]) is not kind]
        if wrong:
            raise ValueError(f"{wrong[0]} is not of the kind it should be")
    except ValueError as error:
        raise ProvingKeyInvalid(
            f"the manifest cannot be used: {error}; name what `sla-ledger keys ceremony-check --manifest` wrote"
        ) from error
    return CeremonyManifest(document, text)


def circuit_source_hash(circuit: Circuit, circuits: Path) -> str:
    """sha256 (hex) over our files of the circuit and its signals, whatever compiles them."""
    listing = {"format": FORMAT, "signals": circuit.signals, "sources": circuit_sources(circuit, circuits)}
    return hashlib.sha256(json.dumps(listing, sort_keys=True).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Raises ProvingKeyInvalid for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ProvingKeyInvalid(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
