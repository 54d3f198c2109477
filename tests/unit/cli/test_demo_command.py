"""``sla-ledger demo`` where it refuses: a message, the promised exit code, and nothing written. The way through is
tested with the real prover in ``tests/integration``."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.cli import demo as command
from ledger.cli.main import main
from ledger.cli.objectives import OBJECTIVE_COLUMNS
from ledger.cli.output import print_table
from ledger.domain.credits.settlement import settle
from ledger.domain.terms.period_names import period_named
from ledger.errors import StorageUnavailable
from tests.unit.domain.samples import EXAMPLES, agreement, windows


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "log.ndjson"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def row(name: str, at: str = "2023-06-14T10:00:00Z", service: str = "chat") -> dict[str, Any]:
    latencies = {"ttft_s": 0.2, "e2e_s": 1.5, "error_code": None}
    return {"request_id": name, "started_at": at, "service": service, **latencies}


class Reached(Exception):
    """The command got past every check of its input."""


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Ends the command where the data directory would be made."""

    def stop(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.setattr(command, "create_data", stop)
    found: list[Any] = []
    require = command._require_over
    monkeypatch.setattr(command, "_require_over", lambda period, now: (found.append(str(period)), require(period, now)))
    return found


def refused(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The message of a command that must end with 2."""
    assert main(["demo", *map(str, arguments)]) == 2
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err
    assert captured.out == ""
    return captured.err


def test_a_period_that_is_not_over_is_refused_before_anything_is_written(
    log: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert "still to come" in refused(capfd, "--requests", log(row("a", "2200-06-14T10:00:00Z")), "--out", out)
    assert not out.exists()


def test_a_service_name_that_no_agreement_may_hold_is_refused_before_anything_is_written(
    log: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for service in ("a\0b", "a\u202eb", "x" * 121):
        message = refused(capfd, "--requests", log(row("a", service=service)), "--out", tmp_path / "out")
        assert "service.name: " in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "odd", ["9999-12-31T23:00:00Z", "0001-01-01T00:00:00+10:00", "2300-01-01T00:00:00Z", "1970-01-01T00:00:00Z"]
)
def test_one_row_of_an_impossible_year_is_left_out_of_the_dates(
    log: Callable[..., Path], tmp_path: Path, chosen: list[Any], odd: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = log(row("a"), row("b", odd), row("c"))
    with pytest.raises(Reached):
        main(["demo", "--requests", str(path), "--out", str(tmp_path / "out")])
    assert chosen == ["2023-06-14/P1D"]
    assert "log.ndjson:2: started_at: " in capfd.readouterr().err


def test_rows_further_apart_than_an_agreement_lasts(
    log: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = log(row("a"), row("b", "2150-01-01T00:00:00Z"))
    message = refused(capfd, "--requests", path, "--out", tmp_path / "out")
    assert "2023 to 2150" in message
    assert "--agreement" in message


def test_a_log_is_read_once_so_it_may_be_a_pipe(tmp_path: Path, chosen: list[Any]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = (EXAMPLES / "requests.ndjson").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    with pytest.raises(Reached):
        main(["demo", "--requests", str(pipe), "--out", str(tmp_path / "out")])
    writer.join()
    assert chosen == ["2023-06-14/P1D"]


def test_a_log_of_more_than_one_batch_is_refused(
    tmp_path: Path, log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ledger.cli.log_reading.MAX_LOG_BYTES", 100)
    assert "more than 100 bytes" in refused(capfd, "--requests", log(row("a")), "--out", tmp_path / "out")


def test_a_place_that_cannot_hold_the_directory_is_named(
    tmp_path: Path, log: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file" / "out", tmp_path / "file" / "a" / "b", tmp_path / ("x" * 300), tmp_path / "file"):
        assert str(out) in refused(capfd, "--requests", log(row("a")), "--out", out)


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_disk_that_takes_nothing_is_named(
    error: int,
    tmp_path: Path,
    log: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Tests may run as root, who can write anywhere: so the system call's answer is played."""

    def fails(path: Path, *_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error), str(path))

    out = tmp_path / "out"
    path = log(row("a"))
    monkeypatch.setattr(Path, "mkdir", fails)
    message = refused(capfd, "--requests", path, "--out", out)
    assert str(out) in message
    assert os.strerror(error) in message


@pytest.mark.parametrize("name", ["bundles", "bundle.json", "agreement.yaml", "trust.json", "opening.json"])
def test_what_stands_where_its_files_go_is_refused_before_the_ledger_is_touched(
    name: str, tmp_path: Path, log: Callable[..., Path], chosen: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).touch() if name == "bundles" else (out / name).mkdir()
    assert str(out / name) in refused(capfd, "--requests", log(row("a")), "--out", out)


def test_files_appear_whole_with_their_rights_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundles" / "a.json"
    command._put(path, b"old")
    assert path.stat().st_mode & 0o777 == 0o644
    command._put(path, b"counts", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageUnavailable, match=r"a\.json cannot be written: No space left on device"):
        command._put(path, b"new")
    assert [(found.name, found.read_bytes()) for found in path.parent.iterdir()] == [("a.json", b"counts")]


def test_the_table_says_credit_proof_and_transaction_once(capsys: pytest.CaptureFixture[str]) -> None:
    terms = agreement()
    cells = {10: ((738, 22), (676, 62), (738, 0))}
    settlement = settle(terms, period_named(terms, "2023-06-14/P1D"), windows(terms, cells))
    rows = command._rows(settlement, "0x" + "ab" * 32, "0x" + "cd" * 32)
    print_table((*OBJECTIVE_COLUMNS, "credit", "proof", "tx"), rows)
    table = capsys.readouterr().out
    lines = table.splitlines()
    assert lines[0].split() == [*OBJECTIVE_COLUMNS, "credit", "proof", "tx"]
    assert [line.split()[0] for line in lines[2:]] == ["availability", "ttft", "response", "statement"]
    for once in ("2000.00 USD", "0xabababababab"[:12], "0xcdcdcdcdcdcd"[:12]):
        assert (table.count(once), once in lines[-1]) == (1, True)
    assert max(map(len, lines)) <= 110
