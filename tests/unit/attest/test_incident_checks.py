"""Bundles with two proofs: honest ones of every kind, and every lie about the incidents, the tiers or the credit.

The forger holds every party's secrets and both provers, so each lie goes as far as it can be carried: only what a rule
says about it can refuse it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from ledger.attest.checks import verification
from ledger.attest.checks.report import Exit
from ledger.attest.checks.verification import Report
from ledger.attest.commitments.incident_credit import total_commit
from ledger.attest.commitments.statement import tier_commit
from ledger.domain.terms.agreement import Agreement
from tests.conformance.samples import SeededRandomness
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.office import CREDITS, PERIODS, SECRETS, Evidence, Office, row, trust
from tests.support.office import failed as error
from tests.unit.app.conftest import signed_agreement

pytestmark = pytest.mark.slow

DAY = "2023-06-14"
PAID: Mapping[str, Any] = signed_agreement("agreement-impact.yaml")["compensation"]


@pytest.fixture(autouse=True, scope="module")
def _together() -> Iterator[None]:
    """Most lies change no proof."""
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        yield


def at(hour: int) -> str:
    return f"{DAY}T{hour:02}:30:00Z"


def slow(name: str, hour: int) -> dict[str, Any]:
    return row(name, at(hour), ttft_s=0.9)


def office(**changes: Any) -> Office:
    """Three incidents: of two hours, of one, and of one; between them the promise is kept."""
    compensation = {**copy.deepcopy(dict(PAID)), **changes}
    found = Office("agreement-impact.yaml", compensation=compensation).at_the_end()
    rows = [slow("a", 2), slow("b", 3), row("c", at(4)), slow("d", 5), row("e", at(6)), slow("f", 7), row("g", at(8))]
    return found.hand_in(*rows).close()


@cache
def restated() -> Evidence:
    return office().hand_in(slow("late", 9)).settle().evidence()


@cache
def evidence(**changes: Any) -> Evidence:
    return office(**changes).evidence()


def report_on(data: bytes, opening: bytes | None = None) -> Report:
    opened = None if opening is None else verification.read_opening(opening)
    return verification.verify_bundle(verification.read_bundle(data), verification.read_trust(trust()), opened)


# --- honest ------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[], Evidence]] = {
    "the larger one": evidence,
    "the sum": lambda: office(rules_combine="sum").evidence(),
    "a committed credit": lambda: evidence(credit_visibility="committed"),
    "no tiers": lambda: office(rules=[PAID["rules"][1]]).evidence(),
    "at the cap": lambda: office(caps={"contract": "1.01"}).evidence(),
    "not above the minimum": lambda: office(minimum="2900.00").evidence(),
    "no incident": lambda: Office("agreement-impact.yaml").at_the_end().hand_in(row("a", at(2))).close().evidence(),
    "restated": restated,
}


@pytest.mark.parametrize("name", KINDS)
def test_an_honest_statement_with_two_proofs_verifies_with_its_opening(name: str) -> None:
    made = KINDS[name]()
    assert "incident_proof" in json.loads(made.bundle)
    report = report_on(made.bundle, made.opening)
    assert not failed(report), [line for line in report.lines if line.check in failed(report)]
    assert report.exit_code(accept_dev=True) is Exit.HOLDS
    assert report.exit_code(accept_dev=False) is Exit.NOT_PINNED


def test_both_proofs_of_many_bundles_are_checked_together() -> None:
    bundles = [verification.read_bundle(made.bundle) for made in (evidence(), restated())]
    reports = verification.verify_bundles(bundles, verification.read_trust(trust()), SeededRandomness(3))
    assert not any(failed(report) for report in reports)
    forged = Forger(bundles[0], SECRETS)
    forged.bundle["incident_proof"]["proof"] = bundles[1]["incident_proof"]["proof"]
    bundles[0] = verification.read_bundle(forged.transact().sign())
    first, second = verification.verify_bundles(bundles, verification.read_trust(trust()), SeededRandomness(3))
    assert (failed(first), failed(second)) == ({"incident proof"}, set())


def test_each_circuit_is_pinned() -> None:
    pins = verification.read_trust(trust())
    for missing, check in ((PERIODS, "pin: circuit"), (CREDITS, "pin: incident circuit")):
        circuit = missing.key().circuit_id.hex()
        fewer = {**pins, "circuits": [each for each in pins["circuits"] if each["circuit_id"] != circuit]}
        assert failed(verification.verify_bundle(verification.read_bundle(evidence().bundle), fewer)) == {check}


# --- lies --------------------------------------------------------------------------------------------


class Liar(Forger):
    """Proves what it likes: whoever made the keys can."""

    def prove(self) -> Liar:
        """Proofs of the signals as they stand, and the party's transaction with them."""
        for name, prover in (("proof", PERIODS), ("incident_proof", CREDITS)):
            if name in self.bundle:
                signals = tuple(int(signal) for signal in self.bundle[name]["signals"])
                self.bundle[name]["proof"] = prover.forge(signals).hex()
        self.transact()
        return self

    def signal(self, which: str, index: int, value: int) -> Liar:
        self.bundle[which]["signals"][index] = str(value)
        return self

    @property
    def incidents(self) -> list[dict[str, Any]]:
        return self.issued["trace"]["incidents"]  # type: ignore[no-any-return]


def liar(made: Evidence | None = None) -> Liar:
    return Liar(json.loads((made or evidence()).bundle), SECRETS)


def verdict(forged: Liar) -> set[str]:
    return failed(report_on(forged.sign()))


def without_the_second(forged: Liar) -> None:
    del forged.bundle["incident_proof"]


def first_as_credit(forged: Liar) -> None:
    """The tiers' proof alone, with the tiers' amount called the credit."""
    del forged.bundle["incident_proof"]
    trace = forged.issued["trace"]
    trace |= {"incidents": [], "impact_amount": {"numerator": "0", "denominator": "1"}}
    trace |= dict.fromkeys(("combined_amount", "capped_amount"), trace["tier_amount"])
    trace["credit"] = forged.issued["credit"]["minor_units"] = trace["tier_amount"]["numerator"]


SIGNALS: dict[str, tuple[Callable[[Liar], object], set[str]]] = {
    "another ctx": (lambda f: f.signal("incident_proof", 2, 7), {"incidents"}),
    "another amount of the tiers": (lambda f: f.signal("incident_proof", 3, 7), {"incidents"}),
    "another amount of the tiers in both": (
        lambda f: f.signal("incident_proof", 3, 7).signal("proof", 1, 7),
        {"credit"},
    ),
    "other terms": (lambda f: f.signal("incident_proof", 4, 7), {"incidents"}),
    "another number of incidents": (lambda f: f.signal("incident_proof", 0, 2 | 4 << 8), {"incidents"}),
    "other incidents": (lambda f: f.signal("incident_proof", 5, 7), {"incidents"}),
    "another total": (lambda f: f.signal("incident_proof", 1, 7), {"incident credit"}),
    "no second proof": (without_the_second, {"verdict", "anchor"}),
    "the tiers are the credit": (first_as_credit, {"verdict", "anchor"}),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_a_proof_that_says_something_else_fails_by_name(name: str) -> None:
    lie, checks = SIGNALS[name]
    forged = liar()
    lie(forged)
    forged.log()
    forged.prove()
    found = verdict(forged)
    # The transaction of a statement with one proof calls another function, and a party may well have sent that.
    assert found >= checks - {"anchor"}
    assert found <= checks


def dropped(forged: Liar) -> None:
    forged.incidents.pop()


def doubled(forged: Liar) -> None:
    forged.incidents.insert(1, dict(forged.incidents[0]))


def split(forged: Liar) -> None:
    first = forged.incidents[0]
    halves = [{**first, "first_window": first["first_window"] + step, "windows": 1, "valid": 1} for step in (0, 1)]
    forged.incidents[:1] = halves


INCIDENTS: dict[str, Callable[[Liar], object]] = {
    "one was dropped": dropped,
    "one was doubled": doubled,
    "one run as two": split,
    "out of order": lambda f: f.incidents.reverse(),
    "moved": lambda f: f.incidents[0].update(first_window=f.incidents[0]["first_window"] - 1),
    "past the end": lambda f: f.incidents[-1].update(first_window=24),
    "before the period": lambda f: f.incidents[0].update(first_window=-1),
    "of no window": lambda f: f.incidents[0].update(windows=0),
    "fewer requests": lambda f: f.incidents[0].update(valid=1),
    "more requests": lambda f: f.incidents[0].update(valid=400),
    "more good than valid": lambda f: f.incidents[0].update(good=3),
    "a promise that was kept": lambda f: f.incidents[0].update(good=2),
    "a count that is true": lambda f: f.incidents[0].update(windows=True),
    "a count that is a text": lambda f: f.incidents[0].update(valid="2"),
    "no numbers": lambda f: f.incidents[0].pop("good"),
    "not an incident": lambda f: f.incidents.__setitem__(0, "outage"),
    "no list": lambda f: f.issued["trace"].update(incidents="three"),
    "of another objective": lambda f: f.incidents[0].update(objective="availability"),
    "at another time": lambda f: f.incidents[0].update(start_ns="0"),
    "for another amount": lambda f: f.incidents[0].update(amount={"numerator": "1", "denominator": "1"}),
    "another sum": lambda f: f.issued["trace"].update(impact_amount={"numerator": "1", "denominator": "1"}),
    "another price": lambda f: f.issued["trace"].update(price_per_request={"numerator": "1", "denominator": "1"}),
    "another way to combine": lambda f: f.issued["trace"].update(rules_combine="sum"),
    "no cap": lambda f: f.issued["trace"].update(cap=None),
    "a credit of another sum": lambda f: f.issued["credit"].update(minor_units="100"),
    "listed thirty times": lambda f: f.issued["trace"].update(incidents=f.incidents * 30),
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_lie_about_the_incidents_fails_in_the_verdict(name: str) -> None:
    forged = liar()
    INCIDENTS[name](forged)
    forged.log()
    forged.prove()
    assert "verdict" in verdict(forged)


def minute(place: int) -> str:
    """In every other window of five minutes."""
    return f"{DAY}T{place // 6:02}:{place % 6 * 10 + 1:02}:00Z"


@cache
def crowded() -> Evidence:
    """A day with 70 incidents of a window and a request each, but for the last one, which has two requests."""
    rows = [row(f"f{place}", minute(place), ttft_s=0.9) for place in range(70)]
    rows += [row("again", minute(69), ttft_s=0.9), row("fine", f"{DAY}T23:01:00Z")]
    found = Office("agreement-impact.yaml", window="PT5M", compensation=copy.deepcopy(dict(PAID))).at_the_end()
    return found.hand_in(*rows).close().evidence()


def test_more_incidents_than_places_are_proved_to_the_last_one() -> None:
    made = crowded()
    bundle = json.loads(made.bundle)
    assert len(bundle["statement"]["payload"]["trace"]["incidents"]) == 70
    assert int(bundle["incident_proof"]["signals"][0]) == 64 | 70 << 8
    report = report_on(made.bundle, made.opening)
    assert not failed(report), [line for line in report.lines if line.check in failed(report)]


def without(index: int) -> Callable[[Liar], object]:
    return lambda f: f.incidents.pop(index)


def one_more_request(index: int) -> Callable[[Liar], object]:
    return lambda f: f.incidents[index].update(valid=2)


SHARED: dict[str, tuple[Callable[[Liar], object], set[str]]] = {
    "the last one left out": (without(69), {"verdict", "incidents"}),
    "the first that shares a place left out": (without(63), {"verdict", "incidents"}),
    "one with a place of its own left out": (without(62), {"verdict", "incidents"}),
    "more requests in the last place": (one_more_request(68), {"verdict", "incidents"}),
    "only the first 64 are proved": (lambda f: f.signal("incident_proof", 0, 64 | 64 << 8), {"incidents"}),
    "a count of incidents in place of places": (
        lambda f: f.signal("incident_proof", 0, 70 | 70 << 8),
        {"incidents"},
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_lie_about_incidents_that_share_a_place_fails(name: str) -> None:
    lie, checks = SHARED[name]
    forged = liar(crowded())
    lie(forged)
    forged.log()
    forged.prove()
    assert verdict(forged) == checks


def test_what_is_moved_between_incidents_of_one_place_is_held_to_the_opening() -> None:
    """The sums stay, and with them proof and credit; which incident had how many requests only the opening says."""
    forged = liar(crowded())
    before, last = forged.incidents[68:]
    for name in ("valid", "amount"):
        before[name], last[name] = last[name], before[name]
    forged.log()
    forged.prove()
    assert verdict(forged) == set()
    assert failed(report_on(forged.sign(), crowded().opening)) == {"opening"}


def test_many_incidents_are_no_reason_to_leave_the_proof_out() -> None:
    forged = liar(crowded())
    said = "70 incidents in one period; the circuit incidents_64 takes at most 64"
    forged.issued.update({"attestable": False, "unattested_reasons": [said], "seal_key": None, "telemetry_root": None})
    del forged.bundle["incident_proof"]
    forged.bundle |= dict.fromkeys(("proof", "context", "base", "anchor", "telemetry")) | {"seals": []}
    forged.log()
    assert verdict(forged) == {"verdict", "telemetry"}


def test_incidents_that_are_kept_back_show_in_what_they_leave() -> None:
    """The whole trace is redone as if there had been two incidents; the totals still have the third one's requests."""
    fewer = Office("agreement-impact.yaml").at_the_end()
    rows = [
        slow("a", 2),
        slow("b", 3),
        row("c", at(4)),
        slow("d", 5),
        row("e", at(6)),
        row("f", at(7)),
        row("g", at(8)),
    ]
    said = json.loads(fewer.hand_in(*rows).close().evidence().bundle)["statement"]["payload"]
    forged = liar()
    tiers = {name: forged.issued["trace"][name] for name in ("tiers", "combined_bps", "tier_amount")}
    forged.issued.update({"trace": {**said["trace"], **tiers}, "credit": said["credit"]})
    forged.log()
    forged.prove()
    (line,) = [line for line in report_on(forged.sign()).lines if line.check == "verdict"]
    assert "still breaks the promise" in line.detail


def test_committed_amounts_are_opened_by_their_salts() -> None:
    made = evidence(credit_visibility="committed")
    bundle = json.loads(made.bundle)
    credit = bundle["statement"]["payload"]["credit"]["minor_units"]
    trace, ctx = bundle["statement"]["payload"]["trace"], int(bundle["proof"]["signals"][2])
    base = Agreement.from_document(bundle["agreement"]).compensation.base
    tiers = tier_commit(ctx, base * trace["combined_bps"], int(bundle["credit_salt"]))
    assert bundle["proof"]["signals"][1] == bundle["incident_proof"]["signals"][3] == str(tiers)
    total = total_commit(ctx, int(credit), int(bundle["incident_proof"]["credit_salt"]))
    assert bundle["incident_proof"]["signals"][1] == str(total)
    for salt in ("7", None):
        for place, check in ((("credit_salt",), "credit"), (("incident_proof", "credit_salt"), "incident credit")):
            forged = liar(made)
            node: Any = forged.bundle
            for key in place[:-1]:
                node = node[key]
            node[place[-1]] = salt
            assert verdict(forged) == {check}


KEYS: dict[str, tuple[Callable[[Liar], object], set[str]]] = {
    "another circuit": (lambda f: f.bundle["incident_proof"].update(circuit="compliance_25x4"), {"incident key"}),
    "another key": (
        lambda f: f.bundle["incident_proof"].update(verification_key=f.bundle["proof"]["verification_key"]),
        {"incident key", "incident proof", "anchor"},
    ),
    "a manifest of another key": (
        lambda f: f.bundle["incident_proof"]["manifest"].update(circuit_id="00" * 32),
        {"incident key", "anchor", "pin: incident circuit"},
    ),
    "another proof": (
        lambda f: f.bundle["incident_proof"].update(proof=f.bundle["proof"]["proof"]),
        {"incident proof"},
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_second_proof_under_something_else_fails_by_name(name: str) -> None:
    lie, checks = KEYS[name]
    forged = liar()
    lie(forged)
    forged.transact()
    assert verdict(forged) == checks


def test_swapped_proofs_fail() -> None:
    forged = liar()
    first, second = forged.bundle["proof"], forged.bundle["incident_proof"]
    salt = second.pop("credit_salt")
    forged.bundle |= {"proof": second, "incident_proof": {**first, "credit_salt": salt}}
    forged.transact()
    assert verdict(forged) >= {"summary", "telemetry signal", "base", "incidents", "incident key", "verification key"}


def test_a_transaction_with_the_first_proof_alone_is_no_anchor() -> None:
    forged = liar()
    second = forged.bundle.pop("incident_proof")
    forged.transact()
    forged.bundle["incident_proof"] = second
    assert verdict(forged) == {"anchor"}


REPLACED: dict[str, tuple[Callable[[Any], object], set[str]]] = {
    "nothing of its credit": (lambda context: context.pop("prev_incident_signals"), {"context"}),
    "another credit": (lambda context: context["prev_incident_signals"].__setitem__(2, "7"), {"context"}),
    "other terms": (lambda context: context["prev_incident_signals"].__setitem__(4, "7"), {"context"}),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_restatement_names_both_proofs_that_it_replaces(name: str) -> None:
    lie, checks = REPLACED[name]
    forged = liar(restated())
    assert len(forged.bundle["context"]["prev_incident_signals"]) == 6
    lie(forged.bundle["context"])
    forged.transact()
    assert verdict(forged) == checks


def test_the_first_version_replaces_no_credit() -> None:
    forged = liar()
    forged.bundle["context"]["prev_incident_signals"] = ["1"] * 6
    assert verdict(forged) == {"context", "anchor"}


def test_a_second_proof_is_lent_to_nobody() -> None:
    plain = Office().at_the_end().hand_in(error("a", at(3))).close().evidence()
    forged = liar(plain)
    forged.bundle["incident_proof"] = json.loads(evidence().bundle)["incident_proof"]
    forged.transact()
    assert {"verdict", "incidents", "anchor"} <= verdict(forged)
