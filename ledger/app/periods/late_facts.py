"""Facts about a period that is closed: taken until the deadline of its claims, and then what the period says is judged
anew.

Whoever records a fact (a batch, an exclusion, a charge, a withdrawn fact) calls ``facts_changed`` in the same
transaction. One event in the stream of the period's closing says so, and the stages that follow a closing follow it.
"""

from __future__ import annotations

from ledger.app.agreements.registering import RegisteredAgreement
from ledger.app.periods.closing import closing_of
from ledger.app.ports.store import Receipt, Transaction
from ledger.app.work.outbox import Stage
from ledger.domain.credits.claims import accepts_until_ns
from ledger.domain.record.events import NewEvent
from ledger.domain.record.naming import closing_stream
from ledger.domain.time.calendar import Period
from ledger.domain.time.instant import format_instant_ns
from ledger.errors import ClaimDeadlinePassed


def facts_changed(
    tx: Transaction,
    registered: RegisteredAgreement,
    period: Period,
    *,
    cause: str,
    reason: str,
    fact: str,
    now_ns: int,
    awaited: bool = False,
) -> Receipt | None:
    """Say that a fact of a period was recorded by the event ``fact``, and queue what follows if the period is closed.

    None where it is not: its closing takes the fact in. ``cause`` names the kind of fact, ``reason`` tells people what
    it is, without counts. ``awaited``: the period could not be settled without it, and takes it however late. The
    transaction holds the agreement's source (``tx.identities.reserve``) from here on.
    Raises ``ClaimDeadlinePassed``, and ``VersionConflict`` where another fact of the period came meanwhile.
    """
    # Nobody judges or finalizes the period between the look and the end of this transaction. Who closes it meanwhile
    # has it judged after that, with this fact.
    tx.identities.reserve(registered.sla_id, registered.agreement.source)
    closed = closing_of(tx, registered.sla_id, period)
    if closed is None:
        return None
    if not awaited:
        require_accepted(registered, period, now_ns)
    stream = closing_stream(registered.sla_id, period.first)
    payload = {
        **{name: closed.payload[name] for name in ("sla_id", "period", "start_ns", "end_ns", "doc_sha256")},
        "cause": cause,
        "fact": fact,
        "reason": reason,
    }
    (receipt,) = tx.events.append(
        stream,
        [NewEvent("period_facts_changed", payload, occurred_at_ns=now_ns)],
        expected_version=sum(1 for _ in tx.events.stream(stream)),
    )
    tx.outbox.add(receipt.event_id, Stage.EVALUATE)
    return receipt


def require_accepted(registered: RegisteredAgreement, period: Period, now_ns: int) -> None:
    """Raises ``ClaimDeadlinePassed`` where facts about a closed period are no longer taken."""
    until_ns = accepts_until_ns(registered.agreement, period)
    if now_ns >= until_ns:
        deadline = format_instant_ns(until_ns)
        raise ClaimDeadlinePassed(
            f"the period {period} is closed, and facts about it were taken until {deadline}, the deadline of its "
            "claims; leave out what is about it",
            period=str(period),
            deadline=deadline,
        )
