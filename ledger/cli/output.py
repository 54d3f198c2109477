"""What commands print: JSON or plain tables on stdout, progress and notes on stderr, colour only on a terminal."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ledger.domain.schema import HIDDEN_CHARACTER

T = TypeVar("T")

PROGRESS_AFTER_S = 2.0
_TICK_S = 0.2
_PROGRESS_EVERY_ROWS = 20_000
_NUMBER = re.compile(r"-?\d[\d.,/]*%?( .*)?")
_COLOURS = {"met": "green", "breached": "red", "no_data": "yellow", "withheld": "yellow"}


def visible(value: Any) -> Any:
    """A text, or all texts of a document, with what nobody sees written out: whoever wrote the files that are read
    here could otherwise put lines of his own between ours, or turn them around."""
    if isinstance(value, str):
        return HIDDEN_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, Mapping):
        return {visible(key): visible(each) for key, each in value.items()}
    return [visible(each) for each in value] if isinstance(value, list | tuple) else value


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table with aligned columns; columns whose filled cells are all numbers, with or without a unit, are
    right-aligned. An id or an instant that happens to begin with a digit is none."""
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(line[at]) for line in [list(header), *cells]) for at in range(len(header))]
    columns = [[row[at] for row in cells if row[at]] for at in range(len(header))]
    right = [bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled) for filled in columns]
    for line in [list(header), ["-" * width for width in widths], *cells]:
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ]
        click.echo("  ".join(map(_coloured, padded)).rstrip())


def _coloured(cell: str) -> str:
    """The word alone, so that no blanks stay behind the last one of a line."""
    word = cell.strip()
    return cell.replace(word, click.style(word, fg=_COLOURS[word])) if word in _COLOURS else cell


_said_at = 0.0


def note(message: str) -> None:
    """A line on stderr, for people; never part of the result."""
    global _said_at  # noqa: PLW0603 - one process has one stderr
    _said_at = time.monotonic()
    click.echo(message, err=True)


def percent_floored(good: int, valid: int) -> str:
    """good / valid as a percentage with four digits, never rounded up: 99.99999 % does not show as 100 %."""
    if valid == 0:
        return "-"
    whole, rest = divmod(good * 10**6 // valid, 10**4)
    return f"{whole}.{rest:04} %"


class ProgressLine:
    """Tells on stderr how far long work is, once it has taken two seconds: one line that is overwritten on a
    terminal, a new line every ten seconds elsewhere."""

    EVERY_S = 10.0

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._due = time.monotonic() + PROGRESS_AFTER_S
        self._width = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        """``of`` is 0 where the end is not known."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (0.2 if self._terminal else self.EVERY_S)
        text = f"{what}: {100 * done // of} %" if of else f"{what} {done or ''}".rstrip()
        if self._terminal:
            click.echo("\r" + text.ljust(self._width), err=True, nl=False)
            self._width = len(text)
        else:
            click.echo(text, err=True)

    def clear(self) -> None:
        """Wipe the line before the result is printed."""
        if self._width:
            click.echo("\r" + " " * self._width + "\r", err=True, nl=False)
            self._width = 0


@contextmanager
def ticking(what: str) -> Iterator[None]:
    """Says on stderr, once it takes two seconds, that work goes on which cannot tell how far it is."""
    line, started = ProgressLine(), time.monotonic()

    def tick(over: threading.Event) -> None:
        while not over.wait(_TICK_S):
            line(f"{what}: {int(time.monotonic() - started)} s so far", 0, 0)

    try:
        with _beside(tick):
            yield
    finally:
        line.clear()


@contextmanager
def going_on(what: str | None = None) -> Iterator[None]:
    """Says on stderr that ``what``, else the running command, goes on, once nothing was said for two seconds and then
    every ten.

    In whole lines, also on a terminal: what it is about may write lines of its own.
    """
    named = what or click.get_current_context().command_path
    started = time.monotonic()

    def tick(over: threading.Event) -> None:
        pause = PROGRESS_AFTER_S
        while not over.wait(_TICK_S):
            now = time.monotonic()
            if now - max(started, _said_at) >= pause:
                note(f"{named}: {int(now - started)} s so far")
                pause = ProgressLine.EVERY_S

    with _beside(tick):
        yield


@contextmanager
def _beside(tick: Callable[[threading.Event], None]) -> Iterator[None]:
    """``tick`` runs in a thread of its own until what is done here is over, which it is told."""
    over = threading.Event()
    ticker = threading.Thread(target=tick, args=(over,), name="progress", daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()


def with_progress(items: Iterable[T], percent_done: Callable[[], float], what: str) -> Iterator[T]:
    """``items`` with a progress line on stderr after two seconds, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    started = time.monotonic()
    shown = False
    for count, item in enumerate(items, 1):
        if count % _PROGRESS_EVERY_ROWS == 0 and time.monotonic() - started > PROGRESS_AFTER_S:
            click.echo(f"\r{what}: {percent_done():3.0f} %", err=True, nl=False)
            shown = True
        yield item
    if shown:
        click.echo("\r" + " " * (len(what) + 10) + "\r", err=True, nl=False)
