"""``sla-ledger explain``: every step from counts to credit of a bundle's statement, in words and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ledger.attest.verification import read_bundle
from ledger.cli.output import percent_floored, print_json, print_table
from ledger.cli.verify import read_document
from ledger.domain.instant import format_instant_ns
from ledger.domain.money import currency_exponent, format_minor_units
from ledger.errors import DocumentInvalid, SlaLedgerError


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the statement's payload with its trace as JSON.")
def explain(bundle: Path, as_json: bool) -> None:
    """Show how BUNDLE's credit follows from its counts, step by step, so that it can be worked out again by hand.

    This shows what the statement says; `sla-ledger verify` checks it. Exit codes: 0 shown, 2 the file cannot be used.
    """
    document = read_document(bundle, read_bundle)
    issued = document["statement"]["payload"]
    if as_json:
        print_json(issued)
        return
    agreement = document["agreement"]
    click.echo(
        f"Statement {issued['statement_id']} of {agreement['service']['name']}, {issued['period']} "
        f"({agreement['timezone']}): {issued['observed']} of {issued['windows'] - issued['excluded']} windows "
        f"observed, {issued['idle']} of them without requests"
    )
    if issued["state"] == "withheld":
        floor = agreement["coverage_floor"]
        click.echo(f"Withheld: the agreement asks for {floor} % of the windows. No verdict, no credit.")
        return
    click.echo()
    try:
        _show(issued["trace"], issued)
    except (LookupError, TypeError, ValueError, ArithmeticError, SlaLedgerError) as error:
        # A trace is bound by `verify`, not by the bundle's shape.
        raise DocumentInvalid(
            f"{bundle}: statement.payload.trace: is not the trace of a credit ({error})", file=str(bundle)
        ) from error


def _show(trace: Mapping[str, Any], issued: Mapping[str, Any]) -> None:
    currency = issued["credit"]["currency"]
    _objectives(issued, trace)
    click.echo()
    for label, value in _steps(trace, currency):
        click.echo(f"{label:<42}{value}")
    _incidents(trace, currency)


def _objectives(issued: Mapping[str, Any], trace: Mapping[str, Any]) -> None:
    steps = {step["objective"]: step for step in trace["tiers"]}
    rows = []
    for result in issued["objectives"]:
        step = steps.get(result["id"])
        tier = "-"
        if step is not None and step["tier"] is not None:
            tier = f"{step['tier']}: below {_percent(step['below_ppb'], 7)} pays {_percent(step['credit_bps'], 2)}"
        attained = percent_floored(result["good"], result["valid"])
        counts = f"{result['good']}/{result['valid']}"
        rows.append((result["id"], counts, attained, f"{result['target']} %", result["state"], tier))
    print_table(("objective", "good/valid", "attained", "target", "verdict", "tier reached"), rows)


def _steps(trace: Mapping[str, Any], currency: str) -> list[tuple[str, str]]:
    found = [("Base, the charges of the period", _money(trace["base"], currency))]
    if trace["tier_amount"] is not None:
        combined = _percent(trace["combined_bps"], 2)
        found.append((f"Tiers of all objectives ({trace['tiers_combine']})", combined))
        found.append(("Tier amount = base x percentage", _exact(trace["tier_amount"], currency)))
    if trace["impact_amount"] is not None:
        found.append(("Price of a request in an incident", _exact(trace["price_per_request"], currency)))
        found.append(("Impact amount = requests x price", _exact(trace["impact_amount"], currency)))
    found.append((f"Rules together ({trace['rules_combine']})", _exact(trace["combined_amount"], currency)))
    found.append(
        ("Cap, the smallest of the agreement's", "none" if trace["cap"] is None else _money(trace["cap"], currency))
    )
    found.append(("After the cap", _exact(trace["capped_amount"], currency)))
    payable = "above it" if trace["payable"] else "not above it, so nothing is paid"
    found.append(("Minimum, to be exceeded strictly", f"{_money(trace['minimum'], currency)} ({payable})"))
    found.append((f"Rounded once ({trace['rounding']}): the credit", _money(trace["credit"], currency)))
    return found


def _incidents(trace: Mapping[str, Any], currency: str) -> None:
    if not trace["incidents"]:
        return
    click.echo()
    print_table(
        ("incident from", "to", "objective", "good/valid", "amount"),
        [
            (
                format_instant_ns(int(incident["start_ns"])),
                format_instant_ns(int(incident["end_ns"])),
                incident["objective"],
                f"{incident['good']}/{incident['valid']}",
                _exact(incident["amount"], currency),
            )
            for incident in trace["incidents"]
        ],
    )


def _money(minor_units: str, currency: str) -> str:
    return f"{format_minor_units(int(minor_units), currency)} {currency}"


def _exact(ratio: Mapping[str, str], currency: str) -> str:
    """An exact amount of minor units; a fraction of one is shown as such."""
    whole, rest = divmod(int(ratio["numerator"]), int(ratio["denominator"]))
    shown = _money(str(whole), currency)
    if rest == 0:
        return shown
    unit = f"1/{10 ** currency_exponent(currency)} {currency}" if currency_exponent(currency) else currency
    return f"{shown} and {rest}/{ratio['denominator']} of {unit}"


def _percent(scaled: int, decimals: int) -> str:
    whole, rest = divmod(scaled, 10**decimals)
    fraction = f"{rest:0{decimals}}".rstrip("0")
    return f"{whole}.{fraction} %" if fraction else f"{whole} %"
