"""A bad hour that is zeroed, dropped or excluded shows, from the request log over settlement, model and statement to a
verifier: in the proof's own summary, and where too little is left, there is no verdict at all.

The issuer here is dishonest towards its own ledger: it hands in what it likes, and states what it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit, Report
from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import window_counts
from ledger.attest.commitments.model import PeriodClaim, evaluate
from ledger.attest.commitments.statement import State, Summary
from ledger.domain.time.instant import parse_instant_ns
from ledger.domain.time.interval import Interval
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.errors import ConstraintUnmet
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.office import Evidence, Office, row, trust

pytestmark = pytest.mark.slow

DAY = "2023-06-14"
HOURS = range(24)
CARVED = {"carve_outs": [{"id": "dispute", "kind": "dispute", "reason": "both agree"}]}


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        yield


@dataclass(frozen=True)
class Facts:
    """A day: which hours have a failure among their requests, which of these the issuer hides, and the floor."""

    bad: frozenset[int]
    hidden: frozenset[int]
    floor: int

    @property
    def windows(self) -> tuple[Window, ...]:
        """What really happened."""
        return tuple(hour_of(hour, WindowState.OBSERVED, 1, int(hour in self.bad)) for hour in HOURS)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    bad = draw(st.frozensets(st.sampled_from(HOURS), min_size=1, max_size=12), label="bad")
    hidden = draw(st.frozensets(st.sampled_from(sorted(bad)), min_size=1), label="hidden")
    return Facts(bad, hidden, draw(st.sampled_from([50, 75, 90, 99]), label="floor"))


def hour_of(hour: int, state: WindowState, good: int, bad: int) -> Window:
    start = parse_instant_ns(f"{DAY}T00:00:00Z") + hour * 3600 * 10**9
    succeeded = Cell(good, 0)
    return Window(Interval(start, start + 3600 * 10**9), state, (Cell(good, bad), succeeded, succeeded))


def rows(hours: Any, facts: Facts) -> list[dict[str, Any]]:
    found = [row(f"good{hour}", f"{DAY}T{hour:02}:10:00Z") for hour in hours]
    return found + [row(f"bad{hour}", f"{DAY}T{hour:02}:20:00Z", error_code=500) for hour in hours if hour in facts.bad]


def office(facts: Facts) -> Office:
    return Office(coverage_floor=str(facts.floor), **CARVED).at_the_end()


def honest(facts: Facts) -> Office:
    return office(facts).hand_in(*rows(HOURS, facts))


def zeroed(facts: Facts) -> Office:
    """The log is declared complete, and of the hidden hours nothing is in it."""
    return office(facts).hand_in(*rows([hour for hour in HOURS if hour not in facts.hidden], facts))


def dropped(facts: Facts) -> Office:
    """The hidden hours are not declared complete."""
    found = office(facts)
    for hour in HOURS:
        if hour not in facts.hidden:
            window = hour_of(hour, WindowState.OBSERVED, 0, 0).interval
            found.hand_in(*rows([hour], facts), span=window)
    return found


def excluded(facts: Facts) -> Office:
    """The hidden hours are taken out as agreed by both, which the statement has to say."""
    found = honest(facts)
    for hour in sorted(facts.hidden):
        found.exclude(f"d{hour}", "dispute", f"{DAY}T{hour:02}:00:00Z", 60)
    return found


HIDING = {"zeroed": zeroed, "dropped": dropped, "excluded": excluded}


def report(forged: Forger, made: Evidence) -> Report:
    read = verification.read_bundle(forged.sign())
    opening = verification.read_opening(made.opening) if made.opening else None
    return verification.verify_bundle(read, verification.read_trust(trust()), opening)


@pytest.mark.parametrize("how", HIDING)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(facts())
def test_a_bad_hour_that_is_hidden_shows(how: str, facts: Facts) -> None:
    made = HIDING[how](facts).close().evidence()
    forged = made.forger()
    found = report(forged, made)
    assert found.exit_code(accept_dev=True) is Exit.HOLDS
    left, gone = len(HOURS), len(facts.hidden)
    floor_holds = how != "dropped" or (left - gone) * 100 >= left * facts.floor
    said = forged.issued
    assert (said["state"] == "settled") == floor_holds
    if not floor_holds:
        # Nothing is met, nothing is owed, and no proof says otherwise.
        assert {result["state"] for result in said["objectives"]} == {"withheld"}
        assert (said["credit"], forged.bundle["proof"]) == (None, None)
        require_no_proof(facts)
        return
    summary = Summary.decode(int(forged.proof["signals"][0]))
    missing = left - summary.observed - summary.excluded
    expected = {"zeroed": (gone, 0, 0), "dropped": (0, gone, 0), "excluded": (0, 0, gone)}
    assert (summary.idle, missing, summary.excluded) == expected[how]
    assert (summary.states[0] is State.MET) == (facts.hidden == facts.bad)
    if how == "excluded":
        assert {each["exclusion_id"] for each in said["exclusions"]} == {f"d{hour}" for hour in facts.hidden}
    require_stated(how, gone, made)


def require_no_proof(facts: Facts) -> None:
    """The model, which is the circuit, has none for what was dropped below the floor."""
    missing = [hour_of(hour, WindowState.NO_DATA, 0, 0) for hour in HOURS]
    windows = [missing[hour] if hour in facts.hidden else facts.windows[hour] for hour in HOURS]
    terms = attested_terms(office(facts).desk.agreement)
    claim = PeriodClaim(terms, window_counts(windows), 1, (1,), 800_000, base_salt=1, credit_salt=1, ctx=1)
    with pytest.raises(ConstraintUnmet):
        evaluate(claim)


def require_stated(how: str, shown: int, made: Evidence) -> None:
    """The statement cannot say of its coverage what the proof does not, though it is logged and signed anew."""
    lie = made.forger()
    if how == "zeroed":
        lie.issued["idle"] -= shown
    elif how == "dropped":
        lie.issued["observed"] += shown
    else:
        lie.issued["observed"] += shown
        lie.issued["excluded"] -= shown
        del lie.issued["exclusions"]
    lie.log()
    assert "summary" in failed(report(lie, made))
