"""Charges are handed in and credits claimed by commands, on one directory, from the file to the credit line."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.cli.main import main
from ledger.resources import resource_dir
from ledger.wiring.services import open_data

DAY = datetime.now(UTC).date() - timedelta(days=20)
PERIOD = f"{DAY}/P1D"
CHARGES = """\
period: {period}
lines:
  - { service: example-chat, kind: recurring, amount: 1000.00, currency: USD }
  - { service: example-chat, kind: one_time, amount: 99.00, currency: USD }
"""


def agreement_file(folder: Path) -> Path:
    terms: dict[str, Any] = yaml.load((resource_dir("examples") / "agreement.yaml").read_text(), Loader=yaml.BaseLoader)
    del terms["compensation"]["base"]
    terms["compensation"]["charges"] = {"of": "period"}
    terms["effective"] = {"from": str(DAY - timedelta(days=5)), "until": str(DAY + timedelta(days=40))}
    terms["settlement"] = {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}}
    path = folder / "agreement.yaml"
    path.write_text(yaml.safe_dump(terms))
    return path


def requests_file(folder: Path) -> Path:
    rows = [
        {"request_id": f"r{n}", "started_at": f"{DAY}T10:00:00Z", "service": "example-chat"}
        | ({"error_code": 503} if n % 2 else {"error_code": None, "ttft_s": 0.2, "e2e_s": 1.0})
        for n in range(4)
    ]
    path = folder / "requests.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Path:
    """A directory with a closed day of which half failed; it waits for its charges."""
    folder = tmp_path_factory.mktemp("claiming")
    directory = str(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
        for command in (
            ["init"],
            ["agreements", "add", str(agreement_file(folder)), "--own-keys"],
            ["observe", str(requests_file(folder)), "--period", PERIOD],
            ["close", "--period", PERIOD],
        ):
            assert main([*command, "--data", directory]) == 0
    work(folder / "data")
    return folder / "data"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, key_cache: Path) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    for name in ("SLA_LEDGER_DATA", "SLA_LEDGER_BROKER"):
        monkeypatch.delenv(name, raising=False)


def work(data: Path) -> None:
    services = open_data(data)
    try:
        while services.runner.run_once():
            pass
    finally:
        services.close()


def asked(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def test_from_the_charges_to_the_line(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = ("--data", str(data))
    missing = asked(capsys, "charges", "show", "--period", PERIOD, *to, code=1)
    assert missing["code"] == "not_found"
    file = tmp_path / "charges.yaml"
    file.write_text(CHARGES.replace("{period}", PERIOD))
    recorded = asked(capsys, "charges", "record", str(file), *to)
    assert (recorded["version"], recorded["lines"][0]["amount"]) == (1, "1000.00")
    assert asked(capsys, "charges", "record", str(file), *to) == recorded
    assert asked(capsys, "charges", "show", "--period", PERIOD, *to) == recorded
    work(data)
    statement = f"{recorded['sla_id'][2:14]}.{DAY}.v1"
    (open_,) = asked(capsys, "claims", "list", statement, *to)["items"]
    # Half of the requests failed: half of the recurring charges.
    assert (open_["status"], open_["objective"], open_["minor_units"]) == ("open", "availability", "50000")
    assert open_["deadline"] == f"{DAY + timedelta(days=31)}T00:00:00Z"
    command = ("claims", "file", statement, "--violation", open_["violation_id"], *to)
    filed = asked(capsys, *command, "--request", "k1")
    assert filed["items"][0]["line_id"] == f"{statement}.l0001"
    assert asked(capsys, *command, "--request", "k1") == filed
    refused = asked(capsys, *command, code=1)
    assert (refused["code"], refused["data"]["line_id"]) == ("claim_refused", f"{statement}.l0001")
    capsys.readouterr()
    assert main(["claims", "list", statement, *to]) == 0
    shown = capsys.readouterr().out
    assert "filed" in shown
    assert "500.00 USD" in shown


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1000.00", "-5", "charges.yaml:3: lines[0].amount"),
        ("kind: recurring", "kind: rebate", "charges.yaml:3: lines[0].kind"),
        ("period: {period}", "", "period: is missing"),
        ("currency: USD", "currency: usd", "lines[0].currency"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    file = tmp_path / "charges.yaml"
    file.write_text(CHARGES.replace(old, new, 1).replace("{period}", PERIOD))
    refused = asked(capsys, "charges", "record", str(file), "--data", str(data), code=2)
    assert said in refused["message"]


def test_a_base_of_nothing_names_the_clause(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "charges.yaml"
    file.write_text(CHARGES.replace("kind: recurring", "kind: tax").replace("{period}", PERIOD))
    refused = asked(capsys, "charges", "record", str(file), "--data", str(data), code=1)
    assert (refused["code"], refused["data"]["clause"]) == (
        "charges_refused",
        "compensation.rules[0].tiers.availability",
    )


def test_settle_takes_the_charges_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    charges = tmp_path / "charges.yaml"
    charges.write_text(CHARGES.replace("{period}", PERIOD))
    command = ("settle", "--agreement", str(agreement_file(tmp_path)), "--requests", str(requests_file(tmp_path)))
    assert asked(capsys, *command, "--charges", str(charges))["credit"] == {"currency": "USD", "minor_units": 50_000}
    missing = asked(capsys, *command, code=1)
    assert (missing["code"], missing["data"]["period"]) == ("charges_missing", PERIOD)
    other = date.fromisoformat(str(DAY)) - timedelta(days=1)
    charges.write_text(CHARGES.replace("{period}", f"{other}/P1D"))
    assert "is settled by those of" in asked(capsys, *command, "--charges", str(charges), code=2)["message"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("amount: 1000.00", 'amount: "184467440737095516.15"', None),
        # Each line is an amount that the ledger can hold, and what the tier pays of both is not.
        ("kind: one_time, amount: 99.00", 'kind: recurring, amount: "184467440737095516.15"', "2^64 - 1"),
        ("kind: recurring", "kind: tax", "0 of them"),
    ],
)
def test_settle_refuses_the_charges_that_the_ledger_would_not_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str | None
) -> None:
    agreement = agreement_file(tmp_path)
    capped = agreement.read_text()
    agreement.write_text(capped.replace("contract: '4000.00'", "contract: 100 %"))
    assert agreement.read_text() != capped
    charges = tmp_path / "charges.yaml"
    charges.write_text(CHARGES.replace(old, new, 1).replace("{period}", PERIOD))
    command = ("settle", "--agreement", str(agreement), "--requests", str(requests_file(tmp_path)))
    if said is None:
        credit = asked(capsys, *command, "--charges", str(charges))["credit"]
        assert credit["minor_units"] == 2**63  # half of 2^64 - 1, to the even one
        return
    refused = asked(capsys, *command, "--charges", str(charges), code=1)
    assert (refused["code"], said in refused["message"]) == ("charges_refused", True)
    assert refused["data"]["clause"].startswith("compensation.rules[0].tiers")
