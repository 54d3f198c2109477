"""When blocks were sealed, by the log's clock: a count that is sealed with its grace cannot be chosen by its result."""

from __future__ import annotations

from typing import Final

from ledger.attest.checks.case import Case, require
from ledger.domain.time.instant import DAY_NS, SECOND_NS
from ledger.domain.windows.blocks import block_ends_ns, sealed_from_ns

ON_TIME_S: Final = 3600
"""How long after the grace a seal may come and still be on time: whoever seals looks from time to time."""


def seal_times(case: Case) -> str:
    """No block was sealed before it was over; how late the seals came, and which were replaced, with the reason."""
    latest_ns, ends_ns = _latest_ns(case), _ends_ns(case)
    replaced = []
    for block, seal in enumerate(case.bundle["seals"]):
        recorded_ns = int(seal["header"]["recorded_at_ns"])
        require(recorded_ns >= ends_ns[block], f"block {block} was sealed before its last window was over")
        if "reason" in seal["payload"]:
            replaced.append(f"block {block} was sealed anew ({seal['payload']['reason']})")
    found = [] if latest_ns is None else [_lateness(max(latest_ns, 0))]
    return "; ".join([*found, *replaced])


def on_time(case: Case) -> bool:
    """Whether every block stands as it was first sealed, and that with its grace."""
    latest_ns = _latest_ns(case)
    anew = any("reason" in seal["payload"] for seal in case.bundle["seals"])
    return latest_ns is not None and latest_ns <= ON_TIME_S * SECOND_NS and not anew


def _ends_ns(case: Case) -> tuple[int, ...]:
    return block_ends_ns(case.agreement, case.period, len(case.bundle["seals"]))


def _latest_ns(case: Case) -> int | None:
    """How long after its grace the latest of the first seals came; None where all blocks were sealed anew."""
    first = (
        int(seal["header"]["recorded_at_ns"]) - sealed_from_ns(case.agreement, ends_ns)
        for seal, ends_ns in zip(case.bundle["seals"], _ends_ns(case), strict=True)
        if "reason" not in seal["payload"]
    )
    return max(first, default=None)


def _lateness(late_ns: int) -> str:
    if late_ns <= ON_TIME_S * SECOND_NS:
        return f"by the log's clock every block was sealed within {late_ns // SECOND_NS} s after its grace"
    late = f"{late_ns // DAY_NS} days" if late_ns >= 2 * DAY_NS else f"{late_ns // SECOND_NS} s"
    return f"by the log's clock a block was sealed {late} after its grace, when its counts may have been known for long"
