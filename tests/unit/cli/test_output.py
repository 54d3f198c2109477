"""What commands print beside their result."""

from __future__ import annotations

import time

import click
import pytest

from ledger.cli import output


class Clock:
    """Time that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._asked = 0

    def monotonic(self) -> float:
        self._asked += 1
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """Returns once whoever says that work goes on has looked at the new time and said what it had to."""
        self.now_s += seconds
        # A look may take two questions; the second look begins when the first is over.
        enough, give_up = self._asked + 5, time.monotonic() + 60
        while self._asked < enough:
            assert time.monotonic() < give_up, "nobody looks at the time"
            time.sleep(0.001)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(output, "time", clock)
    monkeypatch.setattr(output, "_said_at", 0.0)
    monkeypatch.setattr(output, "_TICK_S", 0.001)
    return clock


def test_work_that_takes_long_is_said_to_go_on(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with output.ticking("verifying 1 bundle(s)"):
        clock.pass_s(1.9)
        assert capsys.readouterr().err == ""
        clock.pass_s(0.2)
        assert capsys.readouterr().err == "verifying 1 bundle(s): 2 s so far\n"
        clock.pass_s(9.9)
        assert capsys.readouterr().err == ""


def test_work_that_is_soon_over_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with output.ticking("verifying 1 bundle(s)"):
        pass
    assert capsys.readouterr().err == ""


def test_a_command_over_a_ledger_says_that_it_goes_on_and_not_right_after_it_said_something(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    with click.Context(click.Command("observe"), info_name="sla-ledger observe"), output.going_on():
        clock.pass_s(1.9)
        output.note("not over yet")
        clock.pass_s(1.9)
        assert capsys.readouterr().err == "not over yet\n"
        clock.pass_s(0.2)
        assert capsys.readouterr().err == "sla-ledger observe: 4 s so far\n"


def test_what_nobody_sees_is_written_out_in_texts_and_documents() -> None:
    assert output.visible({"a\nb": ["c\x1b[2K", ("\u202ed", 7, None)]}) == {
        "a\\u000ab": ["c\\u001b[2K", ["\\u202ed", 7, None]]
    }
    assert output.visible("Größe 1 €") == "Größe 1 €"


def test_a_line_of_a_table_ends_with_its_last_word_coloured_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("verdict", "state"), [("breached", "met"), ("met", "breached"), ("metered", "")])
    assert capsys.readouterr().out.splitlines() == [
        "verdict   state",
        "--------  --------",
        "breached  met",
        "met       breached",
        "metered",
    ]
