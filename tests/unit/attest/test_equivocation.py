"""A log that says two things in one place is shown to do so; and what does not show it is not taken for it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.checks import equivocation
from ledger.attest.checks.equivocation import check, leaves_in, prove, read_equivocation
from ledger.attest.checks.verification import Exit, Outcome
from ledger.attest.crypto.signing import NoteKey, SigningKey
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import DocumentInvalid, NotCanonical, NotFound
from ledger.merkle.checkpoint import Checkpoint, sign_checkpoint
from ledger.merkle.tlog_proof import TlogProof
from tests.support import examples
from tests.support.forging import Forger


def honest() -> Forger:
    return examples.forger().log()


def two_faced() -> Forger:
    """The same log, which sealed another block hash in the place of the first."""
    forged = examples.forger()
    forged.seal["payload"]["block_hash"] = "7"
    return forged.log()


def proof() -> dict[str, Any]:
    made = prove([*leaves_in(honest().sign(), None), *leaves_in(two_faced().sign(), None)])
    return dict(read_equivocation(made))


def failed(document: dict[str, Any], trust: Any = None) -> set[str]:
    return {line.check for line in check(document, trust).lines if line.outcome is Outcome.FAIL}


def test_two_seals_of_one_block_prove_it_to_whoever_pins_the_log() -> None:
    found = proof()
    stream = honest().seal["header"]["stream"]
    assert {leaf["header"]["stream"] for leaf in found["leaves"]} == {stream}
    assert check(found, examples.trust()).exit_code is Exit.HOLDS
    assert check(found).exit_code is Exit.NOT_PINNED


def test_many_entries_that_nobody_signed_are_soon_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made the file chooses how many claim one place; their pairs are not checked one by one."""
    (leaf,) = [each for each in leaves_in(honest().sign(), None) if each["header"]["type"] == "block_sealed"]
    forged = [{**leaf, "header": {**leaf["header"], "recorded_at_ns": str(number)}} for number in range(200)]
    checked: list[object] = []
    monkeypatch.setattr(equivocation, "check", lambda *given: checked.append(given) or check(*given))
    with pytest.raises(NotFound):
        prove([leaf, *forged])
    assert checked == []


def test_it_tells_no_counts_and_no_salts() -> None:
    assert {name for leaf in proof()["leaves"] for name in leaf} == {
        "seq",
        "header",
        "inclusion",
        "vkey",
        "checkpoint",
    }


def test_two_versions_of_one_story_prove_nothing() -> None:
    with pytest.raises(NotFound, match="does not contradict itself"):
        prove([*leaves_in(honest().sign(), None), *leaves_in(honest().sign(), None)])
    other_day = examples.forger("bundle_next_day").log()
    with pytest.raises(NotFound):
        prove([*leaves_in(honest().sign(), None), *leaves_in(other_day.sign(), None)])


def test_an_entry_that_nobody_signed_is_passed_over() -> None:
    forged = examples.forger()
    before = forged.bundle["log"]["checkpoint"]
    forged.seal["payload"]["block_hash"] = "7"
    forged.log()
    forged.bundle["log"]["checkpoint"] = before
    with pytest.raises(NotFound):
        prove([*leaves_in(honest().sign(), None), *leaves_in(forged.sign(), None)])


def again(found: dict[str, Any]) -> None:
    found["leaves"][1] = found["leaves"][0]


def of(member: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def lie(found: dict[str, Any]) -> None:
        found["leaves"][1]["header"][member] = value

    return lie


def unsigned(found: dict[str, Any]) -> None:
    """The text of the checkpoint with the signature line of another size."""
    text, _, signature = found["leaves"][1]["checkpoint"].partition("\n\n")
    origin, _, root = text.split("\n")
    found["leaves"][1]["checkpoint"] = f"{origin}\n999\n{root}\n\n{signature}"


def resigned(origin: str | None) -> Callable[[dict[str, Any]], None]:
    """The second tree signed by a key of somebody's own, as the log or as a log of another name."""

    def lie(found: dict[str, Any]) -> None:
        leaf = found["leaves"][1]
        named, size, root = leaf["checkpoint"].split("\n\n")[0].split("\n")
        key = NoteKey(origin or named, SigningKey(b"\x07" * 32))
        note = sign_checkpoint(Checkpoint(key.key.name, int(size), b64decode(root)), [key])
        leaf |= {"vkey": key.key.vkey(), "checkpoint": note.decode()}

    return lie


def elsewhere(found: dict[str, Any]) -> None:
    found["leaves"][1]["seq"] += 1


@pytest.mark.parametrize(
    ("lie", "lines"),
    [
        pytest.param(again, {"place"}, id="one entry twice"),
        pytest.param(of("stream", "seal/7"), {"place", "entry B"}, id="another stream"),
        pytest.param(of("version", 1), {"place", "entry B"}, id="another version"),
        pytest.param(of("tenant", "other"), {"place", "entry B"}, id="another tenant"),
        pytest.param(of("payload_commitment", "ab" * 32), {"entry B"}, id="an entry that is not in the tree"),
        pytest.param(unsigned, {"entry B", "one log", "pin: log"}, id="a checkpoint that is not signed"),
        pytest.param(resigned(None), {"pin: log"}, id="a key of somebody else under the log's name"),
        pytest.param(resigned("other.example/log"), {"one log", "pin: log"}, id="another log"),
        pytest.param(elsewhere, {"entry B"}, id="another position"),
    ],
)
def test_what_does_not_show_it_fails(lie: Callable[[dict[str, Any]], None], lines: set[str]) -> None:
    found = json.loads(canonical_bytes(proof()))
    lie(found)
    assert failed(found, examples.trust()) == lines
    assert check(found, examples.trust()).exit_code is Exit.FAILED


def test_a_proof_is_read_in_its_exact_bytes_and_closed_shape() -> None:
    made = canonical_bytes(proof())
    with pytest.raises(NotCanonical):
        read_equivocation(made + b"\n")
    for document in ({**proof(), "note": "x"}, {**proof(), "leaves": proof()["leaves"][:1]}):
        with pytest.raises(DocumentInvalid, match="equivocation proof"):
            read_equivocation(canonical_bytes(document))


def tlog_proof(forged: Forger) -> bytes:
    seal = forged.seal
    path = tuple(bytes.fromhex(node) for node in seal["inclusion"])
    checkpoint = forged.bundle["log"]["checkpoint"].encode()
    return TlogProof(seal["seq"], path, checkpoint, canonical_bytes(seal["header"])).to_bytes()


def test_a_tlog_proof_and_a_bundle_prove_it_too() -> None:
    vkey = honest().bundle["log"]["vkey"]
    with pytest.raises(DocumentInvalid, match="--vkey"):
        leaves_in(tlog_proof(two_faced()), None)
    made = prove([*leaves_in(honest().sign(), None), *leaves_in(tlog_proof(two_faced()), vkey)])
    assert check(read_equivocation(made), examples.trust()).exit_code is Exit.HOLDS


def test_the_command_makes_and_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, out, trust = (tmp_path / name for name in ("a.json", "b.json", "proof.json", "trust.json"))
    one.write_bytes(honest().sign())
    other.write_bytes(two_faced().sign())
    trust.write_bytes(canonical_bytes(examples.trust()))
    assert main(["equivocation", "prove", str(one), str(other), "--out", str(out)]) == 0
    assert main(["equivocation", "check", str(out), "--trust", str(trust)]) == 0
    assert "the log contradicts itself" in capsys.readouterr().out
    assert main(["equivocation", "check", str(out), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["exit_code"] == 3
    assert main(["equivocation", "prove", str(one), str(one)]) == 1
    out.write_bytes(out.read_bytes() + b" ")
    assert main(["equivocation", "check", str(out)]) == 2
    assert main(["equivocation", "prove", str(one), str(tmp_path / "none")]) == 2


@pytest.mark.long
def test_its_pin_is_called_as_in_a_report_of_a_bundle() -> None:
    assert equivocation.PINNED in {line.check for line in examples.verified(examples.forger()).lines}
