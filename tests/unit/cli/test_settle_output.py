from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cli import output
from ledger.cli.output import percent_floored, print_table, with_progress


@given(st.integers(1, 10**12), st.data())
def test_a_percentage_is_floored_and_100_means_all(valid: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, valid))
    shown = int(percent_floored(good, valid).removesuffix(" %").replace(".", ""))
    assert shown * valid <= good * 10**6 < (shown + 1) * valid
    assert (shown == 10**6) == (good == valid)


def test_nearly_all_does_not_show_as_all() -> None:
    assert percent_floored(99_999_999, 100_000_000) == "99.9999 %"
    assert percent_floored(0, 0) == "-"


def test_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count"), [("a", "5"), ("bcd", "1234")])
    assert capsys.readouterr().out.splitlines() == ["name  count", "----  -----", "a         5", "bcd    1234"]


def test_empty_cells_do_not_change_how_a_column_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count", "none"), [("a", "5", ""), ("bcd", "", ""), ("e", "1234", "")])
    assert capsys.readouterr().out.splitlines()[2:] == ["a         5", "bcd", "e      1234"]


def test_ids_and_instants_are_no_numbers_because_they_begin_with_a_digit(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("0x5a", "05c2.v1.l1", "2023-12-19T00:00:00Z", "738/760", "-97.10 %"), ("-", "05", "", "1", "1.00 USD")]
    print_table(("agreement", "statement's line", "from", "good/valid", "attained"), rows)
    header, _, first, _ = capsys.readouterr().out.splitlines()
    assert header == "agreement  statement's line  from                  good/valid  attained"
    assert first == "0x5a       05c2.v1.l1        2023-12-19T00:00:00Z     738/760  -97.10 %"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals_and_for_long_work(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def clock() -> Iterator[float]:
        yield from (0.0, 1.0, 3.0)

    ticks = clock()
    monkeypatch.setattr(output.time, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert sum(1 for _ in with_progress(range(45_000), lambda: 50.0, "reading")) == 45_000
    shown = capsys.readouterr().err
    assert shown.count("reading:  50 %") == (1 if terminal else 0)
