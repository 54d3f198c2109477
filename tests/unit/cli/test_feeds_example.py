"""The example of objectives that are counted from feeds, and the pages that show how those are written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.terms.log_kinds import format_of
from ledger.domain.terms.period_names import period_named
from ledger.ingest.facts import read_facts
from tests.unit.domain.samples import EXAMPLES, agreement

NAME = "agreement-feeds.yaml"
OBJECTIVES = EXAMPLES.parent / "docs/objectives.md"
PAGE = EXAMPLES.parent / "docs/ingest.md"
LOGS = {kind: EXAMPLES / f"{kind}.ndjson" for kind in BOOKS}
FIGURES = {
    # 4 after midnight, 20 of two that overlap, 6 of a revised one
    "uptime": (1410, 1440, "breached"),
    # pod a 12 * 100 until it restarts, 40 and 11 * 100 after, pod b 24 * 50; errors of a 12 and 2
    "errors": (3540 - 14, 3540, "met"),
    # 5 of each of the first four hours took longer
    "response": (2400 - 20, 2400, "met"),
    # uptime in three hours; errors in twelve in a row, and in two
    "back": (5, 6, "breached"),
}


def settle(capfd: pytest.CaptureFixture[str], *more: object, without: str = "", code: int = 0) -> Any:
    command: list[object] = ["settle", "--agreement", EXAMPLES / NAME, "--period", "2023-06-14/P1D", "--json", *more]
    for kind, path in LOGS.items():
        command += [f"--{kind}", path] if kind != without else []
    assert main([str(each) for each in command]) == code
    captured = capfd.readouterr()
    return json.loads(captured.out) if code == 0 else captured.err


def test_the_feeds_come_to_what_one_works_out_by_hand(capfd: pytest.CaptureFixture[str]) -> None:
    said = settle(capfd)
    assert {each["id"]: (each["good"], each["valid"], each["verdict"]) for each in said["objectives"]} == FIGURES
    assert said["counters"]["accepted"] == 100
    assert said["outages"] == {"accepted": 7, "rejected": 0, "duplicates": 1, "conflicts": 0}


def test_the_page_names_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    (command,) = re.findall(
        r"sla-ledger (settle --agreement examples/agreement-feeds.*)",
        OBJECTIVES.read_text(),
    )
    words = [str(EXAMPLES.parent / word) if word.startswith("examples/") else word for word in command.split()]
    assert main(words) == 0
    said = capfd.readouterr().out
    assert "1410/1440" in said
    assert "Outages 7 accepted, 0 rejected, 1 duplicates, 0 conflicts" in said


@pytest.mark.parametrize("kind", BOOKS)
def test_without_a_log_that_an_objective_is_counted_from_nothing_is_settled(
    capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    assert f"hand it in with --{kind}" in settle(capfd, without=kind, code=2)


def test_strict_minds_what_cannot_be_used(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "outages.ndjson"
    row = {"outage_id": "a", "from": "2023-06-14T10:00:00Z", "to": "2023-06-14T10:01:00Z", "service": "example-chat"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (row, row | {"to": "2023-06-14T10:02:00Z"})))
    complaint = settle(capfd, "--outages", path, "--strict", without="outages", code=1)
    assert "outages.ndjson:2: '1/a' came before with another body (conflict)" in complaint


def test_the_page_shows_rows_of_every_feed_that_can_be_used() -> None:
    shown = re.findall(r"```ndjson\n(.*?)```", PAGE.read_text(), re.DOTALL)
    of = agreement(name=NAME)
    assert {format_of(each.encode()) for each in shown} == set(BOOKS)
    for text in shown:
        book = BOOKS[format_of(text.encode())](of, period_named(of, "2023-06-14/P1D"))
        book.add_all(read_facts(text.encode()))  # type: ignore[arg-type]
        assert (book.counts.accepted, book.counts.requests) == (text.count("\n"),) * 2
