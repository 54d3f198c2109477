"""``sla-ledger exclusions``: exclude time from an agreement's counts, withdraw it, and see what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.paging import Row
from ledger.app.periods.exclusions import AskedExclusion, ExclusionDesk, RecordedExclusion
from ledger.app.reading.lists import Lists, visible_exclusion
from ledger.cli.opening import chosen_of, opened, receipt_document, who
from ledger.cli.options import AS_JSON, DATA, DATABASE, SLA_ID, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.domain.schema import convert
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.wiring.data_directory import open_data_directory
from ledger.wiring.services import Services

_PAGE = 100
_TIMES = ("from_ns", "to_ns", "announced_at_ns")


@click.group()
def exclusions() -> None:
    """Exclude time from an agreement's counts: maintenance by ticket, and carve-outs."""


@exclusions.command(
    epilog="Exit codes: 0 recorded, now or before (the ruling says what of it counts); 1 refused as things stand; 2 it "
    "cannot be used, and nothing was written."
)
@click.argument("exclusion_id", metavar="ID")
@DATA
@SLA_ID
@click.option("--clause", required=True, help="The maintenance class or carve-out of the agreement.")
@click.option("--from", "from", required=True, metavar="WHEN", help="Its start: RFC 3339 with a zone.")
@click.option("--to", "to", required=True, metavar="WHEN", help="Its end, which is outside.")
@click.option("--reason", required=True, help="What happened in it; it stays in the log for good.")
@click.option("--ticket", help="The ticket it was approved under; maintenance needs one.")
@click.option("--announced-at", metavar="WHEN", help="When the customer was told.")
@click.option("--approved-by", metavar="WHO", help="Who approved it.")
@TENANT
@DATABASE
@AS_JSON
def add(
    exclusion_id: str,
    data_dir: Path,
    sla_id: str | None,
    tenant: str,
    database_url: str | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Record the exclusion ID, before, while or after it happens. The same again changes nothing.

    What the terms do not allow of it is recorded and counts as ordinary time. A closed period of which it takes
    something out is judged anew.
    """
    announced_at = said.pop("announced_at")
    asked = AskedExclusion(
        exclusion_id,
        from_ns=_instant_ns("--from", said.pop("from")),
        to_ns=_instant_ns("--to", said.pop("to")),
        announced_at_ns=None if announced_at is None else _instant_ns("--announced-at", announced_at),
        by=who(),
        **said,
    )
    with opened(data_dir, database_url) as services:
        chosen = chosen_of(services.database.of_tenant(tenant), sla_id)
        _print_change(services, _desk(services, tenant).record(chosen, asked), as_json=as_json)


@exclusions.command(epilog="Exit codes: 0 withdrawn, now or before; 1 refused as things stand, or there is none.")
@click.argument("exclusion_id", metavar="ID")
@DATA
@SLA_ID
@click.option("--reason", required=True, help="Why; it stays in the log for good.")
@TENANT
@DATABASE
@AS_JSON
def withdraw(
    exclusion_id: str,
    data_dir: Path,
    sla_id: str | None,
    reason: str,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Withdraw the exclusion ID: its time counts again, and the id is used up."""
    with opened(data_dir, database_url) as services:
        chosen = chosen_of(services.database.of_tenant(tenant), sla_id)
        made = _desk(services, tenant).withdraw(chosen, exclusion_id, reason=reason, by=who())
        _print_change(services, made, as_json=as_json)


@exclusions.command("list", epilog="Exit codes: 0 listed; 2 no such agreement or data directory.")
@DATA
@SLA_ID
@TENANT
@DATABASE
@AS_JSON
def list_command(data_dir: Path, sla_id: str | None, tenant: str, database_url: str | None, as_json: bool) -> None:
    """List the exclusions of an agreement by start, with what of each counts as excluded and why not all."""
    with open_data_directory(data_dir, database_url=database_url) as data:
        database = data.database.of_tenant(tenant)
        chosen = chosen_of(database, sla_id)
        rows = _all_rows(Lists(database), tenant, chosen)
    if as_json:
        print_json({"sla_id": chosen, "exclusions": [_document(row) for row in rows]})
        return
    print_table(("id", "clause", "from", "to", "ruling", "excluded to"), [_cells(row) for row in rows])
    for row in rows:
        if row["why"]:
            click.echo(f"{row['id']}: {row['why']}")


def _all_rows(lists: Lists, tenant: str, sla_id: str) -> list[Row]:
    rows: list[Row] = []
    after = None
    while True:
        page = lists.exclusions(_operator(tenant), sla_id, after=after, limit=_PAGE)
        rows += page.rows
        after = page.last_id
        if after is None:
            return rows


def _print_change(services: Services, made: RecordedExclusion, *, as_json: bool) -> None:
    row = visible_exclusion(made.as_row(), made.ruled, _operator("default"))
    receipt = receipt_document(services, made.receipt)
    if as_json:
        print_json({**_document(row), **receipt})
        return
    click.echo(f"{row['id']} is {row['state']}: event {receipt['event_id']} at seq {receipt['seq']}")
    if row["honoured"]:
        click.echo(f"{row['ruling']}: {_span(row['honoured'])} leaves the counts")
    elif row["ruling"]:
        click.echo(f"{row['ruling']}: nothing leaves the counts")
    if row["why"]:
        note(row["why"])


def _document(row: Row) -> dict[str, Any]:
    """A row with its times as RFC 3339."""
    left_out = ("exclusion_id", "withheld", *_TIMES)
    honoured = row["honoured"]
    return {
        **{name: value for name, value in row.items() if name not in left_out},
        **{name.removesuffix("_ns"): _when(row[name]) for name in _TIMES},
        "honoured": honoured and {"from": _when(honoured["from_ns"]), "to": _when(honoured["to_ns"])},
    }


def _cells(row: Row) -> Sequence[str]:
    ends = format_instant_ns(row["honoured"]["to_ns"]) if row["honoured"] else "-"
    times = format_instant_ns(row["from_ns"]), format_instant_ns(row["to_ns"])
    return row["id"], row["clause"], *times, row["ruling"] or row["state"], ends


def _span(honoured: Mapping[str, int]) -> str:
    return f"{format_instant_ns(honoured['from_ns'])} to {format_instant_ns(honoured['to_ns'])}"


def _when(instant_ns: int | None) -> str | None:
    return None if instant_ns is None else format_instant_ns(instant_ns)


def _instant_ns(option: str, text: str) -> int:
    found: int = convert(option, text, parse_instant_ns)
    return found


def _desk(services: Services, tenant: str) -> ExclusionDesk:
    return ExclusionDesk(services.database, services.attestor, services.clock).of_tenant(tenant)


def _operator(tenant: str) -> Principal:
    return Principal("the command line", tenant, ROLE_SCOPES[Role.OPERATOR])
