"""Bundles of every kind, honest and changed, before two verifiers: ours and ``outsider``, which needs the page alone.

The forger holds everybody's keys and signs again as much as it likes, so that signatures mask nothing. Where the two
verdicts part, one of them is wrong, or the page does not say enough.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.attest.checks import incident_checks, verification
from ledger.attest.checks import statement_checks as checks
from ledger.attest.checks.verification import Exit, Outcome
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.time.instant import DAY_NS
from tests.conformance.samples import SeededRandomness
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.office import SECRETS, trust
from tests.unit.attest.test_verification_binding import leaves, variants
from tests.vectors import outsider, outsider_chain
from tests.vectors.kinds import KINDS, evidence
from tests.vectors.verdicts import ours, theirs

pytestmark = pytest.mark.slow

REFUSED = {"a probe that had to sign"}
"""What is as honest as the others, and still no bundle that holds."""


@pytest.fixture(autouse=True, scope="module")
def _together() -> Iterator[None]:
    """All proofs are looked at together, by either verifier; each of the tests then takes them as found."""
    proved = [document for name in KINDS if (document := json.loads(evidence(name).bundle))["proof"] is not None]
    proofs = [each for one in proved for each in (one["proof"], one.get("incident_proof")) if each is not None]
    randomness, held = SeededRandomness(11), set()
    for circuit in {each["manifest"]["circuit_id"] for each in proofs}:
        under = [each for each in proofs if each["manifest"]["circuit_id"] == circuit]
        claims = [(list(map(int, one["signals"])), bytes.fromhex(one["proof"])) for one in under]
        numbers = [int.from_bytes(randomness.bytes(16), "big") for _ in claims]
        outsider_chain.require_proofs(under[0]["verification_key"], claims, numbers)
        held |= {(tuple(signals), data) for signals, data in claims}
    keys = [each["verification_key"] for each in proofs]
    reports = verification.verify_bundles(proved, None, randomness)
    assert all(not failed(report) & {"proof", "incident proof"} for report in reports)
    with pytest.MonkeyPatch.context() as patch:
        remember_pairings(patch)
        alone = checks.check_proof

        def check(under: Any, signals: Any, data: bytes) -> None:
            if under.document() not in keys or (signals, data) not in held:
                alone(under, signals, data)

        for module in (checks, incident_checks):
            patch.setattr(module, "check_proof", check)
        yield
        outsider_chain.TOGETHER.clear()


@pytest.mark.parametrize("name", KINDS)
def test_an_honest_bundle_has_one_verdict(name: str) -> None:
    made = evidence(name)
    outside = theirs(made.bundle, trust(), made.opening)
    assert outside == ours(made.bundle, trust(), made.opening)
    assert outside.exits[1] == (Exit.FAILED if name in REFUSED else Exit.HOLDS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a week sealed as it goes", Outcome.PASS),
        ("sealed long after", Outcome.NOT_CHECKED),
        ("the second of three versions", Outcome.NOT_CHECKED),
    ],
)
def test_what_is_not_checked_is_said_by_both(name: str, expected: Outcome) -> None:
    """Late seals, and one that was replaced."""
    lines = outsider.verify(evidence(name).bundle, trust())
    assert Outcome(lines["6 seal times"]) is expected


DEADLINES = [
    "claims for days",
    "a week sealed as it goes",
    "a month in which clocks go back",
    "a part before an amendment",
    "a part after an amendment",
    "a part before a notice",
    "rolling periods",
]
"""Kinds of terms that name a deadline."""


@pytest.mark.parametrize("name", ["met", "the third of three versions", *DEADLINES])
def test_only_the_time_that_the_terms_give_is_taken(name: str) -> None:
    """Less of it and more, by an issuer who signs everything again; where it is not said, the terms must not say it."""
    document, found = json.loads(evidence(name).bundle), set()
    said = int(document["statement"]["payload"]["accepts_until_ns"])
    for lie in (said - DAY_NS, said - 1, said + 1, None):
        forged = Forger(copy.deepcopy(document), SECRETS)
        if lie is None:
            del forged.issued["accepts_until_ns"]
        else:
            forged.issued["accepts_until_ns"] = str(lie)
        STEPS["log"](forged)
        mine, outside = ours(forged.sign(), trust()), theirs(forged.sign(), trust())
        assert mine == outside
        found.add((lie is None, mine.failed))
    assert found == {(False, frozenset({4})), (True, frozenset({4} if name in DEADLINES else ()))}


PAIRED, PROOFS = {"verification_key", "proof", "signals"}, {"proof", "incident_proof"}
"""Where most changes would cost seconds of pairings, and have tests of their own."""


def changeable(document: Any) -> list[tuple[str | int, ...]]:
    found = (path for path, _ in leaves(document))
    return [
        path for path in found if path != ("issuer_signature",) and not (path[0] in PROOFS and {*path[1:2]} & PAIRED)
    ]


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        document = document[part]
    return document


def changed(data: st.DataObject, document: Any, other: Any) -> None:
    """One change: another value near by, a member or entry left out or doubled, or what the other bundle has there."""
    path = data.draw(st.sampled_from(changeable(document)), label="path")
    depth = data.draw(st.integers(1, len(path)), label="depth")
    how = data.draw(st.sampled_from(["near", "without", "twice", "swapped"]), label="how")
    *above, last = path if how == "near" else path[:depth]
    node = at(document, tuple(above))
    if how == "near":
        node[last] = data.draw(st.sampled_from(list(variants(node[last]))), label="value")
    elif how == "without":
        del node[last]
    elif how == "twice" and isinstance(node, list):
        node.insert(int(last), copy.deepcopy(node[int(last)]))
    elif how == "swapped":
        with contextlib.suppress(KeyError, IndexError, TypeError):
            node[last] = copy.deepcopy(at(other, (*above, last)))


STEPS: dict[str, Any] = {
    "agree": Forger.agree,
    "collect": Forger.collect,
    "log": lambda forged: forged.log(
        sorted(
            [
                *forged.bundle.get("announcements", ()),
                *forged.bundle["seals"],
                *forged.bundle.get("previous", ()),
                forged.bundle["statement"],
            ],
            key=lambda event: event["seq"],
        )
    ),
    "transact": Forger.transact,
}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(st.data())
def test_a_changed_bundle_has_one_verdict(data: st.DataObject) -> None:
    kind = st.sampled_from([name for name in KINDS if "month" not in name])
    made, other = (evidence(data.draw(kind, label=label)) for label in ("kind", "other"))
    forged = Forger(json.loads(made.bundle), SECRETS)
    for _ in range(data.draw(st.integers(1, 2), label="changes")):
        changed(data, forged.bundle, json.loads(other.bundle))
    for name in data.draw(st.lists(st.sampled_from(list(STEPS)), unique=True, max_size=3), label="signed again"):
        # What no tool of the forger can make sense of is left as it is.
        with contextlib.suppress(Exception):
            STEPS[name](forged)
    try:
        signed = forged.sign()
    except Exception:
        signed = canonical_bytes(forged.bundle)
    opening = made.opening if data.draw(st.booleans(), label="opened") else None
    mine, outside = ours(signed, trust(), opening), theirs(signed, trust(), opening)
    assert mine.exits == outside.exits, (mine, outside)
    if Exit.FAILED not in mine.exits:
        assert mine == outside
