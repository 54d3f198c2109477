"""``sla-ledger budget``: what of a period may still fail, how fast that goes, and when it will be gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ledger.app.access import DEFAULT_TENANT, ROLE_SCOPES, Principal, Role
from ledger.app.reading.budgets import Budgets, read_budgets, read_windows_asked
from ledger.cli.opening import chosen_sla, read_by
from ledger.cli.options import AS_JSON, DATA, DATABASE, TENANT
from ledger.cli.output import note, print_json, print_table
from ledger.domain.money import format_floored
from ledger.domain.time.instant import format_instant_ns
from ledger.wiring.clock import SystemClock


@click.command(epilog="Exit codes: 0 shown; 1 a budget is exhausted (with --check); 2 the input cannot be used.")
@click.argument("sla_id", required=False)
@DATA
@click.option("--period", metavar="PERIOD", help="Such as 2023-12-19/P1D. Default: the running or newest judged one.")
@click.option(
    "--window", "over", metavar="PT1H[,PT6H]", help="Windows to tell the burn over.  [default: PT1H,PT6H,PT72H]"
)
@click.option("--check", is_flag=True, help="Exit with 1 where a budget is exhausted.")
@TENANT
@DATABASE
@AS_JSON
def budget(
    sla_id: str | None,
    data_dir: Path,
    period: str | None,
    over: str | None,
    check: bool,
    tenant: str,
    database_url: str | None,
    as_json: bool,
) -> int:
    """Show the error budgets of agreement SLA_ID (default: the only one): left, burn rate, forecast.

    Budgets are reckoned from the windows that were judged; `sla-ledger evaluate` judges what has come in.
    """
    windows = read_windows_asked(over)
    reader = Principal("the command line", tenant or DEFAULT_TENANT, ROLE_SCOPES[Role.OPERATOR])
    with read_by(data_dir, database_url, tenant) as tx:
        chosen = chosen_sla(tx.views.agreements(), sla_id, named="as the argument SLA_ID")
        found = read_budgets(tx, reader, chosen, period=period, over=windows, now_ns=SystemClock().now_ns())
    if as_json:
        print_json(_document(found))
    else:
        _print(found)
    return 1 if check and any(row["exhausted"] for row in found.objectives) else 0


def _document(found: Budgets) -> dict[str, Any]:
    return {
        "sla_id": found.sla_id,
        "period": found.period,
        "judged_to": None if found.judged_to_ns is None else format_instant_ns(found.judged_to_ns),
        "assumption": found.assumption,
        "budgets": [
            {
                **{name: value for name, value in row.items() if name not in ("withheld", "burns")},
                "burns": [_burn(burn) for burn in row["burns"]],
            }
            for row in found.objectives
        ],
    }


def _burn(burn: dict[str, Any]) -> dict[str, Any]:
    instants = {"start_ns": "start", "end_ns": "end", "exhausted_at_ns": "exhausted_at"}
    return {
        instants.get(name, name): format_instant_ns(value) if name in instants and value is not None else value
        for name, value in burn.items()
    }


def _print(found: Budgets) -> None:
    judged = (
        "nothing judged yet" if found.judged_to_ns is None else f"judged to {format_instant_ns(found.judged_to_ns)}"
    )
    click.echo(f"{found.sla_id}, {found.period}: {judged}\n")
    print_table(
        ("objective", "target", "bad", "of", "unit", "allowed", "left", "burnt"),
        [
            (
                row["id"],
                f"{row['target']} %",
                str(row["bad"]),
                str(row["valid"]),
                row["unit"],
                _decimal(row["allowed"]),
                _decimal(row["remaining"]),
                "all, at once" if row["burnt"] is None else _percent(row["burnt"]),
            )
            for row in found.objectives
        ],
    )
    click.echo()
    print_table(
        ("objective", "window", "bad/valid", "burn rate", "budget gone"),
        [
            (
                row["id"],
                burn["window"],
                f"{burn['bad']}/{burn['valid']}",
                "no bound" if burn["rate"] is None else _decimal(burn["rate"]),
                burn["exhaustion"]
                if burn["exhausted_at_ns"] is None
                else f"at {format_instant_ns(burn['exhausted_at_ns'])}",
            )
            for row in found.objectives
            for burn in row["burns"]
        ],
    )
    note(f"forecasts assume that {found.assumption}")


def _decimal(ratio: dict[str, str]) -> str:
    text = format_floored(int(ratio["numerator"]), int(ratio["denominator"]))
    return text.rstrip("0").rstrip(".")


def _percent(ratio: dict[str, str]) -> str:
    return format_floored(100 * int(ratio["numerator"]), int(ratio["denominator"]), 2) + " %"
