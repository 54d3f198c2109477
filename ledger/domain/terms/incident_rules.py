"""Rules that pay for lost time: the shapes of ``proportional-v1``, ``multiplier-v1`` and ``step_table-v1`` in an
agreement, and what is read from them.

All three look at the incidents of one objective: the runs of windows that break its promise.
``ledger.domain.credits.lost_time`` turns them into amounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.domain import money
from ledger.domain.schema import ListOf, Object, OneOf, Shape, Text, convert, fail
from ledger.domain.terms.objective import Objective
from ledger.domain.terms.objective_shapes import DECIMAL, DENOMINATOR, OBJECTIVE_ID_TEXT, WINDOW
from ledger.domain.time.calendar import parse_window_seconds
from ledger.domain.time.instant import MINUTE_NS, SECOND_NS

MAX_ROWS = 24

PERCENT = Text(r"(0|[1-9]\d{0,2})(\.\d{1,2})? ?%", "a percentage such as '50 %'", 8)
_ROW = Object({"from_minutes": DECIMAL}, {"below_minutes": DECIMAL, "hours": DECIMAL, "percent": DECIMAL})


def _shape(kind: str, required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Object:
    return Object(
        {"kind": OneOf((kind,)), "method": OneOf((f"{kind}-v1",)), "objective": OBJECTIVE_ID_TEXT, **required},
        {"denominator": DENOMINATOR, **optional},
    )


INCIDENT_RULES: Mapping[str, Object] = {
    "proportional": _shape(
        "proportional",
        {"of": OneOf(("shortfall", "lost_time"))},
        {"affected": OneOf(("all", "share")), "pays": OneOf(("breached", "always"))},
    ),
    "multiplier": _shape(
        "multiplier",
        {"factor": DECIMAL, "per": OneOf(("incident", "period"))},
        {"longer_than": WINDOW, "round_up_to": WINDOW, "hourly_price": DECIMAL, "incident_cap": PERCENT},
    ),
    "step_table": _shape("step_table", {"rows": ListOf(_ROW, 1, MAX_ROWS)}, {"hourly_price": DECIMAL}),
}


@dataclass(frozen=True, slots=True)
class ProportionalRule:
    """``proportional-v1``: the base times what is missing.

    ``shortfall``: how far the result is below the target. Otherwise lost time / scheduled time; with ``by_share`` only
    the share of an incident's valid requests that were bad is lost. ``always``: in a period that met its target, too.
    """

    objective: str
    shortfall: bool
    by_share: bool
    always: bool
    full: bool

    @property
    def needs_base(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class MultiplierRule:
    """``multiplier-v1``: the charge for the lost time, times ``factor_e9`` / 10^9.

    Incidents up to ``longer_than_ns`` pay nothing. Lost time * factor is rounded up to ``round_up_ns`` (0: not at
    all), of each incident or of all together. The charge is that of ``hourly_price`` (minor units) or, without one,
    what of the base falls on the time. ``incident_cap_bps``: the most that one incident earns, of the base.
    """

    objective: str
    factor_e9: int
    together: bool
    longer_than_ns: int
    round_up_ns: int
    hourly_price: int | None
    incident_cap_bps: int | None
    full: bool

    @property
    def needs_base(self) -> bool:
        return self.hourly_price is None or self.incident_cap_bps is not None


@dataclass(frozen=True, slots=True)
class TableRow:
    """An incident of ``from_ns`` and less than ``below_ns`` (None: any length) earns ``credit_ns`` of time or
    ``credit_bps`` of the base."""

    from_ns: int
    below_ns: int | None
    credit_ns: int | None
    credit_bps: int | None


@dataclass(frozen=True, slots=True)
class StepTableRule:
    """``step_table-v1``: each incident earns what the row of its length says; rows join without gap or overlap."""

    objective: str
    rows: tuple[TableRow, ...]
    hourly_price: int | None
    full: bool

    @property
    def needs_base(self) -> bool:
        return self.hourly_price is None or any(row.credit_bps is not None for row in self.rows)

    def row_of(self, lost_ns: int) -> int | None:
        """Which row an incident of this length falls in; None below the first."""
        found = [at for at, row in enumerate(self.rows) if row.from_ns <= lost_ns]
        return found[-1] if found else None


IncidentRule = ProportionalRule | MultiplierRule | StepTableRule


def method_of(rule: IncidentRule) -> str:
    """The rule's name and version."""
    names = {ProportionalRule: "proportional-v1", MultiplierRule: "multiplier-v1", StepTableRule: "step_table-v1"}
    return names[type(rule)]


def percent_text_bps(text: str) -> int:
    """``"12.5 %"`` as basis points; raises ``MoneyInvalid``."""
    return money.percent_basis_points(text.removesuffix("%").rstrip(" "))


def read_incident_rule(
    at: str, rule: Mapping[str, Any], objectives: Mapping[str, Objective], currency: str
) -> IncidentRule:
    """A rule of a shape-checked document; raises ``DocumentInvalid`` naming the field, or the rows that clash."""
    objective = rule["objective"]
    if objective not in objectives:
        raise fail(f"{at}.objective", f"{objective!r} is not an objective of this agreement")
    full = rule.get("denominator") == "full"
    if rule["kind"] == "proportional":
        return _proportional(at, rule, full)

    def optional(key: str, how: Any) -> Any:
        return convert(f"{at}.{key}", rule[key], how) if key in rule else None

    price = optional("hourly_price", lambda text: money.minor_units(text, currency))
    if price == 0:
        raise fail(f"{at}.hourly_price", "must be above 0")
    if rule["kind"] == "step_table":
        return StepTableRule(objective, _rows(f"{at}.rows", rule["rows"]), price, full)
    factor = convert(f"{at}.factor", rule["factor"], lambda text: money.scaled_integer(text, 9))
    if factor == 0:
        raise fail(f"{at}.factor", "must be above 0")
    if rule["per"] == "period" and "incident_cap" in rule:
        raise fail(f"{at}.incident_cap", "caps single incidents, and this rule pays for all together (per: period)")
    incident_cap = optional("incident_cap", percent_text_bps)
    if incident_cap == 0:
        raise fail(f"{at}.incident_cap", f"{rule['incident_cap']} would cap every credit at nothing; leave it out")
    return MultiplierRule(
        objective=objective,
        factor_e9=factor,
        together=rule["per"] == "period",
        longer_than_ns=(optional("longer_than", parse_window_seconds) or 0) * SECOND_NS,
        round_up_ns=(optional("round_up_to", parse_window_seconds) or 0) * SECOND_NS,
        hourly_price=price,
        incident_cap_bps=incident_cap,
        full=full,
    )


def _proportional(at: str, rule: Mapping[str, Any], full: bool) -> ProportionalRule:
    shortfall = rule["of"] == "shortfall"
    for key in ("affected", "pays", "denominator") if shortfall else ():
        if key in rule:
            raise fail(f"{at}.{key}", "is about lost time, and this rule pays for the shortfall below the target")
    return ProportionalRule(
        objective=rule["objective"],
        shortfall=shortfall,
        by_share=rule.get("affected") == "share",
        always=rule.get("pays") == "always",
        full=full,
    )


def _rows(at: str, said: Sequence[Mapping[str, Any]]) -> tuple[TableRow, ...]:
    rows: list[TableRow] = []
    for index, item in enumerate(said):
        where = f"{at}[{index}]"
        if ("hours" in item) == ("percent" in item):
            raise fail(where, "say either hours or percent")

        def number(key: str, how: Any, item: Mapping[str, Any] = item, where: str = where) -> Any:
            return convert(f"{where}.{key}", item[key], how) if key in item else None

        start, below = number("from_minutes", _minutes_ns), number("below_minutes", _minutes_ns)
        if below is not None and below <= start:
            raise fail(f"{where}.below_minutes", f"{item['below_minutes']} is not above {item['from_minutes']}")
        hours = number("hours", lambda text: money.scaled_integer(text, 9))
        percent = number("percent", money.percent_basis_points)
        row = TableRow(start, below, None if hours is None else hours * 3600, percent)
        if rows:
            _check_joined(where, index, said, rows[-1], row)
        rows.append(row)
    if rows[-1].below_ns is not None:
        raise fail(
            f"{at}[{len(rows) - 1}].below_minutes",
            f"leaves incidents of {said[-1]['below_minutes']} minutes and more without a row; the last row has no end",
        )
    return tuple(rows)


def _check_joined(where: str, index: int, said: Sequence[Mapping[str, Any]], before: TableRow, row: TableRow) -> None:
    pair = f"rows[{index - 1}] and rows[{index}]"
    if before.below_ns is None:
        raise fail(where, f"{pair} overlap: rows[{index - 1}] has no end; say its below_minutes")
    if before.below_ns != row.from_ns:
        ends, begins = said[index - 1]["below_minutes"], said[index]["from_minutes"]
        word = "leave a gap" if before.below_ns < row.from_ns else "overlap"
        raise fail(
            f"{where}.from_minutes",
            f"{pair} {word}: one ends below {ends} minutes and the next begins at {begins}; a row begins where the one "
            "before ends",
        )
    if (before.credit_ns is None) != (row.credit_ns is None):
        raise fail(where, f"{pair} contradict each other: one says hours, the other percent")
    if (before.credit_ns or before.credit_bps or 0) >= (row.credit_ns or row.credit_bps or 0):
        raise fail(where, f"{pair} contradict each other: a longer incident must earn more")


def _minutes_ns(text: str) -> int:
    return money.scaled_integer(text, 9) * MINUTE_NS // 10**9
