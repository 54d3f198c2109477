"""The log asks its witnesses before it publishes, and stops where one knows more than it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.app.log.cosigning import MAX_AGE_S, WitnessAnswer
from ledger.attest.crypto.signing import SigningKey, verify
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import LogBehindWitness, WitnessesUnavailable
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.cosignature import WitnessKey, WitnessPolicy, cosign, require_quorum
from ledger.merkle.note import parse_note
from tests.conformance.samples import LOG_KEY
from tests.unit.app.witnessing import Connection, Log, seconds


@pytest.fixture
def log() -> Log:
    return Log().grow(5)


def cosigned_by(log: Log, note: str, witnesses: list[Connection]) -> int:
    opened = open_checkpoint(note.encode(), LOG_KEY.key.name, [LOG_KEY.key], verify)
    policy = WitnessPolicy(tuple(each.key for each in witnesses), 0)
    return len(require_quorum(opened.note.text, opened.note.unverified, policy, verify))


def test_what_is_published_carries_the_cosignatures(log: Log, tmp_path: Path) -> None:
    witnesses = [Connection(tmp_path, number, log.clock) for number in (1, 2)]
    for grown in (0, 3, 300):
        if grown:
            log.grow(grown)
        assert cosigned_by(log, log.publish(witnesses, 2), witnesses) == 2
    assert [len(each.requests) for each in witnesses] == [3, 3]
    assert log.said == []


def test_a_witness_that_comes_later_is_told_where_it_begins(log: Log, tmp_path: Path) -> None:
    early = Connection(tmp_path, 1, log.clock)
    log.publish([early], 1)
    late = Connection(tmp_path, 2, log.clock)
    log.grow(2)
    assert cosigned_by(log, log.publish([early, late], 2), [early, late]) == 2
    assert len(late.requests) == 2
    assert late.requests[1].startswith(b"old 0\n\n")


def test_without_a_quorum_nothing_is_published_and_it_is_tried_again(log: Log, tmp_path: Path) -> None:
    witnesses = [Connection(tmp_path, number, log.clock) for number in (1, 2)]

    def silent(_: bytes) -> WitnessAnswer:
        raise WitnessesUnavailable("it did not answer: timed out")

    witnesses[1].answer = silent
    with pytest.raises(WitnessesUnavailable, match="1 of 2"):
        log.publish(witnesses, 2)
    with log.database.read() as tx:
        assert tx.log.checkpoint() is None
    assert "timed out" in log.said[0]
    witnesses[1].answer = witnesses[1].honest
    assert cosigned_by(log, log.publish(witnesses, 2), witnesses) == 2


def test_without_a_required_quorum_a_silent_witness_is_left_out(log: Log, tmp_path: Path) -> None:
    good, bad = Connection(tmp_path, 1, log.clock), Connection(tmp_path, 2, log.clock)
    bad.answer = lambda _: WitnessAnswer(503, b"")
    assert cosigned_by(log, log.publish([bad, good], 0), [good, bad]) == 1


def test_an_older_copy_of_the_log_signs_nothing(log: Log, tmp_path: Path) -> None:
    """The restore guard: the witness remembers what the restored database has forgotten."""
    witness = Connection(tmp_path, 1, log.clock)
    log.grow(7).publish([witness], 1)
    restored = Log().grow(5)
    with pytest.raises(LogBehindWitness, match="size 12") as caught:
        restored.publish([witness], 0)
    assert caught.value.data["known_size"] == 12
    with restored.database.read() as tx:
        assert tx.log.checkpoint() is None


@pytest.mark.parametrize("grown", [0, 4])
def test_a_log_that_forked_signs_nothing(log: Log, tmp_path: Path, grown: int) -> None:
    witness = Connection(tmp_path, 1, log.clock)
    log.publish([witness], 1)
    fork = Log(seed=2).grow(5 + grown)
    with pytest.raises(LogBehindWitness):
        fork.publish([witness], 0)


def test_cosignatures_that_are_not_worth_having(log: Log, tmp_path: Path) -> None:
    secret, stranger = SigningKey(bytes([101]) * 32), SigningKey(b"\x55" * 32)

    def text(body: bytes) -> str:
        return parse_note(body.partition(b"\n\n")[2]).text

    def by(key: WitnessKey, signing: SigningKey, ahead_s: int, other_text: str | None = None) -> object:
        def answer(body: bytes) -> WitnessAnswer:
            line = cosign(other_text or text(body), key, seconds(log.clock) + ahead_s, signing.sign)
            return WitnessAnswer(200, line.line().encode())

        return answer

    witness = Connection(tmp_path, 1, log.clock)
    unknown = WitnessKey("witness.example/unknown", stranger.public_key)
    honest_text = "log.example/test\n1\n" + "A" * 43 + "=\n"
    for answer in (
        by(witness.key, secret, 10_000),
        by(witness.key, secret, -MAX_AGE_S - 10),
        by(witness.key, stranger, 0),
        by(unknown, stranger, 0),
        by(witness.key, secret, 0, honest_text),
        lambda _: WitnessAnswer(200, b""),
        lambda _: WitnessAnswer(200, b"\xff\n"),
        lambda _: WitnessAnswer(200, b"thank you\n"),
        lambda _: WitnessAnswer(409, b"five\n"),
        lambda _: WitnessAnswer(409, b""),
        lambda _: WitnessAnswer(404, b""),
        lambda _: WitnessAnswer(302, b""),
    ):
        witness.answer = answer  # type: ignore[assignment]
        with pytest.raises(WitnessesUnavailable):
            log.publish([witness], 1)
    assert len(log.said) == 12


def test_a_witness_that_changes_its_mind_is_not_asked_for_ever(log: Log, tmp_path: Path) -> None:
    witness = Connection(tmp_path, 1, log.clock)
    sizes = iter([1, 2, 3, 4, 1, 2, 3, 4])
    witness.answer = lambda _: WitnessAnswer(409, b"%d\n" % next(sizes))
    with pytest.raises(WitnessesUnavailable):
        log.publish([witness], 1)
    assert len(witness.requests) == 4


def test_no_more_lines_of_a_witness_are_kept_than_its_own(log: Log, tmp_path: Path) -> None:
    witness = Connection(tmp_path, 1, log.clock)
    stranger = SigningKey(b"\x55" * 32)

    def chatty(body: bytes) -> WitnessAnswer:
        key = WitnessKey("witness.example/friend", stranger.public_key)
        text = parse_note(body.partition(b"\n\n")[2]).text
        extra = cosign(text, key, log.clock.now // SECOND_NS, stranger.sign).line().encode()
        return WitnessAnswer(200, extra + witness.honest(body).body)

    witness.answer = chatty
    assert len(parse_note(log.publish([witness], 1).encode()).signatures) == 2
