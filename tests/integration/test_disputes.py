"""docs/disputes.md from start to end: its commands are run in order, and print what the page shows of it."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.app import HANDLERS
from api.rest import charges, claims, ingest
from ledger.cli.main import main
from ledger.resources import resource_dir
from ledger.wiring.clock import SystemClock
from ledger.wiring.services import open_data

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "disputes.md").read_text(encoding="utf-8")
SAID_ID, PERIOD = "1f0c3a9b7e21", "2023-12-04/P1D"
MORNING_AFTER_NS = 1_701_741_600 * 10**9
DAY_NS = 86_400 * 10**9


def examples() -> Iterator[tuple[str, int, list[str]]]:
    """Each command of the page, the exit code that it promises, and lines that it shows of what is printed."""
    for block in re.findall(r"^ *```console\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^ *\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip().splitlines()
            code = re.search(r"# exit (\d)", command)
            yield command, int(code[1]) if code else 0, [line.strip() for line in shown]


def row(number: int, hour: int, minute: int, *, failed: bool = False) -> str:
    ended: dict[str, Any] = {"error_code": 503} if failed else {"error_code": None, "ttft_s": 0.2, "e2e_s": 1.5}
    at = {"request_id": f"r-{number}", "started_at": f"2023-12-04T{hour:02}:{minute:02}:00Z"}
    return json.dumps({**at, "service": "example-chat", **ended}) + "\n"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How far the clock of every command is moved on; it starts in the night after the period, and runs."""
    moved, began_ns = [0], time.time_ns()
    monkeypatch.setattr(SystemClock, "now_ns", lambda _: MORNING_AFTER_NS + moved[0] + time.time_ns() - began_ns)
    return moved


def work(data: Path) -> None:
    services = open_data(data, notify=lambda _: None)
    try:
        services.runner.run_until_idle(time.sleep)
        services.sign_log()
    finally:
        services.close()


def settled(folder: Path) -> str:
    """The day of the page in ``folder``/data, closed and proved, and the files of both parties; the id's beginning."""
    terms = yaml.load((resource_dir("examples") / "agreement.yaml").read_text(), Loader=yaml.BaseLoader)
    terms["settlement"] = {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}}
    terms["effective"] = {"from": "2023-12-04", "until": "2024-12-04"}
    (folder / "agreement.yaml").write_text(yaml.safe_dump(terms))
    logged = "".join(row(n, n % 24, n // 24, failed=n == 10) for n in range(100))
    missing = "".join(row(100 + n, 14, 30 + n, failed=True) for n in range(2))
    for name, rows in (("batch", logged), ("missing", missing), ("mine", logged + missing)):
        (folder / f"{name}.ndjson").write_text(rows)
    (folder / "too-late.ndjson").write_text(row(200, 15, 1, failed=True))
    for command in (
        "init",
        "agreements add agreement.yaml --own-keys",
        f"observe batch.ndjson --period {PERIOD}",
        f"close --period {PERIOD}",
    ):
        assert main([*command.split(), "--data", "data"]) == 0
    work(folder / "data")
    services = open_data(folder / "data")
    try:
        with services.database.read() as tx:
            (statement,) = tx.views.statements()
    finally:
        services.close()
    return str(statement["id"]).partition(".")[0]


@pytest.mark.slow
def test_a_dispute_goes_as_the_page_says(
    tmp_path: Path,
    clock: list[int],
    key_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    sla = settled(tmp_path)
    found = list(examples())
    assert len(found) == PAGE.count("$ sla-ledger")
    for command, code, shown in found:
        program, *arguments = shlex.split(command.replace(SAID_ID, sla).replace("DIR", "data"), comments=True)
        assert program == "sla-ledger"
        if "too-late.ndjson" in arguments:
            clock[0] += 31 * DAY_NS
        capsys.readouterr()
        assert main(arguments) == code, command
        said = capsys.readouterr()
        printed = (said.out + said.err).replace(sla, SAID_ID)
        at = 0
        for line in shown:
            at = printed.find(line, at)
            assert at >= 0, f"{command}\n{line}\n{printed}"
        if "missing.ndjson" in arguments and "observe" in arguments:
            work(tmp_path / "data")


def test_the_routes_that_the_page_names_are_served() -> None:
    handlers = (*HANDLERS, *charges.HANDLERS, *claims.HANDLERS, *ingest.HANDLERS)
    served = {re.sub(r":\w+}", "}", path) for handler in handlers for path in handler.paths}
    named = set(re.findall(r"(?:GET|POST)\s+(/v1/[^`?]*)", PAGE))
    assert len(named) >= 7
    assert named <= served
