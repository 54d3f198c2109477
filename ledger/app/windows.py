"""Judging windows: all recorded facts of a period, by the terms in force, as ``window_evaluated`` events.

Facts are never rewritten. Judging again gives the same windows for the same facts; where new facts or terms change
them, new events follow the old ones in the same stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from operator import ne
from typing import Any, cast

from ledger.app.agreements import RegisteredAgreement
from ledger.app.exclusions import load_excluded
from ledger.app.heartbeats import covered_by_heartbeats
from ledger.app.observations import ReadRows
from ledger.app.ports import Transaction
from ledger.domain.calendar import Period
from ledger.domain.evaluation import Evaluator
from ledger.domain.events import NewEvent, StoredEvent
from ledger.domain.exclusions import NOTHING_EXCLUDED, Excluded
from ledger.domain.fact_kinds import BOOKS
from ledger.domain.interval import Interval, clip, covered
from ledger.domain.log_kinds import FORMATS, HEARTBEATS, REQUESTS, SAMPLES
from ledger.domain.naming import observations_stream, windows_stream
from ledger.domain.observation import IdRepeated, Rows
from ledger.domain.samples import SampleBook
from ledger.domain.window import Cell, Window, WindowState
from ledger.domain.window_inputs import Batch, window_inputs


@dataclass(frozen=True, slots=True)
class JudgedPeriod:
    """The windows of a period, the digests of all batches they were judged from, and what was taken out of them."""

    windows: tuple[Window, ...]
    inputs: tuple[str, ...]
    excluded: Excluded = NOTHING_EXCLUDED


def evaluate_windows(
    tx: Transaction, registered: RegisteredAgreement, period: Period, *, read_rows: ReadRows, running: bool = False
) -> JudgedPeriod:
    """Judge every window of a period and append the judgements that are new.

    Of a ``running`` period only what its windows say is appended, once it is known: one without data is not judged yet,
    and that another batch came in is no news about windows it does not change. Closing it states all of them.
    """
    agreement = registered.agreement
    # What is issued in this transaction comes from the judgements before it in the log: nobody judges meanwhile.
    tx.identities.reserve(registered.sla_id, agreement.source)
    excluded = load_excluded(tx, registered.sla_id, registered.agreement, period)
    evaluator, windows, inputs = _load(tx, registered, period, excluded, read_rows)
    left_out = evaluator.left_out()
    events = [
        NewEvent(
            "window_evaluated",
            {
                "sla_id": registered.sla_id,
                "doc_sha256": agreement.doc_sha256.hex(),
                "period": str(period),
                "index": index,
                "start_ns": str(window.interval.start_ns),
                "end_ns": str(window.interval.end_ns),
                "state": str(window.state),
                "cells": {
                    objective.id: cell.as_document()
                    for objective, cell in zip(agreement.objectives, window.cells, strict=True)
                },
                "excluded_requests": left_out[index].by_clause,
                **({"exclusions": left_out[index].by_exclusion} if left_out[index].by_exclusion else {}),
                "inputs": sorted(inputs[index]),
            },
            occurred_at_ns=window.interval.end_ns,
        )
        for index, window in enumerate(windows)
    ]
    stream = windows_stream(registered.sla_id, period.first)
    judged = list(tx.events.stream(stream))
    last = {event.payload["index"]: event.payload for event in judged}
    says_news = _is_news if running else ne
    changed = [event for event in events if says_news(last.get(event.payload["index"]), event.payload)]
    if changed:
        tx.events.append(stream, changed, expected_version=len(judged))
    return JudgedPeriod(windows, _together(inputs), excluded)


def load_windows(
    tx: Transaction, registered: RegisteredAgreement, period: Period, *, before_seq: int | None = None
) -> JudgedPeriod:
    """The newest judgements of a period as the ledger holds them, or held them before ``before_seq``.

    A statement was made from those before it; facts that came later do not change what it says.
    """
    last = judgements(tx, registered.sla_id, period.first, before_seq=before_seq)
    windows = tuple(_window(registered, payload) for payload in last)
    return JudgedPeriod(windows, _together(payload["inputs"] for payload in last))


def judgements(
    tx: Transaction, sla_id: str, first: date, *, before_seq: int | None = None
) -> tuple[Mapping[str, Any], ...]:
    """The newest ``window_evaluated`` payload of every window of a period, by index; see ``load_windows``."""
    last: dict[int, Mapping[str, Any]] = {}
    for event in tx.events.stream(windows_stream(sla_id, first)):
        # One that waits for its place comes after everything that has one.
        if before_seq is None or (event.seq is not None and event.seq < before_seq):
            last[event.payload["index"]] = event.payload
    return tuple(last[index] for index in sorted(last))


@dataclass(slots=True)
class _Batches:
    """The batches of one format. One counts where it was declared complete; where it was also recorded without a
    declaration, everywhere."""

    declared: defaultdict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    undeclared: set[str] = field(default_factory=set)
    repeats: int = 0

    def take(self, payload: Mapping[str, Any]) -> None:
        digest, span = payload["digest"], payload["declared_complete"]
        self.repeats += payload["rows"]["duplicate"] + payload["rows"]["conflict"]
        if span is None:
            self.undeclared.add(digest)
        else:
            self.declared[digest].append(Interval(int(span["from_ns"]), int(span["to_ns"])))

    def digests(self, period: Interval | None) -> list[str]:
        """Those that may say something of a period: where a batch is declared for other times alone, it has no row that
        counts in it. None: all."""
        declared = (
            each for each, spans in self.declared.items() if period is None or any(clip(span, period) for span in spans)
        )
        return sorted({*declared, *self.undeclared})

    @property
    def spans(self) -> list[Interval]:
        return [span for of_batch in self.declared.values() for span in of_batch]

    def within(self, digest: str) -> Sequence[Interval]:
        return () if digest in self.undeclared else self.declared[digest]

    def reaching(self, digests: Sequence[str], reaches: Sequence[set[int]]) -> list[Batch]:
        """These batches with the windows that stand on them."""
        return [
            Batch(digest, windows, self.declared.get(digest, ()))
            for digest, windows in zip(digests, reaches, strict=True)
        ]


def _recorded(tx: Transaction, registered: RegisteredAgreement) -> tuple[dict[str, _Batches], list[StoredEvent]]:
    """The batches of each kind, and the events of those of heartbeats."""
    batches, heartbeats = {each: _Batches() for each in FORMATS}, list[StoredEvent]()
    for event in tx.events.stream(observations_stream(registered.sla_id, registered.agreement.source)):
        found = event.payload.get("format", REQUESTS)
        if found == HEARTBEATS:
            heartbeats.append(event)
        else:
            batches[found].take(event.payload)
    return batches, heartbeats


def _load(
    tx: Transaction, registered: RegisteredAgreement, period: Period, excluded: Excluded, read_rows: ReadRows
) -> tuple[Evaluator, tuple[Window, ...], list[set[str]]]:
    """The judged windows, what judged the requests, and for each window the digests of the batches behind it.

    A window is observed where the log of each kind that the agreement counts is declared complete: a request log says
    nothing of samples, and without their log nobody knows that there were none. A heartbeat speaks for all logs of its
    source.
    """
    agreement = registered.agreement
    batches, heartbeats = _recorded(tx, registered)
    alive = covered_by_heartbeats(tx, agreement, period, heartbeats, read_rows)
    requests = batches[REQUESTS]
    counted = [each for each in FORMATS if each in {objective.source.kind for objective in agreement.objectives}]
    spans = [*batches[counted[0]].spans, *alive.spans]
    of_requests = requests.digests(period.interval)

    def judge(*, distinct: bool) -> Evaluator:
        evaluator = Evaluator(
            agreement, period, tenant=registered.sla_id, spans=spans, excluded=excluded, distinct=distinct
        )
        for digest in of_requests:
            rows = cast(Rows, read_rows(tx.batches.get(digest)))
            evaluator.add_all(rows, within=requests.within(digest))
        return evaluator

    # What was counted when it came in says which way is the shorter one, and nothing more.
    try:
        evaluator = judge(distinct=not requests.repeats)
    except IdRepeated:
        evaluator = judge(distinct=False)
    windows = evaluator.windows() if spans else _unobserved(registered, period, excluded)
    kinds = [requests.reaching(of_requests, evaluator.reaches())] if REQUESTS in counted else []
    for each in counted:
        if each == REQUESTS:
            continue
        of_kind, book_of = batches[each], SampleBook if each == SAMPLES else BOOKS[each]
        # What a feed says may reach beyond the time that it is declared for.
        digests = of_kind.digests(period.interval if each == SAMPLES else None)
        shown = [*of_kind.spans, *alive.spans]
        book = book_of(agreement, period, tenant=registered.sla_id, spans=shown, excluded=excluded)
        for digest in digests:
            book.add_all(cast(Any, read_rows(tx.batches.get(digest))), within=of_kind.within(digest))
        windows = book.windows(windows)
        kinds.append(of_kind.reaching(digests, book.reaches()))
    inputs = [set[str]() for _ in windows]
    for batches_of in kinds:
        for of_window, behind in zip(inputs, window_inputs(windows, [*batches_of, *alive.batches]), strict=True):
            of_window.update(behind)
    return evaluator, windows, inputs


def _together(inputs: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted(set(chain.from_iterable(inputs))))


def _is_news(last: Mapping[str, Any] | None, payload: Mapping[str, Any]) -> bool:
    """Whether a judgement says of its window what was not said before."""
    if last is None:
        return bool(payload["state"] != WindowState.NO_DATA)
    return {**last, "inputs": None} != {**payload, "inputs": None}


def _unobserved(registered: RegisteredAgreement, period: Period, excluded: Excluded) -> tuple[Window, ...]:
    """Without any declaration of completeness nothing is known, not even that nothing happened."""
    cells, union = tuple(Cell(0, 0) for _ in registered.agreement.objectives), excluded.union
    return tuple(
        Window(interval, WindowState.EXCLUDED if covered(interval, union) else WindowState.NO_DATA, cells)
        for interval in registered.agreement.windows(period)
    )


def _window(registered: RegisteredAgreement, payload: Mapping[str, Any]) -> Window:
    cells = (payload["cells"][objective.id] for objective in registered.agreement.objectives)
    return Window(
        Interval(int(payload["start_ns"]), int(payload["end_ns"])),
        WindowState(payload["state"]),
        tuple(map(Cell.from_document, cells)),
    )
