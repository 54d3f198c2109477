"""Being a witness (C2SP tlog-witness): cosigning only trees that extend what was cosigned before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import NotFound, WitnessConflict
from ledger.merkle.checkpoint import open_checkpoint, parse_checkpoint
from ledger.merkle.cosignature import WitnessKey, cosign
from ledger.merkle.note import VerifierKey, Verify, parse_note
from ledger.merkle.witness import SeenTree, parse_add_checkpoint, require_extends


class SeenTrees(Protocol):
    """The largest cosigned tree of each log, kept durably."""

    def seen(self, origin: str) -> SeenTree:
        """Size 0 for a log never seen."""
        ...

    def advance(self, origin: str, before: SeenTree, after: SeenTree) -> bool:
        """Replace ``before`` by ``after``, on disk when it returns; False where something else is there by now."""
        ...


class Witness:
    """Judges requests for the logs it was set up for, by origin, each with the keys that speak for it."""

    def __init__(
        self,
        logs: Mapping[str, Sequence[VerifierKey]],
        trees: SeenTrees,
        key: WitnessKey,
        *,
        sign: Callable[[bytes], bytes],
        verify: Verify,
        clock: Clock,
    ) -> None:
        self._logs = logs
        self._trees = trees
        self._key = key
        self._sign = sign
        self._verify = verify
        self._clock = clock

    def add_checkpoint(self, body: bytes) -> bytes:
        """The cosignature lines for a request.

        Raises, in the order of the checks: ``WitnessRequestInvalid`` or ``NoteInvalid`` (400), ``NotFound`` (404:
        an unknown log), ``NoteUnverified`` (403), ``WitnessRequestInvalid`` (400: sizes the wrong way round),
        ``WitnessConflict`` (409), ``TreeProofInvalid`` (422).
        """
        request = parse_add_checkpoint(body)
        origin = parse_checkpoint(parse_note(request.checkpoint).text).origin
        keys = self._logs.get(origin)
        if keys is None:
            raise NotFound(f"this witness does not watch the log {origin[:200]!r}", origin=origin[:200])
        opened = open_checkpoint(request.checkpoint, origin, keys, self._verify)
        seen = self._trees.seen(origin)
        checkpoint = opened.checkpoint
        require_extends(seen, request.old_size, request.proof, checkpoint)
        # Kept before the signature exists: after a crash in between, the witness knows too much, never too little.
        if not self._trees.advance(origin, seen, SeenTree(checkpoint.size, checkpoint.root)):
            size = self._trees.seen(origin).size
            raise WitnessConflict(f"this witness cosigned size {size} of the log meanwhile", size=size)
        line = cosign(opened.note.text, self._key, self._clock.now_ns() // SECOND_NS, self._sign)
        return line.line().encode()
