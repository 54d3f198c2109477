"""A ledger is made, told agreements and facts, and asked to close: by commands, on one directory."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from eth_account.messages import encode_typed_data
from eth_utils import keccak

from ledger.cli.main import main
from ledger.resources import resource_dir
from ledger.wiring.services import open_data
from tests.support.deployment import example_terms
from tests.unit.app.conftest import row

EXAMPLES = resource_dir("examples")
PERIOD = "2023-06-14/P1D"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Path:
    """A directory with one agreement of its own keys."""
    folder = tmp_path_factory.mktemp("recording") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
        assert main(["init", "--data", str(folder)]) == 0
        agreement = str(EXAMPLES / "agreement.yaml")
        assert (
            main(["agreements", "add", agreement, "--data", str(folder), "--own-keys", "--first-period", PERIOD]) == 0
        )
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, key_cache: Path) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    for name in ("SLA_LEDGER_DATA", "SLA_LEDGER_BROKER"):
        monkeypatch.delenv(name, raising=False)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


@pytest.mark.parametrize("command", [("close", "--period", PERIOD), ("budget",), ("fsck",)])
def test_a_directory_that_is_none_says_how_one_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    refused = asked(capsys, *command, "--data", str(tmp_path), code=2)
    assert refused["code"] == "data_directory_invalid"
    assert "make one with: sla-ledger init --data" in refused["message"]


def test_facts_are_recorded_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("observe", str(EXAMPLES / "requests.ndjson"), "--data", str(data), "--period", PERIOD)
    first = asked(capsys, *command)
    assert first["rows"] == {"accepted": 760, "duplicate": 1, "conflict": 0, "rejected": 2}
    assert [(row["line"], row["field"], row["reason"]) for row in first["rejected"]] == [
        (762, "started_at", "time_invalid"),
        (763, "ttft_s", "latency_missing"),
    ]
    assert asked(capsys, *command) == first
    assert main(list(command)) == 0
    assert "requests.ndjson:762: started_at: '2023-06-14T05:00:00' is not an instant" in capsys.readouterr().err


def test_a_log_of_a_closed_period_says_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, agreement, log = tmp_path / "data", tmp_path / "agreement.yaml", tmp_path / "late.ndjson"
    first = date.today() - timedelta(days=3)  # noqa: DTZ011 - facts of a closed day are taken for 30 days
    terms = example_terms() | {"effective": {"from": str(first), "until": str(first + timedelta(days=9))}}
    agreement.write_text(yaml.safe_dump(terms))
    asked(capsys, "init", "--data", str(folder))
    asked(capsys, "agreements", "add", str(agreement), "--data", str(folder), "--own-keys")
    asked(capsys, "close", "--data", str(folder), "--period", f"{first}/P1D")
    log.write_text(json.dumps(row("late", at=f"{first}T10:00:00Z")) + "\n")
    command = ("observe", str(log), "--data", str(folder))
    assert asked(capsys, *command)["judged_anew"] == [f"{first}/P1D"]
    assert main(list(command)) == 0
    assert f"{first}/P1D is closed: it is judged anew" in capsys.readouterr().err
    log.write_text(json.dumps(row("next", at=f"{first + timedelta(days=1)}T10:00:00Z")) + "\n")
    assert asked(capsys, *command)["judged_anew"] == []


def test_after_the_deadline_a_log_of_a_closed_period_is_refused_with_it(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(capsys, "close", "--data", str(data), "--period", "2023-06-25/P1D")
    log = tmp_path / "late.ndjson"
    log.write_text(json.dumps(row("late", at="2023-06-25T10:00:00Z")) + "\n")
    refused = asked(capsys, "observe", str(log), "--data", str(data), code=1)
    assert refused["code"] == "claim_deadline_passed"
    assert refused["data"] == {"period": "2023-06-25/P1D", "deadline": "2023-07-26T00:00:00Z"}


def test_a_log_without_a_usable_row_is_refused_as_over_http(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "other.ndjson"
    log.write_text((EXAMPLES / "requests.ndjson").read_text().replace('"example-chat"', '"another-service"'))
    refused = asked(capsys, "observe", str(log), "--data", str(data), "--period", PERIOD, code=2)
    assert refused["code"] == "request_log_unusable"
    assert refused["data"]["reasons"]["other_service"] > 700
    # Nothing was written: the log that follows finds none of its ids taken.
    rows = asked(capsys, "observe", str(EXAMPLES / "requests.ndjson"), "--data", str(data), "--period", PERIOD)["rows"]
    assert rows["accepted"] == 760


def test_a_sample_log_is_told_from_a_request_log_by_what_it_holds(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = asked(
        capsys, "observe", str(EXAMPLES / "samples.ndjson"), "--data", str(data), "--period", PERIOD, code=2
    )
    # This agreement promises nothing that is sampled.
    assert refused["data"]["reasons"] == {"not_promised": 747}


def test_a_period_is_closed_once_and_waits_in_the_outbox(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("close", "--data", str(data), "--period", PERIOD)
    first = asked(capsys, *command)
    assert first["period"] == PERIOD
    assert asked(capsys, *command) == first
    items = asked(capsys, "outbox", "list", "--data", str(data))["items"]
    assert (first["event_id"], "evaluate", "pending") in [
        (item["event_id"], item["stage"], item["state"]) for item in items
    ]


def test_parked_work_is_shown_and_retried(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event_id = asked(capsys, "close", "--data", str(data), "--period", "2023-06-20/P1D")["event_id"]
    services = open_data(data)
    with services.database.begin() as tx:
        lease = None
        while lease is None or lease.event_id != event_id:
            lease = tx.outbox.lease(services.clock.now_ns(), 60 * 10**9, holder="a worker")
            assert lease is not None
        tx.outbox.fail(lease, error="internal: it broke", retry_at_ns=None)
    services.close()
    listed = ("outbox", "list", "--data", str(data), "--state", "parked")
    (item,) = asked(capsys, *listed)["items"]
    assert (item["event_id"], item["attempts"], item["error"]) == (event_id, lease.attempt, "internal: it broke")
    assert asked(capsys, "outbox", "retry", event_id, "evaluate", "--data", str(data))["state"] == "pending"
    assert asked(capsys, *listed)["items"] == []
    assert asked(capsys, "outbox", "retry", event_id, "evaluate", "--data", str(data), code=1)["code"] == "refused"
    assert asked(capsys, "outbox", "retry", event_id, "prove", "--data", str(data), code=1)["code"] == "not_found"


def test_the_collectors_key_is_shown_for_the_agreement_to_name(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (key,) = asked(capsys, "agreements", "keys", "--data", str(data))["collectors"].values()
    services = open_data(data)
    with services.database.read() as tx:
        (agreement,) = tx.views.agreements()
    services.close()
    assert agreement["document"]["collector"]["babyjubjub_public_key"] == key


def test_the_digest_is_what_the_customer_signs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("agreements", "digest", str(EXAMPLES / "agreement.yaml"), "--data", str(data))
    first, second = (asked(capsys, *command, "--first-period", f"2023-06-{day}/P1D") for day in (14, 15))
    assert first["digest"] != second["digest"]
    assert first["sla_id"] == second["sla_id"]
    # Wallets sign the document, and come to the same bytes.
    signable = encode_typed_data(full_message=first["typed_data"])
    assert first["digest"] == "0x" + keccak(b"\x19" + signable.version + signable.header + signable.body).hex()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["close", "--period", "2023-06-14"], "calendar_invalid"),
        (["close", "--period", "2022-06-14/P1D"], "document_invalid"),
        (["observe", str(EXAMPLES / "requests.ndjson"), "--period", PERIOD, "--span", "a/b"], "bad_input"),
        (["observe", "absent.ndjson"], "request_log_unusable"),
        (["agreements", "add", str(EXAMPLES / "agreement.yaml"), "--registration-signature", "0x12"], "bad_input"),
        (["agreements", "digest", str(EXAMPLES / "providers" / "alibaba-creation-workshop.yaml")], "bad_input"),
    ],
)
def test_what_cannot_be_used_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str
) -> None:
    assert asked(capsys, *arguments, "--data", str(data), code=2)["code"] == code


def test_an_unsigned_agreement_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "agreements", "add", str(EXAMPLES / "agreement.yaml"), "--data", str(data), code=1)
    assert found["code"] == "agreement_not_signed"


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "close", "--data", str(tmp_path / "absent"), "--period", PERIOD, code=2)
    assert found["code"] == "data_directory_invalid"
    assert "sla-ledger init" in found["message"]


def test_without_an_agreement_there_is_nothing_to_close(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(capsys, "init", "--data", str(tmp_path / "new"))
    refused = asked(capsys, "close", "--data", str(tmp_path / "new"), "--period", PERIOD, code=2)
    assert "no agreement is registered yet" in refused["message"]
    assert "sla-ledger agreements add FILE" in refused["message"]
