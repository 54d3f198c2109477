"""Judging windows: all recorded facts of a period, by the terms in force, as ``window_evaluated`` events.

Facts are never rewritten. Judging again gives the same windows for the same facts; where new facts or terms change
them, new events follow the old ones in the same stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from operator import ne
from typing import Any

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.facts.observations import ReadRows
from ledger.app.judgement.period_facts import JudgedWindows, Judgements, KeptPeriods, PeriodFacts
from ledger.app.periods.exclusions import load_excluded
from ledger.app.ports.store import Transaction
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import windows_stream
from ledger.domain.time.calendar import Period, first_date
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import NOTHING_EXCLUDED, Excluded
from ledger.domain.windows.window import Cell, Window, WindowState


@dataclass(frozen=True, slots=True)
class JudgedPeriod:
    """The windows of a period, the digests of the batches that each was judged from, and what was taken out of them."""

    windows: tuple[Window, ...]
    inputs_of: tuple[frozenset[str], ...]
    excluded: Excluded = NOTHING_EXCLUDED

    @property
    def inputs(self) -> tuple[str, ...]:
        """The digests of all batches."""
        return self.inputs_within(slice(None))

    def inputs_within(self, within: slice) -> tuple[str, ...]:
        """The digests of the batches that some windows were judged from."""
        return tuple(sorted(set(chain.from_iterable(self.inputs_of[within]))))


def evaluate_windows(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    *,
    read_rows: ReadRows,
    running: bool = False,
    kept: KeptPeriods | None = None,
) -> JudgedPeriod:
    """Judge every window of a period and append the judgements that are new.

    Of a ``running`` period only what its windows say is appended, once it is known: one without data is not judged yet,
    and that another batch came in is no news about windows it does not change. Closing it states all of them. What is
    ``kept`` from the last look is not read again.
    """
    agreement = registered.agreement
    # What is issued in this transaction comes from the judgements before it in the log: nobody judges meanwhile.
    tx.identities.reserve(registered.sla_id, agreement.source)
    excluded = load_excluded(tx, registered.sla_id, registered.agreement, period)
    facts, judgements_before = (None, None) if kept is None else kept.take(registered.sla_id, period)
    facts = PeriodFacts.read(tx, registered, period, excluded, facts)
    found = facts.judge(tx, read_rows)
    events = [_judgement(registered, period, found, index) for index in range(len(found.windows))]
    before = Judgements.read(tx, registered.sla_id, period, judgements_before)
    says_news = _is_news if running else ne
    changed = [event for event in events if says_news(before.last.get(event.payload["index"]), event.payload)]
    if changed:
        stream = windows_stream(registered.sla_id, period.first)
        tx.events.append(stream, changed, expected_version=before.length)
    if kept is not None:
        kept.put(registered.sla_id, period, facts, before)
    return JudgedPeriod(found.windows, tuple(map(frozenset, found.inputs)), excluded)


def _judgement(registered: RegisteredAgreement, period: Period, found: JudgedWindows, index: int) -> NewEvent:
    agreement, window, left_out = registered.agreement, found.windows[index], found.left_out[index]
    payload = {
        "sla_id": registered.sla_id,
        "doc_sha256": agreement.doc_sha256.hex(),
        "period": str(period),
        "index": index,
        "start_ns": str(window.interval.start_ns),
        "end_ns": str(window.interval.end_ns),
        "state": str(window.state),
        "cells": {
            objective.id: cell.as_document() for objective, cell in zip(agreement.objectives, window.cells, strict=True)
        },
        "excluded_requests": left_out.by_clause,
        **({"exclusions": left_out.by_exclusion} if left_out.by_exclusion else {}),
        "inputs": sorted(found.inputs[index]),
    }
    return NewEvent("window_evaluated", payload, occurred_at_ns=window.interval.end_ns)


def load_windows(
    tx: Transaction, registered: RegisteredAgreement, period: Period, *, before_seq: int | None = None
) -> JudgedPeriod:
    """The newest judgements of a period as the ledger holds them, or held them before ``before_seq``.

    A statement was made from those before it; facts that came later do not change what it says.
    """
    last = judgements(tx, registered.sla_id, str(period), before_seq=before_seq)
    windows = tuple(_window(registered, payload) for payload in last)
    return JudgedPeriod(windows, tuple(frozenset(payload["inputs"]) for payload in last))


def judgements(
    tx: Transaction, sla_id: str, period: str, *, before_seq: int | None = None
) -> tuple[Mapping[str, Any], ...]:
    """The newest ``window_evaluated`` payload of every window of a period, by index; see ``load_windows``.

    Another period may have begun on the same day, and have been judged while it ran, before an amendment or a notice
    made it shorter.
    """
    last: dict[int, Mapping[str, Any]] = {}
    for event in tx.events.stream(windows_stream(sla_id, first_date(period))):
        if event.payload["period"] != period:
            continue
        # One that waits for its place comes after everything that has one.
        if before_seq is None or (event.seq is not None and event.seq < before_seq):
            last[event.payload["index"]] = event.payload
    return tuple(last[index] for index in sorted(last))


def _is_news(last: Mapping[str, Any] | None, payload: Mapping[str, Any]) -> bool:
    """Whether a judgement says of its window what was not said before."""
    if last is None:
        return bool(payload["state"] != WindowState.NO_DATA)
    return {**last, "inputs": None} != {**payload, "inputs": None}


def _window(registered: RegisteredAgreement, payload: Mapping[str, Any]) -> Window:
    cells = (payload["cells"][objective.id] for objective in registered.agreement.objectives)
    return Window(
        Interval(int(payload["start_ns"]), int(payload["end_ns"])),
        WindowState(payload["state"]),
        tuple(map(Cell.from_document, cells)),
    )
