"""The life of an agreement: its versions of terms, each in force from its date until the next one, and its end.

draft -> signed -> active -> amended (a later version took its place) | terminated | expired. A change inside a period
splits it: the parts are periods of their own, the older one under the older terms. Nothing here reaches back: an
amendment and a termination take effect later than the moment they are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Any

from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.terms.termination import Notice
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import format_instant_ns
from ledger.domain.time.interval import Interval
from ledger.errors import DocumentInvalid

_FIXED = (
    ("parties", "issuer", "ed25519_public_key"),
    ("parties", "customer", "ed25519_public_key"),
    ("parties", "issuer", "evm_address"),
    ("parties", "customer", "evm_address"),
    ("nonce",),
    ("service", "name"),
    ("source", "name"),
    ("timezone",),
    ("day_start",),
)
"""Members that no amendment changes: who agreed, on what, what reports it, and where its days begin."""


class State(StrEnum):
    """Where an agreement, or one version of its terms, stands."""

    DRAFT = "draft"
    """Not signed by both; a document outside the ledger."""
    SIGNED = "signed"
    """In the ledger, and not in force yet."""
    ACTIVE = "active"
    AMENDED = "amended"
    """Of a version: another one took its place."""
    TERMINATED = "terminated"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Terms:
    """One version of the terms as it was or is in force: ``agreement`` ends where the next version or a notice ends
    it."""

    version: int
    agreement: Agreement


@dataclass(frozen=True)
class Timeline:
    """All versions of an agreement as they were signed, from version 1 on, and the notice that ended it, if any."""

    documents: tuple[Agreement, ...]
    notice: Notice | None = None

    @cached_property
    def terms(self) -> tuple[Terms, ...]:
        """The versions that are or come into force, in order."""
        found = []
        for number, agreement in enumerate(self.documents, 1):
            ends = [later.effective_from for later in self.documents[number:]]
            ends += [] if self.notice is None else [self.notice.effective]
            end = min(ends, default=agreement.effective_until)
            if end <= agreement.effective_from:
                continue
            found.append(Terms(number, agreement if end >= agreement.effective_until else agreement.ending_on(end)))
        return tuple(found)

    @property
    def newest(self) -> Agreement:
        """The last version as it was signed."""
        return self.documents[-1]

    def starting(self, first: date) -> tuple[Terms, Period]:
        """The period that starts on a local date, and its terms; raises ``DocumentInvalid``."""
        terms = self._on(first)
        return terms, terms.agreement.period_starting(first)

    def named(self, text: str) -> tuple[Terms, Period]:
        """The period of a name, and its terms; raises ``DocumentInvalid`` or ``CalendarInvalid``."""
        error: DocumentInvalid | None = None
        for terms in reversed(self.terms):
            try:
                return terms, period_named(terms.agreement, text)
            except DocumentInvalid as refused:
                error = error or refused
        raise error or fail("period", f"{text[:40]}: the agreement was never in force")

    def at(self, instant_ns: int) -> Period | None:
        """The period that holds an instant."""
        found = (each.agreement.periods.at(instant_ns) for each in reversed(self.terms))
        return next((period for period in found if period is not None), None)

    def ending_after(self, instant_ns: int) -> tuple[Terms, Period] | None:
        """The earliest period that ends after an instant, and its terms."""
        for each in self.terms:
            period = each.agreement.periods.ending_after(instant_ns)
            if period is not None:
                return each, period
        return None

    def touching(self, interval: Interval) -> Iterator[Period]:
        """Every period that shares an instant with an interval, in order; rolling ones overlap."""
        for terms in self.terms:
            yield from terms.agreement.periods.touching(interval)

    def after(self, period: Period) -> tuple[Terms, Period] | None:
        """The period after one of this agreement, and its terms."""
        return self._beside(period, 1)

    def before(self, period: Period) -> tuple[Terms, Period] | None:
        """The period before one of this agreement, and its terms."""
        return self._beside(period, -1)

    def state(self, now_ns: int) -> State:
        """Where the agreement stands at an instant."""
        if now_ns < self.documents[0].starts_ns:
            return State.SIGNED
        if not self.terms or now_ns >= self.terms[-1].agreement.ends_ns:
            return State.EXPIRED if self.notice is None else State.TERMINATED
        return State.ACTIVE

    def state_of(self, version: int, now_ns: int) -> State:
        """Where one version stands at an instant."""
        terms = next((each for each in self.terms if each.version == version), None)
        if terms is None:
            return State.TERMINATED
        if now_ns < terms.agreement.starts_ns:
            return State.SIGNED
        if now_ns < terms.agreement.ends_ns:
            return State.ACTIVE
        return State.AMENDED if version < self.terms[-1].version else self.state(now_ns)

    def _on(self, day: date) -> Terms:
        if not self.terms:
            raise fail("period", f"no period starts on {day}: the agreement was never in force")
        earlier = [each for each in self.terms if each.agreement.effective_from <= day]
        return earlier[-1] if earlier else self.terms[0]

    def _beside(self, period: Period, step: int) -> tuple[Terms, Period] | None:
        terms = self._on(period.first)
        at = self.terms.index(terms)
        grid = terms.agreement.periods
        found = grid.after(period) if step == 1 else grid.before(period)
        while found is None:
            at += step
            if not 0 <= at < len(self.terms):
                return None
            terms = self.terms[at]
            ends = terms.agreement.periods.ends
            found = ends[0 if step == 1 else 1] if ends else None
        return terms, found


def check_amendment(timeline: Timeline, amended: Agreement, *, now_ns: int) -> None:
    """Raises ``DocumentInvalid`` naming clause and value where terms cannot follow those of a timeline.

    They take effect on their ``effective.from``: later than now, and so in no period that could be closed; after the
    version before began, and not after it ended.
    """
    last, starts = timeline.newest, amended.effective_from
    if timeline.notice is not None:
        raise fail("effective.from", f"{starts}: the agreement ends by notice on {timeline.notice.effective}")
    for path in _FIXED:
        before, after = _member(last.document, path), _member(amended.document, path)
        if before != after:
            raise fail(
                ".".join(path),
                f"{after!r} differs from {before!r} of the terms before, and no amendment changes it; make another "
                "agreement, with another nonce",
            )
    if amended.starts_ns <= now_ns:
        raise fail(
            "effective.from",
            f"{starts} is not later than now ({format_instant_ns(now_ns)}), and no amendment reaches back",
        )
    if starts <= last.effective_from:
        raise fail(
            "effective.from",
            f"{starts} overlaps version {len(timeline.documents)}, which is in force from {last.effective_from}; "
            "take a later date",
        )
    if starts > last.effective_until:
        raise fail(
            "effective.from", f"{starts} leaves a gap after {last.effective_until}, when the terms before have ended"
        )
    _check_split(last, starts)
    if not amended.periods.rolling and next(amended.periods.all()).first != starts:
        raise fail(
            "partial_periods",
            f"drop: the days from {starts} to {next(amended.periods.all()).first} would be in no period; write "
            "prorate, or let periods start on the first of them (anchor)",
        )


def check_notice(timeline: Timeline, notice: Notice, *, now_ns: int) -> None:
    """Raises ``DocumentInvalid`` naming clause and value where a notice cannot end the agreement."""
    newest, ends = timeline.newest, notice.effective
    if timeline.notice is not None:
        raise fail("effective", f"{ends}: the agreement ends on {timeline.notice.effective} already")
    if notice.doc_sha256 != newest.doc_sha256.hex():
        raise fail("doc_sha256", f"{notice.doc_sha256} is not that of the newest terms, {newest.doc_sha256.hex()}")
    if ends >= newest.effective_until:
        raise fail("effective", f"{ends}: the agreement ends by its own terms on {newest.effective_until}")
    if ends <= timeline.documents[0].effective_from:
        raise fail("effective", f"{ends} is not after {timeline.documents[0].effective_from}, when the agreement began")
    if newest.day_ns(ends) <= now_ns:
        raise fail(
            "effective", f"{ends} is not later than now ({format_instant_ns(now_ns)}), and no notice reaches back"
        )
    _check_split(Timeline(timeline.documents, notice).terms[-1].agreement, ends)


def _check_split(agreement: Agreement, day: date) -> None:
    """That terms which end on a day leave no time without a period, and parts that their windows fill and that are
    aligned as they say."""
    if day >= agreement.effective_until:
        return
    ended = agreement.ending_on(day)
    if ended.periods.empty:
        raise fail("effective", f"{day}: the terms would end before their first period")
    ended.check_windows()
    ended.check_alignment()


def _member(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = document
    for name in path:
        found = found.get(name)
    return found


def milestones(timeline: Timeline) -> Iterator[tuple[int, str, int]]:
    """What becomes of an agreement when, in order: instant, ``active``, ``amended``, ``terminated`` or ``expired``,
    and the version that it is about."""
    last = timeline.terms[-1] if timeline.terms else None
    for each in timeline.terms:
        yield each.agreement.starts_ns, str(State.ACTIVE if each is timeline.terms[0] else State.AMENDED), each.version
    if last is not None:
        end = State.EXPIRED if timeline.notice is None else State.TERMINATED
        yield last.agreement.ends_ns, str(end), last.version
