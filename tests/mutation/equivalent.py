"""Mutants that give the same program for everybody who looks at its results: each by its line, its change and why.

A test refuses an entry whose line is not there any more. ``--equivalent`` tries them all: what a test notices is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tests.mutation.children import DOMAIN
from tests.mutation.mutants import Mutant


class Same(NamedTuple):
    """``change`` of a ``line`` (without what indents it) in ``module``, a path within ``ledger/domain``."""

    module: str
    line: str
    change: str
    why: str


_CACHE = "how many are kept changes no result"
_MINUTES = "days begin at a whole minute"
_CHARACTERS = "what is stripped is single characters"
_NOTHING_KEPT = "what has no part in its scope was paid nothing"
_SAVES_LOOKING = "where nothing is asked of the periods none is refused; looking at them all takes longer"
_SAVES_READING = "the same is found by reading more, which takes longer"
_FAILS_TO_ONE = "any(self._rule.fails(each, index) for index, _ in self._rule.repeats)"
_NOT_THE_LAST = "self._last_found is None or instant_ns not in self._last_found.interval"
_LOOKS_AGAIN = "looking_around and any(window.state is WindowState.NO_DATA for window in windows)"
_BEGUN = "coming and coming[-1].start_ns <= start_ns"
_SHORT_WAY = "type(row) is RequestRow and self._low_ns <= row.started_at_ns < self._high_ns and row.service == service"
_PATTERN = "the pattern holds no more characters than that"

EQUIVALENT = (
    Same("time/calendar.py", "@lru_cache(maxsize=64)", "64 -> 65", _CACHE),
    Same("time/calendar.py", "@lru_cache(maxsize=1)", "1 -> 2", _CACHE),
    Same("time/calendar.py", "@lru_cache(maxsize=4096)", "4096 -> 4097", _CACHE),
    Same("terms/periods.py", "@lru_cache(maxsize=1024)", "1024 -> 1025", _CACHE),
    Same(
        "time/calendar.py",
        "def day_start_ns(day: date, zone: ZoneInfo, day_start_s: int = 0) -> int:",
        "0 -> 1",
        _MINUTES,
    ),
    Same(
        "time/calendar.py",
        "first: date, length: PeriodLength, zone_name: str, *, end: date | None = None, day_start_s: int = 0",
        "0 -> 1",
        _MINUTES,
    ),
    Same("terms/periods.py", "day_start_s: int = 0", "0 -> 1", _MINUTES),
    Same(
        "facts/watermark.py",
        "self.until_ns[kind] = max(self.until_ns.get(kind, 0), until_ns)",
        "0 -> 1",
        "any instant before all others does",
    ),
    Same("terms/periods.py", "end_ns = 0", "0 -> 1", "any instant before all others does"),
    Same("methods/interval_mean.py", "_SCALE = 10**30", "30 -> 31", "any power of ten from 10^9 on bounds as well"),
    Same("methods/series.py", "before = list(accumulate(column, initial=0))", "0 -> 1", "only differences are taken"),
    Same(
        "methods/registry.py",
        "if not any(self._worst(each) for each in (index, *self._companion(index))):",
        "not any(self._worst(each) for each in (index, *self._companion(index))) -> False",
        "where nothing is undecided the second count is the first",
    ),
    Same(
        "methods/series.py",
        "return self if windows == 1 else self.rolling(windows, windows)",
        "windows == 1 -> False",
        "each window alone is what it was; that takes longer",
    ),
    Same(
        "methods/series.py",
        "def misses(self, target_ppb: int, least: int = 0) -> list[bool]:",
        "0 -> 1",
        "what misses a target has at least one that was bad",
    ),
    Same("methods/downtime.py", "most = max(of_all, default=0)", "0 -> 1", "of no windows none is excluded"),
    Same(
        "money.py",
        'return format_floored(value.numerator, value.denominator, 30).rstrip("0").removesuffix(".")',
        "\"0\" -> '0~'",
        _CHARACTERS,
    ),
    Same("credits/proration.py", "_APART = 64", "64 -> 65", "whatever is not told apart by then is compared exactly"),
    Same(
        "credits/proration.py", "if len(keys) > wanted:", "> -> >=", "as many as are wanted are all taken, in any order"
    ),
    Same(
        "violations/violation.py",
        "judged = max((at + 1 for at, state in enumerate(columns.states) if state is not WindowState.NO_DATA), "
        "default=0)",
        "0 -> 1",
        "where nothing was judged nothing is violated",
    ),
    Same(
        "windows/exclusions.py",
        "minutes = (terms.cap_ns or 0) // MINUTE_NS",
        "0 -> 1",
        "without a cap nothing is cut by it",
    ),
    Same("windows/exclusions.py", "end_ns = 0", "0 -> 1", "any instant before all others does"),
    Same(
        "windows/exclusions.py",
        'return f"{whole}.{rest:09}".rstrip("0") if rest else str(whole)',
        "\"0\" -> '0~'",
        _CHARACTERS,
    ),
    Same(
        "terms/incident_rules.py",
        'return money.percent_basis_points(text.removesuffix("%").rstrip(" "))',
        "\" \" -> ' ~'",
        _CHARACTERS,
    ),
    Same(
        "credits/compensation.py",
        "if self.rules is None or self.caps is None:",
        "or -> and",
        "simple terms have neither, all others both",
    ),
    Same(
        "credits/scope_caps.py",
        "if terms.impact is not None and impact_amount is not None:",
        "and -> or",
        "an impact rule has an amount, and where there is none there is no such amount",
    ),
    Same(
        "credits/scope_caps.py",
        "return max(found, key=lambda parts: sum(parts.values(), Fraction(0)))",
        "0 -> 1",
        "one more for each leaves the largest the largest",
    ),
    Same("credits/credit_lines.py", "amount *= self._kept.get(objective, 0)", "0 -> 1", _NOTHING_KEPT),
    Same(
        "credits/credit_lines.py",
        "kept = Fraction(1) if self._kept is None else self._kept.get(objective, Fraction(0))",
        "0 -> 1",
        _NOTHING_KEPT,
    ),
    Same("credits/credit_lines.py", '_NO_VIOLATION = (-1, "")', "1 -> 2", "any number before all windows"),
    Same(
        "terms/settlement_terms.py",
        r""""at_latest": Text(r"PT\d{1,4}[SMH]", "a duration after the period's end such as PT168H", 7),""",
        "7 -> 8",
        _PATTERN,
    ),
    Same("terms/settlement_terms.py", "@lru_cache(maxsize=256)", "256 -> 257", _CACHE),
    Same(
        "credits/tier_steps.py",
        "whole = Fraction(agreed or 0) if step.base is None else step.base.amount",
        "0 -> 1",
        "where no base is agreed on each objective has its own",
    ),
    Same(
        "credits/charged_time.py",
        "self._sums = list(accumulate((each.duration_ns for each in intervals), initial=0))",
        "0 -> 1",
        "only differences are taken",
    ),
    Same("facts/outcome.py", "OUTCOME_BITS = 32", "32 -> 33", "nothing is told by the bit between"),
    Same("facts/outcome.py", "self._first = clauses + 1", "1 -> 2", "any numbers after those of the clauses"),
    Same(
        "terms/largest_credit.py",
        'cap.limit(bounds.base or Fraction(0)) * (len(terms.scopes) or 1 if cap.level == "scope" else 1) '
        "for cap in known",
        "0 -> 1",
        "where no base is known no cap that is a share of it is",
    ),
    Same(
        "terms/incident_rules.py",
        r"""PERCENT = Text(r"(0|[1-9]\d{0,2})(\.\d{1,2})? ?%", "a percentage such as '50 %'", 8)""",
        "8 -> 9",
        _PATTERN,
    ),
    Same(
        "terms/incident_rules.py",
        "return self.hourly_price is None or any(row.credit_bps is not None for row in self.rows)",
        "any -> all",
        "rows say all hours or all percent",
    ),
    Same(
        "terms/incident_rules.py",
        'word = "leave a gap" if before.below_ns < row.from_ns else "overlap"',
        "< -> <=",
        "only two that differ come here",
    ),
    Same("facts/histogram.py", "if at == 0 and end <= 0:", "<= -> <", "evenly between 0 and 0 is 0, too"),
    Same(
        "credits/charges.py",
        r'_INSTANT = Text(r"\d{4}-\d\d-\d\d[Tt][0-9:.]{8,18}(?:Z|z|[+-]\d\d:\d\d)", '
        '"an instant such as 2023-06-14T00:00:00Z", 40)',
        "40 -> 41",
        _PATTERN,
    ),
    Same(
        "terms/termination.py",
        r'"doc_sha256": Text(r"[0-9a-f]{64}", "a SHA-256 digest of 64 lowercase hex digits", 64),',
        "64 -> 65",
        _PATTERN,
    ),
    Same("credits/charges.py", r'"date": Text(r"\d{4}-\d\d-\d\d", "a date YYYY-MM-DD", 10),', "10 -> 11", _PATTERN),
    Same(
        "credits/charges.py",
        r'{"period": Text(r"\d{4}-\d\d-\d\d/P\d{1,3}[DWM]", "a period such as 2023-12-01/P1M", 16), '
        '"lines": CHARGE_LINES}',
        "16 -> 17",
        _PATTERN,
    ),
    Same(
        "facts/outages.py",
        "return None if row.from_ns is None or row.to_ns is None else (row.from_ns, row.to_ns)",
        "or -> and",
        "an outage says both, or was withdrawn and says neither",
    ),
    Same(
        "terms/alignment.py",
        'aligned, at = said.get("aligned", "period"), f"objectives[{index}]"',
        "\"period\" -> 'period~'",
        _SAVES_LOOKING,
    ),
    *(
        Same(
            "terms/alignment.py",
            'if objective.down is None or (aligned == "period" and said.get("partial", "drop") == "drop"):',
            change,
            _SAVES_LOOKING,
        )
        for change in ("\"period\" -> 'period~'", "\"drop\" -> 'drop~'", "or -> and")
    ),
    Same("terms/where.py", "if not self.asks:", "not self.asks -> False", _SAVES_READING),
    Same(
        "terms/where.py",
        "if not all(map(_MEMBERS[key][0], said[key])):",
        "not all(map(_MEMBERS[key][0], said[key])) -> True",
        _SAVES_READING,
    ),
    Same(
        "terms/where.py",
        r'if body.count(b"{") != 1 or b"[" in body or b"\\" in body:',
        r'body.count(b"{") != 1 or b"[" in body or b"\\" in body -> True',
        _SAVES_READING,
    ),
    Same(
        "terms/where.py",
        "return int(value) if value.isdigit() else json.loads(value, parse_float=Decimal)",
        "value.isdigit() -> False",
        _SAVES_READING,
    ),
    Same(
        "facts/evaluation.py",
        'scope = (tenant, agreement.source, str(period or ""))',
        "or -> and",
        "ids are told apart within one evaluation, and nobody sees what they are told apart by",
    ),
    Same(
        "facts/evaluation.py",
        "self._start_ns = self._end_ns = self._low_ns = self._high_ns = self._step_ns = 0",
        "0 -> 1",
        "before its period is known nothing lies in it",
    ),
    Same(
        "facts/evaluation.py",
        'self._outcomes: array[int] | list[int] = array("I") if self._key_shift == OUTCOME_BITS else []',
        "self._key_shift == OUTCOME_BITS -> False",
        "a list holds the same in more memory",
    ),
    Same("facts/evaluation.py", "if self._selects:", "self._selects -> True", _SAVES_READING),
    Same(
        "facts/evaluation.py",
        "self._take_spans(self._within)",
        "self._take_spans(self._within) -> pass",
        _SAVES_READING,
    ),
    Same("facts/evaluation.py", "if outcome in failed:", "outcome in failed -> True", _SAVES_READING),
    Same(
        "facts/evaluation.py",
        f"each for each in set(outcomes) if {_FAILS_TO_ONE}",
        f"{_FAILS_TO_ONE} -> True",
        _SAVES_READING,
    ),
    Same("facts/evaluation.py", f"if {_NOT_THE_LAST}:", f"{_NOT_THE_LAST} -> True", _SAVES_READING),
    Same("facts/evaluation.py", "if self._has_gaps:", "self._has_gaps -> True", _SAVES_READING),
    Same("facts/evaluation.py", "if self._rule.repeats:", "self._rule.repeats -> True", _SAVES_READING),
    Same("facts/evaluation.py", f"if {_SHORT_WAY}:", f"{_SHORT_WAY} -> False", _SAVES_READING),
    Same("facts/evaluation.py", f"if {_SHORT_WAY}:", "<= -> <", _SAVES_READING),
    Same(
        "facts/evaluation.py",
        "if self.period is None or not self._partial or not self._conflicts:",
        "or -> and",
        _SAVES_READING,
    ),
    *(
        Same(
            "facts/samples.py",
            'hint = "; is good more than the total?" if field == "bad" and count < 0 else ""',
            change,
            "a count that comes here is below 0 or above the largest",
        )
        for change in ("< -> <=", "0 -> 1")
    ),
    *(
        Same(
            "facts/joined_logs.py",
            f"if {_LOOKS_AGAIN}:",
            change,
            "what is declared once more gives the same where nothing is missing; that takes longer",
        )
        for change in ("and -> or", "is -> is not", f"{_LOOKS_AGAIN} -> True")
    ),
    Same(
        "events/upcast.py", "if event.schema > known.schema:", "> -> >=", "what is of the same version was given back"
    ),
    *(
        Same("windows/window_inputs.py", line, change, _SAVES_READING)
        for line, change in (
            (f"while {_BEGUN}:", f"{_BEGUN} -> False"),
            (f"while {_BEGUN}:", "<= -> <"),
            ("while coming and coming[-1].start_ns < end_ns:", "< -> <="),
            ("if each.end_ns > end_ns:", "each.end_ns > end_ns -> True"),
            ("if each.end_ns > end_ns:", "> -> >="),
        )
    ),
    Same(
        "windows/window_inputs.py",
        "if each is None or each.start_ns > start_ns:",
        "each is None or each.start_ns > start_ns -> False",
        "nobody asks what covers a window that nothing covers",
    ),
    Same(
        "windows/window_inputs.py",
        "if best is None or _reach(each, end_ns) > _reach(best, end_ns):",
        "> -> >=",
        "no two declarations are alike",
    ),
    Same(
        "windows/window_columns.py",
        "start_ns = next(iter(starts), 0)",
        "0 -> 1",
        "where there is no window none begins",
    ),
    Same("terms/compensation_terms.py", '"level_coefficients": MapOf("L[1-4]", DECIMAL, 4),', "4 -> 5", "four names"),
)


def equivalent(mutants: Iterable[Mutant]) -> tuple[frozenset[Mutant], tuple[Same, ...]]:
    """Which of the mutants are listed, and which entries no mutant answers to."""
    by_key = {(same.module, same.line, same.change): same for same in EQUIVALENT}
    found, left = set(), dict(by_key)
    for mutant in mutants:
        key = (str(mutant.path.relative_to(DOMAIN)), mutant.source, mutant.change)
        if key in by_key:
            found.add(mutant)
            left.pop(key, None)
    return frozenset(found), tuple(left.values())
