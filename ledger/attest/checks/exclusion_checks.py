"""Whether a statement excludes no more than the signed terms allow.

An issuer who could exclude at will would exclude the windows in which it failed. So a statement lists the exclusions
that take something out of its period, and each is held to the limits of its clause. Tickets of the same month outside
the period are not in it: a class's count is held to what is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.app.periods.exclusions import exclusion_of
from ledger.attest.checks.case import Case, require
from ledger.domain.time.interval import Interval, covered, union
from ledger.domain.windows.exclusions import excluded_in, rule


def require_excluded(case: Case) -> None:
    """Raises ``BundleCheckFailed`` where windows are left out for which no exclusion stands."""
    terms, listed = case.agreement.exclusion_terms, case.issued.get("exclusions", ())
    require(bool(terms.clauses) or not listed, "the agreement has no clause that excludes time")
    names = [each["exclusion_id"] for each in listed]
    require(len(set(names)) == len(names), "an exclusion is listed twice")
    ruled = rule(terms, case.agreement.timezone, map(exclusion_of, listed))
    allowed = {each.exclusion.id: each.honoured for each in excluded_in(terms, ruled, case.period.interval).rulings}
    for each in listed:
        claimed, most = _interval(each["honoured"]), allowed.get(each["exclusion_id"])
        if claimed is not None:
            within = most is not None and most.covers(claimed)
            require(within, f"the terms do not allow all that the exclusion {each['exclusion_id']} takes out")
    excluded = sum(left_out(case))
    require(
        case.issued["excluded"] == excluded,
        f"{case.issued['excluded']} windows are left out, and exclusions cover {excluded} whole",
    )


def left_out(case: Case) -> tuple[bool, ...]:
    """Of each window of the period, whether what the statement honours covers it whole. Proofs count such windows and
    do not say which they are."""
    honoured = (_interval(each["honoured"]) for each in case.issued.get("exclusions", ()))
    taken_out = union(part for part in honoured if part is not None)
    return tuple(covered(window, taken_out) for window in case.agreement.windows(case.period))


def _interval(span: Mapping[str, Any] | None) -> Interval | None:
    return None if span is None else Interval(int(span["from_ns"]), int(span["to_ns"]))
