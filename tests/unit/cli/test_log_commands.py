"""`keys`, `proof` and `witness` as an operator meets them, on a data directory without agreements."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.cli.main import main
from ledger.domain.events.event_types import check_event
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.record.events import NewEvent
from ledger.errors import (
    DataDirectoryInvalid,
    EventInvalid,
    KeyFileUnusable,
    LogBehindWitness,
    SettingInvalid,
    WitnessesUnavailable,
)
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.cosignature import WitnessKey, WitnessPolicy, parse_witness_vkey, require_quorum
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import parse_vkey
from ledger.merkle.tlog_proof import parse_tlog_proof, verify_tlog_proof
from ledger.wiring import Services, create_data, open_data
from ledger.wiring.witness import open_witness
from ledger.wiring.witness_client import read_witnesses
from tests.conformance.samples import windows

ROOT = Path(__file__).resolve().parents[3]
SECRET = re.compile(r"PRIVATE\+KEY|[0-9a-f]{64}")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("SLA_LEDGER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(tmp_path / "cache"))


@contextmanager
def opened(folder: Path, notify: Any = lambda _: None) -> Iterator[Services]:
    services = open_data(folder, notify=notify)
    try:
        yield services
    finally:
        services.close()


def append(services: Services, count: int = 3) -> None:
    with services.database.begin() as tx:
        tx.events.append("windows/a", windows(count), expected_version=None)


def newest(services: Services) -> bytes:
    return services.public_log.checkpoint()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    services = create_data(folder, key_cache=tmp_path / "cache", notify=lambda _: None)
    append(services)
    services.sign_log()
    services.close()
    return folder


# --- keys --------------------------------------------------------------------------------------


def test_a_new_key_is_private_and_shown_by_its_public_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.key"
    assert main(["keys", "create", "--name", "example.com/log", "--out", str(file)]) == 0
    vkey = capsys.readouterr().out.strip()
    assert parse_vkey(vkey).name == "example.com/log"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("PRIVATE+KEY+example.com/log+")
    assert main(["keys", "show", str(file)]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == vkey
    assert not SECRET.search(shown.out + shown.err)
    assert main(["keys", "show", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"vkey": vkey}
    other = ["keys", "create", "--name", "example.com/log", "--out", str(tmp_path / "other.key"), "--json"]
    assert main(other) == 0
    assert parse_vkey(json.loads(capsys.readouterr().out)["vkey"]).name == "example.com/log"
    assert main(["keys", "create", "--name", "example.com/log", "--out", str(file)]) == 2
    assert "not overwritten" in capsys.readouterr().err


def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.key"
    main(["keys", "create", "--name", "example.com/log", "--out", str(file)])
    for mode in (0o640, 0o604, 0o620, 0o644, 0o666):
        file.chmod(mode)
        assert main(["keys", "show", str(file)]) == 2
        assert "chmod 600" in capsys.readouterr().err
    (data / "keys" / "log.key").chmod(0o640)
    assert main(["keys", "list", "--data", str(data)]) == 2
    assert "chmod 600" in capsys.readouterr().err


def test_a_damaged_key_file_is_named_and_never_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.key"
    main(["keys", "create", "--name", "example.com/log", "--out", str(file)])
    line = file.read_text()
    for altered in (line.replace("example.com", "example.org"), line[:-5] + "\n", "PRIVATE+KEY+x\n", "ab" * 31, ""):
        file.write_text(altered)
        assert main(["keys", "show", str(file)]) == 2
        error = capsys.readouterr().err
        assert str(file) in error
        assert "PRIVATE+KEY+example" not in error
    assert main(["keys", "show"]) == 2


def test_a_rotation_keeps_the_origin_and_the_old_checkpoints(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(data) as services:
        before, origin = newest(services), services.log_signer.origin
    assert main(["keys", "rotate", "--data", str(data), "--json"]) == 0
    rotated = json.loads(capsys.readouterr().out)
    assert (rotated["origin"], rotated["from_size"]) == (origin, 4)
    assert main(["keys", "list", "--data", str(data), "--json"]) == 0
    old, new = json.loads(capsys.readouterr().out)
    assert (old["from_size"], old["until_size"], old["held"]) == (0, 4, True)
    assert (new["from_size"], new["until_size"], new["held"]) == (4, None, True)
    assert new["vkey"] == rotated["vkey"]
    open_checkpoint(before, origin, [parse_vkey(old["vkey"])], verify)
    with opened(data) as services:
        opened_now = open_checkpoint(newest(services), origin, [parse_vkey(new["vkey"])], verify)
    assert opened_now.checkpoint.size == 4
    assert main(["keys", "list", "--data", str(data)]) == 0
    assert main(["keys", "show", "--data", str(data)]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip().endswith(new["vkey"])
    assert not SECRET.search(printed.out + printed.err)
    files = list((data / "keys").glob("log*.key"))
    assert len(files) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_an_old_key_may_go_once_it_was_rotated_away(data: Path) -> None:
    main(["keys", "rotate", "--data", str(data)])
    (data / "keys" / "log.key").unlink()
    with opened(data) as services:
        append(services)
        services.sign_log()
        assert not (data / "keys" / "log.key").exists()
        assert b"\n7\n" in newest(services)


def test_a_present_key_that_is_gone_is_said_and_not_replaced(data: Path) -> None:
    main(["keys", "rotate", "--data", str(data)])
    for file in (data / "keys").glob("log-*.key"):
        file.unlink()
    with opened(data) as services:
        append(services)
        with pytest.raises(KeyFileUnusable, match="not at hand"):
            services.sign_log()


def test_directories_from_before_rotation_keep_their_origin(data: Path) -> None:
    marker = data / "data.json"
    document = dict(parse_json(marker.read_bytes(), max_bytes=4096))
    vkey = document.pop("log_vkey")
    marker.write_bytes(canonical_bytes(document))
    with opened(data) as services:
        assert services.log_signer.identity.first_key.vkey() == vkey
    main(["keys", "rotate", "--data", str(data)])
    assert parse_json(marker.read_bytes(), max_bytes=4096)["log_vkey"] == vkey
    with opened(data) as services:
        assert services.log_signer.identity.first_key.vkey() == vkey


def test_a_running_process_follows_a_rotation_by_another(data: Path) -> None:
    with opened(data) as running:
        main(["keys", "rotate", "--data", str(data)])
        append(running)
        running.sign_log()
        described = running.public_log.describe()
        open_checkpoint(newest(running), described.origin, [described.keys[1].key], verify)


def test_a_chosen_key_must_be_named_as_the_log(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new.key"
    main(["keys", "create", "--name", "example.com/other", "--out", str(file)])
    assert main(["keys", "rotate", "--data", str(data), "--key", str(file)]) == 2
    assert "origin" in capsys.readouterr().err
    with opened(data) as services:
        assert len(services.public_log.describe().keys) == 1
        origin = services.log_signer.origin
    file = tmp_path / "named.key"
    main(["keys", "create", "--name", origin, "--out", str(file)])
    vkey = capsys.readouterr().out.strip()
    assert main(["keys", "rotate", "--data", str(data), "--key", str(file)]) == 0
    assert capsys.readouterr().out.strip() == vkey


def test_the_environment_holds_the_key_of_a_new_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = NoteKey("example.com/log", SigningKey(b"\x21" * 32))
    monkeypatch.setenv("SLA_LEDGER_LOG_KEY", key.skey())
    folder = tmp_path / "data"
    services = create_data(folder, key_cache=tmp_path / "cache", notify=lambda _: None)
    append(services)
    services.sign_log()
    open_checkpoint(newest(services), "example.com/log", [key.key], verify)
    services.close()
    assert not (folder / "keys" / "log.key").exists()
    monkeypatch.delenv("SLA_LEDGER_LOG_KEY")
    with opened(folder) as services:
        append(services)
        with pytest.raises(KeyFileUnusable, match="not at hand"):
            services.sign_log()
    for wrong in ("PRIVATE+KEY+nonsense", NoteKey("example.com/b", SigningKey(b"\x21" * 32)).skey()):
        monkeypatch.setenv("SLA_LEDGER_LOG_KEY", wrong)
        with pytest.raises(SettingInvalid) as caught:
            open_data(folder)
        assert wrong not in caught.value.message


# --- proof -------------------------------------------------------------------------------------


def test_a_proof_is_exported_and_holds(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "entry.tlog-proof"
    assert main(["proof", "1", "--data", str(data), "--out", str(file)]) == 0
    assert main(["proof", "1", "--data", str(data)]) == 0
    assert capsys.readouterr().out.encode() == file.read_bytes()
    assert main(["proof", "1", "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"entry": "1", "file": None, "tlog_proof": file.read_text()}
    proof = parse_tlog_proof(file.read_bytes())
    with opened(data) as services, services.database.read() as tx:
        entry, identity = tx.events.at(1).entry, services.log_signer.identity
    verify_tlog_proof(
        proof,
        leaf_hash(entry),
        origin=identity.origin,
        log_keys=[identity.first_key],
        policy=WitnessPolicy((), 0),
        verify=verify,
    )
    for wrong in ("3", "999", "nothing.2023-12-19.v1"):
        assert main(["proof", wrong, "--data", str(data)]) != 0
        assert capsys.readouterr().out == ""


# --- witness -----------------------------------------------------------------------------------


@contextmanager
def witness(tmp_path: Path, vkey: str, folder: str = "witness", *more: str) -> Iterator[dict[str, Any]]:
    """A witness as a process of its own, and the line it printed."""
    arguments = ["witness", "--data", str(tmp_path / folder), "--log-vkey", vkey, "--port", "0", "--json", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "ledger.cli.main", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield json.loads(line)
    finally:
        process.terminate()
        process.communicate(timeout=20)


def name_witnesses(data: Path, quorum: int, *lines: dict[str, Any]) -> None:
    document = {
        "format": "sla-ledger/witnesses/v1",
        "quorum": quorum,
        "witnesses": [{"url": line["url"], "vkey": line["vkey"]} for line in lines],
    }
    (data / "witnesses.json").write_text(json.dumps(document))


@pytest.mark.slow
def test_a_log_and_its_witness_as_processes(data: Path, tmp_path: Path) -> None:
    with opened(data) as services:
        origin, vkey = services.log_signer.origin, services.log_signer.identity.first_key.vkey()
    shutil.copy(data / "ledger.db", tmp_path / "oldest.db")
    with witness(tmp_path, vkey, "witness", "--name", "witness.example/w1") as line:
        assert line["origins"] == [origin]
        key = parse_witness_vkey(line["vkey"])
        assert key.name == "witness.example/w1"
        name_witnesses(data, 1, line)
        with opened(data) as services:
            for _ in range(2):
                append(services)
                services.sign_log()
                opened_note = open_checkpoint(newest(services), origin, [parse_vkey(vkey)], verify).note
                require_quorum(opened_note.text, opened_note.unverified, WitnessPolicy((key,), 1), verify)
    said: list[str] = []
    with opened(data, said.append) as services:
        append(services)
        before = newest(services)
        with pytest.raises(WitnessesUnavailable):
            services.sign_log()
        assert newest(services) == before
    assert "did not answer" in said[0]
    with witness(tmp_path, vkey) as again:
        assert again["vkey"] == line["vkey"]
        name_witnesses(data, 1, again)
        with opened(data) as services:
            services.sign_log()
            assert newest(services) != before
        for rest in data.glob("ledger.db-*"):
            rest.unlink()
        shutil.copy(tmp_path / "oldest.db", data / "ledger.db")
        # With the pin gone as well, only the witness still knows better.
        (data / "keys" / "log.pin").unlink()
        with opened(data) as restored:
            append(restored, 2)
            with pytest.raises(LogBehindWitness):
                restored.sign_log()


@pytest.mark.parametrize(
    "document",
    [
        {"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": []},
        {"format": "sla-ledger/witnesses/v1", "quorum": 2, "witnesses": [{"url": "http://a", "vkey": "K"}]},
        {"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": [{"url": "ftp://a", "vkey": "K"}]},
        {"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": [{"url": "http://a:b", "vkey": "K"}]},
        {"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": [{"url": "http://u@a", "vkey": "K"}]},
        {"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": [{"url": "http://a", "vkey": "LOG"}]},
        {"format": "sla-ledger/witnesses/v2", "quorum": 1, "witnesses": [{"url": "http://a", "vkey": "K"}]},
        [],
    ],
)
def test_a_file_of_witnesses_that_cannot_be_used_is_named(tmp_path: Path, document: Any) -> None:
    signing_key = SigningKey(b"\x31" * 32)
    vkey = WitnessKey("witness.example/w1", signing_key.public_key).vkey()
    log_vkey = NoteKey("witness.example/w1", signing_key).key.vkey()
    file = tmp_path / "witnesses.json"
    good = {
        "format": "sla-ledger/witnesses/v1",
        "quorum": 1,
        "witnesses": [{"url": "https://witness.example/w1/", "vkey": vkey}],
    }
    file.write_text(json.dumps(good))
    witnesses, quorum = read_witnesses(file)
    assert ([each.key.vkey() for each in witnesses], quorum) == ([vkey], 1)
    text = json.dumps(document).replace('"K"', json.dumps(vkey)).replace('"LOG"', json.dumps(log_vkey))
    file.write_text(text)
    with pytest.raises(SettingInvalid, match=r"witnesses\.json"):
        read_witnesses(file)


def test_a_witness_keeps_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vkey = NoteKey("example.com/log", SigningKey(b"\x21" * 32)).key.vkey()
    first = open_witness(tmp_path / "w", [vkey], "witness.example/w1")
    assert open_witness(tmp_path / "w", [vkey]).key == first.key
    with pytest.raises(DataDirectoryInvalid, match=r"not 'witness\.example/w2'"):
        open_witness(tmp_path / "w", [vkey], "witness.example/w2")
    assert main(["witness", "--data", str(tmp_path / "x"), "--log-vkey", "nonsense", "--port", "0"]) == 2
    assert main(["witness", "--data", str(tmp_path / "x"), "--log-vkey", vkey, "--host", "0.0.0.0"]) == 2
    assert "loopback" in capsys.readouterr().err


def test_a_key_event_has_a_closed_shape() -> None:
    payload = {"origin": "a", "old_vkey": "a+00000000+AA==", "new_vkey": "a+00000000+AA==", "from_size": 1}
    with pytest.raises(EventInvalid, match="endorsement"):
        check_event(NewEvent("log_key_rotated", payload, 0))
    check_event(NewEvent("log_key_rotated", payload | {"endorsement": "00" * 64}, 0))
