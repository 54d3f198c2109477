"""``statements``, ``violations`` and ``credits``: what an operator finds in a ledger and does with credit lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import SigningKey, save_key
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.naming import agreement_stream, attestation_stream, credit_lines_stream
from ledger.store.database import SqliteDatabase
from ledger.wiring.marker import DATA_FORMAT
from tests.conformance.samples import (
    SLA_ID,
    SeededRandomness,
    StepClock,
    agreement,
    anchor,
    attestation,
    line_issued,
    restatement,
    statement,
    statement_id,
    violation,
)

FIRST, NEXT, RESTATED = statement_id(), statement_id(day=1), statement_id(version=2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A ledger with one day that was settled twice, the next one, a violation that is over and three credit lines."""
    folder = tmp_path / "data"
    (folder / "keys").mkdir(parents=True)
    save_key(folder / "keys" / "log.key", SigningKey(b"\x09" * 32))
    (folder / "data.json").write_bytes(canonical_bytes({"format": DATA_FORMAT, "genesis_timestamp_s": 1}))
    database = SqliteDatabase(folder / "ledger.db", StepClock(), SeededRandomness(1))
    day = {"of": NEXT, "period": "2023-12-20/P1D", "start_ns": "1703030400000000000"}
    streams = {
        agreement_stream(SLA_ID): [agreement()],
        "any": [statement(), violation("closed")],
        attestation_stream(FIRST): [attestation(FIRST), anchor(FIRST)],
        credit_lines_stream(FIRST): [line_issued(1), line_issued(2)],
        "later": [restatement(), statement(day=1)],
        credit_lines_stream(NEXT): [line_issued(1, **day)],
    }
    with database.begin() as tx:
        for stream, events in streams.items():
            tx.events.append(stream, events, expected_version=None)
    database.close()
    return folder


def asked(capsys: pytest.CaptureFixture[str], data: Path, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--data", str(data), "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def shown(capsys: pytest.CaptureFixture[str], data: Path, *arguments: str) -> tuple[str, str]:
    capsys.readouterr()
    assert main([*arguments, "--data", str(data)]) == 0
    said = capsys.readouterr()
    return said.out, said.err


def test_of_each_period_the_newest_statement_is_listed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, data, "statements", "list")
    assert [item["id"] for item in found["items"]] == [RESTATED, NEXT]
    assert found["next"] is None
    every = asked(capsys, data, "statements", "list", "--all-versions", "--sla-id", SLA_ID)["items"]
    assert [(item["id"], item["restated_by"]) for item in every] == [(FIRST, RESTATED), (RESTATED, None), (NEXT, None)]
    assert every[0]["credit"] == {"currency": "USD", "minor_units": "120000", "amount": "1200.00"}
    assert every[0]["start"] == "2023-12-19T00:00:00Z"
    assert (every[0]["proof_hash"] is None, every[0]["tx_hash"] is None) == (False, False)


def test_who_is_shown_a_proof_under_a_development_key_is_told_that_the_issuer_can_forge_it(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, data, "statements", "show", FIRST)["dev_key"] is True
    out, _ = shown(capsys, data, "statements", "show", FIRST)
    assert "the issuer can forge this" in out
    _, err = shown(capsys, data, "statements", "list", "--all-versions")
    assert "the issuer can forge this" in err


def test_a_walk_by_pages_meets_each_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("statements", "list", "--all-versions"), ("credits", "list")):
        met, after = [], ()
        while True:
            page = asked(capsys, data, *command, "--limit", "1", *after)
            met += [item["id"] for item in page["items"]]
            if page["next"] is None:
                break
            after = ("--after", page["next"])
        assert met == [item["id"] for item in asked(capsys, data, *command)["items"]]
        assert len(met) == 3
    _, err = shown(capsys, data, "statements", "list", "--limit", "1")
    assert f"--after {RESTATED}" in err


@pytest.mark.parametrize(("kind", "first"), [("statements", RESTATED), ("credits", f"{FIRST}.l0001")])
def test_a_list_of_some_days_alone(data: Path, capsys: pytest.CaptureFixture[str], kind: str, first: str) -> None:
    def listed(*bounds: str) -> list[str]:
        return [item["id"] for item in asked(capsys, data, kind, "list", *bounds)["items"]]

    every = listed()
    first_day, next_day = listed("--to", "2023-12-20"), listed("--from", "2023-12-20")
    assert first_day[0] == first
    assert (first_day + next_day, len(next_day)) == (every, 1)
    assert listed("--from", "2023-12-19T00:00:00.000000001Z") == next_day, "a start is counted by the nanosecond"
    assert listed("--from", "2023-12-19T01:00:00+01:00", "--to", "2023-12-20") == first_day
    assert listed("--from", "2023-12-21") == []
    assert "nothing is listed" in shown(capsys, data, kind, "list", "--from", "2023-12-21")[1]
    # A page goes on within the bounds.
    assert listed("--after", first, "--from", "2023-12-19", "--to", "2023-12-20") == first_day[1:]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("--from", "2023-12"), "--from: '2023-12' is no date and no instant with a zone"),
        (("--to", "2023-12-19T00:00:00"), "--to: '2023-12-19T00:00:00' is no date and no instant with a zone"),
        (("--from", "2023-12-20", "--to", "2023-12-20"), "--from is not before --to"),
    ],
)
@pytest.mark.parametrize("command", [("statements", "list"), ("credits", "list"), ("export-credits", "-")])
def test_bounds_that_are_none_are_named(
    data: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], bounds: tuple[str, ...], message: str
) -> None:
    refused = asked(capsys, data, *command, *bounds, code=2)
    assert refused["message"].startswith(message)
    assert refused["data"] == {"option": message.partition(":")[0] if ":" in message else "--to"}


@pytest.mark.parametrize("kind", ["statements", "violations", "credits"])
def test_what_is_not_there_is_said(data: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert asked(capsys, data, kind, "list", "--sla-id", "0x" + "00" * 32, code=1)["code"] == "not_found"
    assert asked(capsys, data, kind, "list", "--after", "nothing", code=2)["code"] == "cursor_invalid"
    assert asked(capsys, data, kind, "list", "--tenant", "another") == {"items": [], "next": None}
    for limit in ("0", "1001"):
        assert main([kind, "list", "--data", str(data), "--limit", limit]) == 2


def test_a_statement_is_shown_with_its_lines(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, data, "statements", "show", FIRST)
    assert [line["id"] for line in found["credit_lines"]] == [f"{FIRST}.l0001", f"{FIRST}.l0002"]
    assert found["objectives"][0]["target_percent"] == "99.95"
    assert found["trace"] is not None
    out, _ = shown(capsys, data, "statements", "show", FIRST)
    assert f"replaced by {RESTATED}" in out
    assert "99/100" in out
    assert "credit   1200.00 USD; proof on chain" in out
    out, _ = shown(capsys, data, "statements", "show", RESTATED)
    assert f"replaces {FIRST}" in out
    assert asked(capsys, data, "statements", "show", "nothing", code=1)["code"] == "not_found"


def test_violations_have_their_clause_evidence_and_credit(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = asked(capsys, data, "violations", "list", "--state", "closed", "--objective", "availability")["items"]
    assert (found["clause"], found["ended_by"], found["target_percent"]) == ("objectives[0]", "met", "99.95")
    assert found["credit"]["currency"] == "USD"
    assert found["evidence"]["requests"][0]["at"] == "2023-12-19T00:00:00Z"
    assert asked(capsys, data, "violations", "list", "--state", "open")["items"] == []
    out, _ = shown(capsys, data, "violations", "list")
    assert found["id"] in out


def test_a_line_is_taken_back_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{FIRST}.l0002"
    command = ("credits", "reverse", line, "--reason", "in error", "--request", "one")
    made = asked(capsys, data, *command)
    assert (made["request"], made["entry"]["reverses"]) == ("one", line)
    assert made["entry"]["credit"]["minor_units"] == "-1200"
    assert asked(capsys, data, *command) == made
    again = ("credits", "reverse", line, "--reason", "in error")
    assert asked(capsys, data, *again, code=1)["code"] == "credit_line_refused"
    statuses = {item["id"]: item["status"] for item in asked(capsys, data, "credits", "list")["items"]}
    assert statuses[line] == statuses[made["entry"]["id"]] == "void"
    assert [item["id"] for item in asked(capsys, data, "credits", "list", "--status", "void")["items"]] == [
        line,
        made["entry"]["id"],
    ]


def test_a_line_is_booked_under_a_reference(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{FIRST}.l0001"
    made = asked(capsys, data, "credits", "apply", line, "--reference", "INV-7")["line"]
    assert (made["status"], made["billing"]["reference"]) == ("applied", "INV-7")
    assert made["billing"]["by"].startswith("command line")
    refused = asked(capsys, data, "credits", "apply", line, "--reference", "INV-8", code=1)
    assert "INV-7" in refused["message"]
    out, _ = shown(capsys, data, "credits", "list", "--statement", FIRST)
    assert "INV-7" in out
    # A booked line is taken back by an entry that is to be booked as well.
    entry = asked(capsys, data, "credits", "reverse", line, "--reason", "in error")["entry"]
    assert entry["status"] == "issued"


@pytest.mark.parametrize(
    "options",
    [
        ("reverse", "--reason", ""),
        ("reverse", "--reason", "x" * 501),
        ("reverse", "--reason", "fine", "--request", "two words"),
        ("apply", "--reference", "x" * 201),
        ("apply", "--reference", "INV-1", "--request", ""),
    ],
)
def test_what_a_change_cannot_say_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    change, *said = options
    assert asked(capsys, data, "credits", change, f"{FIRST}.l0001", *said, code=2)["code"] == "bad_input"


def test_a_draft_is_not_booked_before_its_proof(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = asked(capsys, data, "credits", "apply", f"{NEXT}.l0001", "--reference", "INV-7", code=1)
    assert "is a draft until its statement is proved" in refused["message"]


@pytest.mark.parametrize("words", [("statements", "show"), ("violations", "list", "--objective")])
def test_bytes_that_are_no_text_are_refused_in_words(
    data: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell hands them on, and Python reads them as halves of surrogate pairs, which no database takes."""
    assert main([*words, b"caf\xe9".decode(errors="surrogateescape"), "--data", str(data)]) == 2
    assert capsys.readouterr().err == "sla-ledger: 'caf\\udce9' is no UTF-8 text; write it in UTF-8\n"
