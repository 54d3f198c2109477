"""Commands that look at something once, or again and again until they are stopped."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator

import click

from ledger.cli.options import Option
from ledger.errors import SettingInvalid

_EVERY = re.compile(r"(\d{1,5})(s|m)")
ONCE = click.option("--once", is_flag=True, help="Scrape once and stop.")


def every_option(default: str) -> Option:
    """``--every TIME``, as text; see ``seconds``."""
    return click.option("--every", metavar="TIME", default=default, show_default=True, help="Such as 15s or 1m.")


def seconds(text: str) -> int:
    """What ``--every`` says. Raises ``SettingInvalid``."""
    match = _EVERY.fullmatch(text)
    found = int(match[1]) * {"s": 1, "m": 60}[match[2]] if match else 0
    if not 1 <= found <= 86_400:
        raise SettingInvalid(f"--every {text[:20]!r} is no time from 1s to 1440m; write 15s or 1m", setting="every")
    return found


def looks(every_s: int, *, once: bool) -> Iterator[None]:
    """One look after the other, until Ctrl-C or SIGTERM, which are heeded from this call on."""
    stopping = threading.Event()
    if not once:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: stopping.set())

    def following() -> Iterator[None]:
        yield
        while not once and not stopping.wait(every_s):
            yield

    return following()
