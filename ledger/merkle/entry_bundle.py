"""Entry bundles (C2SP tlog-tiles): consecutive log entries, each after its length in two big-endian bytes."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.errors import BadInput, TreeDamaged
from ledger.merkle.tile import TILE_WIDTH

MAX_ENTRY_BYTES = 0xFFFF
_LENGTH_BYTES = 2


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """The bundle of these entries. Raises TreeDamaged for one that is too long: no append takes such an entry."""
    bundle = bytearray()
    for entry in entries:
        if len(entry) > MAX_ENTRY_BYTES:
            raise TreeDamaged(
                f"A log entry has {len(entry)} bytes; bundles hold entries up to {MAX_ENTRY_BYTES}. Run fsck.",
                found_bytes=len(entry),
            )
        bundle += len(entry).to_bytes(_LENGTH_BYTES, "big") + entry
    return bytes(bundle)


def decode_bundle(bundle: bytes) -> list[bytes]:
    """The entries of a bundle, at most 256. Raises BadInput for bytes that are no bundle."""
    entries: list[bytes] = []
    at = 0
    while at < len(bundle):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(bundle[at:start], "big")
        if at > len(bundle) or start > len(bundle) or len(entries) == TILE_WIDTH:
            raise BadInput("Not an entry bundle: it is cut off, or has more than 256 entries.", bytes=len(bundle))
        entries.append(bundle[start:at])
    return entries
