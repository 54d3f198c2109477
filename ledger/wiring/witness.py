"""A witness's directory opened: its key, its memory, and the logs it watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.app.log.witness import Witness
from ledger.attest.crypto.signing import verify
from ledger.errors import DataDirectoryInvalid
from ledger.merkle.cosignature import WitnessKey
from ledger.merkle.note import VerifierKey, parse_vkey
from ledger.store.witness import SqliteSeenTrees
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.keyring import Keyring

LOCAL_NAME = "sla-ledger.local/witness"
_NAME_FILE = "witness-name"


@dataclass(frozen=True, slots=True)
class OpenWitness:
    """A witness and the key that others configure for it."""

    witness: Witness
    key: WitnessKey
    origins: tuple[str, ...]


def open_witness(folder: Path, log_vkeys: Sequence[str], name: str | None = None) -> OpenWitness:
    """Open a witness's directory, making it where it is absent. It watches the logs of ``log_vkeys``.

    Several keys of one name are the keys of one log over time. ``name`` is kept at first use and cannot be changed
    after. Raises ``VerifierKeyInvalid``, ``DataDirectoryInvalid``.
    """
    logs: defaultdict[str, list[VerifierKey]] = defaultdict(list)
    for vkey in log_vkeys:
        key = parse_vkey(vkey)
        logs[key.name].append(key)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keyring, named = Keyring(folder, SystemRandomness()), folder / _NAME_FILE
    if not named.exists():
        # A witness whose name is kept has had a key; a new one would cosign under it as somebody else.
        keyring.make("witness")
    signing_key = keyring.signing_key("witness")
    if not named.exists():
        chosen = name or f"{LOCAL_NAME}/{signing_key.public_key.hex()[:16]}"
        WitnessKey(chosen, signing_key.public_key)
        named.write_text(chosen + "\n", encoding="utf-8")
    kept = named.read_text(encoding="utf-8").strip()
    if name is not None and name != kept:
        raise DataDirectoryInvalid(
            f"{folder} holds the witness {kept!r}, not {name!r}; its cosignatures carry that name", path=str(folder)
        )
    witness_key = WitnessKey(kept, signing_key.public_key)
    witness = Witness(
        logs,
        SqliteSeenTrees(folder / "witness.db"),
        witness_key,
        sign=signing_key.sign,
        verify=verify,
        clock=SystemClock(),
    )
    return OpenWitness(witness, witness_key, tuple(logs))
