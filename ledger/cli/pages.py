"""Lists that a command prints in pages: options, the rows that follow, and how instants and amounts are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from ledger.app.paging import Page, Starts
from ledger.app.ports.store import Transaction
from ledger.cli.output import note
from ledger.domain.money import format_minor_units
from ledger.domain.time.instant import format_instant_ns, parse_date_or_instant_ns
from ledger.errors import BadInput, InstantInvalid

MAX_LISTED = 1000

LISTED = "Exit codes: 0 listed; 1 no such agreement; 2 --after names nothing, or no such data directory."


@dataclass(frozen=True, slots=True)
class PageAsked:
    """Which part of a list is asked for: of one agreement or all, ``limit`` rows after the one named ``after``."""

    sla_id: str | None
    limit: int
    after: str | None

    def only(self, tx: Transaction) -> frozenset[str] | None:
        """The agreements that the list is about; None: all. Raises ``NotFound`` for one that is not there."""
        if self.sla_id is None:
            return None
        # An empty list for a misspelt id would read as "nothing happened".
        tx.views.agreement(self.sla_id)
        return frozenset({self.sla_id})


def paged(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the command takes the options of a page, as its argument ``asked``."""

    @click.option("--sla-id", metavar="ID", help="Only of this agreement.")
    @click.option("--limit", type=click.IntRange(1, MAX_LISTED), default=100, show_default=True, help="How many.")
    @click.option("--after", metavar="ID", help="Go on after this one: the `next` of the page before.")
    @wraps(command)
    def with_page(*, sla_id: str | None, limit: int, after: str | None, **options: Any) -> Any:
        return command(asked=PageAsked(sla_id, limit, after), **options)

    return with_page


def starting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the command takes bounds for the starts of periods, as its argument ``starts``."""

    @click.option(
        "--from", "since", metavar="WHEN", help="Periods that start then or later: a date (00:00 UTC) or RFC 3339."
    )
    @click.option("--to", "until", metavar="WHEN", help="Periods that start before.")
    @wraps(command)
    def with_starts(*, since: str | None, until: str | None, **options: Any) -> Any:
        starts = Starts(_bound("--from", since), _bound("--to", until))
        if starts.from_ns is not None and starts.to_ns is not None and starts.from_ns >= starts.to_ns:
            raise BadInput("--from is not before --to, so no period starts between them", option="--to")
        return command(starts=starts, **options)

    return with_starts


def _bound(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_date_or_instant_ns(text)
    except InstantInvalid as error:
        raise BadInput(f"{option}: {error.message}", option=option) from error


def tell_of_more(page: Page) -> None:
    """For people: how the list goes on, where it does, and that it is empty, where it is."""
    if not page.rows:
        note("nothing is listed")
    if page.last_id is not None:
        note(f"there are more; go on with --after {page.last_id}")


def amount_document(money: Mapping[str, Any] | None) -> dict[str, str] | None:
    """{currency, minor_units, amount} of a row's {currency, minor_units}."""
    if money is None:
        return None
    currency, units = money["currency"], int(money["minor_units"])
    return {"currency": currency, "minor_units": str(units), "amount": format_minor_units(units, currency)}


def amount_text(money: Mapping[str, Any] | None) -> str:
    """An amount in a table; a dash where there is none."""
    return (
        "-"
        if money is None
        else f"{format_minor_units(int(money['minor_units']), money['currency'])} {money['currency']}"
    )


def instant_text(at_ns: int | str | None) -> str | None:
    """RFC 3339 of nanoseconds, which payloads say as decimal strings."""
    return None if at_ns is None else format_instant_ns(int(at_ns))
