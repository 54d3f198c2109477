"""Recording telemetry and breaker events, and finding them again as evidence beside a violation.

One raw batch, kept by its digest; one ``telemetry_recorded`` event for each service it is about, with the verdicts
counted and the few points that tell something; one ``breaker_event_recorded`` for each transition of a breaker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from ledger.app.ports.store import Receipt, Transaction
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import breaker_stream, telemetry_batch_stream
from ledger.domain.rows.observation import BodyBook
from ledger.domain.rows.telemetry import (
    MAX_SHOWN,
    Doubt,
    EvidenceKind,
    Judged,
    Point,
    Refusal,
    Sample,
    SampleVerdict,
    ServiceReadings,
    Transition,
    condense,
    identity_of,
    judge,
)
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import ServiceUnknown, TelemetryUnusable

REMEMBERED_AS = "telemetry"
"""What stands in the place of an agreement where samples are remembered: they are a service's, not an agreement's."""


@dataclass(frozen=True, slots=True)
class RawTelemetry:
    """A batch as it came. ``scraped_at_ns`` is when it was fetched; None: its samples carry their own times.

    ``service`` is the one that all of it is about, whatever the batch itself says; None: the batch says it.
    """

    format: str
    media_type: str
    data: bytes
    source: str
    service: str | None = None
    scraped_at_ns: int | None = None


ReadTelemetry = Callable[[RawTelemetry], Sequence[ServiceReadings]]
"""Reads a batch; raises ``TelemetryUnusable`` where nothing in it can be used."""


@dataclass(frozen=True, slots=True)
class RecordedTelemetry:
    """What became of a batch. ``receipts`` are the first ones where the same batch had been recorded before.

    ``refused`` are the first of what was quarantined or rejected: {field, reason, raw, message}.
    """

    digest: str
    verdicts: Mapping[str, int]
    reasons: Mapping[str, int]
    refused: Sequence[Mapping[str, str]]
    transitions: int
    receipts: tuple[Receipt, ...]

    @property
    def unusable(self) -> int:
        """Samples that were quarantined or rejected."""
        return self.verdicts[SampleVerdict.QUARANTINED] + self.verdicts[SampleVerdict.REJECTED]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was recorded about a service at the time of a violation; ``summary`` is for people."""

    kind: str
    event_id: str
    at_ns: int
    summary: str


class FindEvidence(Protocol):
    """Looks for what was recorded about a service in an interval, the most telling first."""

    def __call__(self, tx: Transaction, service: str, interval: Interval) -> Sequence[Evidence]: ...


def record_telemetry(
    tx: Transaction, raw: RawTelemetry, groups: Sequence[ServiceReadings], *, read: ReadTelemetry, now_ns: int
) -> RecordedTelemetry:
    """Keep a raw batch and append what its samples came to. ``groups`` are what ``read`` gives for it.

    The same batch of a source is recorded once. What is about a service that no agreement names is rejected. Raises
    ``ServiceUnknown`` or ``TelemetryUnusable``, and then nothing is written, where nothing in it is usable.
    """
    known = {str(row["service"]) for row in tx.views.agreements()}
    about = [group for group in groups if group.service in known]
    unknown = [group for group in groups if group.service not in known and group.readings]
    strangers = [_stranger(group) for group in unknown]
    if not about and strangers:
        _refuse(strangers)
    digest = tx.batches.put(raw.data)
    recorded: list[tuple[Receipt, Mapping[str, Any]]] = []
    refused: list[Refusal] = []
    usable = 0
    for place, group in enumerate(about):
        service = str(group.service)
        stream = telemetry_batch_stream(service, _batch_id(raw, digest))
        before = next(iter(tx.events.stream(stream)), None)
        if before is not None:
            recorded.append((Receipt.of(before), before.payload))
            usable += 1
            continue
        judged = _judge(tx, service, group, raw, read)
        # What is about nobody known is counted with the first service of the batch.
        for other in unknown if place == 0 else ():
            judged.refuse(_stranger(other), len(other.readings))
        usable += judged.usable
        refused += judged.refused
        payload = _payload(raw, service, digest, judged)
        event = NewEvent("telemetry_recorded", payload, occurred_at_ns=now_ns)
        (receipt,) = tx.events.append(stream, [event], expected_version=0)
        recorded.append((receipt, payload))
        _append_transitions(tx, raw, service, digest, judged.transitions)
    if not usable and refused:
        _refuse(refused)
    return _recorded(digest, recorded)


def find_evidence(tx: Transaction, service: str, interval: Interval, *, limit: int = 20) -> tuple[Evidence, ...]:
    """What was recorded about a service in an interval, at most ``limit``: the most telling and then the newest first.

    Of each series (a GPU's metric, a breaker's state) only the most telling record is given.
    """
    rows = tx.views.evidence(service, interval.start_ns, interval.end_ns, limit)
    return tuple(Evidence(EvidenceKind(row["kind"]), row["event_id"], row["to_ns"] - 1, _summary(row)) for row in rows)


def _judge(tx: Transaction, service: str, group: ServiceReadings, raw: RawTelemetry, read: ReadTelemetry) -> Judged:
    tx.identities.reserve(REMEMBERED_AS, service)
    said = [identity_of(reading, raw.source) for reading in group.readings if not isinstance(reading, Refusal)]
    known = BodyBook(tx.identities.known(REMEMBERED_AS, service, said))
    judged = judge(group.readings, known, _samples_before(tx, service, raw, read), raw.source)
    tx.identities.add(REMEMBERED_AS, service, known.new)
    return judged


def _samples_before(tx: Transaction, service: str, raw: RawTelemetry, read: ReadTelemetry) -> Iterator[Sample]:
    """The samples of the source's last batch, read anew: what a counter is compared with."""
    last = tx.views.telemetry_source(service, raw.source)
    if last is None or last["format"] != raw.format:
        return
    scraped_at_ns = None if last["scraped_at_ns"] is None else int(last["scraped_at_ns"])
    data = tx.batches.get(last["digest"])
    before = RawTelemetry(raw.format, last["media_type"], data, raw.source, service, scraped_at_ns)
    for group in read(before):
        if group.service == service:
            yield from (reading for reading in group.readings if isinstance(reading, Sample))


def _append_transitions(
    tx: Transaction, raw: RawTelemetry, service: str, digest: str, transitions: Sequence[Transition]
) -> None:
    events = [
        NewEvent(
            "breaker_event_recorded",
            {
                "service": service,
                "source": raw.source,
                "digest": digest,
                "breaker": each.breaker,
                "kind": each.kind,
                "from_state": each.from_state and str(each.from_state),
                "to_state": str(each.to_state),
                "at_ns": str(each.at_ns),
                "failure_rate": None if each.failure_rate is None else str(each.failure_rate),
            },
            occurred_at_ns=each.at_ns,
        )
        for each in transitions
    ]
    if events:
        tx.events.append(breaker_stream(service), events, expected_version=None)


def _payload(raw: RawTelemetry, service: str, digest: str, judged: Judged) -> dict[str, Any]:
    times = judged.times_ns
    return {
        "service": service,
        "source": raw.source,
        "format": raw.format,
        "media_type": raw.media_type,
        "digest": digest,
        "bytes": len(raw.data),
        "scraped_at_ns": None if raw.scraped_at_ns is None else str(raw.scraped_at_ns),
        "samples": {str(verdict): judged.verdicts[verdict] for verdict in SampleVerdict},
        "reasons": {str(reason): count for reason, count in sorted(judged.reasons.items())},
        "refused": [_shown(each) for each in judged.refused],
        "resets": judged.resets,
        "transitions": len(judged.transitions),
        "span": {"from_ns": str(min(times)), "to_ns": str(max(times) + 1)} if times else None,
        "points": [_point(point) for point in condense(judged.accepted)],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "kind": str(point.telling.kind),
        "subject": point.telling.subject[:200],
        "metric": point.metric[:200],
        "min": str(point.low),
        "max": str(point.high),
        "last": str(point.last),
        "from_ns": str(point.from_ns),
        "to_ns": str(point.to_ns),
        "samples": point.samples,
        "severity": point.severity,
    }


def _batch_id(raw: RawTelemetry, digest: str) -> str:
    """Two scrapes that read the same are two batches; two deliveries of one body are one."""
    scraped = None if raw.scraped_at_ns is None else str(raw.scraped_at_ns)
    return hashlib.sha256(canonical_bytes([raw.format, raw.media_type, raw.source, digest, scraped])).hexdigest()


def _stranger(group: ServiceReadings) -> Refusal:
    named = "nothing" if group.service is None else repr(group.service[:80])
    return Refusal(
        SampleVerdict.REJECTED,
        Doubt.UNKNOWN_SERVICE,
        group.place,
        (group.service or "")[:80],
        f"{named} is no service of an agreement; {len(group.readings)} samples are about it",
    )


def _refuse(refused: Sequence[Refusal]) -> NoReturn:
    first = refused[0]
    data = {
        "field": first.field,
        "reason": str(first.reason),
        "refused": [_shown(each) for each in refused[:MAX_SHOWN]],
    }
    if first.reason is Doubt.UNKNOWN_SERVICE:
        raise ServiceUnknown(
            f"{first.field}: {first.message}; register the agreement first, or name its service", **data
        )
    raise TelemetryUnusable(f"no sample of the batch can be used. {first.field}: {first.message}", **data)


def _shown(refusal: Refusal) -> dict[str, str]:
    field, message = refusal.field[:300] or "batch", refusal.message[:300]
    return {"field": field, "reason": str(refusal.reason), "raw": refusal.raw[:80], "message": message}


def _recorded(digest: str, recorded: Sequence[tuple[Receipt, Mapping[str, Any]]]) -> RecordedTelemetry:
    payloads = [payload for _, payload in recorded]
    verdicts = {str(each): sum(payload["samples"][each] for payload in payloads) for each in SampleVerdict}
    reasons: dict[str, int] = {}
    for payload in payloads:
        for reason, count in payload["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + count
    transitions = sum(payload["transitions"] for payload in payloads)
    receipts = tuple(receipt for receipt, _ in recorded)
    refused = [each for payload in payloads for each in payload["refused"]]
    return RecordedTelemetry(digest, verdicts, reasons, refused, transitions, receipts)


def _summary(row: Mapping[str, Any]) -> str:
    if row["kind"] == EvidenceKind.BREAKER_EVENT:
        came_from = f" from {row['from_state']}" if row["from_state"] else ""
        rate = f" at a failure rate of {row['failure_rate']} %" if row["failure_rate"] else ""
        at = format_instant_ns(row["from_ns"])
        return f"breaker {row['breaker']} went{came_from} to {row['to_state']}{rate} at {at}"
    values = row["max"] if row["min"] == row["max"] else f"{row['min']} to {row['max']}, last {row['last']}"
    return f"{row['subject']}: {row['metric']} {values} ({row['samples']} samples)"
