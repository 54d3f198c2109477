"""The outbox as the use cases see it: work that follows a commit, who holds it, and what waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Lease(NamedTuple):
    """Work that was handed out. ``token`` is the fence: it changes whenever the same work is handed out again, so
    that who comes too late with an old one changes nothing."""

    event_id: str
    tenant: str
    stage: str
    attempt: int
    """Which attempt this is, counted from 1."""
    token: int


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One stage of one event as an operator sees it. ``holder`` works it now, if anybody does."""

    event_id: str
    tenant: str
    stage: str
    state: str
    attempts: int
    due_at_ns: int
    holder: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class StageWait:
    """How the work of one stage waits, as far as it is not done or parked.

    ``untold_since_ns``: since when the work that is longest due is handed to nobody. ``untried_since_ns``: since when
    the oldest work waits that no worker has ever taken, whoever was told of it. Both None where there is no such work.
    ``worked`` counts the leases that have not run out.
    """

    stage: str
    untold_since_ns: int | None
    untried_since_ns: int | None
    worked: int


class Outbox(Protocol):
    """Work that follows a commit: one row per (event, stage), handed out under a lease.

    A row is due once its event is in the log, so that the work finds it in the views. Every result names its lease:
    one that ran out and was given to somebody else counts no more.
    """

    def add(self, event_id: str, stage: str) -> None:
        """Queue a stage for an event; the same pair again is a no-op."""
        ...

    def lease(self, now_ns: int, lease_ns: int, *, holder: str, stages: Collection[str] | None = None) -> Lease | None:
        """The next due work of ``stages`` (None: of any), leased to ``holder`` until now + lease; None when nothing is
        due. Counts an attempt."""
        ...

    def ring(
        self, now_ns: int, again_ns: int, *, stages: Collection[str] | None = None, limit: int = 100
    ) -> Sequence[Lease]:
        """Due work that somebody else is now told of; it is due again, unless claimed, after ``again_ns``.

        No attempt is counted: ``claim`` does that.
        """
        ...

    def claim(self, event_id: str, stage: str, token: int, now_ns: int, lease_ns: int, *, holder: str) -> Lease | None:
        """Lease the work that was rung with ``token``. None where that is known already: it was claimed, rung again,
        done or parked since. Counts an attempt."""
        ...

    def renew(self, lease: Lease, until_ns: int) -> bool:
        """Keep a lease until an instant; False where it is lost."""
        ...

    def done(self, lease: Lease) -> bool:
        """The work is done; False, and nothing changes, where the lease is lost."""
        ...

    def fail(self, lease: Lease, *, error: str, retry_at_ns: int | None) -> bool:
        """The attempt failed; without ``retry_at_ns`` the row is parked for an operator. False as for ``done``."""
        ...

    def postpone(self, lease: Lease, *, reason: str, retry_at_ns: int) -> bool:
        """The work must wait until an instant; the attempt does not count. False as for ``done``."""
        ...

    def release(self, holder: str) -> None:
        """Make due now what ``holder`` has leased. For its next start, when it cannot be working any more."""
        ...

    def retry(self, event_id: str, stage: str) -> None:
        """Make parked work due again, with all its attempts. Raises ``NotFound``, or ``Refused`` for other work."""
        ...

    def entries(self, *, states: Collection[str], limit: int) -> Sequence[OutboxEntry]:
        """The first rows that are ``pending``, ``parked`` or ``done``, in the order in which they were queued."""
        ...

    def parked(self) -> Sequence[tuple[str, str, int, str]]:
        """(event_id, stage, attempts, error) of parked rows."""
        ...

    def pending(self) -> int:
        """Rows neither done nor parked."""
        ...

    def waiting(self, now_ns: int) -> Sequence[StageWait]:
        """How the stages wait that have pending rows, by name of the stage.

        What waits because it is not possible yet is neither untold nor untried; what the broker did not take is.
        """
        ...

    def unfinished(self, event_ids: Collection[str], *, stages: Collection[str]) -> bool:
        """Whether one of these stages of one of these events is pending or parked."""
        ...

    def unplaced(self) -> Sequence[str]:
        """Ids of events with pending rows that are not due because the event is not in the log yet."""
        ...
