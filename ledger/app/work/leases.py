"""Keeping a lease while its work takes longer than the lease lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ledger.app.ports.outbox import Lease
from ledger.app.ports.store import Database
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import Unavailable

BEATS_A_LEASE = 3
"""Two renewals may fail before a lease runs out under a worker that lives."""


@contextmanager
def kept(database: Database, lease: Lease, clock: Clock, lease_ns: int) -> Iterator[None]:
    """Renew ``lease`` from a thread of its own until the block is left.

    A process that dies stops renewing, so that its work is due again after one lease. A lease that is lost all the
    same is not renewed any more; the work in the block finds out by its token when it is done.
    """
    over = threading.Event()

    def beat() -> None:
        while not over.wait(lease_ns / SECOND_NS / BEATS_A_LEASE):
            try:
                with database.begin() as tx:
                    held = tx.outbox.renew(lease, clock.now_ns() + lease_ns)
            except Unavailable:
                # The next beat comes before the lease runs out.
                continue
            if not held:
                return

    thread = threading.Thread(target=beat, name=f"lease of {lease.stage}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
