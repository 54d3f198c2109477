"""A statement may leave out the windows that its exclusions cover under the signed terms, and no others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ledger.app.periods.exclusions import excluded_members
from ledger.attest.checks.case import Case
from ledger.attest.checks.exclusion_checks import require_excluded
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import Exclusion, excluded_in, rule
from ledger.errors import BundleCheckFailed
from tests.support import examples

HOUR_NS = 3600 * 10**9
CLASS = {"id": "rotation", "reason": "hosts are replaced", "longest": "PT2H", "notice": "PT72H"}
Change = Callable[[dict[str, Any]], object]


def case(change: Change = lambda _: None, *, hours: float = 2, clauses: bool = True) -> Case:
    """A bundle whose statement leaves out the third and fourth hour, for a rotation announced a week before."""
    bundle = copy.deepcopy(dict(examples.bundle()))
    if clauses:
        bundle["agreement"] = {**bundle["agreement"], "maintenance": {"classes": [CLASS]}}
    agreement = Agreement.from_document(bundle["agreement"])
    issued = bundle["statement"]["payload"]
    period = period_named(agreement, issued["period"]).interval
    start_ns = period.start_ns + 2 * HOUR_NS
    exclusion = Exclusion(
        "hosts", "rotation", Interval(start_ns, start_ns + int(hours * HOUR_NS)), start_ns - 7 * 24 * HOUR_NS, "both"
    )
    terms = agreement.exclusion_terms
    issued |= excluded_members(excluded_in(terms, rule(terms, agreement.timezone, [exclusion]), period))
    issued["excluded"] = 2
    change(issued)
    return Case(bundle)


def longer(issued: dict[str, Any]) -> None:
    """An hour more than the class has, and one window more."""
    (listed,) = issued["exclusions"]
    for span in (listed, listed["honoured"]):
        span["to_ns"] = str(int(span["to_ns"]) + HOUR_NS)
    issued["excluded"] = 3


def late(issued: dict[str, Any]) -> None:
    issued["exclusions"][0]["announced_at_ns"] = issued["exclusions"][0]["from_ns"]


def unlisted(issued: dict[str, Any]) -> None:
    del issued["exclusions"]


def one_more(issued: dict[str, Any]) -> None:
    issued["excluded"] = 3


def one_less(issued: dict[str, Any]) -> None:
    issued["excluded"] = 1


def twice(issued: dict[str, Any]) -> None:
    issued["exclusions"] *= 2


def unknown(issued: dict[str, Any]) -> None:
    issued["exclusions"][0]["clause"] = "picnic"


def unapproved(issued: dict[str, Any]) -> None:
    issued["exclusions"][0]["approved_by"] = None


def elsewhere(issued: dict[str, Any]) -> None:
    """Honoured in other hours than it was for."""
    honoured = issued["exclusions"][0]["honoured"]
    honoured |= {name: str(int(value) + 5 * HOUR_NS) for name, value in honoured.items()}


def test_what_the_terms_allow_holds() -> None:
    require_excluded(case())
    # Of three hours the class has two.
    require_excluded(case(hours=3))


def test_a_statement_without_exclusions_holds() -> None:
    require_excluded(Case(examples.bundle()))


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (longer, "do not allow all that the exclusion hosts"),
        (late, "do not allow all that the exclusion hosts"),
        (unknown, "do not allow all that the exclusion hosts"),
        (unapproved, "do not allow all that the exclusion hosts"),
        (elsewhere, "do not allow all that the exclusion hosts"),
        (unlisted, "2 windows are left out, and exclusions cover 0 whole"),
        (one_more, "3 windows are left out, and exclusions cover 2 whole"),
        (one_less, "1 windows are left out, and exclusions cover 2 whole"),
        (twice, "listed twice"),
    ],
)
def test_a_lie_about_exclusions_is_found(lie: Change, said: str) -> None:
    with pytest.raises(BundleCheckFailed, match=said):
        require_excluded(case(lie))


def test_terms_without_a_clause_exclude_nothing() -> None:
    listed = case().issued["exclusions"]
    with pytest.raises(BundleCheckFailed, match="no clause that excludes time"):
        require_excluded(case(lambda issued: issued.update(exclusions=listed), clauses=False))
