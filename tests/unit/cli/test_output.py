"""What commands print beside their result."""

from __future__ import annotations

import re
import time

import click
import pytest

from ledger.cli import output


def test_work_that_takes_long_is_said_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0.0)
    with output.ticking("verifying 1 bundle(s)"):
        until = time.monotonic() + 10
        while not (said := capsys.readouterr().err) and time.monotonic() < until:
            time.sleep(0.05)
    assert re.fullmatch(r"verifying 1 bundle\(s\): \d+ s so far\n", said)


def test_work_that_is_soon_over_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with output.ticking("verifying 1 bundle(s)"):
        pass
    assert capsys.readouterr().err == ""


def test_a_command_over_a_ledger_says_that_it_goes_on_and_not_right_after_it_said_something(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0.5)
    with click.Context(click.Command("observe"), info_name="sla-ledger observe"), output.going_on():
        output.note("not over yet")
        noted_at = time.monotonic()
        assert capsys.readouterr().err == "not over yet\n"
        while not (said := capsys.readouterr().err) and time.monotonic() < noted_at + 10:
            time.sleep(0.05)
    assert re.fullmatch(r"sla-ledger observe: \d+ s so far\n", said)
    assert time.monotonic() - noted_at > 0.4


def test_what_nobody_sees_is_written_out_in_texts_and_documents() -> None:
    assert output.visible({"a\nb": ["c\x1b[2K", ("\u202ed", 7, None)]}) == {
        "a\\u000ab": ["c\\u001b[2K", ["\\u202ed", 7, None]]
    }
    assert output.visible("Größe 1 €") == "Größe 1 €"
