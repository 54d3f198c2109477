"""Telling what is new from what a source said before: the same steps for every kind of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.app.ports.store import Transaction
from ledger.domain.rows.observation import BodyBook, Verdict, VerdictCounts, identity_scope, request_id_digests


def tell_apart(
    tx: Transaction,
    sla_id: str,
    source: str,
    scope: str,
    ids: Iterable[str],
    bodies: Sequence[bytes],
    counts: VerdictCounts,
) -> list[Verdict]:
    """The verdict of each row, by its id and the digest of its body; ``counts`` counts them, and what is new is
    remembered. Rows of two ``scope``s never meet (``identity_scope``)."""
    digests = request_id_digests(identity_scope(sla_id, source, scope), ids)
    body_of = dict(zip(digests, bodies, strict=True))
    # In the order of the store's index, which looks them up and adds them.
    ordered = sorted(body_of)
    known = tx.identities.known(sla_id, source, ordered)
    if not known and len(ordered) == len(digests):
        # Nothing was said of any of them before: what nearly every batch comes to.
        tx.identities.add(sla_id, source, [(digest, body_of[digest]) for digest in ordered])
        counts.accepted += len(digests)
        return [Verdict.ACCEPTED] * len(digests)
    book = BodyBook(known)
    verdicts = list(map(book.classify, digests, bodies))
    tx.identities.add(sla_id, source, sorted(book.new))
    counts.accepted += verdicts.count(Verdict.ACCEPTED)
    counts.duplicates += verdicts.count(Verdict.DUPLICATE)
    counts.conflicts += verdicts.count(Verdict.CONFLICT)
    return verdicts
