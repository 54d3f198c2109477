"""A log and its witnesses in one process: the real rules and keys on both sides, without HTTP between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ledger.app.log.checkpoints import sign_checkpoint
from ledger.app.log.cosigning import WitnessAnswer, WitnessedPublishing
from ledger.app.log.log_keys import LogIdentity
from ledger.app.log.restore_guard import RestoreGuard
from ledger.app.log.witness import Witness
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import NoteUnverified, NotFound, SlaLedgerError, TreeProofInvalid, WitnessConflict
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.checkpoint import sign_checkpoint as sign_note
from ledger.merkle.cosignature import WitnessKey
from ledger.merkle.note import VerifierKey
from ledger.store.memory import MemoryDatabase
from ledger.store.witness import SqliteSeenTrees
from tests.conformance.samples import LOG_KEY, MemoryPin, SeededRandomness, StepClock, windows

Answer = Callable[[bytes], WitnessAnswer]


class Log:
    """A log in memory that signs with ``LOG_KEY``, or with any keys it is given."""

    def __init__(self, seed: int = 1, keys: Sequence[NoteKey] = (LOG_KEY,)) -> None:
        self.clock = StepClock()
        self.database = MemoryDatabase(self.clock, SeededRandomness(seed))
        self.identity = LogIdentity(keys[0].key, verify)
        self.keys = {key.key: key for key in keys}
        self.said: list[str] = []
        self.guard = RestoreGuard(MemoryPin())

    def grow(self, count: int) -> Log:
        with self.database.begin() as tx:
            tx.events.append("s", windows(count), expected_version=None)
        return self

    def sign(self, size: int, root: bytes, key: VerifierKey) -> str:
        return sign_note(Checkpoint(self.identity.origin, size, root), [self.keys[key]]).decode()

    def publish(self, witnesses: Sequence[Connection], quorum: int) -> str:
        """The published note of the present size."""
        cosigners = WitnessedPublishing(
            self.database, witnesses, quorum, verify=verify, clock=self.clock, notify=self.said.append
        )
        size = sign_checkpoint(self.database, self, cosigners, self.guard)
        with self.database.read() as tx:
            note = tx.log.checkpoint(size)
        assert note is not None
        return note


class Connection:
    """A witness that answers as the server would; ``answer`` replaces what it says."""

    def __init__(self, folder: Path, number: int = 1, clock: StepClock | None = None) -> None:
        secret = SigningKey(bytes([100 + number]) * 32)
        self.key = WitnessKey(f"witness.example/w{number}", secret.public_key)
        self.trees = SqliteSeenTrees(folder / f"witness{number}.db")
        self.witness = Witness(
            {LOG_KEY.key.name: [LOG_KEY.key]},
            self.trees,
            self.key,
            sign=secret.sign,
            verify=verify,
            clock=clock or StepClock(),
        )
        self.requests: list[bytes] = []
        self.answer: Answer = self.honest

    def add_checkpoint(self, body: bytes) -> WitnessAnswer:
        self.requests.append(body)
        return self.answer(body)

    def honest(self, body: bytes) -> WitnessAnswer:
        try:
            return WitnessAnswer(200, self.witness.add_checkpoint(body))
        except WitnessConflict as error:
            return WitnessAnswer(409, b"%d\n" % error.data["size"])
        except TreeProofInvalid:
            return WitnessAnswer(422, b"")
        except NoteUnverified:
            return WitnessAnswer(403, b"")
        except NotFound:
            return WitnessAnswer(404, b"")
        except SlaLedgerError:
            return WitnessAnswer(400, b"")


def seconds(clock: StepClock) -> int:
    return clock.now // SECOND_NS
