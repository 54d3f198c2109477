"""Scenarios in, verdicts out: every case of ``scenarios/*.yaml`` is a small period and what it must come to.

A case names the ``example`` agreement it starts from and the members it ``set``s (empty: takes out), ``<<`` those of
another case and some more. ``amended`` are the members of a second version of the terms, ``terminated`` is the date of
a notice. ``rows`` are request rows, as short
texts ``id time code ttft_ms e2e_ms`` (``ok`` for no code; latencies of failed rows left out), with ``key=value`` for
more members as JSON; ``repeat`` multiplies a row under numbered ids. ``heartbeats`` are short texts ``id time
covers_s``, or ``from``, ``to``, ``every_s`` and ``covers_s`` of many. Or ``windows`` gives the counts: window
(``7``) or windows (``7-9``) -> good/valid per objective, or a state; ``otherwise`` is what all others have.
``outages`` are short texts ``id from to``, or ``id`` alone, with ``key=value`` for more members as JSON;
``counters`` are ``counter pod time value``, ``histograms`` ``histogram pod time le:count...``.
``charges`` are lines that finance handed in.
Or a ``timeline`` says what happened, act by act (``tests.support.timeline``).
``expect`` holds what must come out; what it leaves out is not checked.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ledger.domain.credits.charges import CHARGE_LINES, charges_for
from ledger.domain.credits.settlement import attestability, settle
from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.fact_kinds import BOOKS
from ledger.domain.facts.heartbeats import HeartbeatBook
from ledger.domain.rows.observation import VerdictCounts
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.lifecycle import Timeline, check_amendment, check_notice
from ledger.domain.terms.termination import Notice, unsigned_notice
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.violations.own_recovery import with_own_recoveries
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.ingest.facts import read_facts
from ledger.ingest.heartbeat_log import HeartbeatLog
from ledger.ingest.request_log import RequestLog
from tests.support.scenario_texts import feed_log, heartbeat_lines, merged, request_lines, set_member
from tests.support.timeline import played
from tests.unit.domain.samples import agreement, put

FOLDER = Path(__file__).parent / "scenarios"
KNOWN = {
    *("name", "why", "example", "set", "amended", "terminated", "period"),
    *("spans", "rows", "heartbeats", "windows", "otherwise", "charges", "timeline", "expect", *BOOKS),
}


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.load(path.read_text(), Loader=yaml.BaseLoader):
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


@pytest.mark.parametrize("case", list(cases()))
def test_scenario(case: dict[str, Any]) -> None:
    assert set(case) <= KNOWN
    if "timeline" in case:
        expected, found = case.get("expect", {}), played(case)
        assert {name: _part(found.get(name), wanted) for name, wanted in expected.items()} == expected
        return
    changes = merged(case.get("set", {}))
    example = f"{case.get('example', 'agreement')}.yaml"
    signed = agreement(lambda d: [set_member(d, path, value) for path, value in changes.items()], example)
    in_force, period = _timeline(signed, case).named(case.get("period", "2023-06-14/P1D"))
    terms = in_force.agreement
    if "rows" in case:
        windows, counts = _from_rows(terms, period, case)
    else:
        windows, counts = _from_counts(terms, period, case.get("windows", {}), case.get("otherwise", "idle")), {}
    for kind, book_of in BOOKS.items():
        if kind in case:
            book = book_of(terms, period, spans=_spans(case) or None)
            book.add_all(cast(Any, read_facts(feed_log(kind, case[kind], terms.service))))
            windows, counts = book.windows(windows), counts | _verdicts(book.counts)
    windows = with_own_recoveries(terms, windows)
    charges = None
    if "charges" in case:
        CHARGE_LINES.check(case["charges"], "lines")
        charges = charges_for(terms, period, case["charges"])
    result = settle(terms, period, windows, charges)
    found = counts | {
        "state": str(result.state),
        "credit": "none" if result.credit is None else str(result.credit),
        "incidents": str(len(result.trace.incidents)) if result.trace else "none",
        "attestable": str(not attestability(terms)).lower(),
        "windows": str(result.coverage.windows),
        "observed": str(result.coverage.observed),
        "idle": str(result.coverage.idle),
        "terms_version": str(in_force.version),
        "base": "none" if result.trace is None else str(result.trace.base),
    }
    if result.trace is not None and result.trace.rules is not None:
        found["earned"] = [str(incident.amount) for step in result.trace.rules for incident in step.incidents]
        found["caps"] = [f"{step.level} {step.limit} -> {step.amount}" for step in result.trace.caps or ()]
    found |= {o.objective.id: f"{o.good}/{o.valid} {o.state}" for o in result.objectives}
    assert {key: found[key] for key in case["expect"]} == case["expect"]


def _part(found: Any, expected: Any) -> Any:
    """What was found of the members that are expected."""
    return {name: found.get(name) for name in expected} if isinstance(expected, dict) and found else found


def _timeline(signed: Agreement, case: dict[str, Any]) -> Timeline:
    """The terms, those that ``amended`` makes of them, and the end that ``terminated`` names."""
    documents = [signed]
    if "amended" in case:
        plain = copy.deepcopy(dict(signed.document))
        for path, value in case["amended"].items():
            put(plain, path, value)
        documents.append(Agreement.from_document(plain))
        check_amendment(Timeline((signed,)), documents[1], now_ns=signed.starts_ns)
    timeline = Timeline(tuple(documents))
    if "terminated" not in case:
        return timeline
    unsigned = unsigned_notice("0x" + "00" * 32, timeline.newest.doc_sha256.hex(), case["terminated"], "moved away")
    notice = Notice.from_document({**unsigned, "signatures": {"customer": "00" * 64}})
    check_notice(timeline, notice, now_ns=signed.starts_ns)
    return Timeline(tuple(documents), notice)


def _from_rows(terms: Agreement, period: Period, case: dict[str, Any]) -> tuple[tuple[Window, ...], dict[str, str]]:
    lines = [line for item in case["rows"] for line in request_lines(item, terms.service)]
    spans = _spans(case)
    alive, unheard = _alive(terms, period, case.get("heartbeats"))
    evaluator = Evaluator(
        terms, period, spans=[*spans, *(alive or ())], declared=None if alive is None else tuple(spans)
    )
    if lines:
        evaluator.add_all(RequestLog(io.BytesIO("\n".join(lines).encode() + b"\n"), "scenario"))
    return evaluator.windows(), {
        "unheard": unheard,
        "uncounted": str(evaluator.uncounted_requests()),
        **_verdicts(evaluator.counts),
    }


def _spans(case: dict[str, Any]) -> list[Interval]:
    pairs = [span.split("/") for span in case.get("spans", [])]
    return [Interval(parse_instant_ns(start), parse_instant_ns(end)) for start, end in pairs]


def _verdicts(counts: VerdictCounts) -> dict[str, str]:
    return {
        "accepted": str(counts.accepted),
        "duplicates": str(counts.duplicates),
        "conflicts": str(counts.conflicts),
        "rejected": " ".join(f"{reason}:{count}" for reason, count in sorted(counts.rejected.items())),
    }


def _alive(terms: Agreement, period: Period, said: Any) -> tuple[list[Interval] | None, str]:
    """What heartbeats cover, and why some were refused; None where the agreement has none."""
    if terms.heartbeat_longest_s is None:
        return None, ""
    book = HeartbeatBook(terms, period)
    lines = "".join(heartbeat_lines(item, terms.service) for item in said or ()).encode()
    log = HeartbeatLog(io.BytesIO(lines), "scenario") if lines else ()
    rejected = [each.reason for each in book.add_all(log, handed_in_ns=period.interval.end_ns)]
    return book.spans, " ".join(f"{reason}:{rejected.count(reason)}" for reason in sorted(set(rejected)))


def _from_counts(terms: Agreement, period: Period, said: dict[str, Any], otherwise: Any) -> list[Window]:
    windows, given_at = [], {}
    for name, given in said.items():
        first, _, last = name.partition("-")
        given_at |= dict.fromkeys(range(int(first), int(last or first) + 1), given)
    for at, interval in enumerate(terms.windows(period)):
        given = given_at.get(at, otherwise)
        idle = tuple(Cell(0, 0) for _ in terms.objectives)
        if isinstance(given, list):
            pairs = [tuple(map(int, pair.split("/"))) for pair in given]
            cells = tuple(Cell(good, valid - good) for good, valid in pairs)
            windows.append(Window(interval, WindowState.OBSERVED, cells))
        else:
            windows.append(Window(interval, WindowState.OBSERVED if given == "idle" else WindowState(given), idle))
    return windows
