"""``sla-ledger verify`` as a person meets it: exit codes, the file a message names, the report as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.checks import verification
from ledger.cli.main import main
from ledger.domain.record.canonical import canonical_bytes
from tests.support import examples

pytestmark = pytest.mark.slow

BUNDLE = examples.VECTORS / "bundle.json"
TRUST = examples.VECTORS / "trust.json"
OPENING = examples.VECTORS / "opening.json"
WITHHELD = examples.VECTORS / "bundle_withheld.json"


def run(*arguments: object) -> int:
    return main(["verify", *map(str, arguments)])


def test_a_bundle_that_holds_against_the_pins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--trust", TRUST, "--accept-dev", "--opening", OPENING) == 0
    verdict = "consistent offline, against your pins; not established:\n"
    report, said, unsure = capsys.readouterr().out.partition(verdict)
    lines = report.splitlines()
    # The period of long ago was sealed when its facts were handed in.
    assert [line.split("  ")[1].strip() for line in lines if line.startswith("NOT CHECKED")] == ["seal times"]
    assert {line.split("  ")[0].strip() for line in lines} == {"PASS", "ASSUMED", "NOT CHECKED"}
    assert said
    assert unsure.startswith("  whether the anchoring transaction succeeded")


def test_a_development_key_is_not_accepted_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--trust", TRUST) == 3
    out = capsys.readouterr().out
    assert "ASSUMED      dev key" in out
    assert "consistent offline, but resting on dev key; not established" in out


def test_without_a_trust_file_nothing_is_pinned(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--accept-dev") == 3
    assert "nothing is pinned; anyone could have made this" in capsys.readouterr().out


def test_a_withheld_bundle_needs_no_development_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WITHHELD, "--trust", TRUST) == 0
    assert "NOT CHECKED  proof" in capsys.readouterr().out


def test_what_does_not_hold_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = examples.forger()
    forged.bundle["anchor"]["tx_hash"] = "0x" + "ab" * 32
    path = tmp_path / "forged.json"
    path.write_bytes(forged.sign())
    assert run(path, "--trust", TRUST, "--accept-dev") == 1
    out = capsys.readouterr().out
    assert "FAIL         anchor                tx_hash is not the hash of the transaction" in out
    assert "does not hold: anchor; not established" in out


def test_a_wrong_trust_file_fails_in_its_pins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(canonical_bytes(dict(examples.trust()) | {"customer_ed25519_public_key": "ab" * 32}))
    assert run(BUNDLE, "--trust", path, "--accept-dev") == 1
    assert "does not hold: pin: customer;" in capsys.readouterr().out


def test_an_opening_of_another_period_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WITHHELD, "--trust", TRUST, "--opening", OPENING) == 1
    assert "does not hold: opening;" in capsys.readouterr().out


def test_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--trust", TRUST, "--json") == 3
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["exit_code"] == 3
    assert {line["outcome"] for line in report["lines"]} == {"PASS", "ASSUMED", "NOT CHECKED"}
    assert all(line["check"] and line["detail"] for line in report["lines"])
    assert report["not_established"]
    assert report["verdict"] == "consistent offline, but resting on dev key"
    assert (report["resting_on"], report["on_chain"]) == (["dev key"], [])


# --- several bundles, and a node -----------------------------------------------------------------

NEXT_DAY = examples.VECTORS / "bundle_next_day.json"


def test_several_bundles_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, NEXT_DAY, WITHHELD, "--trust", TRUST, "--accept-dev", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [Path(each["file"]) for each in report["bundles"]] == [BUNDLE, NEXT_DAY, WITHHELD]
    assert [each["exit_code"] for each in report["bundles"]] == [0, 0, 0]


def test_the_worst_of_several_decides_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = examples.forger()
    forged.bundle["anchor"]["tx_hash"] = "0x" + "ab" * 32
    path = tmp_path / "forged.json"
    path.write_bytes(forged.sign())
    assert run(WITHHELD, path, "--trust", TRUST, "--accept-dev") == 1
    first, second = capsys.readouterr().out.split(f"{path}:\n")
    assert first.startswith(f"{WITHHELD}:\n")
    assert "does not hold" not in first
    assert "does not hold: anchor;" in second
    assert run(WITHHELD, BUNDLE, "--trust", TRUST) == 3


def test_an_opening_belongs_to_one_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, NEXT_DAY, "--opening", OPENING) == 2
    assert "--opening belongs to one bundle" in capsys.readouterr().err


def test_a_node_that_is_away_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--trust", TRUST, "--accept-dev", "--rpc", "http://127.0.0.1:9/k3y") == 3
    out = capsys.readouterr().out
    assert "NOT CHECKED  chain: id             the node at 127.0.0.1:9 does not answer" in out
    assert "k3y" not in out


def test_an_unproved_statement_needs_no_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WITHHELD, "--trust", TRUST, "--rpc", "http://127.0.0.1:9/") == 0
    assert "an unproved statement stands on no chain" in capsys.readouterr().out


def test_what_is_no_node_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BUNDLE, "--rpc", "localhost:8545") == 2
    assert "--rpc must be the http or https URL of a node" in capsys.readouterr().err


# --- files that cannot be used -----------------------------------------------------------------

UNUSABLE = {
    "nothing": b"",
    "text": b"this is no bundle\n",
    "spaced": BUNDLE.read_bytes() + b"\n",
    "a_list": b"[]",
    "no_members": b"{}",
    "a_float": BUNDLE.read_bytes().replace(b'"windows":24', b'"windows":24.0', 1),
    "nested": b"[" * 200_000,
    "large": b" " * (verification.MAX_BUNDLE_BYTES + 1),
}


@pytest.mark.parametrize("option", ["bundle", "trust", "opening"])
@pytest.mark.parametrize("name", [name for name in UNUSABLE if name != "spaced"])
def test_a_file_that_cannot_be_used_is_named(
    name: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{name}.json"
    path.write_bytes(UNUSABLE[name])
    files = {"bundle": BUNDLE, "trust": TRUST, "opening": OPENING} | {option: path}
    assert run(files["bundle"], "--trust", files["trust"], "--opening", files["opening"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"sla-ledger: {path}: ")


def test_a_bundle_must_be_in_its_exact_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spaced.json"
    path.write_bytes(UNUSABLE["spaced"])
    assert run(path, "--trust", TRUST) == 2
    assert "not in canonical form" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "absent.json") == 2
    assert run(BUNDLE, "--trust", tmp_path / "absent.json") == 2
    assert run(tmp_path) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == second == f"sla-ledger: {tmp_path / 'absent.json'}: cannot be read: No such file or directory"
    assert third == f"sla-ledger: {tmp_path}: cannot be read: Is a directory"


def test_an_unusable_file_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(b"{}")
    assert run(path, "--json") == 2
    error = json.loads(capsys.readouterr().err)
    assert error["code"] == "document_invalid"
    assert error["data"] == {"field": "format", "file": str(path)}


def test_a_bundle_puts_no_lines_of_its_own_into_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a check refuses is quoted; a terminal would take line ends and escapes in it for ours."""
    forged = examples.forger()
    forged.bundle["statement"]["header"]["stream"] = "x\x1b[2K\r\nPASS         proof  fine\u202e"
    path = tmp_path / "bundle.json"
    path.write_bytes(forged.log().sign())
    assert run(path, "--trust", TRUST, "--accept-dev") == 1
    out = capsys.readouterr().out
    assert "\\u001b[2K\\u000d\\u000aPASS         proof  fine\\u202e" in out
    assert len([line for line in out.splitlines() if line.startswith("PASS         proof ")]) == 1


def test_nor_into_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(canonical_bytes(dict(examples.bundle()) | {"x\nsla-ledger: all is well": 1}))
    assert run(path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "x\\u000asla-ledger: all is well: unknown key" in line
