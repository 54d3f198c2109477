"""What is left of every error budget, kept for whoever looks often: a look never waits for more than a moment.

Reading a budget means reading the judged windows of a period. So a look reads those anew that were read longest ago,
for as long as ``SPEND_S``, and answers the rest from what it knows; with few agreements that is all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.paging import Row
from ledger.app.reading.queries import Queries
from ledger.errors import NotFound, SlaLedgerError

SPEND_S = 0.25
FRESH_S = 60.0
MAX_AGREEMENTS = 1000
"""Of how many agreements budgets are kept: each objective of one is a series."""


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """``left`` is the share of a budget that is left: 1 where nothing was bad, below 0 where more than all is gone.

    None where nothing may fail and something did.
    """

    tenant: str
    sla_id: str
    objective: str
    left: Fraction | None


class BudgetBoard:
    """The budgets of all tenants, of the period that runs or was settled last. Safe for several threads.

    ``tenants`` names them: a tenant's own ``queries`` know of no other.
    """

    def __init__(
        self, queries: Queries, tenants: Callable[[], Sequence[str]], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._queries = queries
        self._tenants = tenants
        self._now_s = now_s
        self._lock = Lock()
        self._listed_at_s: float | None = None
        self._read_at_s: dict[tuple[str, str], float] = {}
        self._left: dict[tuple[str, str], tuple[BudgetLeft, ...]] = {}
        self.left_out = 0
        """Agreements beyond ``MAX_AGREEMENTS``."""

    def look(self) -> Sequence[BudgetLeft]:
        """What is known, by tenant, agreement and objective. Raises ``Unavailable`` where the database is away."""
        with self._lock:
            started_s = self._now_s()
            if self._listed_at_s is None or started_s - self._listed_at_s >= FRESH_S:
                self._list()
                self._listed_at_s = started_s
            for key in sorted(self._read_at_s, key=self._read_at_s.__getitem__):
                now_s = self._now_s()
                if now_s - started_s >= SPEND_S or now_s - self._read_at_s[key] < FRESH_S:
                    break
                self._left[key] = self._read(*key)
                self._read_at_s[key] = now_s
            return [each for key in sorted(self._left) for each in self._left[key]]

    def _list(self) -> None:
        found = list[tuple[str, str]]()
        for tenant in sorted(self._tenants()):
            with self._queries.of_tenant(tenant).database.read() as tx:
                rows = tx.views.agreements_page(limit=MAX_AGREEMENTS + 1)
            found += ((tenant, str(row["sla_id"])) for row in rows)
        self.left_out = max(0, len(found) - MAX_AGREEMENTS)
        kept = found[:MAX_AGREEMENTS]
        self._read_at_s = {key: self._read_at_s.get(key, float("-inf")) for key in kept}
        self._left = {key: self._left[key] for key in kept if key in self._left}

    def _read(self, tenant: str, sla_id: str) -> tuple[BudgetLeft, ...]:
        everything = Principal("the server", tenant, ROLE_SCOPES[Role.OPERATOR])
        try:
            found = self._queries.of_tenant(tenant).budgets(everything, sla_id, period=None, over=())
        except NotFound:
            return ()
        except SlaLedgerError:
            # What is known of it stays.
            return self._left.get((tenant, sla_id), ())
        return tuple(BudgetLeft(tenant, sla_id, row["id"], _left(row)) for row in found.objectives)


def _left(row: Row) -> Fraction | None:
    allowed, remaining = (
        Fraction(int(row[name]["numerator"]), int(row[name]["denominator"])) for name in ("allowed", "remaining")
    )
    if allowed:
        return remaining / allowed
    return None if row["bad"] else Fraction(1)
