"""Sealed telemetry: windows, their words, block hashes and the root a collector signs.

A word is one field element: four pairs of 28-bit counts below bit 224, then `observed` and
`excluded`. Blocks of 25 words are hashed with a salt each, so that a block can be opened alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.attest.crypto.field import require_element, require_uint
from ledger.attest.crypto.keccak import bytes32_word, keccak256, keccak_text, uint_word
from ledger.attest.crypto.poseidon import sponge, tag
from ledger.domain.attested import BLOCK_WINDOWS, COUNT_BITS, OBJECTIVES
from ledger.errors import AttestationValueInvalid


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """One window of a period: good and bad counts of each objective, at most four.

    ``observed``: its data is in. ``excluded``: an announced exclusion takes it out whole.
    Raises AttestationValueInvalid unless every count has at most 28 bits.
    """

    good: tuple[int, ...] = ()
    bad: tuple[int, ...] = ()
    observed: bool = True
    excluded: bool = False

    def __post_init__(self) -> None:
        if len(self.good) != len(self.bad) or len(self.good) > OBJECTIVES:
            raise AttestationValueInvalid(
                f"a window has a good and a bad count for each of at most {OBJECTIVES} objectives",
                field="counts",
            )
        for m, (good, bad) in enumerate(zip(self.good, self.bad, strict=True)):
            require_uint(good, COUNT_BITS, f"good[{m}]")
            require_uint(bad, COUNT_BITS, f"bad[{m}]")

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(good, bad) of all four slots, zero where there is no objective."""
        missing = OBJECTIVES - len(self.good)
        return (*zip(self.good, self.bad, strict=True), *[(0, 0)] * missing)

    @property
    def empty(self) -> bool:
        """Whether every count is zero."""
        return not any(self.good) and not any(self.bad)

    def word(self) -> int:
        """sum of good_m * 2^(56m) + bad_m * 2^(56m+28), + observed * 2^224 + excluded * 2^225."""
        value = int(self.observed) << 224 | int(self.excluded) << 225
        for m, (good, bad) in enumerate(self.pairs()):
            value |= good << 56 * m | bad << 56 * m + COUNT_BITS
        return value


def seal_key(sla_id: bytes, doc_sha256: bytes, start_ns: int, end_ns: int, window_seconds: int) -> int:
    """What a seal is for: agreement, period and window length, as a field element of 248 bits.

    Raises AttestationValueInvalid on values that do not fit their ABI types, or an empty period.
    """
    if not start_ns < end_ns:
        raise AttestationValueInvalid("a period must end after it starts", field="end_ns")
    encoded = (
        keccak_text("sla-ledger/seal/v1")
        + bytes32_word(sla_id, "sla_id")
        + bytes32_word(doc_sha256, "doc_sha256")
        + uint_word(start_ns, 64, "start_ns")
        + uint_word(end_ns, 64, "end_ns")
        + uint_word(window_seconds, 32, "window_seconds")
    )
    return int.from_bytes(keccak256(encoded), "big") >> 8


def block_hash(key: int, index: int, words: Sequence[int], salt: int) -> int:
    """block_j = H(TAG block; sealKey, j, 25 words, salt_j); words beyond the period are 0.

    Raises AttestationValueInvalid on more than 25 words or a value outside the field.
    """
    if len(words) > BLOCK_WINDOWS:
        raise AttestationValueInvalid(f"a block has {BLOCK_WINDOWS} windows, not {len(words)}", field="words")
    require_uint(index, 32, "index")
    padding = [0] * (BLOCK_WINDOWS - len(words))
    return sponge(tag("block"), [key, index, *words, *padding, require_element(salt, "salt")])


def block_hashes(key: int, windows: Sequence[WindowCounts], salts: Sequence[int]) -> tuple[int, ...]:
    """The hashes of all blocks of a circuit instance, one for each salt.

    Raises AttestationValueInvalid if the windows need more blocks than there are salts.
    """
    if len(windows) > BLOCK_WINDOWS * len(salts):
        raise AttestationValueInvalid(
            f"{len(windows)} windows do not fit {len(salts)} blocks of {BLOCK_WINDOWS}", field="windows"
        )
    words = [window.word() for window in windows]
    return tuple(
        block_hash(key, j, words[j * BLOCK_WINDOWS : (j + 1) * BLOCK_WINDOWS], salt) for j, salt in enumerate(salts)
    )


def telemetry_root(key: int, window_count: int, hashes: Sequence[int]) -> int:
    """telemetryRoot = H(TAG telemetry; sealKey, N, block_0 ..), over every block of the instance.

    Raises AttestationValueInvalid if the windows do not fit the blocks.
    """
    if not 1 <= window_count <= BLOCK_WINDOWS * len(hashes):
        raise AttestationValueInvalid(
            f"{window_count} windows do not fit {len(hashes)} blocks of {BLOCK_WINDOWS}", field="window_count"
        )
    return sponge(tag("telemetry"), [key, window_count, *hashes])
