"""The relay: tells the queues of the work that is due, again and again until somebody has taken it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ledger.app.ports.outbox import Lease
from ledger.app.ports.store import Database
from ledger.domain.time.instant import Clock
from ledger.errors import BrokerUnavailable

BATCH = 100


class Relay:
    """Rings due work. Any number of relays may run: each rings other rows.

    ``again_ns`` is after how long a row that was rung and not claimed is due to be rung again.
    """

    def __init__(self, database: Database, send: Callable[[Lease], None], clock: Clock, *, again_ns: int) -> None:
        self._database = database
        self._send = send
        self._clock = clock
        self._again_ns = again_ns

    def ring_due(self) -> int:
        """Send a message for each of the next due rows; how many.

        The rows are marked before the messages are sent: a worker would look in vain for a mark that is not committed.
        Raises ``BrokerUnavailable``, and then what could not be sent is due again at once.
        """
        with self._database.begin() as tx:
            rung = tx.outbox.ring(self._clock.now_ns(), self._again_ns, limit=BATCH)
        for sent, lease in enumerate(rung):
            try:
                self._send(lease)
            except BrokerUnavailable as error:
                self._put_back(rung[sent:], error)
                raise
        return len(rung)

    def _put_back(self, rung: Sequence[Lease], error: BrokerUnavailable) -> None:
        with self._database.begin() as tx:
            for lease in rung:
                tx.outbox.postpone(lease, reason=f"{error.code}: {error.message}", retry_at_ns=self._clock.now_ns())
