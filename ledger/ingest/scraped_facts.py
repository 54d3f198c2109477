"""Readings for counter and histogram logs from what Prometheus endpoints answer: those of the metrics that the
objectives of an agreement are counted from, and no others.

A look at all targets of an agreement is a round. Its logs are those that anybody may hand in
(``ledger.ingest.counter_log``, ``ledger.ingest.histogram_log``), written here; the first row of each says of which
round it is. Every series has the label ``instance`` of its target, as Prometheus names it, so that two processes never
count as one; one of that name that the process has itself becomes ``exported_instance``. A series that names another
``service`` is none of the agreement's.

A round is whole where every target answered and named every one of the metrics (a TYPE line without a sample will do),
and all that is counted could be read. Nothing else shows that nothing failed: a metric that a new version calls by
another name is not measured, and not 0. ``start`` is what the process says of the series itself (``_created``); the
time when the process began is no start of it, because a gateway's is not that of what it passes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ledger.app.facts.scraping import Mark, Round
from ledger.domain.facts.histogram import INFINITE
from ledger.domain.rows.telemetry import MAX_SHOWN
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.log_kinds import COUNTERS, HISTOGRAMS
from ledger.domain.time.instant import format_instant_ns, parse_instant_ns
from ledger.errors import InstantInvalid, SlaLedgerError, TelemetryUnusable
from ledger.ingest.prometheus import TEXT, Line, Read, read_lines
from ledger.ingest.reading import clean
from ledger.ingest.scrape import Exposition

INSTANCE = "instance"
_COUNTED_AS = {COUNTERS: ("counter", "unknown", "untyped"), HISTOGRAMS: ("histogram",)}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The metrics that an agreement is counted from, by the kind of log they go to."""

    service: str
    names: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, agreement: Agreement) -> _Wanted:
        sources = [each.source for each in agreement.objectives]
        counters = {name for each in sources for name in (each.total, each.good, each.bad) if name is not None}
        histograms = {each.histogram for each in sources if each.histogram is not None}
        named = {COUNTERS: frozenset(counters), HISTOGRAMS: frozenset(histograms)}
        return cls(agreement.service, {kind: names for kind, names in named.items() if names})


@dataclass(slots=True)
class _Target:
    """What one target says at one instant."""

    instance: str
    at_ns: int
    wanted: _Wanted
    read: Read
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self) -> None:
        self.problems += (f"{each.field}: {each.message}" for each in self.read.refusals)
        for kind, names in self.wanted.names.items():
            for name in sorted(names):
                self._take(kind, name)

    def _take(self, kind: str, name: str) -> None:
        part = name if kind == COUNTERS else f"{name}_bucket"
        lines = [line for line in self.read.lines if line.name == part]
        type_of = self.read.kinds.get(name, self.read.kinds.get(name.removesuffix("_total")))
        if type_of is None and not lines:
            self.problems.append(f"{name} is not named: not measured, and not 0")
        elif type_of is not None and type_of not in _COUNTED_AS[kind]:
            self.problems.append(f"{name} is a {type_of}, and no {kind.removesuffix('s')}")
        else:
            own = [line for line in lines if line.labels.get("service", self.wanted.service) == self.wanted.service]
            found = self._counters(name, own) if kind == COUNTERS else self._histograms(name, own)
            self.rows.setdefault(kind, []).extend(found)

    def _counters(self, name: str, lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if self._is_read_now(line):
                yield {"counter": name, **self._reading(line.labels, name), "value": _text(line.value)}

    def _histograms(self, name: str, lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
        of_series: dict[tuple[tuple[str, str], ...], list[Line]] = {}
        for line in lines:
            labels = tuple(sorted((key, value) for key, value in line.labels.items() if key != "le"))
            of_series.setdefault(labels, []).append(line)
        for labels, found in sorted(of_series.items()):
            unread = [line for line in found if not self._is_read_now(line)]
            if unread:
                continue
            buckets = {line.labels.get("le", ""): line.value for line in found}
            if len(buckets) < len(found) or INFINITE not in buckets:
                self.problems.append(f"{name}{dict(labels)}: not every bucket is there once, up to {INFINITE}")
            elif any(count != int(count) for count in buckets.values()):
                self.problems.append(f"{name}{dict(labels)}: a bucket does not count in whole numbers")
            else:
                whole = {bound: int(count) for bound, count in buckets.items()}
                yield {"histogram": name, **self._reading(dict(labels), name), "buckets": whole}

    def _is_read_now(self, line: Line) -> bool:
        if line.at_ns is not None:
            self.problems.append(f"{line.name} has a time of its own: it was read by somebody else, at another time")
        elif not abs(line.value) < float("inf"):
            self.problems.append(f"{line.name} is {line.value}")
        else:
            return True
        return False

    def _reading(self, labels: Mapping[str, str], name: str) -> dict[str, Any]:
        series = {f"exported_{key}" if key == INSTANCE else key: value for key, value in labels.items()}
        start_ns = self.read.starts.get((name.removesuffix("_total"), frozenset(labels.items())))
        return {
            "series": {**series, INSTANCE: self.instance},
            "at": format_instant_ns(self.at_ns),
            "service": self.wanted.service,
            **({} if start_ns is None or start_ns > self.at_ns else {"start": format_instant_ns(start_ns)}),
        }


def read_round(agreement: Agreement, at_ns: int, answers: Mapping[str, Exposition | SlaLedgerError]) -> Round:
    """What the targets answered, by their names, to a round that began at ``at_ns``."""
    wanted, logs, problems = _Wanted.of(agreement), dict[str, list[dict[str, Any]]](), list[str]()
    for instance, answer in sorted(answers.items()):
        try:
            if isinstance(answer, SlaLedgerError):
                raise answer
            target = _Target(instance, at_ns, wanted, _read(answer))
        except SlaLedgerError as error:
            problems.append(clean(f"{instance}: {error.message}", 400))
            continue
        target.take()
        problems += (clean(f"{instance}: {each}", 400) for each in dict.fromkeys(target.problems))
        for kind, rows in target.rows.items():
            logs.setdefault(kind, []).extend(rows)
    whole = not problems and set(logs) == set(wanted.names) and all(logs.values())
    mark = {"at": format_instant_ns(at_ns), "targets": sorted(answers), "whole": whole}
    written = {kind: _log(rows, mark) for kind, rows in logs.items() if rows}
    return Round(Mark(at_ns, tuple(sorted(answers)), whole), written, tuple(problems[:MAX_SHOWN]))


def read_mark(log: bytes) -> Mark | None:
    """Of which round a log is; None where it is of none."""
    try:
        said = json.loads(log.partition(b"\n")[0])["round"]
        return Mark(parse_instant_ns(said["at"]), tuple(said["targets"]), said["whole"] is True)
    except (ValueError, KeyError, TypeError, RecursionError, InstantInvalid):
        return None


def _read(answer: Exposition) -> Read:
    # What is cut off in the middle of a number reads as a smaller one, and that as a restart.
    if answer.media_type == TEXT and not answer.data.endswith(b"\n"):
        raise TelemetryUnusable("body: does not end with a line feed: it was cut off", field="body")
    return read_lines(answer.media_type, answer.data)


def _log(rows: Sequence[Mapping[str, Any]], mark: Mapping[str, Any]) -> bytes:
    lines = [{"round": mark, **rows[0]}, *rows[1:]]
    return b"".join(json.dumps(each, ensure_ascii=False, sort_keys=True).encode() + b"\n" for each in lines)


def _text(value: int | float) -> str:
    """The shortest text that reads as the same number, without an exponent."""
    return format(Decimal(repr(value)), "f")
