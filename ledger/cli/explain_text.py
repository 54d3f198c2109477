"""An explanation as text for people, with a picture of the period where a terminal shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from ledger.cli.output import percent_floored, print_table
from ledger.domain.money import currency_exponent, digits, format_minor_units, whole_number
from ledger.domain.time.instant import SECOND_NS, format_instant_ns

_Row = Mapping[str, Any]

STRIP_WIDTH = 96
_SHADES = {"o": ("█", "green"), "i": ("░", "green"), "e": ("▒", "blue"), "n": (" ", None), "x": ("█", "red")}
_LETTERS_MEAN = "o observed, x something counts as bad, i idle, e excluded, n no data"
_SHADES_MEAN = "full: observed, red: something counts as bad, light: idle, blue: excluded, empty: no data"


def print_explanation(found: _Row) -> None:
    """The whole explanation, in the order in which a reader redoes it."""
    statement, coverage = found["statement"], found["coverage"]
    click.echo(
        f"Statement {statement['statement_id']} of {statement['service']}, {statement['period']} "
        f"({statement['timezone']}), version {statement['statement_version']} under terms {statement['terms_version']}"
    )
    _restated(found["restatement"])
    _coverage(found)
    if found["credit"] is None:
        asked = _bps(coverage["floor"]["floor_bps"])
        click.echo(f"\nWithheld: the agreement asks for {asked} of the windows. No verdict, no credit.")
    for objective in found["objectives"]:
        click.echo()
        _objective(objective)
    if found["credit"] is not None:
        click.echo("\nCredit, step by step")
        for number, (says, result) in enumerate(_steps(found["credit"]), 1):
            click.echo(f"{number:>3}. {says}")
            for line in result:
                click.echo(f"       {line}")
        if statement["attestable"] and any(step["step"] == "impact" for step in found["credit"]["steps"]):
            click.echo("Two proofs show it: one the tiers' exact amount, the other, by incidents_64, this credit.")
    _violations(found["violations"])
    _lines(found["credit_lines"], restates=found["restatement"] is not None)


def _restated(row: _Row | None) -> None:
    if row is None:
        return
    click.echo(f"It replaces {row['restates']['statement_id']}: {row['reason']}")
    delta = row["credit_delta"]
    if delta is not None:
        difference = format_minor_units(int(delta["difference"]), delta["currency"])
        click.echo(f"The credit differs by {difference} {delta['currency']} from the one before.")


def _coverage(found: _Row) -> None:
    coverage, floor = found["coverage"], found["coverage"]["floor"]
    if coverage["states"]:
        click.echo(_strip(coverage["states"], found["objectives"]))
        click.echo(f"({_SHADES_MEAN if sys.stdout.isatty() else _LETTERS_MEAN})")
    click.echo(
        f"Coverage: {coverage['observed']} of {coverage['windows'] - coverage['excluded']} windows observed, "
        f"{coverage['idle']} of them without requests; {coverage['excluded']} excluded, "
        f"{coverage['no_data']} without data"
    )
    sign = ">=" if floor["holds"] else "<"
    click.echo(
        f"  floor {_bps(floor['floor_bps'])}: {coverage['observed']} x 10000 = {floor['left']} {sign} "
        f"{coverage['windows'] - coverage['excluded']} x {floor['floor_bps']} = {floor['right']}"
    )
    for name, said in (("without_data", "no data"), ("left_out", "excluded")):
        ranges = coverage[name]
        for run in (ranges or {}).get("listed", ()):
            reasons = f" by {', '.join(run['exclusions'])}" if run["exclusions"] else ""
            click.echo(f"  {said}{reasons}: {run['windows']} windows, {_at(run['start_ns'])} to {_at(run['end_ns'])}")
    for clause, count in (coverage["requests_left_out"] or {}).get("by_clause", {}).items():
        click.echo(f"  left out by clause {clause}: {count} requests")
    for each in found["exclusions"] or ():
        click.echo(f"  exclusion {each['id']} ({each['clause']}): {each['ruling']} {each['why']}".rstrip())


def _strip(states: str, objectives: Sequence[_Row]) -> str:
    """One character a window, or a group of windows where the line would be too long; the worst of a group shows."""
    pictures = [objective["units"]["picture"] for objective in objectives if objective["units"]]
    letters = ["x" if "x" in column else state for state, *column in zip(states, *pictures, strict=True)]
    size = -(-len(letters) // STRIP_WIDTH)
    groups = ["".join(letters[at : at + size]) for at in range(0, len(letters), size)]
    shown = [next(letter for letter in "xneoi" if letter in group) for group in groups]
    if not sys.stdout.isatty():
        return "".join(shown)
    return "".join(click.style(_SHADES[letter][0], fg=_SHADES[letter][1]) for letter in shown)


def _objective(row: _Row) -> None:
    counts, method, verdict = row["counts"], row["method"], row["verdict"]
    click.echo(f"{row['id']}: {row['state']}, by clause {row['clause']}")
    click.echo(f"  {method['name']} (version {method['version']}): {method['words']}")
    click.echo(f"  published by {method['published_by']}; good: {method['counts_as_good']}")
    click.echo(f"  {method['formula']}")
    click.echo(f"  agreed: {', '.join(f'{name} {_plain(value)}' for name, value in row['parameters'].items())}")
    if row["selects"] is not None:
        click.echo(f"  counts {row['selects']}")
    undecided = f", {counts['undecided']} undecided" if counts["undecided"] else ""
    score = f", score {counts['score']}" if "score" in counts else ""
    attained = percent_floored(counts["good"], counts["valid"]) + score
    click.echo(
        f"  counted: {counts['good']}/{counts['valid']} {row['unit']} ({counts['bad']} bad{undecided}), {attained}"
    )
    sign = ">=" if verdict["holds"] else "<"
    click.echo(
        f"  {counts['good']} x 10^9 = {verdict['left']} {sign} {counts['valid']} x {verdict['target_ppb']} = "
        f"{verdict['right']}; {verdict['follows']}"
    )
    if best := verdict.get("with_undecided"):
        sign = ">=" if best["holds"] else "<"
        click.echo(f"  with all that is undecided as good: {best['left']} {sign} {best['right']}")
    if least := verdict.get("minimum_valid"):
        click.echo(f"  no verdict below a volume of {least}")
    if confidence := verdict.get("confidence"):
        click.echo(f"  {confidence}")
    if row["units"] is not None and row["units"]["listed"]:
        _units(row["units"])


def _units(units: _Row) -> None:
    unit, others = units["unit"], units["others"]
    open_ = others["undecided"] or any(each["undecided"] for each in units["listed"])
    click.echo(f"  {units['total']} {unit}s, {units['counted']} counted, {units['lost']} lost")
    print_table(
        ("", unit, "from", "good", "bad", *(("undecided",) if open_ else ()), "counts as"),
        [
            (
                "",
                str(each["first_window"]),
                _at(each["start_ns"]),
                str(each["good"]),
                str(each["bad"]),
                *((str(each["undecided"]),) if open_ else ()),
                "lost" if each["lost"] else "counted" if each["counted"] else each["state"],
            )
            for each in units["listed"]
        ],
    )
    if others["units"]:
        bad = f"{others['bad']} bad" + (f", {others['undecided']} undecided" if open_ else "")
        click.echo(f"  and {others['units']} more with {others['good']} good and {bad} (--windows all)")


def _steps(credit: _Row) -> Iterator[tuple[str, list[str]]]:
    currency = credit["currency"]
    for step in credit["steps"]:
        yield _STEPS[step["step"]](step, currency)


def _base(step: _Row, currency: str) -> tuple[str, list[str]]:
    if "result" in step:
        return f"Base: {step['says']}", [_money(step["result"], currency)]
    lines = [f"line {at}: {_plain(line)}" for at, line in enumerate(step["charges"]["lines"])]
    return f"Base: {step['says']} ({step['charges']['period']})", lines


def _tier(step: _Row, currency: str) -> tuple[str, list[str]]:
    lines = [
        f"tier {each['tier']} (below {_ppb(each['below_ppb'])} pays {_bps(each['credit_bps'])}): {each['left']} "
        f"{'<' if each['holds'] else '>='} {each['right']}{', reached' if each['holds'] else ''}"
        for each in step["compared"]
    ]
    if "base" in step:
        counted = ", ".join(map(str, step["base"]["lines"])) or "none"
        lines.append(f"its base: {_exact(step['base']['amount'], currency)} (lines {counted})")
    return f"Tier of {step['objective']}: {step['says']}", [*lines, f"pays {_bps(step['credit_bps'])}"]


def _tiers(step: _Row, currency: str) -> tuple[str, list[str]]:
    parts = ", ".join(_bps(each) for each in step["credit_bps"])
    together = f"{parts}: {_bps(step['combined_bps'])}"
    return f"Tiers together ({step['combine']}): {step['says']}", [together, _exact(step["result"], currency)]


def _impact(step: _Row, currency: str) -> tuple[str, list[str]]:
    lines = [
        f"{_at(each['start_ns'])} to {_at(each['end_ns'])}: {each['valid']} x price = "
        f"{_exact(each['amount'], currency)}"
        for each in step["incidents"]
    ]
    price = f"price of a request: {_exact(step['price_per_request'], currency)}"
    return f"Impact: {step['says']}", [price, *lines, _exact(step["result"], currency)]


def _rule(step: _Row, currency: str) -> tuple[str, list[str]]:
    lines = _rule_terms(step["terms"] or {})
    if step["base"]:
        lines.append(f"base {_exact(step['base'], currency)}")
    if step["hourly_price"]:
        lines.append(f"price of an hour: {_money(step['hourly_price'], currency)}")
    if step["missing"]:
        lines.append(f"shortfall: {step['missing']['numerator']}/{step['missing']['denominator']}")
    for each in step["incidents"]:
        seconds = (int(each["end_ns"]) - int(each["start_ns"])) // SECOND_NS
        row = f", row {each['row']}" if each["row"] else ""
        lines.append(f"{_at(each['start_ns'])}, {seconds} s lost{row}: {_exact(each['amount'], currency)}")
    return f"{step['method']} for {step['objective']}: {step['says']}", [*lines, _exact(step["result"], currency)]


def _rule_terms(terms: _Row) -> list[str]:
    """What the agreement says of a rule that pays for lost time."""
    lines = [] if terms.get("hourly_price") or "falls" not in terms else [terms["falls"]]
    if "factor" in terms:
        said = [f"factor {_decimal(int(terms['factor']['numerator']), 9)}"]
        if terms["longer_than_ns"] != "0":
            said.append(f"incidents longer than {_seconds(terms['longer_than_ns'])}")
        if terms["round_up_ns"] != "0":
            said.append(f"{terms['rounded']} rounded up to {_seconds(terms['round_up_ns'])}")
        if terms["incident_cap_bps"] is not None:
            said.append(f"at most {_bps(terms['incident_cap_bps'])} of the base an incident")
        return [", ".join(said), *lines]
    for row in terms.get("rows", ()):
        below = "and more" if row["below_ns"] is None else f"to less than {_seconds(row['below_ns'])}"
        earns = _bps(row["credit_bps"]) if row["credit_ns"] is None else _seconds(row["credit_ns"])
        lines.append(f"row {row['row']}: {_seconds(row['from_ns'])} {below} earns {earns}")
    return lines


def _seconds(ns: str) -> str:
    return f"{_decimal(int(ns), 9)} s"


def _combined(step: _Row, currency: str) -> tuple[str, list[str]]:
    return f"Rules together ({step['combine']}): {step['says']}", [_exact(step["result"], currency)]


def _scope(step: _Row, currency: str) -> tuple[str, list[str]]:
    parts = [f"{part['objective']}: {_exact(part['amount'], currency)}" for part in step["parts"]]
    limit, left = (_exact(step[name], currency) for name in ("limit", "result"))
    return f"Scope {step['scope']}: {step['says']}", [*parts, f"cap {limit}", left]


def _scopes(step: _Row, currency: str) -> tuple[str, list[str]]:
    return f"Scopes together: {step['says']}", [_exact(step["result"], currency)]


def _cap(step: _Row, currency: str) -> tuple[str, list[str]]:
    limit = _exact(step["limit"], currency)
    return f"Cap ({step['level']}): {step['says']}", [f"cap {limit}", _exact(step["result"], currency)]


def _minimum(step: _Row, currency: str) -> tuple[str, list[str]]:
    sign, said = (">", "paid") if step["holds"] else ("<=", "not above it, so nothing is paid")
    return (
        f"Minimum {_money(step['minimum'], currency)}: {step['says']}",
        [f"{step['left']} {sign} {step['right']}: {said}"],
    )


def _rounding(step: _Row, currency: str) -> tuple[str, list[str]]:
    quotient = f"quotient {step['quotient']}, remainder {step['remainder']} of {step['denominator']}"
    return f"Rounded {step['says']}", [quotient, f"the credit: {_money(step['result'], currency)}"]


_STEPS = {
    "base": _base,
    "tier": _tier,
    "tiers": _tiers,
    "impact": _impact,
    "rule": _rule,
    "combined": _combined,
    "scope": _scope,
    "scopes": _scopes,
    "cap": _cap,
    "minimum": _minimum,
    "rounding": _rounding,
}


def _violations(rows: Sequence[_Row] | None) -> None:
    if not rows:
        return
    click.echo("\nViolations")
    print_table(
        ("violation", "clause", "from", "to", "bad/valid", "ended by", "worst requests"),
        [
            (
                row["violation_id"],
                str(row["clause"] or "-"),
                _at(row["from_ns"]),
                _at(row["to_ns"]),
                f"{row['bad']}/{row['valid']} {row['unit'] or ''}".rstrip(),
                str(row["ended_by"] or "open"),
                ", ".join(each["request_id"] for each in row["evidence"].get("requests", ())[:3]) or "-",
            )
            for row in rows
        ],
    )


def _lines(rows: Sequence[_Row] | None, *, restates: bool) -> None:
    if not rows:
        return
    if restates:
        click.echo("\nCredit lines: what this version changes; with the lines before it they sum to the credit")
    else:
        click.echo("\nCredit lines, which sum to the credit")
    print_table(
        ("line", "violation", "amount", "status"),
        [
            (row["id"], str(row["violation_id"] or "-"), _money(row["minor_units"], row["currency"]), row["status"])
            for row in rows
        ],
    )


def _at(ns: str) -> str:
    return format_instant_ns(int(ns))


def _money(minor_units: Any, currency: str) -> str:
    return f"{format_minor_units(int(minor_units), currency)} {currency}"


def _exact(ratio: Mapping[str, str], currency: str) -> str:
    """An exact amount of minor units; a fraction of one is shown as such."""
    whole, rest = divmod(whole_number(ratio["numerator"]), whole_number(ratio["denominator"]))
    shown = _money(whole, currency)
    if rest == 0:
        return shown
    unit = f"1/{10 ** currency_exponent(currency)} {currency}" if currency_exponent(currency) else currency
    return f"{shown} and {digits(rest)}/{ratio['denominator']} of {unit}"


def _bps(basis_points: int) -> str:
    return _scaled(basis_points, 2)


def _ppb(parts: int) -> str:
    return _scaled(parts, 7)


def _scaled(value: int, decimals: int) -> str:
    return f"{_decimal(value, decimals)} %"


def _decimal(value: int, decimals: int) -> str:
    whole, rest = divmod(value, 10**decimals)
    fraction = f"{rest:0{decimals}}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def _plain(value: Any) -> str:
    """A value of the agreement in words: a member and its value after the other."""
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {_plain(each)}" for name, each in value.items()) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(each) for each in value) + "]"
    return str(value)
