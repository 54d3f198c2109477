"""An agreement is listed, shown, amended and ended by commands; a draft says whose signature is missing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from tests.unit.app.conftest import signed_agreement

pytestmark = pytest.mark.slow


TODAY = datetime.now(UTC).date()
"""Also where midnight comes while the tests run."""


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


def write(path: Path, **changes: Any) -> str:
    terms = {"period": "P1W", "window": "PT24H", "effective": {"from": day(-40), "until": day(400)}}
    path.write_text(json.dumps(signed_agreement(**{**terms, **changes})))
    return str(path)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_agreement_lives_by_commands(
    tmp_path: Path, key_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    data = ["--data", str(tmp_path / "data")]
    assert main(["init", *data]) == 0
    assert main(["agreements", "add", write(tmp_path / "a.json"), *data, "--own-keys"]) == 0
    later = {
        "effective": {"from": day(3), "until": day(400)},
        "anchor": day(-40),
        "partial_periods": "prorate",
    }
    second = write(tmp_path / "b.json", **later)
    amended = asked(capsys, "agreements", "amend", second, *data, "--own-keys")
    assert (amended["terms_version"], amended["on_chain"]) == (2, True)
    (listed,) = asked(capsys, "agreements", "list", *data)["agreements"]
    assert (listed["state"], listed["terms_version"], listed["in_force"]) == ("active", 2, 1)

    late = write(tmp_path / "c.json", **{**later, "effective": {"from": day(0), "until": day(400)}})
    assert main(["agreements", "amend", late, *data, "--own-keys"]) == 2
    assert f"effective.from: {day(0)} is not later than now" in capsys.readouterr().err

    ending = ["--effective", day(9), "--reason", "moved away"]
    unsigned = asked(capsys, "agreements", "terminate", *data, *ending)
    assert unsigned["notice"]["effective"] == day(9)
    assert asked(capsys, "agreements", "show", *data)["termination"] is None
    ended = asked(capsys, "agreements", "terminate", *data, *ending, "--own-keys")
    assert ended["signed_by"] == ["issuer", "customer"]
    shown = asked(capsys, "agreements", "show", *data)
    assert [each["what"] for each in shown["timeline"]][-2:] == ["amended", "terminated"]
    assert shown["versions"][1]["until"] == shown["termination"]["at"] == f"{day(9)}T00:00:00Z"
    assert main(["agreements", "show", *data]) == 0
    assert "ended by notice of issuer and customer: moved away" in capsys.readouterr().out


def test_a_draft_says_whose_signature_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = signed_agreement()
    for signatures, state, missing in (
        (document["signatures"], "signed", []),
        ({"issuer": document["signatures"]["issuer"]}, "draft", ["customer"]),
        ({**document["signatures"], "issuer": "ab" * 64}, "draft", ["issuer"]),
        ({}, "draft", ["issuer", "customer"]),
    ):
        path = tmp_path / "terms.json"
        path.write_text(json.dumps({**document, "signatures": signatures}))
        found = asked(capsys, "agreements", "validate", str(path))
        assert (found["state"], found["missing_signatures"]) == (state, missing)


def test_where_an_agreement_stands_before_and_after_its_term(
    tmp_path: Path, key_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    data = ["--data", str(tmp_path / "data")]
    assert main(["init", *data]) == 0
    terms = {
        "signed": (3, 400, ["signed", "active", "expired"], 2),
        "expired": (-40, -12, ["signed", "active", "expired"], 0),
        "active": (-40, 400, ["signed", "active", "expired"], 1),
    }
    for state, (first, until, whats, to_come) in terms.items():
        path = write(tmp_path / f"{state}.json", effective={"from": day(first), "until": day(until)})
        sla_id = asked(capsys, "agreements", "add", path, *data, "--own-keys")["sla_id"]
        shown = asked(capsys, "agreements", "show", *data, "--sla-id", sla_id)
        assert (shown["state"], [each["what"] for each in shown["timeline"]]) == (state, whats)
        assert main(["agreements", "show", *data, "--sla-id", sla_id]) == 0
        assert capsys.readouterr().out.count("to come") == to_come
    listed = asked(capsys, "agreements", "list", *data)["agreements"]
    assert sorted(each["state"] for each in listed) == sorted(terms)


def test_a_later_first_period_says_what_it_leaves_out(
    tmp_path: Path, key_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    data = ["--data", str(tmp_path / "data")]
    assert main(["init", *data]) == 0
    first = f"{day(-26)}/P1W"
    path = write(tmp_path / "a.json")
    capsys.readouterr()
    assert main(["agreements", "add", path, *data, "--own-keys", "--first-period", first, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["periods_left_out"] == [f"{day(-40)}/P1W", f"{day(-33)}/P1W"]
    assert f"the 2 periods of the terms before it ({day(-40)}/P1W to {day(-33)}/P1W) can never be recorded" in said.err
    other = write(tmp_path / "b.json", nonce="0x" + "77" * 32)
    assert asked(capsys, "agreements", "add", other, *data, "--own-keys")["periods_left_out"] == []


def test_a_draft_says_what_is_still_to_be_written_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = signed_agreement()
    parties = {**document["parties"], "issuer": {**document["parties"]["issuer"], "name": "REPLACE provider"}}
    path = tmp_path / "terms.json"
    path.write_text(json.dumps({**document, "parties": parties}))
    assert asked(capsys, "agreements", "validate", str(path))["placeholders"] == ["parties.issuer.name"]
    assert main(["agreements", "validate", str(path)]) == 0
    assert "REPLACE is still in parties.issuer.name" in capsys.readouterr().out
    keyless = {**document["collector"], "name": "REPLACE collector", "babyjubjub_public_key": {"x": "1", "y": "1"}}
    path.write_text(json.dumps({**document, "parties": parties, "collector": keyless}))
    assert main(["agreements", "validate", str(path)]) == 2
    said = capsys.readouterr().err
    assert "a draft, with REPLACE still in parties.issuer.name, collector.name" in said
    assert said.index("a draft") < said.index("is no Baby Jubjub public key")
    path.write_text(json.dumps({**document, "collector": {**keyless, "name": "mine"}}))
    assert main(["agreements", "validate", str(path)]) == 2
    assert "REPLACE" not in capsys.readouterr().err
