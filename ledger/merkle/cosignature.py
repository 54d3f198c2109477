"""Cosignatures of witnesses (C2SP tlog-cosignature, Ed25519 version 1).

A cosignature says: at this second, this was the largest consistent tree of this log that the witness had seen. It
is a line of the checkpoint's note under a key of type 0x04, with the time before the signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ledger.errors import CosignatureInvalid, QuorumUnmet, VerifierKeyInvalid
from ledger.merkle.note import NamedKey, NoteSignature, Verify, parse_typed_vkey

COSIGNATURE_V1 = 0x04
MAX_TIMESTAMP_S = (1 << 63) - 1
MAX_CLOCK_SKEW_S = 300
"""How far ahead of the reader's clock a cosignature may be."""

_TIME_BYTES = 8
_SIGNATURE_BYTES = 64

SignBytes = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class WitnessKey(NamedKey):
    """The key that a witness cosigns with. A log's key with the same bytes cannot pose as it, nor it as a log's."""

    KEY_TYPE = COSIGNATURE_V1


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A cosignature that holds: who made it and when, in seconds since 1970-01-01T00:00:00Z."""

    key: WitnessKey
    timestamp_s: int
    line: NoteSignature


@dataclass(frozen=True, slots=True)
class WitnessPolicy:
    """Which witnesses count, and how many of them must have cosigned. Raises VerifierKeyInvalid.

    A public key counts once, under whatever names it appears: version 1 does not sign the witness's name, so one
    holder could answer for many.
    """

    keys: tuple[WitnessKey, ...]
    quorum: int

    def __post_init__(self) -> None:
        if len({key.public_key for key in self.keys}) != len(self.keys):
            raise VerifierKeyInvalid("Two witnesses of the policy share one public key; they are one witness.")
        if not 0 <= self.quorum <= len(self.keys):
            raise VerifierKeyInvalid(
                f"A quorum of {self.quorum} cannot be reached with {len(self.keys)} witnesses.", quorum=self.quorum
            )


def parse_witness_vkey(vkey: str) -> WitnessKey:
    """The key of a ``name+hash+base64`` line of type 0x04. Raises VerifierKeyInvalid."""
    return WitnessKey(*parse_typed_vkey(vkey, COSIGNATURE_V1))


def cosigned_message(text: str, timestamp_s: int) -> bytes:
    """What a witness signs: header, time, and the checkpoint's whole text with its extension lines."""
    return f"cosignature/v1\ntime {timestamp_s}\n{text}".encode()


def cosign(text: str, key: WitnessKey, timestamp_s: int, sign: SignBytes) -> NoteSignature:
    """The witness's line under a checkpoint's text. Raises CosignatureInvalid for a time no cosignature has."""
    _require_time(timestamp_s, key.name)
    signature = sign(cosigned_message(text, timestamp_s))
    return NoteSignature(key.name, key.key_id, timestamp_s.to_bytes(_TIME_BYTES, "big") + signature)


def open_cosignature(
    text: str, line: NoteSignature, key: WitnessKey, verify: Verify, *, now_s: int | None = None
) -> Cosignature:
    """The cosignature of ``key`` in a line of its name and id.

    With ``now_s`` a time more than MAX_CLOCK_SKEW_S ahead of it is refused; a verifier without a clock passes None.
    Raises CosignatureInvalid.
    """
    if (line.name, line.key_id) != (key.name, key.key_id):
        raise CosignatureInvalid(f"The signature line is not one of {key.name}.", name=line.name)
    if len(line.signature) != _TIME_BYTES + _SIGNATURE_BYTES:
        raise CosignatureInvalid(
            f"The cosignature of {key.name} has {len(line.signature)} bytes instead of a time and a signature.",
            name=key.name,
        )
    timestamp_s = int.from_bytes(line.signature[:_TIME_BYTES], "big")
    _require_time(timestamp_s, key.name)
    if now_s is not None and timestamp_s > now_s + MAX_CLOCK_SKEW_S:
        raise CosignatureInvalid(
            f"The cosignature of {key.name} is from the future ({timestamp_s - now_s} s ahead); check the clocks.",
            name=key.name,
            timestamp_s=timestamp_s,
        )
    if not verify(key.public_key, cosigned_message(text, timestamp_s), line.signature[_TIME_BYTES:]):
        raise CosignatureInvalid(f"The cosignature of {key.name} is false.", name=key.name)
    return Cosignature(key, timestamp_s, line)


def open_cosignatures(
    text: str,
    lines: Iterable[NoteSignature],
    keys: Sequence[WitnessKey],
    verify: Verify,
    *,
    now_s: int | None = None,
) -> tuple[Cosignature, ...]:
    """The cosignatures of ``keys`` among a note's lines, the newest of each key; lines of others are ignored.

    A false line under a known key condemns the whole, as in any signed note. Raises CosignatureInvalid.
    """
    known = {(key.name, key.key_id): key for key in keys}
    found: dict[bytes, Cosignature] = {}
    for line in lines:
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        opened = open_cosignature(text, line, key, verify, now_s=now_s)
        earlier = found.get(key.public_key)
        if earlier is None or opened.timestamp_s > earlier.timestamp_s:
            found[key.public_key] = opened
    return tuple(found.values())


def require_quorum(
    text: str,
    lines: Iterable[NoteSignature],
    policy: WitnessPolicy,
    verify: Verify,
    *,
    now_s: int | None = None,
) -> tuple[Cosignature, ...]:
    """The policy's cosignatures under a checkpoint's text. Raises QuorumUnmet, CosignatureInvalid."""
    found = open_cosignatures(text, lines, policy.keys, verify, now_s=now_s)
    if len(found) < policy.quorum:
        raise QuorumUnmet(
            f"{len(found)} of the {policy.quorum} required witnesses cosigned the checkpoint.",
            found=[cosignature.key.name for cosignature in found],
            quorum=policy.quorum,
        )
    return found


def _require_time(timestamp_s: int, name: str) -> None:
    # Zero means "no statement about time" in later cosignature versions; version 1 always makes one.
    if not 0 < timestamp_s <= MAX_TIMESTAMP_S:
        raise CosignatureInvalid(
            f"The cosignature of {name} carries no time that version 1 has.", name=name, timestamp_s=str(timestamp_s)
        )
