"""An agreement is listed, shown, amended and ended by commands; a draft says whose signature is missing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from tests.unit.app.conftest import signed_agreement


def day(offset: int) -> str:
    return str((datetime.now(UTC) + timedelta(days=offset)).date())


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
