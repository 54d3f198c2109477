"""The published powers of tau that a ceremony may start from.

54 contributions and a beacon of the Perpetual Powers of Tau, cut to each size and prepared for phase 2. Source of the
hashes (BLAKE2b-512 of the whole file): the README of snarkjs 0.7.6.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import ProvingKeyInvalid

PUBLISHED: Final = {
    "eeefbcf7c3803b523c94112023c7ff89558f9b8e0cf5d6cdcba3ade60f168af4"
    "a181c9c21774b94fbae6c90411995f7d854d02ebd93fb66043dbb06f17a831c1": "powersOfTau28_hez_final_14.ptau",
    "982372c867d229c236091f767e703253249a9b432c1710b4f326306bfa2428a1"
    "7b06240359606cfe4d580b10a5a1f63fbed499527069c18ae17060472969ae6e": "powersOfTau28_hez_final_15.ptau",
    "6a6277a2f74e1073601b4f9fed6e1e55226917efb0f0db8a07d98ab01df1ccf4"
    "3eb0e8c3159432acd4960e2f29fe84a4198501fa54c8dad9e43297453efec125": "powersOfTau28_hez_final_16.ptau",
    "6247a3433948b35fbfae414fa5a9355bfb45f56efa7ab4929e669264a0258976"
    "741dfbe3288bfb49828e5df02c2e633df38d2245e30162ae7e3bcca5b8b49345": "powersOfTau28_hez_final_17.ptau",
    "7e6a9c2e5f05179ddfc923f38f917c9e6831d16922a902b0b4758b8e79c2ab8a"
    "81bb5f29952e16ee6c5067ed044d7857b5de120a90704c1d3b637fd94b95b13e": "powersOfTau28_hez_final_18.ptau",
    "bca9d8b04242f175189872c42ceaa21e2951e0f0f272a0cc54fc37193ff66486"
    "00eaf1c555c70cdedfaf9fb74927de7aa1d33dc1e2a7f1a50619484989da0887": "powersOfTau28_hez_final_19.ptau",
}


@dataclass(frozen=True, slots=True)
class PowersOfTau:
    """A file of powers of tau; ``published`` is the name of the published file that it equals, or empty."""

    sha256: str
    published: str


def identify(path: Path) -> PowersOfTau:
    """Which file this is. Raises ProvingKeyInvalid for one that cannot be read."""
    sha, blake = hashlib.sha256(), hashlib.blake2b(digest_size=64)
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                sha.update(chunk)
                blake.update(chunk)
    except OSError as error:
        raise ProvingKeyInvalid(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
    return PowersOfTau(sha.hexdigest(), PUBLISHED.get(blake.hexdigest(), ""))
